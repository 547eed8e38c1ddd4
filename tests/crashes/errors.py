"""I/O errors at each change that a commit makes to SQLite's files: the request is refused, and the server goes on.

The layer of `tests.crashes.disk` fails the n-th write, sync, truncation or deletion, once or from then on.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crashes.disk import Fault, Faults, Struck
from tests.crashes.kills import ROOT
from tests.support.api import OPERATOR, Host, Member, Speaker, connected, hang_up
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.ledger.verify import verify

MOST = 100  # changes of one commit; there are far fewer
COMMITS = 2000  # until SQLite moves its log into the database; far fewer are needed


@dataclass
class Errors:
    """What I/O errors left behind."""

    struck: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)  # what, how long, kind, file
    refused: int = 0  # with 503
    absent: int = 0  # of these, not in the ledger
    whole: int = 0  # of these, in the ledger
    answered: int = 0  # although something failed, namely after the commit
    not_ready: int = 0  # how often /ready said 503 while every write failed, and 200 after it
    seconds: float = 0.0

    def by_what(self) -> Counter[tuple[str, str]]:
        """Return how many faults of each kind struck, and how long."""
        counts: Counter[tuple[str, str]] = Counter()
        for (what, how_long, _, _), count in self.struck.items():
            counts[what, how_long] += count
        return counts


class _Trial:
    """A server on the layer, and a member whose requests are struck."""

    def __init__(self, folder: Path) -> None:
        self.faults = Faults(folder / "fault")
        self.database = f"sqlite:///{folder}/partage.db"
        self.server = self.start()
        self.host = Host(self.server.url, horizon=10**6, arms=["a", "b"], claim_seconds=600)
        self.member = self.host.join("a", "b")
        self.errors = Errors()
        self.requests = 0

    def start(self) -> Server:
        given = {"DISK_FAULT": str(self.faults.path), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        return Server(self.database, env=OPERATOR | given, module="tests.crashes.disk")

    def one(self, fault: Fault, joins: bool) -> list[Struck]:
        """Make a request that this fault strikes, and the same one again; return what was struck."""
        self.requests += 1
        request = f"request {self.requests}"
        caller: Speaker = self.member
        body: dict[str, Any] = {"shares": ["a"] if self.requests % 2 else ["a", "b"], "request": request}
        call = ("PATCH", "/agents/me", body)
        if joins:  # writes a row, and a token in another table
            caller = Speaker(self.server.url, self.host.invite(), self.host.collaboration)
            call = ("POST", "/agents", {"name": request, "shares": ["b"], "request": request})
        self.faults.set(fault)
        answer = caller.call(*call)
        struck = self.faults.struck()
        if struck and fault.times < 0 and fault.after == 0:
            self.wait_for_ready(503)
            assert connected(self.server.url).get("/health").status_code == 200
            self.faults.clear()
            self.wait_for_ready(200)
            self.errors.not_ready += 1
        self.faults.clear()
        errors = self.errors
        if not struck:
            assert answer.is_success, answer.text
            return struck
        how_long = "for good" if fault.times < 0 else "once"
        errors.struck.update((fault.what, how_long, one.kind, one.suffix) for one in struck[:1])
        there = self.there(request, joins)
        if answer.is_success:  # only what comes after a commit may fail without notice
            assert there == 1, (struck, answer.text)
            assert struck[0].suffix == "", struck
            errors.answered += 1
        else:
            assert answer.status_code == 503, (struck, answer.status_code, answer.text)
            assert answer.json()["code"] == "database_unavailable", answer.text
            assert there in (0, 1), struck
            errors.refused, errors.absent, errors.whole = (
                errors.refused + 1,
                errors.absent + (there == 0),
                errors.whole + there,
            )
        again = caller.call(*call)
        assert again.is_success, (struck, again.status_code, again.text)
        assert self.there(request, joins) == 1, struck
        if joins:  # the token is there with the row
            Member(self.server.url, again.json()["token"], self.host.collaboration, "").ok("GET", "/agents/me")
        return struck

    def there(self, request: str, joins: bool) -> int:
        """Return how many rows a request has."""
        kind, name = ("join", "name") if joins else ("consent", "request")
        return sum(row[name] == request for row in self.host.events(kind))

    def verify(self) -> list[dict[str, Any]]:
        """Verify the ledger, and return its lines."""
        answer = self.host.call("GET", "/ledger")
        verified = verify(answer.content.splitlines(keepends=True))
        assert verified.ok, verified.problem
        return self.host.ledger()

    def wait_for_ready(self, status: int) -> None:
        """Wait until /ready answers with this status; it tries a write every few seconds."""
        until = time.monotonic() + PATIENCE
        while connected(self.server.url).get("/ready").status_code != status:
            assert time.monotonic() < until, f"/ready never says {status}"
            time.sleep(0.05)


def fail_each_change(folder: Path, whats: tuple[str, ...] = ("EIO", "ENOSPC"), checkpoint: int = 10) -> Errors:
    """Fail each change of a commit, in each way, and some while the log is moved into the database."""
    began = time.monotonic()
    trial = _Trial(folder)
    try:
        for joins in (False, True):
            for what in whats:
                for times in (1, -1):
                    for number in range(MOST):
                        if not trial.one(Fault(what=what, after=number, times=times), joins):
                            break
                    else:
                        raise AssertionError("a commit has no end")
        _fail_checkpoints(trial, whats, checkpoint)
        lines = trial.verify()
        trial.server.kill()
        hang_up(trial.server.url)
        trial.server = trial.start()  # what the failed writes left in the files does no harm
        trial.host.url = trial.server.url
        assert trial.verify() == lines
    finally:
        trial.server.kill()
        hang_up(trial.server.url)
    trial.errors.seconds = time.monotonic() - began
    return trial.errors


def _fail_checkpoints(trial: _Trial, whats: tuple[str, ...], most: int) -> None:
    """Fail changes of the database itself, which happen when SQLite moves its log there, after a commit.

    It does so again with the next commit after one that failed, until no change is left to fail.
    """
    number = 0
    for _ in range(COMMITS):
        fault = Fault(what=whats[number % len(whats)], after=number, suffix="")
        if trial.one(fault, joins=False):
            number += 1
        elif number:
            return
        if number == most:
            return
    raise AssertionError("SQLite never moved its log into the database")
