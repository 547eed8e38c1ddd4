"""The client's protocol: when to ask, when to pull without asking, what to report. It does no input or output.

The board and the rule are public. If the rule says commit, the client does not need the controller: it pulls the
leader and counts the pull. If the rule says explore, it asks the controller for a claim.
"""

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Collection

import msgspec
from msgspec import UNSET

from partage.board import Record
from partage.checks import count
from partage.client.calls import Calls
from partage.client.claims import Claims
from partage.client.effects import Answer, Save, Steps
from partage.client.errors import Closed, HorizonReached, Refused
from partage.client.following import BEHIND, Following
from partage.client.pulls import Pull, checked_history, checked_names, checked_reward
from partage.client.receipts import Receipts, Sent
from partage.client.reports import Reports
from partage.client.signing import Signer
from partage.client.statefile import AgentState, Rotating, new_key, new_nonce
from partage.client.witness import Witness
from partage.errors import InputError
from partage.ledger import events
from partage.ledger.keys import KEY_BYTES, Key, decoded
from partage.ledger.messages import (
    AgentView,
    Attach,
    BoardView,
    Consent,
    Joined,
    Leave,
    NewAgent,
    NewToken,
    Rotate,
    SettlementView,
    Told,
)
from partage.ledger.receipts import Receipt
from partage.ledger.ties import commitment_to
from partage.rules.exploring import commit
from partage.rules.seeing import seen_by
from partage.rules.shared_imed import highest_mean

SAVE_EVERY = 5.0  # seconds between two saves after local pulls only


class Consented(AgentView):
    """The answer to a change of consent."""

    receipt: Receipt | None = None


class Protocol:
    """An agent's client without the network. Methods that are generators yield the effects to carry out.

    Parameters
    ----------
    saved
        The agent, as stored in its state file.
    saves
        Whether there is a state file.
    max_pulls_per_board, own_rewards, patience
        As for `Agent`.
    clock, wall_clock
        The time in seconds: since some moment, and since 1970.
    random_bytes
        Returns this many unpredictable bytes.
    """

    def __init__(
        self,
        saved: AgentState,
        *,
        saves: bool,
        max_pulls_per_board: int = 10,
        own_rewards: int = 0,
        patience: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        max_pulls_per_board = count("max_pulls_per_board", max_pulls_per_board)
        self._own_rewards = count("own_rewards", own_rewards, at_least=0)
        self.saved = saved
        self._saves, self._clock = saves, clock
        self._random_bytes = random_bytes
        self._calls = Calls(saved, patience, clock, random_bytes)
        self._signer = Signer(saved, wall_clock)
        self._receipts = Receipts(saved, self._calls, self._signer, self.save)
        self.witness = Witness(saved, self._calls, self._receipts, clock, wall_clock, random_bytes)
        self.following = Following(saved, self._calls, self._receipts, self._signer, clock)
        self._claims = Claims(saved, self._calls, self.following, self._receipts, self.save)
        self._reports = Reports(
            saved, self._calls, self.following, self._receipts, self.save, clock, max_pulls_per_board
        )
        self._own = Record.empty(0)  # the agent's private record, where there are arms that nobody shares
        self._owed: Pull | None = None  # a pull that was counted but not returned, because a call failed
        self._saved_at = -math.inf
        self.terms = ""  # of the collaboration that it joined

    # what needs no request

    def check_forked(self) -> None:
        """Raise `Forked` again if it was raised before."""
        self._calls.check_forked()

    def at_once(self) -> Pull | None:
        """Return the next pull if nothing can have changed since the last; None means `ask`."""
        return None if self.saved.forked else self._reports.repeat()

    def keep_private(self, pull: Pull, reward: float) -> None:
        """Take the reward of a pull that is not shared. It is recorded only if the agent needs its own record."""
        reward = checked_reward(reward)
        if self.following.hidden_arms:
            self._own_record().add(self.following.arms[pull.arm], reward)
        pulls, rewards = self.saved.first.get(pull.arm, (0, 0.0))
        if pulls < self._own_rewards:
            self.saved.first[pull.arm] = (pulls + 1, rewards + reward)

    def events(self) -> tuple[str, dict[str, str]]:
        """Return the path of the event stream, and the headers that open it."""
        return self._calls.path("/events?patches=true"), self._calls.headers() | {"Accept": "text/event-stream"}

    # joining and leaving, consent

    def join(self, invite: str, patience: float | None = None) -> Steps[None]:
        """Join. The request's id and the agent's key are written to disk first.

        `patience` is for how many seconds to try, if less than for other requests.

        After a crash the same request returns the same token and receipt, so the token is written only once the
        receipt is checked.
        """
        saved = self.saved
        saved.key = saved.key or new_key(self._random_bytes)
        saved.nonce = saved.nonce or new_nonce(self._random_bytes)
        yield from self.save()
        joined = self._calls.decode(Joined, (yield from self._join(invite, patience)))
        saved.agent, saved.token, self.terms = joined.agent, joined.token, joined.terms
        yield from self.following.configure()
        row = Sent(events.Join, agent=joined.agent, name=saved.name, shares=self.following.numbers_of(saved.shares))
        if self.following.format > 4:
            assert saved.private_key is not None
            row.fields |= {
                "key": saved.private_key.public,
                "tie_commitment": commitment_to(bytes.fromhex(saved.nonce)),
            }
        if self.following.format > 5:
            declared = {"horizon": saved.horizon, "pace": saved.pace}
            row.fields |= {name: UNSET if value is None else value for name, value in declared.items()}
        yield from self._receipts.check(joined.receipt, None, row)
        self._claims.unsure = False
        yield from self.save()

    def _join(self, invite: str, patience: float | None) -> Steps[Answer]:
        """Send the request to join."""
        saved = self.saved
        key = saved.private_key
        public = None if key is None else key.public
        commitment = commitment_to(bytes.fromhex(saved.nonce))
        body = NewAgent(
            name=saved.name,
            shares=saved.shares,
            request=saved.join,
            key=public,
            tie_commitment=commitment,
            horizon=saved.horizon,
            pace=saved.pace,
        )
        try:
            headers = self._signer.joining(body)
            return (yield from self._calls.send("POST", "/agents", body, invite, headers, patience))
        except Refused as refused:  # release 0.1 takes neither, and sends no codes
            if refused.status not in (400, 422) or refused.code not in ("", "unknown_field"):
                raise
        body = msgspec.structs.replace(body, key=None, tie_commitment=None)
        return (yield from self._calls.send("POST", "/agents", body, invite))

    def share(self, shares: Collection[str]) -> Steps[None]:
        """Share these arms and no others from now on."""
        names = checked_names("shares", shares)
        yield from self._ready()
        yield from self.following.learn(names)
        yield from self._reports.send()  # made under the old consent
        self.following.begun = False  # if the answer is lost, the controller is asked what the agent shares
        # With an id, a repetition that arrives after a later consent changes nothing.
        body = Consent(shares=names, request=self._calls.new_request())
        row = Sent(
            events.Consent, agent=self.saved.agent, request=body.request, shares=self.following.numbers_of(names)
        )
        me = yield from self._receipts.fetch(Consented, "PATCH", "/agents/me", body, row)
        self.saved.shares = me.shares
        self._claims.withdraw(me.shares)
        yield from self.save()
        yield from self._begin()

    def attach(self, arm: str, rewards: Collection[float]) -> Steps[None]:
        """Attach past rewards of an arm. The same rewards have the same request id, so a repetition is answered."""
        past = checked_history(rewards)
        yield from self._ready()
        yield from self.following.learn([arm])
        digest = hashlib.sha256(msgspec.json.encode([arm, past])).hexdigest()
        body = Attach(arm=arm, rewards=past, request=f"history-{digest[:32]}")
        row = Sent(
            events.Attach,
            agent=self.saved.agent,
            arm=self.following.arms.get(arm, -1),
            rewards=tuple(past),
            request=body.request,
        )
        told = None
        while told is None:
            try:
                told = yield from self._receipts.fetch(Told, "POST", "/history", body, row)
            except Refused as refused:
                if refused.code != "order_pending":
                    raise
                yield from self._claims.take_part()
        self.saved.head = told.head
        self.following.expect(told.version)
        yield from self.save()

    def leave(self) -> Steps[None]:
        """Leave. What was broadcast stays."""
        yield from self._ready()
        yield from self._reports.send()
        yield from self._receipts.send("DELETE", "/agents/me", Leave())
        self.saved.left = True
        self._claims.withdraw(())
        yield from self.save()

    def rotate(self) -> Steps[None]:
        """Get a new token and a new key, which end the old ones.

        Both are asked for by a request that is written to disk first, so that a crash loses neither.
        """
        yield from self._ready()
        key = new_key(self._random_bytes) if self._signer.takes else ""
        self.saved.rotating = Rotating(self._calls.new_request(), key)
        yield from self.save()
        yield from self._finish_rotating()

    def _finish_rotating(self) -> Steps[None]:
        """Ask for the new token, or ask for it again."""
        saved = self.saved
        assert saved.rotating is not None
        new = Key(decoded(saved.rotating.key, KEY_BYTES) or b"").public if saved.rotating.key else None
        body = Rotate(request=saved.rotating.request, key=new)
        row = Sent(events.Rotate, agent=saved.agent, key=new or UNSET)
        try:
            made = yield from self._receipts.fetch(NewToken, "POST", "/agents/me/token", body, row)
        except Refused:
            if new is not None:  # perhaps the ledger has the new key: the answer was lost, and the token ended since
                me = yield from self._calls.fetch(AgentView, "GET", "/agents/me")  # if refused, both keys stay here
                if me.key == new:
                    saved.key, saved.rotating = saved.rotating.key, None
                    self._signer.see(me)
                    yield from self.save()
                    return
            saved.rotating = None
            yield from self.save()
            raise
        saved.token, saved.key, saved.rotating = made.token, saved.rotating.key or saved.key, None
        yield from self.save()

    # reading

    def board(self) -> Steps[BoardView]:
        """Return the board as it is now."""
        if self.following.begun:
            yield from self.following.read()
        yield from self._begin()  # reads the board the first time
        assert self.following.view is not None
        return self.following.view

    def settlement(self) -> Steps[SettlementView]:
        """Return the agent's row of the settlement, and the totals."""
        return (yield from self._calls.fetch(SettlementView, "GET", "/settlement"))

    def ledger(self) -> Steps[bytes]:
        """Return the ledger as the agent may see it."""
        return (yield from self._calls.send("GET", "/ledger")).body

    # witnessing

    def compare(self, note: str) -> Steps[int]:
        """Compare another member's checkpoint with the kept one, and return its number of rows."""
        yield from self._begin()
        found = yield from self._receipts.compare(note, "another member")
        if found is None:
            raise InputError("This is not a checkpoint of this collaboration's ledger, signed by its key.")
        yield from self.save()
        return found.size

    # pulls

    def ask(self) -> Steps[Pull]:
        """Return the next pull: a claim from the controller, or a pull that the board decides."""
        yield from self._ready()
        self.following.check_rule()
        yield from self.witness.exchange_if_due()
        if self._owed is not None:
            pull, self._owed = self._owed, None
            return pull
        following, claims, reports = self.following, self._claims, self._reports
        while claims.open is None:
            view = yield from following.look()
            yield from following.check_consent()
            claims.withdraw(self.saved.shares)  # the consent may have changed elsewhere
            yield from self._check_end(view)
            explores = following.explores
            if not following.ordered and any(following.board.public):
                yield from claims.ask()  # whoever asks first has the tie order fixed
                if claims.open is None:
                    yield from following.read()
            elif explores or (claims.unsure and any(following.board.public)):
                if reports.due_before_claim:
                    yield from reports.send()
                asked = following.now()
                nothing = yield from claims.ask(BEHIND if explores else 0.0)
                if nothing and explores:
                    yield from following.nothing_to_explore(view, asked)
            elif reports.too_far_ahead:
                yield from following.wait_for_fresh(view)
            else:
                pull = self._owed = self._commit()
                yield from self._report_or_save()
                self._owed = None
                return pull
        return claims.open

    def _commit(self) -> Pull:
        """Return a pull of the leader, or of the arm that looks best with the agent's own rewards.

        Where nobody shares some arm, own rewards count for such arms alone.
        """
        following, hand_out = self.following, self._reports.hand_out
        if following.hidden_arms or not self._own_rewards:
            return hand_out(commit(following.board, self._own_record()).arm, once=following.hidden_arms, own=False)
        arm = highest_mean(following.board, seen_by(following.board, self._first()))
        assert following.view is not None
        kept, _ = self.saved.first.get(following.view.arms[arm].name, (0, 0.0))
        return hand_out(arm, once=kept < self._own_rewards, own=True)

    def _own_record(self) -> Record:
        """Return the agent's private record, with a place for each arm that was added since."""
        added = self.following.board.arms - len(self._own.counts)
        self._own.counts += [0] * added
        self._own.sums += [0.0] * added
        return self._own

    def _first(self) -> Record:
        """Return the agent's first private rewards of each arm."""
        found = Record.empty(self.following.board.arms)
        for name, (pulls, rewards) in self.saved.first.items():
            found.counts[self.following.arms[name]], found.sums[self.following.arms[name]] = pulls, rewards
        return found

    def tell(self, pull: Pull, reward: float) -> Steps[None]:
        """Send the reward of a claim."""
        reward = checked_reward(reward)
        assert pull.number is not None
        yield from self._begin()
        yield from self._claims.tell(pull.number, reward)

    def defer(self, pull: Pull) -> Steps[None]:
        """Go on without the reward of a claim, which comes later."""
        yield from self._begin()
        yield from self._claims.defer(pull)

    @property
    def deferred(self) -> list[Pull]:
        """The claims whose rewards come later."""
        return self._claims.deferred

    def flush(self) -> Steps[None]:
        """Report every commit pull not yet reported."""
        if self._reports.pending or self.saved.report or self.saved.telling or self._reports.uncounted:
            yield from self._ready()
            yield from self._reports.send()
        yield from self.save()

    def close(self) -> Steps[None]:
        """Report every commit pull, and exchange checkpoints with the other members."""
        yield from self.flush()
        before = self.saved.checkpoint
        yield from self.witness.exchange()
        if self.saved.checkpoint != before:
            yield from self.save()

    def save(self) -> Steps[None]:
        """Write the state file."""
        self._reports.count()
        if self._saves:
            self.saved.own |= {
                name: (self._own.counts[arm], self._own.sums[arm])
                for name, arm in self.following.arms.items()
                if arm < len(self._own.counts) and self._own.counts[arm]
            }
            yield Save(msgspec.json.encode(self.saved))
        self._saved_at = self._clock()

    # helpers

    def _begin(self) -> Steps[None]:
        self.check_forked()
        yield from self.following.begin()
        if self._own_rewards and self.following.format < 3:
            raise InputError(
                "This collaboration was created by an earlier release, in which commit pulls name their arm; "
                "leave own_rewards out."
            )
        if self._own_rewards and self.following.tolerate:
            raise InputError(
                "This collaboration tolerates liars, and a choice by own rewards and public means does not; "
                "leave own_rewards out."
            )
        arms = self.following.arms
        if not self._own.counts:
            self._own = Record.empty(len(arms))
            for name, (pulls, rewards) in self.saved.own.items():
                self._own.counts[arms[name]], self._own.sums[arms[name]] = pulls, rewards

    def _ready(self) -> Steps[None]:
        """Count the pulls so far, and finish what an earlier call, or an earlier process, could not."""
        self._reports.count()
        if self.saved.rotating is not None:
            try:
                yield from self._begin()
            except Refused as refused:
                if refused.code != "token_ended":  # then the new one was made, and repeating the request returns it
                    raise
            yield from self._finish_rotating()
        yield from self._begin()
        if self.saved.telling is not None:
            yield from self._claims.tell_again()
        if self.saved.report is not None:
            yield from self._reports.send()

    def _check_end(self, view: BoardView) -> Steps[None]:
        """Raise if the agent cannot pull any more."""
        if self.saved.left:
            raise Refused(409, "left", "You left this collaboration; a new invite lets you join again.")
        if view.closed:
            raise Closed
        if self.saved.used >= self.following.horizon:
            yield from self._reports.send()
            raise HorizonReached(self.following.horizon)

    def _report_or_save(self) -> Steps[None]:
        """Report or save if it is due, including the pull just handed out: the next call may come much later."""
        reports, following = self._reports, self.following
        if reports.due:
            yield from reports.send()
        elif self._saves and self._clock() >= self._saved_at + SAVE_EVERY:
            yield from self.save()
        ends = [following.stale_at(), reports.next_due()]
        if following.doubtful:
            ends.append(following.next_check())
        if following.now() < following.next_claim:
            ends.append(following.next_claim)
        if self._saves:
            ends.append(self._saved_at + SAVE_EVERY)
        reports.until = min(ends)
