"""The attacks: how liars behave, who is among them, and whether the operator is one of them.

Liars know the game: arm 0 is the best, and the last one the worst.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partage.studies.attack_table import Conduct, Seat, Table

BEST, SECOND, WORST = EVERY_ARM = 0, 1, 2
FAST = 50  # how often a hurried liar asks, compared with an honest member


class PhantomCommits(Conduct):
    """Tell a made-up 1 for the worst arm, withdraw all consent, and report the rest of the horizon as its commits."""

    shares = (WORST,)
    commits = False

    def begins(self, table: Table, seat: Seat) -> None:
        """Act before anybody else: the board then follows the lie at its first version."""
        if table.explore(seat):
            table.consent(seat, ())
            _report_horizon(table, seat)

    def tells(self, table: Table, seat: Seat, arm: int) -> float:
        """Make up the reward."""
        return 1.0


class PhantomAccomplice(Conduct):
    """Share nothing, and report the whole horizon as commits once somebody has lied at the first version."""

    shares = ()
    commits = False

    def hears(self, table: Table, seat: Seat) -> None:
        """Act after the first broadcast."""
        if table.state.version == 1:
            _report_horizon(table, seat)


class PhantomFollower(Conduct):
    """Share nothing, wait, and report the whole horizon as commits to the worst arm that has led so far."""

    shares = ()
    commits = False
    waits = 30  # broadcasts; commits may be reported for as long as a claim may wait

    def hears(self, table: Table, seat: Seat) -> None:
        """Act once it has waited."""
        state = table.state
        if state.version == self.waits and not table.member(seat).used:
            led = [(arm, window.version) for window in state.windows for _, arm, _ in window.moments]
            arm, version = max(led, default=(BEST, state.version))  # without windows, a report has no arm
            table.report(seat, table.game.horizon, version, arm)


def _report_horizon(table: Table, seat: Seat) -> None:
    """Report all pulls that are left as commits to the leader."""
    state = table.state
    leader, left = state.target(), table.game.horizon - table.member(seat).used
    assert leader is not None
    table.report(seat, left, state.version, leader)


@dataclass(frozen=True)
class MadeUpExplores(Conduct):
    """Share the arms that earn something, and tell draws from the board's mean instead of pulling."""

    pace: int = 1
    shares = (SECOND, WORST)
    commits = False

    def tells(self, table: Table, seat: Seat, arm: int) -> float:
        """Draw 0 or 1 with the arm's mean on the board; either with even chances if it has none."""
        board = table.state.board
        mean = board.mean(arm) if board.counts[arm] else 0.5
        return float(table.draws(seat).uniform() < mean)


@dataclass(frozen=True)
class Promote(Conduct):
    """Tell 1 for one arm, and 0 for the others that it shares."""

    arm: int
    shares: tuple[int, ...]
    pace: int = 1
    commits = False

    def tells(self, table: Table, seat: Seat, arm: int) -> float:
        """Make up the reward."""
        return float(arm == self.arm)


@dataclass(frozen=True)
class HoldAndBury(Conduct):
    """Hold the second arm just below the leader, so that it is explored for long, and then bury it.

    The longer it is held, the more claims there are to be paid; the deeper it is buried, the more each earns.
    """

    until: int  # broadcasts of the arm
    below: float = 0.02
    shares = (SECOND,)
    commits = False

    def tells(self, table: Table, seat: Seat, arm: int) -> float:
        """Tell what brings the arm's mean to where it should be, as far as one reward can."""
        board = table.state.board
        count, total = board.counts[arm], board.record.sums[arm]
        if count >= self.until:
            return 0.0
        highest = max((board.mean(other) for other in range(board.arms) if other != arm), default=0.5)
        return min(1.0, max(0.0, (highest - self.below) * (count + 1) - total))


class JoinLate(Conduct):
    """Join when half the horizon is over, share nothing, and follow the leader."""

    shares = ()
    joins = 0.5


class LeaveEarly(Conduct):
    """Explore the arms that earn something, report no commits, and leave after a hundredth of the horizon."""

    shares = (SECOND, WORST)
    leaves = 0.01
    commits = False


class ShareWhatPays(Conduct):
    """Tell the truth, but share only the arms that earn something."""

    shares = (SECOND, WORST)


def set_aside_the_best(table: Table) -> None:
    """As the operator, set aside every honest member who shares the best arm, after 100 broadcasts."""
    if table.state.version == 100:
        for seat in table.seats:
            if seat.is_honest and BEST in table.member(seat).shares:
                table.set_aside(seat)


def _does_nothing(table: Table) -> None:
    pass


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes
    ----------
    name
        What the liars do, in a few words.
    liars
        One conduct for each identity.
    operator
        What the operator does after each broadcast.
    with_operator
        Whether the operator is one of the liars: what they keep is a gain of the liars then.
    phantom
        Whether commits are made up.
    """

    name: str
    liars: Sequence[Conduct] = ()
    operator: Callable[[Table], None] = _does_nothing
    with_operator: bool = False
    phantom: bool = False


NOBODY = Attack("nobody lies")
ATTACKS = (
    Attack("phantom commits, active", (PhantomCommits(),), phantom=True),
    Attack("phantom commits, passive", (PhantomFollower(),), phantom=True),
    Attack("phantom commits, 5 Sybils", (PhantomCommits(), *4 * (PhantomAccomplice(),)), phantom=True),
    Attack("made-up explores", (MadeUpExplores(),)),
    Attack(f"made-up explores, {FAST} times as fast", (MadeUpExplores(FAST),)),
    Attack("3 promote the worst arm", 3 * (Promote(WORST, EVERY_ARM),)),
    Attack("1 promotes the second arm, 3 times as fast", (Promote(SECOND, EVERY_ARM, 3),)),
    Attack("3 hold an arm, then bury it", 3 * (HoldAndBury(2000),)),
    Attack("joins late", (JoinLate(),)),
    Attack("leaves early", (LeaveEarly(),)),
    Attack("shares only what pays", (ShareWhatPays(),)),
    Attack("operator invents 5 members", 5 * (MadeUpExplores(FAST),), with_operator=True),
    Attack(
        "operator sets aside the best arm's sharers",
        (Promote(SECOND, (BEST,)),),
        set_aside_the_best,
        with_operator=True,
    ),
)
