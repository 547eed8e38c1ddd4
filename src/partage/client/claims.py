"""Claims: explore pulls that the controller hands out, and whose rewards are broadcast."""

import logging
import math
from collections.abc import Callable, Collection

from partage.client.calls import Calls
from partage.client.effects import Steps, Wait
from partage.client.errors import Closed, Refused
from partage.client.following import REREAD, Following
from partage.client.pulls import Pull
from partage.client.receipts import Receipts, Sent
from partage.client.statefile import AgentState, Deferred
from partage.errors import InputError
from partage.ledger import events, messages
from partage.ledger.checkpoints import Checkpoint
from partage.ledger.events import Claim, Tell

PATIENT = 0.25  # seconds between two requests while the tie order is being drawn

log = logging.getLogger("partage.client")


class Claims:
    """The agent's claims: the controller waits for at most one.

    Attributes
    ----------
    open
        The claim that was handed out and neither reported nor deferred yet.
    unsure
        Whether the controller may have handed out a claim that this client does not know about.
    """

    def __init__(
        self,
        saved: AgentState,
        calls: Calls,
        following: Following,
        receipts: Receipts,
        save: Callable[[], Steps[None]],
    ) -> None:
        self._saved, self._calls, self._following, self._save = saved, calls, following, save
        self._receipts = receipts
        self.open: Pull | None = None
        self._last: Pull | None = None
        self._handed_at = -math.inf  # when the last claim came; before a restart, nobody knows
        self.unsure = True

    def ask(self, wait: float = 0.0) -> Steps[bool]:
        """Ask for a claim; returns whether the controller has nothing to explore for the agent.

        If there is no claim now, the controller may keep the request for `wait` seconds, until there is one.
        """
        self.unsure = True
        body = messages.Ask(request=self._saved.asking, explore_only=True)
        try:
            seen = self._receipts.kept
            answer = yield from self._receipts.send("POST", f"/ask?wait={wait:g}" if wait else "/ask", body)
        except Refused as refused:
            yield from self._not_now(refused)
            return False
        if answer.status != 204:
            claim = self._calls.decode(messages.Pull, answer)
            yield from self._check(claim, seen)
            if claim.pull != self._saved.claim:
                self._handed_at = self._following.now()
            yield from self._count(claim.pull)
            self.unsure, self._following.left_at_start = False, None
            if self._is_out(claim.pull):  # its reward comes later, and it has not lapsed
                self._following.out_until = self._following.now() + max(REREAD, self._following.claim_seconds / 8)
                return False
            self.open = self._last = Pull(claim.arm, True, False, claim.version, claim.pull)
        self.unsure, self._following.left_at_start = False, None
        return self.open is None

    def defer(self, pull: Pull) -> Steps[None]:
        """Go on without the reward of a claim. The claim is written to disk first."""
        if pull.number is None:
            raise InputError("This is a commit pull, whose reward is never reported; only a claim can be deferred.")
        if self._is_out(pull.number):
            return
        if self.open is None or pull.number != self.open.number:
            raise InputError(f"Claim {pull.number} is not open; defer the claim that ask returned last.")
        self._following.out_until = self._handed_at + self._following.claim_seconds
        self._saved.deferred.append(Deferred(pull.number, pull.arm, pull.version))
        self.drop()
        yield from self._save()

    @property
    def deferred(self) -> list[Pull]:
        """The claims whose rewards come later."""
        return [Pull(one.arm, True, False, one.version, one.number) for one in self._saved.deferred]

    def _is_out(self, number: int) -> bool:
        return any(one.number == number for one in self._saved.deferred)

    def _take_back(self, number: int) -> None:
        """Forget that a claim is deferred; once no reward is out, the agent may explore again."""
        for one in self.deferred:
            if one.number == number:
                self._last = one
        self._saved.deferred = [one for one in self._saved.deferred if one.number != number]
        if number == self._saved.claim:
            self._following.out_until = -math.inf

    def withdraw(self, shares: Collection[str]) -> None:
        """Forget the claims on arms that the agent no longer shares: the controller cancelled them."""
        if self.open is not None and self.open.arm not in shares:
            self.drop()
        for one in self.deferred:
            if one.arm not in shares and one.number is not None:
                self._take_back(one.number)

    def tell(self, pull: int, reward: float) -> Steps[None]:
        """Send the reward of a claim. It is written to disk first, so that a crash does not lose it."""
        if self._saved.telling is not None and self._saved.telling[0] != pull:
            yield from self.tell_again()
        if self.open is not None and self.open.number == pull:
            self.drop()
        self._take_back(pull)
        self._saved.telling = (pull, reward)
        yield from self._save()
        yield from self._send_told()

    def tell_again(self) -> Steps[None]:
        """Send a reward that an earlier call could not send; if it is refused, log that and continue."""
        try:
            yield from self._send_told()
        except Refused as refused:
            log.warning("The controller refused a reward from an earlier call: %s", refused)

    def drop(self) -> None:
        """Forget the open claim; the next request asks for a new one."""
        self.open = None
        self._saved.asking = self._calls.new_request()

    def _check(self, claim: messages.Pull, seen: Checkpoint | None) -> Steps[None]:
        """Check the receipt of a claim: it is the agent's, and not one from before the last."""
        yield from self._following.learn([claim.arm])
        row = Sent(Claim, agent=self._saved.agent, arm=self._following.arms.get(claim.arm), seq=claim.pull)
        if claim.pull < (self._saved.claim or 0):  # only the same request returns an earlier claim
            row.fields["request"] = self._saved.asking
        yield from self._receipts.check(claim.receipt, seen, row)

    def _row(self, pull: int, reward: float) -> Sent:
        """Return the row that a report must become."""
        row = Sent(Tell, agent=self._saved.agent, pull=pull, reward=reward)
        if self._last is not None and self._last.number == pull:
            row.fields["arm"] = self._following.arms.get(self._last.arm)
        return row

    def _not_now(self, refused: Refused) -> Steps[None]:
        """Handle the reason why there is no claim, or raise the refusal."""
        if refused.code == "horizon_used":
            self._saved.used = self._following.horizon
        elif refused.code == "left":
            self._saved.left = True
        elif refused.code == "order_pending":
            yield from self.take_part()
        elif refused.code in ("closed", "no_public_arm"):
            before = self._following.view
            yield from self._following.read()
            if self._following.view is before:
                raise refused
        elif not refused.code and refused.status == 409:
            yield from self._not_now_uncoded(refused)
        else:
            raise refused

    def take_part(self) -> Steps[None]:
        """Reveal the agent's nonce for the tie order, and wait for those of the others, two seconds at most."""
        seen = self._receipts.kept
        draw = self._calls.decode(messages.DrawView, (yield from self._receipts.send("GET", "/draw", None)))
        # Before the members are fixed, another one could still choose its nonce by this one.
        yield from self._receipts.check(draw.receipt, seen, Sent(events.Draw, members=tuple(draw.members)))
        mine = self._saved.agent in draw.waiting and self._saved.nonce
        if mine:
            body = messages.Reveal(nonce=self._saved.nonce)
            row = Sent(events.Reveal, agent=self._saved.agent, nonce=body.nonce)
            try:
                yield from self._receipts.fetch(messages.Revealed, "POST", "/reveal", body, row)
            except Refused as refused:
                if refused.code != "order_fixed":  # the others did not wait any longer
                    raise
        if set(draw.waiting) - {self._saved.agent} or (draw.waiting and not mine):
            yield Wait(min(draw.seconds, PATIENT), news=True)

    def _not_now_uncoded(self, refused: Refused) -> Steps[None]:
        """Do the same for release 0.1, which sends no codes: board and sentence say why there is no claim."""
        before = self._following.view
        yield from self._following.read()
        if self._following.view is not before:
            return
        if "horizon" not in refused.sentence:
            raise refused
        self._saved.used = self._following.horizon

    def _count(self, claim: int) -> Steps[None]:
        """Count a claim in the horizon, once: the same claim is returned until it is reported."""
        if claim == self._saved.claim:
            return
        # Its answer came after it was handed out, so the controller waits no longer than this client.
        self._following.claim_at = self._following.now() + self._following.claim_interval
        counts = 1
        if self._following.left_at_start is not None:  # it may have been open, and counted, before this client began
            counts = self._following.left_at_start - (yield from self._following.horizon_left())
        self._saved.used += counts
        self._saved.claim = claim

    def _send_told(self) -> Steps[None]:
        """Send the reward that is not acknowledged yet."""
        assert self._saved.telling is not None
        pull, reward = self._saved.telling
        try:
            body = messages.Tell(pull=pull, reward=reward)
            told = yield from self._receipts.fetch(messages.Told, "POST", "/tell", body, self._row(pull, reward))
        except Refused as refused:
            self._saved.telling = None
            # Release 0.1 sends no codes: it refuses the agent's own claim with 403 only if the arm was withdrawn.
            cancelled = not refused.code and refused.status == 403 and pull == self._saved.claim
            if cancelled or refused.code == "claim_cancelled":  # the agent withdrew the arm, here or elsewhere
                yield from self._following.read_consent()
                log.warning("The controller refused a reward, which is not sent again: %s", refused)
                return
            if refused.code == "closed" or (not refused.code and refused.status == 409):
                yield from self._following.read()
                if refused.code or (self._following.view is not None and self._following.view.closed):
                    raise Closed from None
            raise
        self._saved.telling, self._saved.head = None, told.head
        self._following.expect(told.version)
