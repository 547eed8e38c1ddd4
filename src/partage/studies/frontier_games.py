"""The games of the study `frontier`, the rules played on them, and how often."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from partage.arms import Beta, Constant, Discrete, RandomBernoulli, bernoulli
from partage.game import Game
from partage.rules import (
    IMED,
    KLETC,
    KLUCB,
    BalancedETC,
    BalancedGLR,
    FullSharing,
    NoProtocol,
    SharedIMED,
    Thompson,
)
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.studies import over_time, random
from partage.studies.paper import ARMS, HORIZON
from partage.studies.study import Line
from partage.theory.limits import lai_robbins

# --- rules ----------------------------------------------------------------------------------------------------

SHARED, OWN = "Shared-IMED", "Shared-IMED, own = 30"
GLR, BETTING = "Balanced-GLR", "Balanced-GLR, betting"
ETC, NO_PROTOCOL = "Balanced-ETC", "no protocol"
SETTLED = ", settled"


class Contestant(NamedTuple):
    """A rule of the study, its colour, the largest number of runs of a long game, and whether every game has it."""

    name: str
    rule: Rule
    colour: str
    most_runs: int | None = None
    everywhere: bool = True


RULES: Sequence[Contestant] = (
    Contestant(SHARED, SharedIMED(), "green"),
    Contestant(OWN, SharedIMED(own=30), "good", everywhere=False),
    Contestant(BETTING, BalancedGLR(evidence="betting"), "purple", 1000),
    Contestant(GLR, BalancedGLR(), "blue"),
    Contestant("KL-ETC", KLETC(), "grey", 100),
    Contestant(ETC, BalancedETC(), "orange"),
    Contestant("B = inf", BalancedETC(math.inf), "ink", 100),
    Contestant("full sharing", FullSharing(), "grey", 100),
    Contestant(NO_PROTOCOL, NoProtocol(), "bad", 5, everywhere=False),
    Contestant("IMED, shared + own", IMED("both"), "ink", everywhere=False),
    Contestant("Thompson, shared + own", Thompson("both"), "ink", everywhere=False),
    Contestant("KL-UCB, shared + own", KLUCB("both"), "ink", everywhere=False),
)
BOTH = tuple(each.name for each in RULES if each.name.endswith("shared + own"))
TWO_UCB_ALONE = "2-UCB alone"  # played beside every line
STRONG: dict[str, Rule] = {"Thompson alone": Thompson(), "IMED alone": IMED(), "KL-UCB alone": KLUCB()}

# --- games ----------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """A game of the study, the rules that not every game has, and the largest numbers of runs.

    On a short game every rule is played as often as asked. `alone_runs` is for Thompson sampling, IMED and KL-UCB
    alone, which take up to a second per run of 10^6 steps.
    """

    name: str
    game: Game
    also: tuple[str, ...] = ()
    most_runs: int | None = 100
    alone_runs: int | None = 40
    short: bool = False


SHORT = 10**5  # the horizon at which sharing without a protocol is played too, whose cost grows with M T
SHADES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
FIVE_STARS = (0.0, 0.25, 0.5, 0.75, 1.0)
STARS = tuple(
    Discrete(FIVE_STARS, [weight / 16 for weight in weights])
    for weights in ([1, 1, 2, 4, 8], [1, 2, 3, 5, 5], [2, 3, 6, 3, 2], [5, 5, 3, 2, 1], [8, 4, 2, 1, 1])
)
BETAS: tuple[Beta | Constant, ...] = (*(Beta(4 * mean, 4 * (1 - mean)) for mean in SHADES), Constant(0.0))
THREE = bernoulli([0.9, 0.8, 0.7])


def _three(agents: int) -> Setting:
    """Return the game of a new user: three arms, a short horizon, few agents."""
    game = Game(THREE, Sharing.round_robin(agents, 3), 3000)
    name = f"0.9/0.8/0.7, M = {agents}, T = 3,000"
    return Setting(name, game, (OWN, NO_PROTOCOL, *BOTH), None, None, short=True)


GAMES: Sequence[Setting] = (
    Setting("balanced, M = 100", Game(ARMS, Sharing.round_robin(100, 10), HORIZON), most_runs=None),
    Setting("balanced, M = 10", Game(ARMS, Sharing.round_robin(10, 10), HORIZON), (OWN,), most_runs=None),
    Setting("imbalanced, M = 100", Game(ARMS, Sharing.scarce_best(100, 10), HORIZON), (OWN,), most_runs=None),
    Setting("imbalanced, M = 1,000", Game(ARMS, Sharing.scarce_best(1000, 10), HORIZON), (OWN,), most_runs=None),
    Setting("Beta arms, M = 100", Game(BETAS, Sharing.round_robin(100, 10), HORIZON), alone_runs=20),
    Setting("five stars, M = 100", Game(STARS, Sharing.round_robin(100, 5), HORIZON), alone_runs=20),
    Setting("balanced, M = 100, T = 1e5", Game(ARMS, Sharing.round_robin(100, 10), SHORT), (NO_PROTOCOL,)),
    Setting("imbalanced, M = 100, T = 1e5", Game(ARMS, Sharing.scarce_best(100, 10), SHORT), (OWN, NO_PROTOCOL)),
    Setting("neighbours-2, M = 20, T = 1e5", over_time.game(20), (NO_PROTOCOL,)),
    Setting("random, M = 100, T = 1e5", Game(random.ARMS, Sharing.random(100, 10), SHORT), (NO_PROTOCOL,)),
    Setting("random, M = 100", random.game(100), most_runs=40),
    _three(3),
    _three(12),
)
ARMS_OF = {  # the arms that the games are played on, for `bench/centralised.py`
    "paper's arms": ARMS,
    "Beta arms": BETAS,
    "five stars": STARS,
    "appendix's arms": over_time.game(20).arms,
    "random arms": random.ARMS,
    "three arms": THREE,
}
PLACES = {setting.name: place for place, setting in enumerate(GAMES, 1)}
BALANCED = PLACES["balanced, M = 100"]


def game(place: int) -> Game:
    """Return the game at a place."""
    return GAMES[place - 1].game


@cache
def limit(place: int) -> float | None:
    """Return the Lai-Robbins limit of a game; None if arms are random, as its mean over games is infinite."""
    arms = [arm for arm in game(place).arms if not isinstance(arm, RandomBernoulli)]
    if len(arms) < len(game(place).arms):
        return None
    return lai_robbins(arms, game(place).agents * game(place).horizon)


# --- what is played -------------------------------------------------------------------------------------------


def lines() -> list[Line]:
    """Return each rule without a settlement, then settled, then the learners alone.

    Games with the same arms and horizon share what is played alone.
    """
    plain, settled = [], []
    for each in RULES:
        places = [at for name, at in PLACES.items() if each.everywhere or each.name in GAMES[at - 1].also]
        plain.append(_line(each.name, each.rule, "none", places, each.most_runs))
        if each.name not in (NO_PROTOCOL, *BOTH):  # they follow no protocol, so nothing is settled
            settled.append(_line(each.name + SETTLED, each.rule, "equal-share", places, each.most_runs))
    alone = [
        Line(name, rule, lambda at: game(at).alone(), "none", most_runs=lambda at: GAMES[at - 1].alone_runs)
        for name, rule in STRONG.items()
    ]
    return plain + settled + alone


def _line(name: str, rule: Rule, settlement: str, places: Sequence[int], most: int | None) -> Line:
    def most_runs(at: int) -> int | None:
        setting = GAMES[at - 1]
        limits = (setting.most_runs, None if setting.short else most)
        return min((each for each in limits if each is not None), default=None)

    return Line(name, rule, game, settlement, places=places, most_runs=most_runs)
