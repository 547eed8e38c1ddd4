"""Commit pulls that the client decided by itself."""

from collections.abc import Sequence

from msgspec import UNSET

from partage.ledger.events import Commit, Run
from partage.ledger.members import Answered, Member
from partage.ledger.moves.checks import check_number, check_signature, no_public_arm, present, reused, still_open
from partage.ledger.moves.order import order
from partage.ledger.moves.pulls import lapse, tick
from partage.ledger.moves.turn import Turn
from partage.ledger.refusals import conflict, invalid
from partage.ledger.signatures import named_runs
from partage.ledger.state import State


def commits(turn: Turn, agent: str, request: str, runs: Sequence[Run], unnamed: int = 0) -> Answered:
    """Count commit pulls that the client decided by itself, provided that the board allowed them.

    Of `unnamed` pulls nobody knows the arm: they use the horizon, and that is all that can be checked. Where commits
    earn nothing, all of them are unnamed.
    """
    state, member = still_open(turn), present(turn, agent)
    stated = named_runs(runs, state.arms)
    check_signature(turn, member, "commits", request=request, runs=stated, unnamed=unnamed)
    if request in member.answers:
        answered = member.answers[request]
        if answered.arm >= 0:
            raise reused("ask for a pull")
        return answered
    check_number(turn, member)
    if unnamed and state.format < 3:
        sentence = "This collaboration was created by an earlier release: commit pulls must name their arm."
        raise invalid("unnamed", sentence)
    if runs and not state.names_commits:
        sentence = (
            "Commit pulls earn nothing in this collaboration, so only their number is taken: report it as unnamed, "
            "without runs; a client that cannot do this must be upgraded."
        )
        raise invalid("runs", sentence, "unnamed_only")
    lapse(turn)
    if not state.ordered:
        if not any(state.board.public):
            raise no_public_arm()
        order(turn)
    left = member.horizon_left
    if sum(run.pulls for run in runs) + unnamed > left:
        sentence = f"These are more pulls than the horizon has left: {left:,} of {member.horizon:,}."
        raise conflict("too_many_pulls", sentence, "runs" if runs else "unnamed")
    reported = member.reported
    right: set[int] = set()  # arms that were already checked at this version
    for place, run in enumerate(runs):
        if run.version != reported:
            right.clear()
        if run.arm not in right:
            _check_run(state, member, run, f"runs[{place}]", reported, turn.now)
            right.add(run.arm)
        reported = run.version
    tick(turn)  # not before: a refusal writes nothing
    event = turn.write_asked(Commit, agent=agent, runs=tuple(runs), request=request, unnamed=unnamed or UNSET)
    return Answered(event.seq, -1, False, state.version)


def _check_run(state: State, member: Member, run: Run, field: str, reported: int, now: int) -> None:
    """Refuse commit pulls that the board cannot have told the agent to make."""
    at_version = f"{field}.version"
    if run.version > state.version:
        sentence = f"The board has not reached this version; it is at {state.version}."
        raise conflict("version_ahead", sentence, at_version)
    if run.version < reported:
        sentence = f"Versions must not decrease: you already reported pulls on version {reported}."
        raise conflict("version_fell", sentence, at_version)
    window = state.window(run.version)
    if window is None or (window.until is not None and window.until + state.patience < now):
        sentence = (
            f"This version of the board was superseded more than {state.config.claim_seconds:g} seconds ago; "
            "report commit pulls sooner."
        )
        raise conflict("version_expired", sentence, at_version)
    if state.allowed(member.id, window, run.arm):
        return
    sentence = (
        "At this version the board never told you to commit to this arm: "
        "it was not the leader, or an arm you share was open."
    )
    raise conflict("not_the_leader", sentence, f"{field}.arm")
