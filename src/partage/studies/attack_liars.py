"""The attacks: how liars behave, who is among them, and whether the operator is one of them.

Liars know the game: arm 0 is the best, and the last one the worst.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partage.studies.attack_table import Conduct, Seat, Table

BEST, SECOND, WORST = 0, 1, 2
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


class PhantomFollower(Conduct):
    """Share nothing, and report the whole horizon as commits to the arm that the first broadcast puts in the lead."""

    shares = ()
    commits = False

    def begins(self, table: Table, seat: Seat) -> None:
        """Act at once if there is a broadcast already."""
        self.hears(table, seat)

    def hears(self, table: Table, seat: Seat) -> None:
        """Act after the first broadcast."""
        if table.state.version == 1 and not table.member(seat).used:
            _report_horizon(table, seat)


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


class SetAside(Conduct):
    """The operator, who sets aside everyone who shares the best arm, after so many broadcasts. They have no seat."""

    after = 100


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes
    ----------
    name
        What the liars do, in a few words.
    liars
        One conduct for each identity.
    with_operator
        Whether the operator is one of them, and has a part in what they gain.
    sets_aside
        After how many broadcasts the operator sets aside everyone who shares the best arm; None: never.
    phantom
        Whether commits are made up.
    """

    name: str
    liars: Sequence[Conduct] = ()
    with_operator: bool = False
    sets_aside: int | None = None
    phantom: bool = False


NOBODY = Attack("nobody lies")
ATTACKS = (
    Attack("phantom commits, active", (PhantomCommits(),), phantom=True),
    Attack("phantom commits, passive", (PhantomFollower(),), phantom=True),
    Attack("phantom commits, 5 Sybils", (PhantomCommits(), *4 * (PhantomFollower(),)), phantom=True),
    Attack("made-up explores", (MadeUpExplores(),)),
    Attack(f"made-up explores, {FAST} times as fast", (MadeUpExplores(FAST),)),
    Attack("5 Sybils make up explores", 5 * (MadeUpExplores(FAST),)),
    Attack("3 promote the worst arm", 3 * (Promote(WORST, (BEST, SECOND, WORST)),)),
    Attack("1 promotes the second arm, 3 times as fast", (Promote(SECOND, (SECOND,), 3),)),
    Attack("3 hold an arm, then bury it", 3 * (HoldAndBury(2000),)),
    Attack("joins late", (JoinLate(),)),
    Attack("leaves early", (LeaveEarly(),)),
    Attack("shares only what pays", (ShareWhatPays(),)),
    Attack("operator invents 5 members", 5 * (MadeUpExplores(FAST),), with_operator=True),
    Attack("operator sets honest members aside", with_operator=True, sets_aside=100),
)
