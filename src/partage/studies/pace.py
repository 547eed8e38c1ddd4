"""Slow sharers: what it costs a group that those who explore pull less often than the others, or report late."""

from functools import partial

from partage.arms import bernoulli
from partage.game import Game
from partage.rules import BalancedGLR, SharedIMED
from partage.sharing import Sharing
from partage.studies.results import Played, ratio
from partage.studies.study import Claim, Curve, Line, Panel, Study
from partage.traits import Traits

MEANS = (0.8, 0.6)
SHARERS, FOLLOWERS = 5, 100
HORIZON = 10_000
PLACES = (1, 2, 4, 8, 16, 32)
LATE = 50  # steps
RUNS = 1000  # at most
PROMPT, WAITING, CERTIFIED = "Shared-IMED", f"Shared-IMED, reports {LATE} steps late", "Balanced-GLR"


def game(slower: int, delay: float = 0.0) -> Game:
    """Return the game in which sharers pull so many times less often than followers, who share nothing."""
    sharing = Sharing.lists([[0, 1]] * SHARERS + [[]] * FOLLOWERS, len(MEANS))
    sharers = Traits(pace=1 / slower, delay=delay, horizon=HORIZON // slower)
    return Game(bernoulli(MEANS), sharing, HORIZON, traits=[sharers] * SHARERS + [Traits()] * FOLLOWERS)


def title(played: Played) -> str:
    """The finding."""
    grown = played.growth("overall_regret").mean
    return f"Sharers who pull {played.last} times less often cost the group {grown:.0f} times the regret"


def text(played: Played) -> str:
    """What the figure shows."""
    (first, *_, last), (late, *_) = (played.along("overall_regret", line) for line in (PROMPT, WAITING))
    return (
        "Followers commit to whatever leads while the sharers find out, so the overall regret of Shared-IMED grows "
        f"from {first.mean:,.0f} ± {first.stderr or 0:,.0f} to {last.mean:,.0f} ± {last.stderr or 0:,.0f}. Reports "
        f"that are {LATE} steps late cost {late.mean:,.0f} ± {late.stderr or 0:,.0f} where all pull equally often: "
        "every sharer waits for its report before it explores again."
    )


STUDY = Study(
    name="pace",
    question="What does it cost that those who explore are slow, or report late?",
    values=PLACES,
    lines=(
        Line(PROMPT, SharedIMED(), game, "none", most_runs=lambda at: RUNS),
        Line(WAITING, SharedIMED(), partial(game, delay=LATE), "none", most_runs=lambda at: RUNS),
        Line(CERTIFIED, BalancedGLR(), game, "none", most_runs=lambda at: RUNS),
    ),
    sharing=f"{SHARERS} agents share both arms, of means {MEANS[0]} and {MEANS[1]}; {FOLLOWERS} share nothing and "
    "pull once a step. All play for the same number of steps.",
    panels=(
        Panel(
            curves=(
                Curve("overall_regret", PROMPT, "green", PROMPT),
                Curve("overall_regret", "late reports", "orange", WAITING),
                Curve("overall_regret", CERTIFIED, "blue", CERTIFIED),
            ),
            shows="overall regret",
        ),
    ),
    title=title,
    text=text,
    claims=(
        Claim(
            "Slow sharers cost the group a multiple of the regret",
            f"overall regret, {PLACES[-1]} times slower against equally fast",
            lambda played: played.growth("overall_regret"),
            at_least=4,
        ),
        Claim(
            "Late reports cost the group a multiple of the regret",
            "overall regret, late against prompt, where all are equally fast",
            lambda played: ratio(*(played.by_run("overall_regret", PLACES[0], line) for line in (WAITING, PROMPT))),
            at_least=4,
        ),
    ),
    axis="times slower",
)
