"""Asks for a claim that end in nothing, in the model of live play (`bench.live_play`)."""

from functools import partial

from bench.live_play import FIVE, HORIZON, RULES, live
from bench.rows import Row

from partage import Game, Sharing, bernoulli

ABOUT = (
    "Members share one of five arms each and pull ten times a second, and a request takes 20 ms. This is the "
    "model of live play, with the client and the ledger as they are, so the figures depend on no machine. An ask "
    "that waits at the controller gets the next claim; it ends in nothing if none opens in time. Release 0.1 had "
    "three such asks a broadcast; the goal is at most one in ten broadcasts."
)
MEMBERS = (30, 100)
PACE = 10
SEED = 1_000_000


def measure(members=MEMBERS, rules=RULES, runs=3, horizon=HORIZON // 50):
    """Yield the asks that end in nothing and the requests per broadcast."""
    for rule in rules:
        for many in members:
            shares = Sharing.lists([[member % len(FIVE)] for member in range(many)], len(FIVE))
            game = Game(bernoulli(FIVE), shares, horizon)
            found = list(map(partial(live, rule=rule, pace=PACE, seed=SEED, played=game), range(runs)))
            what = f"{rule}, {many} members"
            nothing, requests = ([one[place] / one[2] for one in found] for place in (1, 5))
            yield Row.of(f"{what}: asks that end in nothing, per broadcast", nothing, 0.1, unit="asks")
            yield Row.of(f"{what}: requests per broadcast", requests, unit="requests")
