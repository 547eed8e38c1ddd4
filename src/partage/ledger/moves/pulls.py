"""Pulls that the controller hands out: asked for, told, lapsed."""

from typing import NamedTuple

from partage.ledger.events import AnyEvent, Claim, Commit, Lapse, Run, Tell, Tick, UsedUp
from partage.ledger.members import Answered
from partage.ledger.moves.checks import (
    check_number,
    check_signature,
    closed,
    no_public_arm,
    present,
    reused,
    still_open,
    was_removed,
)
from partage.ledger.moves.order import order
from partage.ledger.moves.turn import Turn
from partage.ledger.refusals import Refused, conflict, forbidden, missing
from partage.ledger.state import State


def ask(turn: Turn, agent: str, request: str | None, explore_only: bool) -> Answered | None:
    """Hand out the agent's next pull: its open claim, a new claim, or a commit (with `explore_only`, None).

    An agent that would explore sooner than `claim_interval` after its last claim commits instead.
    """
    state, member = still_open(turn), present(turn, agent)
    check_signature(turn, member, "ask", request=request, explore_only=explore_only)
    if request is not None and request in member.answers:
        answered = member.answers[request]
        if answered.arm < 0:
            raise reused("report commit pulls or change consent")
        return answered
    lapse(turn)
    if member.claim is not None:
        return Answered(member.claim, state.claims[member.claim].arm, True, state.version)
    check_number(turn, member)
    if not member.able:
        raise conflict("horizon_used", f"All {member.horizon:,} pulls of the horizon are used.")
    if not any(state.board.public):
        raise no_public_arm()
    order(turn)
    tick(turn)
    arm, share = state.decide(agent)
    if share and turn.now < state.next_claim(agent):
        leader = state.target(agent)
        assert leader is not None  # some arm is public
        arm, share = leader, False
    if share:
        claim = turn.write_asked(Claim, agent=agent, arm=arm, request=request)
        return Answered(claim.seq, arm, True, state.version)
    if explore_only:
        return None
    run = Run(state.version, arm, 1)
    commit = turn.write_asked(Commit, agent=agent, runs=(run,), asked=True, request=request)
    return Answered(commit.seq, arm, False, state.version)


def name_used_up(turn: Turn, before: int) -> None:
    """Name the arms whose sharers have had no pulls left since before a time."""
    if arms := turn.state.due_used_up(before):
        turn.write(UsedUp, arms=tuple(arms))


def lapse(turn: Turn) -> None:
    """Let every claim lapse that has waited too long, and name the arms whose sharers have no pulls left."""
    state = turn.state
    if state.closed is None:
        name_used_up(turn, turn.now)
        for pull in state.lapsing(turn.now):
            turn.write(Lapse, agent=state.claims[pull].agent, pull=pull)


def tick(turn: Turn) -> None:
    """Let the clock advance, if the rule reads it and it is behind."""
    clock = turn.state.due_tick()
    if clock is not None:
        turn.write(Tick, clock=clock)


class PullRows(NamedTuple):
    """What the ledger has of a pull: the event that handed it out, and the tell that reported it, if they exist."""

    handed: AnyEvent | None
    told: Tell | None


def tell(turn: Turn, agent: str, pull: int, reward: float, rows: PullRows | None = None) -> Tell | None:
    """Broadcast the reward of a claim, even if the claim has lapsed. A repeated report gets the first one's event.

    The state knows only the claims that wait for a report. For any other pull the answer is None: look up its rows
    in the ledger and make the move again with them.
    """
    state = turn.state
    check_signature(turn, state.members[agent], "tell", pull=pull, reward=reward)
    handed = state.claims.get(pull) or state.late.get(pull)
    if handed is None:
        return None if rows is None else _told(state, agent, rows, reward)
    if handed.agent != agent:
        raise _other_agents()
    still_open(turn)
    check_number(turn, present(turn, agent))
    return turn.write_asked(Tell, agent=agent, pull=pull, arm=handed.arm, reward=reward, version=state.version + 1)


def _told(state: State, agent: str, rows: PullRows, reward: float) -> Tell:
    """Return the report of a pull that is no longer a claim, or refuse it."""
    handed, told = rows
    if told is not None:
        if told.agent != agent:
            raise _other_agents()
        if told.reward != reward:
            sentence = "This pull was reported with a different reward; the first report counts."
            raise conflict("told_differently", sentence, "reward")
        return told
    if state.closed is not None:
        raise closed()
    if not isinstance(handed, Claim | Commit):
        raise missing("no_such_pull", "There is no such pull; report one that ask returned.", "pull")
    if handed.agent != agent:
        raise _other_agents()
    if isinstance(handed, Commit):
        raise forbidden("commit_pull", "This is a commit pull: its reward is private and is not reported.")
    if state.members[agent].removed:
        raise was_removed(state.members[agent])
    if state.members[agent].aside:
        sentence = "The operator set your broadcasts aside, which cancelled this pull; do not report it."
        raise forbidden("claim_cancelled", sentence)
    raise forbidden("claim_cancelled", "You withdrew the arm of this pull, which cancelled it; do not report it.")


def _other_agents() -> Refused:
    return forbidden("other_agents_pull", "This pull was handed to another agent.")
