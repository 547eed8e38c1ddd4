"""Signing: an agent signs its requests with its own key, so that nobody can make them in its name."""

from collections.abc import Callable
from typing import Any

import msgspec

from partage.client.statefile import AgentState
from partage.ledger import messages
from partage.ledger.keys import Key
from partage.ledger.signatures import HEADER, header_of, sign


def asked_by(body: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the kind and the contents of what is signed for this body; None if such a request is not signed."""
    match body:
        case messages.Ask():
            return "ask", {"request": body.request, "explore_only": body.explore_only}
        case messages.Tell():
            return "tell", {"pull": body.pull, "reward": body.reward}
        case messages.Commits():
            runs = [msgspec.structs.asdict(run) for run in body.runs]
            return "commits", {"request": body.request, "runs": runs, "unnamed": body.unnamed}
        case messages.Consent():
            return "consent", {"request": body.request, "shares": sorted(body.shares)}
        case messages.Attach():
            return "attach", {"request": body.request, "arm": body.arm, "rewards": body.rewards}
        case messages.Reveal():
            return "reveal", {"nonce": body.nonce}
        case messages.Rotate():
            return "rotate", {"key": body.key}
        case messages.Leave():
            return "leave", {}
    return None


class Signer:
    """The signatures of one agent.

    Parameters
    ----------
    saved
        The agent: its key, and the number of its last signed request.
    wall_clock
        The time in seconds since 1970.
    """

    def __init__(self, saved: AgentState, wall_clock: Callable[[], float]) -> None:
        self._saved, self._wall_clock = saved, wall_clock
        self._known: tuple[str, Key | None] = ("", None)
        self._takes = False

    @property
    def _key(self) -> Key | None:
        if self._known[0] != self._saved.key:
            self._known = self._saved.key, self._saved.private_key
        return self._known[1]

    @property
    def takes(self) -> bool:
        """Whether the ledger has the agent's key, so that it signs."""
        return self._takes

    def see(self, me: messages.AgentView) -> None:
        """Take note of the key and the number that the ledger has of this agent."""
        key = self._key
        self._takes = key is not None and me.key == key.public
        self._saved.number = max(self._saved.number, me.number)

    def headers(self, body: Any) -> dict[str, str]:
        """Return the header that signs a request, if the ledger has the agent's key and such requests are signed."""
        asked = asked_by(body)
        # Only an agent that signs brings a new key, even if its token has ended and it cannot read its entry.
        takes = self._takes or (isinstance(body, messages.Rotate) and body.key is not None)
        if not takes or asked is None:
            return {}
        return self._header(asked[0], agent=self._saved.agent, **asked[1])

    def joining(self, body: messages.NewAgent) -> dict[str, str]:
        """Return the header that signs a request to join: it proves that the agent has the key that it brings."""
        if body.key is None:
            return {}
        contents: dict[str, Any] = {"name": body.name, "shares": sorted(body.shares), "key": body.key}
        declared = {"horizon": body.horizon, "pace": body.pace}
        contents |= {name: value for name, value in declared.items() if value is not None}
        return self._header("join", **contents, tie_commitment=body.tie_commitment)

    def _header(self, kind: str, /, **contents: Any) -> dict[str, str]:
        assert self._key is not None
        saved = self._saved
        saved.number = max(saved.number + 1, int(self._wall_clock() * 1000))
        return {HEADER: header_of(sign(self._key, kind, saved.collaboration, saved.number, **contents))}
