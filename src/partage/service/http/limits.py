"""Limits: how much one caller may ask for. Every limit of the HTTP side is here.

They are kept in memory, so each process has its own. What a field may hold is in `partage.ledger.fields`.
"""

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from partage import environment
from partage.errors import InputError
from partage.ledger.refusals import Refused, too_many

# of a connection (`protocol.py`)
LARGEST_HEAD = 32 * 1024  # bytes of a request's first line and headers
HEAD_TIME = 10.0  # seconds in which they must arrive, and the first ones of a connection
BODY_TIME = 60.0  # seconds in which a body must arrive
IDLE_TIME = 65  # seconds that a connection may wait for its next request: longer than proxies keep theirs

LEDGERS = 2  # that one caller may download at once
MOST_CALLERS = 100_000  # whose requests are remembered at once


@dataclass(frozen=True)
class Rate:
    """So many requests per second in the long run, and so many at once."""

    per_second: float
    at_once: float


# Failed log-ins, of one address and of all together. Who logs in successfully is not counted.
LOG_INS = Rate(1 / 6, 10)
ALL_LOG_INS = Rate(2, 100)

# Calls that cost more than others, for each caller and collaboration.
COSTLY = {
    "ledger": Rate(2, 60),
    "settlement": Rate(2, 60),
    "close": Rate(1, 30),
    "token": Rate(1, 30),
    "consent": Rate(10, 200),
    "history": Rate(1, 100),
    "forecast": Rate(1, 30),
    "proofs": Rate(50, 500),
}


@dataclass(frozen=True)
class Limits:
    """The limits that an operator may have to change.

    Attributes
    ----------
    requests
        Requests per second of one agent; twice as many at once.
    streams, streams_each
        Open event streams of a process, and of one caller in one collaboration.
    wrong_tokens
        Wrong bearer tokens per minute from one address; five times as many at once.
    costly
        How many times as many costly calls as `COSTLY` says.
    forecast_seconds
        Processor time that the forecast of a join page may take; 0: the page shows none.
    """

    requests: float = 2000
    streams: float = 5000
    streams_each: float = 8
    wrong_tokens: float = 60
    costly: float = 1
    forecast_seconds: float = 60

    @classmethod
    def of_environment(cls) -> "Limits":
        """Return the limits that the environment sets: numbers above 0, or 0 for no forecasts."""
        found = {}
        for field, variable in environment.LIMITS.items():
            text = environment.read(variable)
            if text:
                try:
                    found[field] = float(text)
                except ValueError:
                    found[field] = math.nan
                none = field == "forecast_seconds" and found[field] == 0
                if not none and not 0 < found[field] < math.inf:
                    raise InputError(f"The variable {variable} must be a number above 0.")
        return cls(**found)


class Buckets:
    """A bucket of permissions per caller, which fills at a rate and from which each request takes one.

    Examples
    --------
    >>> now = 0
    >>> buckets = Buckets(Rate(per_second=0.5, at_once=2), lambda: now)
    >>> [buckets.take("ann") for _ in range(3)], buckets.take("bob")
    ([0.0, 0.0, 2.0], 0.0)
    """

    def __init__(self, rate: Rate, clock: Callable[[], int]) -> None:
        self._rate, self._clock = rate, clock
        self._left: dict[Hashable, tuple[float, int]] = {}  # permissions, and the time in ms at which they were left

    def take(self, caller: Hashable) -> float:
        """Take a permission: return 0, or the seconds until there is one."""
        left, now = self._now(caller)
        if left >= 1:
            self._left[caller] = left - 1, now
            return 0.0
        self._left[caller] = left, now
        return (1 - left) / self._rate.per_second

    def give_back(self, caller: Hashable) -> None:
        """Give a permission back that was not needed."""
        left, now = self._now(caller)
        if left + 1 >= self._rate.at_once:
            self._left.pop(caller, None)
        else:
            self._left[caller] = left + 1, now

    def _now(self, caller: Hashable) -> tuple[float, int]:
        now = self._clock()
        found = self._left.get(caller)
        if found is None:
            if len(self._left) >= MOST_CALLERS:
                self._forget(now)
            return self._rate.at_once, now
        left, then = found
        return min(left + max(0, now - then) / 1000 * self._rate.per_second, self._rate.at_once), now

    def _forget(self, now: int) -> None:
        """Forget the callers whose buckets are full by now, or else the half that came first."""
        fills = self._rate.at_once / self._rate.per_second * 1000
        kept = {caller: found for caller, found in self._left.items() if 0 <= now - found[1] < fills}
        if len(kept) >= MOST_CALLERS:
            kept = dict(list(kept.items())[len(kept) // 2 :])
        self._left = kept


class Guard:
    """The limits of one process, and what its callers have used of them."""

    def __init__(self, limits: Limits, clock: Callable[[], int]) -> None:
        self.limits = limits
        self._requests = Buckets(Rate(limits.requests, 2 * limits.requests), clock)
        self._costly = {
            kind: Buckets(Rate(limits.costly * rate.per_second, limits.costly * rate.at_once), clock)
            for kind, rate in COSTLY.items()
        }
        self._log_ins, self._all_log_ins = Buckets(LOG_INS, clock), Buckets(ALL_LOG_INS, clock)
        self._wrong_tokens = Buckets(Rate(limits.wrong_tokens / 60, 5 * limits.wrong_tokens), clock)
        self._streams, self._ledgers = Open(limits.streams_each), Open(LEDGERS)

    def request(self, agent: Hashable) -> None:
        """Count a request of an agent."""
        _granted(self._requests.take(agent), "requests")

    def costly(self, kind: str, caller: Hashable) -> None:
        """Count a request that costs more than others."""
        _granted(self._costly[kind].take(caller), f"requests of this kind ({kind})")

    @contextmanager
    def guess(self, address: str) -> Iterator[None]:
        """Count a bearer token, unless it turns out to be right."""
        _granted(self._wrong_tokens.take(address), "wrong tokens from this address")
        with _counted_if_wrong(lambda: self._wrong_tokens.give_back(address)):
            yield

    @contextmanager
    def log_in(self, address: str) -> Iterator[None]:
        """Count a log-in, unless it succeeds."""
        _granted(self._log_ins.take(address), "failed log-ins from this address")
        wait = self._all_log_ins.take("everybody")
        if wait:
            self._log_ins.give_back(address)
        _granted(wait, "failed log-ins")

        def give_back() -> None:
            self._log_ins.give_back(address)
            self._all_log_ins.give_back("everybody")

        with _counted_if_wrong(give_back):
            yield

    @contextmanager
    def stream(self, caller: Hashable) -> Iterator[None]:
        """Count an event stream for as long as it is open."""
        if self._streams.total >= self.limits.streams:
            raise too_many("Too many event streams are open; read the board instead, or try again later.", 30)
        with self._streams.one_more(caller, "event streams are open with this token; close one of them."):
            yield

    @contextmanager
    def ledger(self, caller: Hashable) -> Iterator[None]:
        """Count a download of the ledger for as long as it takes."""
        with self._ledgers.one_more(caller, "ledgers are being downloaded with this token; wait for one of them."):
            yield


class Open:
    """What each caller has open at the moment, and a limit on it."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._of: dict[Hashable, int] = {}
        self.total = 0

    @contextmanager
    def one_more(self, caller: Hashable, what: str) -> Iterator[None]:
        """Count one more until the end of the block; the refusal says `what` there are too many of."""
        if self._of.get(caller, 0) >= self._most:
            raise too_many(f"Too many {what}", 5)
        self._of[caller] = self._of.get(caller, 0) + 1
        self.total += 1
        try:
            yield
        finally:
            self.total -= 1
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]


@contextmanager
def _counted_if_wrong(give_back: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        if refusal.status != 401:
            give_back()
        raise
    except BaseException:
        give_back()
        raise
    give_back()


def _granted(wait: float, what: str) -> None:
    if wait:
        seconds = max(1, math.ceil(wait))
        raise too_many(f"There were too many {what}; try again in {seconds} second{'s' * (seconds > 1)}.", wait)


def network_of(address: str) -> str:
    """Return what stands for one caller: an IPv4 address, or the /64 network of an IPv6 address.

    >>> network_of("192.0.2.7"), network_of("2001:db8::7"), network_of("::ffff:192.0.2.7"), network_of("socket")
    ('192.0.2.7', '2001:db8::', '192.0.2.7', 'socket')
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)
