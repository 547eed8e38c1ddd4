"""What `Agent` and `AsyncAgent` have in common: who she is, and where her state is kept."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TypedDict

import httpx

from partage.client import statefile as files
from partage.client.effects import Answer, Lost, Send
from partage.client.protocol import Logic
from partage.client.pulls import listed
from partage.client.statefile import Kept
from partage.errors import InputError

TIMEOUT = httpx.Timeout(10.0, pool=None)
STREAM_TIMEOUT = httpx.Timeout(10.0, read=60.0, pool=None)  # the stream is never silent for so long


class Options(TypedDict, total=False):
    """How a client behaves: `Agent` says what each means."""

    state: str | os.PathLike[str] | None
    max_pulls_per_board: int
    patience: float
    listen: bool
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None


class Both:
    """An agent's identity and options."""

    def __init__(self, kept: Kept, options: Options) -> None:
        state = options.get("state")
        self._path = None if state is None else Path(state)
        self._listens = options.get("listen", True)
        self._logic = Logic(
            kept,
            saves=self._path is not None,
            max_pulls_per_board=options.get("max_pulls_per_board", 10),
            patience=options.get("patience", 60.0),
        )

    @property
    def id(self) -> str:
        """Her id in the collaboration; empty before the first call of an agent that was made from a token."""
        return self._logic.kept.agent

    @property
    def collaboration(self) -> str:
        """The collaboration's id."""
        return self._logic.kept.collaboration

    @property
    def shares(self) -> list[str]:
        """The arms that she consents to share."""
        return list(self._logic.kept.shares)

    @property
    def head(self) -> str:
        """The last head of the ledger that she was given; `partage verify FILE --head HEAD` checks against it."""
        return self._logic.kept.head

    @property
    def unpaid(self) -> int:
        """Commit pulls whose report the controller refused, most likely because it came too late."""
        return self._logic.kept.unpaid

    def __repr__(self) -> str:
        kept = self._logic.kept
        return f"{type(self).__name__}({kept.url!r}, {kept.collaboration!r}, agent={kept.agent!r})"  # no token

    def _write(self, content: bytes) -> None:
        assert self._path is not None
        files.write(self._path, content)


def known(
    url: str, collaboration: str, options: Options, name: str = "", shares: Collection[str] = (), token: str = ""
) -> Kept:
    """Return what the state file keeps of this agent, or a new agent where there is none."""
    state, names = options.get("state"), listed(shares)
    if state is None or not Path(state).exists():
        return Kept(url=url.rstrip("/"), collaboration=collaboration, name=name, shares=names, token=token)
    kept = files.read(Path(state))
    if (kept.url, kept.collaboration) != (url.rstrip("/"), collaboration):
        raise InputError(
            f"The state file {state} is of an agent in collaboration {kept.collaboration} at {kept.url}; "
            "name another file."
        )
    if token and kept.token != token:
        raise InputError(f"The state file {state} is of an agent with another token; name another file.")
    if not kept.token:  # she never came so far as to join
        kept.name, kept.shares = name, names
    return kept


def resumed(state: str | os.PathLike[str]) -> Kept:
    """Return an agent from her state file."""
    kept = files.read(Path(state))
    if not kept.token:
        raise InputError(f"The agent of the state file {state} has not joined yet; call join again.")
    return kept


def request_of(client: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
    """Return the request that a step asks for."""
    return client.build_request(step.method, step.path, headers=dict(step.headers), content=step.body)


def answer_of(response: httpx.Response) -> Answer:
    """Return what the logic reads of a response."""
    return Answer(response.status_code, response.content, response.headers.get("etag"))


def lost_by(error: httpx.TransportError) -> Lost:
    """Return what the logic reads of a failure."""
    return Lost(type(error).__name__)
