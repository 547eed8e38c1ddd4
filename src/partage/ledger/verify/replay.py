"""Play a ledger again: each event must be what its move writes on the state before it."""

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from msgspec import UNSET

from partage.clock import TICKS
from partage.errors import InputError
from partage.ledger import moves
from partage.ledger.config import Config, checked_config
from partage.ledger.events import (
    AddArm,
    AnyEvent,
    Attach,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Draw,
    Join,
    Lapse,
    Leave,
    Order,
    Remove,
    Requested,
    Reveal,
    Revoke,
    Rotate,
    SetAside,
    Tell,
    Tick,
    UsedUp,
)
from partage.ledger.fields import (
    LONGEST_REASON,
    checked_commitment,
    checked_key,
    checked_nonce,
    checked_reason,
    checked_request,
    checked_reward,
    checked_rewards,
    checked_text,
    not_allowed,
)
from partage.ledger.moves import Turn
from partage.ledger.own_rules import own_rule
from partage.ledger.refusals import Refused
from partage.ledger.signatures import Signed, is_signed
from partage.ledger.state import State
from partage.ledger.ties import commitment_to, is_commitment, is_part
from partage.ledger.verify.closing import Reader, check_close
from partage.ledger.verify.lines import Wrong
from partage.ledger.verify.tolerance import DECIDING, TolerantState


class Replay:
    """A ledger that is being played again.

    Attributes
    ----------
    agent
        The agent whose copy it should be.
    state
        The state after the events so far; None before the first.
    hidden
        How many events were hidden.
    shown
        The agents whose commit pulls are not hidden.
    salts
        The salts beside the last line, by agent: those of the close event's tallies.
    ticks
        How often the clock advanced.
    used_up
        How many events say of arms that their sharers have no pulls left.
    unsigned
        How many visible rows of members have no signature.
    ceilings_checked
        Whether the ceilings of the close event were computed again.
    """

    def __init__(self, agent: str | None) -> None:
        self.agent = agent
        self.state: TolerantState | None = None
        self.hidden = self.ticks = self.used_up = self.unsigned = 0
        self.shown: set[str] = set()
        self.salts: dict[str, bytes] = {}
        self.ceilings_checked = False

    @property
    def owner(self) -> str | None:
        """The agent whose copy it is; None if that is unknown."""
        if self.agent is not None or not self.hidden:
            return self.agent
        seen = self.shown | self.salts.keys()
        return next(iter(seen)) if len(seen) == 1 else None

    def take(self, event: AnyEvent | None, salts: Mapping[str, bytes] | None = None) -> None:
        """Play the next event, None if it is hidden; beside a close event, with the salts of its tallies."""
        self.salts = dict(salts or {})
        state = self.state
        if state is None:
            if event is None:
                raise Wrong("it is hidden, and the line that creates the collaboration never is.")
            self.state = _created(event)
            return
        if state.closed is not None:
            raise Wrong("the collaboration is closed, and nothing can come after that.")
        if event is None:
            self.hidden += 1
            state.pass_over()
        else:
            self._play(state, event)

    def finish(self) -> None:
        """Check, at the end, that there was a ledger and that the agent is in it."""
        if self.state is None:
            raise Wrong("The file is empty; a ledger has at least the line that creates the collaboration.", False)
        if self.agent is not None and self.agent not in self.state.members:
            raise Wrong("The given agent is not in this ledger.", False)
        self._check_owner()

    def _check_owner(self) -> None:
        """Check that a copy with hidden lines is not the copy of an agent other than the one named."""
        if self.agent is not None and self.hidden and (self.shown | self.salts.keys()) - {self.agent}:
            raise Wrong("This is not the given agent's copy: it shows another agent's commit pulls.", False)

    def _play(self, state: TolerantState, event: AnyEvent) -> None:
        if event.format != state.config.format:
            raise Wrong(f"its format differs from that of the first line, which is {state.format}.")
        if event.time < state.time:
            raise Wrong("its time is before that of the line before it.")
        if (
            not isinstance(event, (Create, Join, Draw, Order, AddArm, Close, Tick, UsedUp))
            and event.agent not in state.members
        ):
            raise Wrong("its agent has not joined.")
        if isinstance(event, Close):
            self._check_owner()
            if self.salts and (not event.tallies or not self.salts.keys() <= state.members.keys()):
                raise Wrong("it has salts that belong to none of its tallies.")
            owner = self.owner if self.owner in state.members else None  # `finish` refuses a stranger
            self.ceilings_checked = check_close(state, event, Reader(owner, self.hidden, self.salts))
            state.apply(event)
            return
        if isinstance(event, Requested) and event.signature is UNSET and not isinstance(event, Rotate):
            self.unsigned += 1  # a new token without a signature is from the operator
        if isinstance(event, Tick):
            self._check_tick(state, event)
        elif isinstance(event, UsedUp):
            self._check_used_up(state, event)
        elif isinstance(event, Commit):
            self.shown.add(event.agent)
        elif isinstance(event, Claim) and self.hidden and event.request and event.agent not in self.shown:
            # Whether the controller still remembers this request depends on the agent's hidden ones.
            state.members[event.agent].answers.pop(event.request, None)
        state.stated = event
        turn = Turn(state, event.time)
        if isinstance(event, Requested) and state.format > 4:
            self._take_signature(turn, event)
        try:
            _MOVES[type(event)](turn, event)
        except Refused as refused:
            raise Wrong(f"the controller would have refused it: {refused.sentence}") from None
        if turn.events != [event]:
            _differs(state, event, turn.events)

    def _take_signature(self, turn: Turn, event: Requested) -> None:
        """Let the move check the signature of the request."""
        if (event.number is UNSET) != (event.signature is UNSET):
            raise Wrong("it has a number without a signature, or a signature without a number.")
        if event.number is not UNSET and event.signature is not UNSET:
            turn.signed = Signed(event.number, event.signature)

    def _check_used_up(self, state: TolerantState, event: UsedUp) -> None:
        """Check the arms whose sharers have no pulls left; where commit pulls are hidden, that it is possible."""
        self.used_up += 1
        due = [state.due_used_up(event.time), state.due_used_up(event.time + 1)]  # the latter before somebody joins
        if self.hidden:
            owner = state.members.get(self.owner or "")
            able = owner.shares if owner is not None and owner.able else frozenset()
            shared = {arm for arm in event.arms if arm < state.board.arms and state.sharers[arm]}
            due = [sorted(shared - able - state.used_up)]
        if state.format < 6 or not event.arms or list(event.arms) not in due:
            raise Wrong("it names other arms than those whose sharers have no pulls left.")

    def _check_tick(self, state: TolerantState, event: Tick) -> None:
        """Check a tick of the clock. Where commit pulls are hidden, only that such a tick is possible."""
        self.ticks += 1
        if self.hidden:
            right = state.board.clock < event.clock <= state.board.all_pulls and event.clock in TICKS
        else:
            right = event.clock == state.due_tick()
        if not (right and state.rule.clocked and state.format > 2):
            raise Wrong("the clock does not show this now.")


def _created(event: AnyEvent) -> TolerantState:
    """Return the state after the first line."""
    if not isinstance(event, Create):
        raise Wrong("it is not the line that creates the collaboration, with which every ledger begins.")
    given = {name: getattr(event, name) for name in Config.__struct_fields__}
    stated = {name: value for name, value in given.items() if value is not UNSET}
    format = 1 if event.format is UNSET else event.format
    if event.rule_source is not UNSET:
        given["rule_source"] = event.rule_source
        try:
            own_rule(event.rule, event.rule_source)
        except Refused as refused:  # the ledger may be right; this machine cannot tell
            raise InputError(refused.sentence) from None
    try:
        checked = checked_config(Config(**{**stated, "arms": list(event.arms)}), format)
    except Refused as refused:
        raise Wrong(f"the controller would have refused it: {refused.sentence}") from None
    drawn = is_part(event.tie_seed) and event.tie_commitment is UNSET
    if format > 4:
        drawn = is_commitment(event.tie_commitment) and event.tie_seed is UNSET
    if checked != given or not drawn:
        raise Wrong("the controller never creates a collaboration in this way.")
    return TolerantState(event)


# --- the move of each event -----------------------------------------------------------------------------------


def _create(_turn: Turn, _event: Create) -> NoReturn:
    raise Wrong("it creates the collaboration a second time.")


def _join(turn: Turn, event: Join) -> None:
    checked_text("name", event.name)
    _check_arms(turn.state, event.shares)
    checked_commitment(event.tie_commitment or None)
    checked_key(event.key or None)
    declared = moves.Declared(event.horizon, event.pace)
    moves.join(turn, event.name, event.shares, event.invite, event.tie_commitment, event.key, declared)


def _draw(turn: Turn, _event: Draw) -> None:
    state = turn.state
    if state.ordered or state.drawing is not None or not state.committed():
        raise Wrong("it draws the tie order, which was drawn before or needs no draw.")
    if not any(state.board.public):
        raise Wrong("it draws the tie order before anybody can ask: no arm is shared.")
    moves.draw(turn)


def _reveal(turn: Turn, event: Reveal) -> None:
    moves.reveal(turn, event.agent, checked_nonce(event.nonce))


def _order(turn: Turn, event: Order) -> None:
    state = turn.state
    if state.ordered:
        raise Wrong("it fixes the tie order, which is fixed already.")
    if not any(state.board.public):
        raise Wrong("it fixes the tie order before anybody can ask: no arm is shared.")
    if not is_part(event.seed) or commitment_to(bytes.fromhex(event.seed)) != state.config.tie_commitment:
        raise Wrong("the operator's seed is not the one that the first line commits to.")
    turn.seed = lambda: bytes.fromhex(event.seed)
    moves.order(turn)


def _claim(turn: Turn, event: Claim) -> None:
    checked_request(event.request)
    explore_only = True
    if turn.signed is not None:  # the row does not say which of the two was asked and signed
        state, stated = turn.state, {"agent": event.agent, "request": event.request, "explore_only": True}
        key = state.members[event.agent].key
        explore_only = is_signed(key, turn.signed, "ask", state.config.collaboration, **stated)
    moves.ask(turn, event.agent, event.request, explore_only)


def _tell(turn: Turn, event: Tell) -> None:
    checked_reward(event.reward)
    if moves.tell(turn, event.agent, event.pull, event.reward) is None:
        raise Wrong("it reports a pull that was not waiting for a report.")


def _commit(turn: Turn, event: Commit) -> None:
    checked_request(event.request)
    _check_arms(turn.state, (run.arm for run in event.runs))
    unnamed = 0 if event.unnamed is UNSET else event.unnamed
    if not event.runs and not unnamed:
        raise Wrong("it reports no commit pulls.")
    if event.asked and unnamed:
        raise Wrong("the controller decided these pulls, and it names their arms.")
    if event.asked:
        moves.ask(turn, event.agent, event.request, False)
    elif event.request is None:
        raise Wrong("it reports commit pulls without a request id.")
    else:
        moves.commits(turn, event.agent, event.request, event.runs, unnamed)


def _lapse(turn: Turn, event: Lapse) -> None:
    # Several claims may be due at once, one line each, so this plays the first of them and not the whole move.
    if turn.state.lapsing(event.time)[:1] != [event.pull]:
        raise Wrong("it lets a claim lapse that was not the next one due.")
    turn.write(Lapse, agent=turn.state.claims[event.pull].agent, pull=event.pull)


def _consent(turn: Turn, event: Consent) -> None:
    checked_request(event.request)
    _check_arms(turn.state, event.shares)
    moves.consent(turn, event.agent, event.shares, event.request)


def _add_arm(turn: Turn, event: AddArm) -> None:
    moves.add_arm(turn, event.name)


def _used_up(turn: Turn, event: UsedUp) -> None:
    turn.write(UsedUp, arms=event.arms)


def _tick(turn: Turn, event: Tick) -> None:
    turn.write(Tick, clock=event.clock)


def _leave(turn: Turn, event: Leave) -> None:
    moves.leave(turn, event.agent)


def _attach(turn: Turn, event: Attach) -> None:
    checked_request(event.request)
    _check_arms(turn.state, (event.arm,))
    checked_rewards(event.rewards)
    moves.attach(turn, event.agent, event.arm, event.rewards, event.request)


def _set_aside(turn: Turn, event: SetAside) -> None:
    if turn.state.format > 4 and checked_reason(event.reason) != event.reason:
        raise not_allowed("reason")
    checked_text("reason", event.reason, LONGEST_REASON)
    moves.set_aside(turn, event.agent, event.reason)


def _rotate(turn: Turn, event: Rotate) -> None:
    if turn.signed is None and event.key is UNSET:
        moves.renew(turn, event.agent)  # in a collaboration without signatures, this may also be the member
    else:
        checked_key(event.key or None)
        moves.rotate(turn, event.agent, event.key)


def _revoke(turn: Turn, event: Revoke) -> None:
    moves.revoke(turn, event.agent)


def _remove(turn: Turn, event: Remove) -> None:
    if checked_reason(event.reason) != event.reason:
        raise Wrong("its reason is not in the form in which the controller stores it.")
    moves.remove(turn, event.agent, event.reason)


_MOVES: dict[type, Callable[..., None]] = {
    Create: _create,
    Join: _join,
    Draw: _draw,
    Reveal: _reveal,
    Order: _order,
    Claim: _claim,
    Tell: _tell,
    Commit: _commit,
    Lapse: _lapse,
    UsedUp: _used_up,
    Tick: _tick,
    Consent: _consent,
    Leave: _leave,
    Attach: _attach,
    AddArm: _add_arm,
    SetAside: _set_aside,
    Rotate: _rotate,
    Revoke: _revoke,
    Remove: _remove,
}


def _check_arms(state: State, shares: Iterable[int]) -> None:
    if any(arm >= len(state.arms) for arm in shares):
        raise Wrong("it names an arm that the collaboration does not have.")


def _differs(state: State, event: AnyEvent, written: list[AnyEvent]) -> NoReturn:
    """Say what the controller would have written instead."""
    first = written[0] if written else None
    if first is None:
        what = "writes nothing"
    elif isinstance(first, Claim):
        what = f"hands out a claim on arm {state.arms[first.arm]}"
    elif isinstance(first, Commit) and first.runs:
        what = f"counts a commit pull of arm {state.arms[first.runs[0].arm]}"
    elif isinstance(first, Lapse):
        what = f"lets claim {first.pull:,} lapse, which was due"
    elif isinstance(first, UsedUp):
        what = "says of some arms that their sharers have no pulls left"
    elif isinstance(first, Draw):
        what = f"draws the tie order with the nonces of {len(first.members):,} members"
    elif isinstance(first, Order):
        what = "fixes the tie order, with another key or other members skipped"
    elif isinstance(first, Tick):
        what = f"lets the clock advance to {first.clock:,}"
    elif isinstance(first, DECIDING) and isinstance(event, type(first)) and first.active != event.active:
        what = f"leaves these arms active: {', '.join(state.arms[arm] for arm in state.board.actives())}"
    else:
        what = "writes the same event with other contents"
    raise Wrong(f"it does not follow from the lines before it: here the controller {what}.")
