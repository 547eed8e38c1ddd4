"""Moves: what operator and agents may do. Each checks a request against the state and writes the events it makes.

A move is a function of the state, the request and the time; it either refuses (and has written nothing but lapses
that were due), or its events are in the state when it returns. The server, and the verifier of a ledger, play the
same moves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeVar

from partage.ledger.events import (
    AnyEvent,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Event,
    Join,
    Lapse,
    Leave,
    Run,
    Tell,
)
from partage.ledger.refusals import Refused, conflict, forbidden, invalid
from partage.ledger.state import Answered, Member, State
from partage.settle.money import CEILING_SEED, Settled

_E = TypeVar("_E", bound=Event)


class NotOpen(Exception):
    """A tell of a pull that is no claim any more, or never was: the ledger knows."""


class Turn:
    """One move in the making: the state it reads and changes, the time, and the events it wrote."""

    def __init__(self, state: State, now: int) -> None:
        self.state = state
        self.now = max(now, state.time)  # the ledger's time never runs backwards, whatever the clock does
        self.events: list[AnyEvent] = []

    def write(self, event: type[_E], **fields: object) -> _E:
        """Write an event and apply it."""
        written = event(seq=self.state.seq + 1, time=self.now, **fields)
        self.state.apply(written)  # type: ignore[arg-type]
        self.events.append(written)  # type: ignore[arg-type]
        return written


def create(now: int, tie_seed: str, **config: object) -> Create:
    """Return the first event of a collaboration; `tie_seed` is 16 random bytes, in hex."""
    return Create(seq=1, time=now, tie_seed=tie_seed, **config)  # type: ignore[arg-type]


def join(turn: Turn, name: str, shares: Sequence[int], invite: str) -> Join:
    """Let an agent in, on an invite that was not used."""
    state = _open(turn)
    if invite in state.invites:
        raise forbidden("This invite was used; ask the operator for another.")
    agent = f"a{len(state.members) + 1}"
    return turn.write(Join, agent=agent, name=name, shares=tuple(sorted(set(shares))), invite=invite)


def lapse(turn: Turn) -> None:
    """Let claims lapse that have waited too long."""
    state = turn.state
    if state.closed is None:
        for pull in state.lapsing(turn.now):
            turn.write(Lapse, agent=state.claims[pull].agent, pull=pull)


def ask(turn: Turn, agent: str, request: str | None, explore_only: bool) -> Answered | None:
    """Hand out the agent's next pull: her open claim, a new one, or a commit (None where she wants explores only)."""
    state, member = _open(turn), _present(turn, agent)
    if request is not None and request in member.answers:
        answered = member.answers[request]
        if answered.arm < 0:
            raise conflict(
                "This request reported commit pulls before; every request needs an id of its own.", "request"
            )
        return answered
    lapse(turn)
    if member.claim is not None:
        return Answered(member.claim, state.claims[member.claim].arm, True, state.version)
    if member.used >= state.config.horizon:
        raise conflict(f"All {state.config.horizon:,} pulls of the horizon are used.")
    if not any(state.board.public):
        raise conflict("No arm is public: nobody shares any yet. Ask again once an agent shares one.")
    arm, share = state.rule.decide(state.board, member.shares)
    if share:
        claim = turn.write(Claim, agent=agent, arm=arm, request=request)
        return Answered(claim.seq, arm, True, state.version)
    if explore_only:
        return None
    run = Run(state.version, arm, 1)
    commit = turn.write(Commit, agent=agent, runs=(run,), asked=True, request=request)
    return Answered(commit.seq, arm, False, state.version)


def tell(turn: Turn, agent: str, pull: int, reward: float) -> Tell:
    """Broadcast the reward of a claim, also of one that lapsed."""
    state = turn.state
    handed = state.claims.get(pull) or state.late.get(pull)
    if handed is None:
        raise NotOpen
    if handed.agent != agent:
        raise forbidden("This pull was handed to another agent.")
    _open(turn)
    _present(turn, agent)
    return turn.write(Tell, agent=agent, pull=pull, arm=handed.arm, reward=reward, version=state.version + 1)


def not_open(agent: str, told: Tell | None, row: AnyEvent | None, reward: float) -> Tell:
    """Answer a tell of a pull that is no claim any more: `told` is the tell of it, `row` the event of the pull."""
    if told is not None:
        if told.agent != agent:
            raise forbidden("This pull was handed to another agent.")
        if told.reward != reward:
            raise conflict("This pull was told with another reward; the first report stands.", "reward")
        return told
    if isinstance(row, Claim | Commit) and row.agent != agent:
        raise forbidden("This pull was handed to another agent.")
    if isinstance(row, Commit):
        raise forbidden("This is a commit pull: its reward is yours alone and is not told.")
    if isinstance(row, Claim):
        raise forbidden("You withdrew the arm of this pull, which cancelled it; its reward is not taken.")
    raise Refused(404, "There is no such pull; tell one that ask gave you.", "pull")


def commits(turn: Turn, agent: str, request: str, runs: Sequence[Run]) -> Answered:
    """Count commit pulls that the agent decided by herself, if the board can have told her so."""
    state, member = _open(turn), _present(turn, agent)
    if request in member.answers:
        answered = member.answers[request]
        if answered.arm >= 0:
            raise conflict("This request was an ask before; every request needs an id of its own.", "request")
        return answered
    lapse(turn)
    left = state.config.horizon - member.used
    if sum(run.pulls for run in runs) > left:
        raise conflict(f"These are more pulls than the horizon leaves: {left:,} of {state.config.horizon:,}.", "runs")
    reported = member.reported
    right: set[int] = set()  # the arms that were found right at the version of the last run
    for place, run in enumerate(runs):
        if run.version != reported:
            right.clear()
        if run.arm not in right:
            _check_run(state, member, run, f"runs[{place}]", reported, turn.now)
            right.add(run.arm)
        reported = run.version
    event = turn.write(Commit, agent=agent, runs=tuple(runs), request=request)
    return Answered(event.seq, -1, False, state.version)


def _check_run(state: State, member: Member, run: Run, field: str, reported: int, now: int) -> None:
    """Refuse commit pulls that the board cannot have told the agent to make."""
    if run.version > state.version:
        raise conflict(f"The board has not come to this version yet; it is at {state.version}.", f"{field}.version")
    if run.version < reported:
        raise conflict(f"Versions never fall: you reported pulls on {reported} before.", f"{field}.version")
    first = state.windows[0].version
    window = state.windows[run.version - first] if run.version >= first else None
    if window is None or (window.until is not None and window.until + state.patience < now):
        raise conflict(
            f"This version of the board is gone for more than {state.config.claim_seconds:g} seconds; "
            "report commit pulls sooner.",
            f"{field}.version",
        )
    last = state.windows[run.version - first + 1].moments[0][0] if window.until is not None else state.seq + 1
    ends = [moment[0] for moment in window.moments[1:]] + [last]
    for (start, arm, opened), end in zip(window.moments, ends, strict=True):
        if arm == run.arm and any(not int(opened, 16) & shares for shares in _shared(member, start, end)):
            return
    raise conflict(
        "At no moment of this version did the board tell you to commit to this arm: "
        "it was not the leader, or an arm you share was open.",
        f"{field}.arm",
    )


def _shared(member: Member, start: int, end: int) -> list[int]:
    """Return what the agent shared at some moment from event `start` up to before event `end`, each as bits."""
    first = bisect_right(member.consents, start, key=_seq) - 1  # what she shared when it began, if she was there
    last = bisect_left(member.consents, end, key=_seq)
    return [int(shares, 16) for _, shares in member.consents[max(0, first) : last]]


def _seq(consent: tuple[int, str]) -> int:
    return consent[0]


def consent(turn: Turn, agent: str, shares: Sequence[int], request: str | None = None) -> None:
    """Let the agent share these arms from now on; the same request again changes nothing, whatever came between."""
    _open(turn)
    member = _present(turn, agent)
    if request is not None and request in member.answers:
        if member.answers[request].arm >= 0:
            raise conflict("This request was an ask before; every request needs an id of its own.", "request")
        return
    if request is not None or member.shares != frozenset(shares):
        lapse(turn)
        turn.write(Consent, agent=agent, shares=tuple(sorted(set(shares))), request=request)


def leave(turn: Turn, agent: str) -> None:
    """Let the agent go; who left already has nothing to do."""
    if not turn.state.members[agent].left:
        _open(turn)
        turn.write(Leave, agent=agent)


def close(turn: Turn, settled: Settled) -> Close:
    """End the collaboration with this settlement of its state; who closed it already gets the same."""
    state = turn.state
    if state.closed is not None:
        return state.closed
    explore, commit = state.totals()
    ceilings = settled.ceilings
    return turn.write(
        Close,
        explore=tuple(explore),
        commit=tuple(commit),
        common_charge=settled.common_charge,
        ceilings=None if ceilings is None else dict(zip(state.members, ceilings, strict=True)),
        ceiling_seed=None if ceilings is None else str(CEILING_SEED),
        profit=settled.profit,
    )


def _open(turn: Turn) -> State:
    """Return the state of a collaboration that is not closed."""
    if turn.state.closed is not None:
        raise closed()
    return turn.state


def closed() -> Refused:
    """Return the refusal of whatever would change a closed collaboration."""
    return conflict("This collaboration is closed; its board, settlement and ledger can still be read.")


def _present(turn: Turn, agent: str) -> Member:
    """Return an agent who has not left."""
    member = turn.state.members[agent]
    if member.left:
        raise conflict("You left this collaboration; a new invite lets you join again.")
    return member


def check_reward(reward: float) -> float:
    """Return a reward in [0, 1]."""
    if not 0 <= reward <= 1:
        raise invalid("reward", "The reward must be a number from 0 to 1.")
    return reward
