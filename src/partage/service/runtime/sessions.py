"""Sessions: who a token or a browser's session belongs to."""

from typing import NamedTuple

from partage import environment
from partage.errors import InputError
from partage.ledger.refusals import Refused
from partage.ledger.signatures import Signed
from partage.service.runtime.secrets import OPERATOR, SESSION, fresh, hashed, same
from partage.service.runtime.system import System
from partage.service.store import Store

GIVEN = "given "  # marks the hash of a token that was given, not made
SESSION_TIME = 12 * 3600 * 1000  # ms
OPERATOR_TIME = 2000  # ms for which the operator's token is taken to be valid without reading its hash again


class By(NamedTuple):
    """What a member's request came with: the signature, if it is signed, and the epoch of the token."""

    signed: Signed | None = None
    epoch: int | None = None  # None: not by a token


UNSIGNED = By()


class Who(NamedTuple):
    """Who makes a request: the operator, or an agent of a collaboration."""

    collaboration: str | None = None
    agent: str | None = None
    epoch: int = 0  # of the agent's token; the ledger says whether that is its last one

    @property
    def operator(self) -> bool:
        """Whether it is the operator."""
        return self.agent is None


THE_OPERATOR = Who()


def set_operator_token(store: Store, system: System, token: str = "", *, new: bool = False) -> tuple[str, str | None]:
    """Set the operator's token: the given one, or at the first start, or with `new`, a new one.

    Only the last token that was set is valid. One that was given is not forgotten when a later start lacks it: an
    earlier token, which others may know by then, must not become valid again.

    Returns
    -------
    hash
        The hash of the token that is valid now.
    new
        The token if it was made by this call, to be shown only once; else None.

    Raises
    ------
    InputError
        The last token was given, and now there is none.
    """
    if token:
        if store.meta("operator") != GIVEN + hashed(token):
            store.set_meta("operator", GIVEN + hashed(token))
        return hashed(token), None
    made = fresh(OPERATOR, system.random_bytes)
    if new:
        store.set_meta("operator", hashed(made))
        return hashed(made), made
    valid = store.set_meta_once("operator", hashed(made))
    if valid.startswith(GIVEN):
        raise InputError(
            f"This database was last served with the operator's token in {environment.OPERATOR_TOKEN}, which is not "
            "set now; set it, or make a new token with: partage serve --new-token."
        )
    return valid, made if same(valid, hashed(made)) else None


class Sessions:
    """The tokens and browser sessions of a store."""

    def __init__(self, store: Store, system: System, operator_token: str = "") -> None:
        self.store = store
        self.operator_hash = set_operator_token(store, system, operator_token)[0]
        self._read_at = system.monotonic()  # when that was
        self._system = system
        self._call = system.store_calls(store.several)
        self._agents: dict[str, Who] = {}  # by the hash of the token: the owner of a token never changes
        self._last: dict[tuple[str, str], str] = {}  # the hash of each agent's last token that was used

    def known(self, token: str) -> Who | None:
        """Return who a token belongs to, if it is an agent's that was used before. No such token can be guessed."""
        return self._agents.get(hashed(token))

    async def who(self, token: str) -> Who:
        """Return who a token belongs to."""
        key = hashed(token)
        who = self._agents.get(key)
        if who is None:
            if same(key, self.operator_hash) and await self._is_operators(key):
                return Who()
            found = await self._call(self.store.token, key)
            if found is None:
                if await self._is_operators(key):
                    return Who()
                raise Refused(401, "unknown_token", "This token is unknown.")
            who = Who(found.collaboration, found.agent, found.epoch)
            self._remember(key, who, (found.collaboration, found.agent))
        return who

    async def _is_operators(self, key: str) -> bool:
        """Whether this is the hash of the operator's token. Another process may have changed it."""
        now = self._system.monotonic()
        if not same(key, self.operator_hash) or now - self._read_at >= OPERATOR_TIME:
            stored = await self._call(self.store.meta, "operator")
            self.operator_hash, self._read_at = (stored or "").removeprefix(GIVEN), now
        return same(key, self.operator_hash)

    def _remember(self, key: str, who: Who, agent: tuple[str, str]) -> None:
        """Keep the last token of an agent in memory, and no other: it may get any number of them."""
        last = self._last.get(agent)
        if last is None or self._agents[last].epoch < who.epoch:
            if last is not None:
                del self._agents[last]
            self._agents[key], self._last[agent] = who, key

    async def log_in(self, token: str) -> tuple[str, Who]:
        """Begin a browser's session; return its secret and who it belongs to."""
        who = await self.who(token)
        session = fresh(SESSION, self._system.random_bytes)
        # An operator's session ends when the operator's token changes, so it is stored with the token's hash.
        # An agent's ends with its token, so it is stored with the token's epoch.
        operator = self.operator_hash if who.operator else ""
        holder = f"{who.collaboration or ''} {who.agent or ''} {operator} {who.epoch}"
        now = self._system.clock()
        await self._call.write(self.store.add_session, hashed(session), holder, now + SESSION_TIME, now)
        return session, who

    async def session(self, session: str) -> Who:
        """Return who a browser's session belongs to."""
        holder = await self._call(self.store.session, hashed(session), self._system.clock())
        collaboration, agent, operator, *epoch = (holder or "  ").split(" ")  # before epochs there were three
        if holder is None or (not agent and not await self._is_operators(operator)):
            raise Refused(401, "session_over", "This session has ended; log in again.")
        return Who(collaboration or None, agent or None, int(epoch[0]) if epoch else 0)

    async def log_out(self, session: str) -> None:
        """End a browser's session."""
        await self._call.write(self.store.drop_session, hashed(session))
