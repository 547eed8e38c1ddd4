"""Counters and latencies, in Prometheus's text format."""

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

if TYPE_CHECKING:
    from partage.service.runtime.controller import Controller


class Metrics:
    """Metrics of this process, or with `together` of all worker processes.

    Worker processes share their counts through the folder that prometheus_client reads from the environment.
    """

    def __init__(self, together: bool = False) -> None:
        self.together = together
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "partage_requests", "Requests by path and status", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "partage_request_seconds",
            "Time to answer, by path",
            ["path"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
        )
        self.collaborations = self._gauge("partage_collaborations", "Collaborations in memory", "livemax")
        self.unloaded = self._gauge("partage_collaborations_unloaded", "Times one left the memory, idle", "livesum")
        self.watchers = self._gauge("partage_watchers", "Open event streams", "livesum")
        self.broadcasts = self._gauge("partage_broadcasts", "Broadcasts of the collaborations in memory", "livemax")
        self._labelled: dict[tuple[str, int], Any] = {}

    def _gauge(self, name: str, what: str, mode: Any) -> Gauge:
        return Gauge(name, what, registry=self.registry, multiprocess_mode=mode)

    def count(self, scope: Any, status: int, seconds: float) -> None:
        """Count a request. The label is the path's template, so that neither ids nor typos become labels."""
        path = scope.get("path_template") or "unknown"
        found = self._labelled.get((path, status))
        if found is None:
            found = self.requests.labels(path, str(status)), self.seconds.labels(path)
            self._labelled[(path, status)] = found
        found[0].inc()
        if not path.endswith("/events"):  # a stream lasts as long as its reader stays
            found[1].observe(seconds)

    def text(self, controller: "Controller") -> bytes:
        """Return all metrics as text."""
        books = controller.library.books.values()
        self.collaborations.set(len(books))
        self.unloaded.set(controller.library.unloaded)
        self.watchers.set(sum(len(book.watchers) for book in books))
        self.broadcasts.set(sum(sum(book.state.board.counts) for book in books))
        if not self.together:
            return generate_latest(self.registry)
        everyone = CollectorRegistry()
        multiprocess.MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)
