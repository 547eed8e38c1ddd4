"""Invites: single-use codes that let an agent join. The store has only their hashes."""

from partage.ledger.fields import MOST_HOURS, MOST_INVITES, checked_request, not_allowed
from partage.ledger.messages import NewInvites
from partage.ledger.refusals import Refused, conflict, forbidden, missing
from partage.ledger.state import State
from partage.service.runtime import secrets
from partage.service.runtime.library import Library, is_id
from partage.service.runtime.system import System
from partage.service.store import Invite, Store, StoreError

WEEK = 7 * 24 * 3600 * 1000  # ms


class Invites:
    """The invites of all collaborations."""

    def __init__(self, store: Store, system: System, library: Library) -> None:
        self.store = store
        self._library = library
        self._system = system
        self._call = system.store_calls(store.several)

    def make(
        self,
        collaboration: str,
        count: int,
        lifetime: int = WEEK,
        *,
        request: str | None,
        secret: str,
        scope: str = "",
    ) -> tuple[list[str], list[Invite]]:
        """Return new codes, and the invites to store for them.

        With a `request`, the codes follow from it, the caller's `secret` and the `scope`: repeating the request gives
        the same codes. Without one they are random.
        """
        now = self._system.clock()
        if request is None:
            codes = [secrets.fresh(secrets.INVITE, self._system.random_bytes) for _ in range(count)]
        else:
            codes = [
                secrets.derived(secrets.INVITE, secret, "invite", scope, request, str(place))
                for place in range(count)
            ]
        invites = [
            Invite(hashed, "i" + secrets.hashed(hashed)[:12], collaboration, now, now + lifetime, False)
            for hashed in map(secrets.hashed, codes)
        ]
        return codes, invites

    async def add(self, secret: str, collaboration: str, new: NewInvites) -> list[str]:
        """Make more invites and return their codes; repeating the request returns the same ones."""
        if not 1 <= new.invites <= MOST_INVITES:
            raise not_allowed("invites")
        if not 0 < new.hours <= MOST_HOURS:
            raise not_allowed("hours")
        checked_request(new.request)
        book = await self._library.fresh(collaboration)
        if book.state.closed is not None:
            raise conflict("closed", "This collaboration is closed; nobody can join it any more.")
        lifetime = int(new.hours * 3600 * 1000)
        codes, invites = self.make(
            collaboration, new.invites, lifetime, request=new.request, secret=secret, scope=collaboration
        )
        for last in (False, True):
            stored = {invite.hashed for invite in await self._call(self.store.invites, collaboration)}
            try:
                await self._call.write(self.store.add_invites, [one for one in invites if one.hashed not in stored])
                break
            except StoreError:  # perhaps the same request arrived twice at once
                if last:
                    raise
        return codes

    async def of(self, collaboration: str) -> list[Invite]:
        """Return all invites of a collaboration."""
        await self._library.book(collaboration)
        invites: list[Invite] = await self._call(self.store.invites, collaboration)
        return invites

    async def usable(self, collaboration: str) -> list[Invite]:
        """Return the invites that can still be used."""
        invites = await self.of(collaboration)
        state: State = (await self._library.fresh(collaboration)).state
        now = self._system.clock()
        return [one for one in invites if not one.revoked and one.expires > now and one.id not in state.invites]

    async def revoke(self, collaboration: str, invite: str) -> None:
        """Revoke an invite."""
        known = is_id(collaboration) and is_id(invite)
        if not known or not await self._call.write(self.store.revoke, collaboration, invite):
            raise missing("no_such_invite", "There is no such invite in this collaboration.")

    async def of_code(self, collaboration: str, code: str) -> Invite:
        """Return the invite of a code, or say why it cannot be used. Joining checks whether it was already used."""
        invite: Invite | None = await self._call(self.store.invite, secrets.hashed(code))
        if invite is None:
            raise Refused(401, "unknown_invite", "This invite is unknown.")
        if invite.collaboration != collaboration:
            raise forbidden("other_collaboration", "This invite is for another collaboration.")
        if invite.revoked:
            raise forbidden("invite_revoked", "This invite was revoked; ask the operator for another.")
        if invite.expires <= self._system.clock():
            raise forbidden("invite_expired", "This invite has expired; ask the operator for another.")
        return invite
