"""What `Agent` and `AsyncAgent` have in common: identity, options and the state file."""

import os
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import ClassVar, TypedDict

import httpx

from partage.checks import count, number_from
from partage.client import statefile
from partage.client.address import checked_url
from partage.client.effects import Answer, Lost, Send
from partage.client.protocol import Protocol
from partage.client.pulls import Pull, checked_names
from partage.client.statefile import AgentState
from partage.errors import InputError
from partage.files import write_atomically
from partage.ledger.fields import normal
from partage.ledger.own_rules import load_rules

TIMEOUT = httpx.Timeout(10.0, pool=None)
STREAM_TIMEOUT = httpx.Timeout(10.0, read=60.0, pool=None)  # the controller is never silent that long on a stream
OWNER_ONLY, READABLE = 0o600, 0o644


class Options(TypedDict, total=False):
    """How a client behaves; `Agent` documents each option."""

    state: str | os.PathLike[str] | None
    max_pulls_per_board: int
    own_rewards: int
    patience: float
    listen: bool
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None


class BaseAgent:
    """An agent's identity and options."""

    _clock: ClassVar[Callable[[], float]] = time.monotonic
    _random_bytes: ClassVar[Callable[[int], bytes]] = secrets.token_bytes

    def __init__(self, saved: AgentState, options: Options) -> None:
        allowed = Options.__annotations__
        if unknown := [name for name in options if name not in allowed]:
            raise InputError(f"There is no option {unknown[0]}; it must be one of {', '.join(allowed)}.")
        modules = options.get("rules", ())
        load_rules(*([modules] if isinstance(modules, str | os.PathLike) else modules))
        state = options.get("state")
        self._path = None if state is None else Path(state)
        self._listens = options.get("listen", True)
        self._protocol = Protocol(
            saved,
            saves=self._path is not None,
            max_pulls_per_board=options.get("max_pulls_per_board", 10),
            own_rewards=options.get("own_rewards", 0),
            patience=options.get("patience", 60.0),
            clock=type(self)._clock,
            random_bytes=type(self)._random_bytes,
        )

    @property
    def id(self) -> str:
        """The agent's id in the collaboration; empty before the first call of an agent created from a token."""
        return self._protocol.saved.agent

    @property
    def collaboration(self) -> str:
        """The collaboration's id."""
        return self._protocol.saved.collaboration

    @property
    def shares(self) -> list[str]:
        """The arms that the agent consents to share."""
        return list(self._protocol.saved.shares)

    @property
    def deferred(self) -> list[Pull]:
        """The claims whose rewards come later, in the order in which `ask` returned them; `tell` takes each."""
        return self._protocol.deferred

    @property
    def terms(self) -> str:
        """What the settlement means for the agent, as the controller said when it joined; empty if it did not."""
        return self._protocol.terms

    @property
    def rule_source(self) -> str:
        """The SHA-256 of the module of the collaboration's rule; empty for a built-in one, or if not known yet."""
        return self._protocol.following.rule[1]

    @property
    def head(self) -> str:
        """The last head of the ledger that the controller sent; `partage verify FILE --head HEAD` checks it."""
        return self._protocol.saved.head

    @property
    def evidence(self) -> list[str]:
        """After `Forked`: the checkpoint that the agent kept, and the one it was shown; otherwise empty."""
        return list(self._protocol.saved.evidence)

    def checkpoint(self) -> str:
        """Return the newest signed checkpoint of the ledger, cosigned by this agent, to give to another member.

        Empty if the controller gave none yet, or is of release 0.1.
        """
        return self._protocol.witness.note()

    @property
    def unpaid(self) -> int:
        """Commit pulls whose report the controller refused, most likely because it came too late."""
        return self._protocol.saved.unpaid

    def __repr__(self) -> str:
        saved = self._protocol.saved
        return f"{type(self).__name__}({saved.url!r}, {saved.collaboration!r}, agent={saved.agent!r})"  # no token

    def _write(self, content: bytes) -> None:
        assert self._path is not None
        write_atomically(self._path, content, OWNER_ONLY)


JOINING = 5.0  # seconds to try to join: nothing is lost yet, and the address may be wrong


def first_patience(options: Options) -> float | None:
    """Return for how long to try to join; None: as long as for other requests, as the caller asked for."""
    return JOINING if options.get("patience") is None and options.get("transport") is None else None


def saved_or_new(
    url: str,
    collaboration: str,
    options: Options,
    name: str = "",
    shares: Collection[str] = (),
    token: str = "",
    declared: tuple[int | None, float | None] = (None, None),
) -> AgentState:
    """Return the agent of the state file, or a new one if there is no file yet."""
    name = normal(name) if isinstance(name, str) else name  # as the controller stores it
    url, state, names = checked_url(url), options.get("state"), checked_names("shares", shares)
    if state is None or not Path(state).exists():
        new = AgentState(url=url, collaboration=collaboration, name=name, shares=names, token=token)
        new.horizon, new.pace = _checked(*declared)
        return new
    saved = statefile.read(Path(state))
    if (saved.url, saved.collaboration) != (url, collaboration):
        raise InputError(
            f"The state file {state} belongs to an agent in collaboration {saved.collaboration} at {saved.url}; "
            "use another file."
        )
    if token and saved.token != token:
        raise InputError(f"The state file {state} belongs to an agent with another token; use another file.")
    if not saved.token:  # an earlier join did not succeed
        saved.name, saved.shares = name, names
        saved.horizon, saved.pace = _checked(*declared)
    return saved


def _checked(horizon: int | None, pace: float | None) -> tuple[int | None, float | None]:
    """Return what an agent declares as it joins."""
    own = None if horizon is None else count("The horizon of an agent", horizon, at_least=2)
    if pace is not None and not number_from("The pace", pace, low=0):
        raise InputError("The pace is 0; it must be a number above 0: pulls per hour.")
    return own, None if pace is None else float(pace)


def resumed(state: str | os.PathLike[str], token: str = "") -> AgentState:
    """Return the agent of a state file, with a new token if one is given."""
    saved = statefile.read(Path(state))
    if not saved.token:
        raise InputError(f"The agent of the state file {state} has not joined yet; call join again.")
    if token:
        saved.token = token
    return saved


def request_of(client: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
    """Return the request that an effect describes."""
    return client.build_request(step.method, step.path, headers=dict(step.headers), content=step.body)


def answer_of(response: httpx.Response) -> Answer:
    """Return the parts of a response that the protocol reads."""
    after = response.headers.get("retry-after", "")  # a date is as good as none: the pauses grow anyway
    seconds = float(after) if after.isascii() and after.isdecimal() else None
    return Answer(response.status_code, response.content, response.headers.get("etag"), seconds)


def lost_by(error: httpx.TransportError) -> Lost:
    """Return a failure in the form that the protocol reads."""
    return Lost(type(error).__name__)
