"""Does the simulator predict live play, how many pulls should a client make on one board, and who gets a claim?

    python -m bench.live_play prediction
    python -m bench.live_play limit
    python -m bench.live_play offering
    python -m bench.live_play crowd
    python -m bench.live_play sharers --paces 10

Five slow members share both arms (0.8 and 0.6), and a hundred fast ones share nothing and follow. The model of
`bench.live_model` plays them with the client and the ledger as they are; a request takes 20 ms.
"""

import argparse
import math
from functools import partial
from multiprocessing import Pool

import numpy as np
from bench.live_model import Controller, World, key_of

from partage import Game, Sharing, Traits, bernoulli
from partage.engine.front_door import play_runs
from partage.ledger.config import live_rule

MEANS = (0.8, 0.6)
SHARERS, FOLLOWERS, HORIZON = 5, 100, 10_000
FIVE = (0.8, 0.7, 0.6, 0.5, 0.4)  # means of the arms of which members share one each
SIZES = (30, 100, 300)
CROWD = 30  # members who share everything
SLOWER = 8  # sharers pull so many times less often
LATENCY = 0.02  # seconds
RULES = ("shared-imed", "balanced-glr")
LIMITS = (1, 3, 10, 30, 100, HORIZON)
PACES = (1, 10, 100, 1000)  # pulls of a follower in a second


def game(slower, trips=0.0, eager=0):
    """Return the game. Requests make sharers slower, and their reports late, by so many steps; the eager are fast."""
    shares = [[0, 1]] * SHARERS + [[]] * FOLLOWERS
    slow = Traits(pace=1 / (slower + trips), horizon=int(HORIZON / slower), delay=trips)
    traits = [slow] * (SHARERS - eager) + [Traits()] * (eager + FOLLOWERS)
    return Game(bernoulli(MEANS), Sharing.lists(shares, len(MEANS)), HORIZON, traits=traits)


def seed_of(seed, run):
    return f"{seed + run:032x}"


def simulated(rule, played, runs, seed):
    """Return the overall regret of each run, as the simulator plays it."""
    keys = np.array([key_of(seed_of(seed, run)) for run in range(runs)], np.uint64)
    tallies = (run.tally() for run in play_runs(played, live_rule(rule, None, {}), keys))
    return np.array([float((one.explore + one.commit).sum(axis=0) @ played.gaps) for one in tallies])


def live(run, rule, pace, seed, played=None, offer=Controller, **options):
    """Return a live run: regret, asks for nothing, broadcasts, seconds waited per member, seconds, requests."""
    played = played or game(SLOWER)
    world = World(played, seed_of(seed, run), step=1 / pace, latency=LATENCY, rule=rule, **options)
    world.controller.__class__ = offer
    found = world.play()
    waited, requests = found.waited / played.agents, found.requests.total()
    return found.regret(played), found.for_nothing, found.broadcasts, waited, found.seconds, requests


class FewestFirst(Controller):
    """Offers a claim to those of the sharers only who have explored least, so that all explore equally often."""

    def offers(self, agent):
        explored = {one.id: sum(one.explore.values()) for one in self.state.members.values() if one.shares}
        return explored.get(agent, 0) <= min(explored.values())


def shown(values):
    return f"{np.mean(values):,.0f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):,.0f}"


def row(found):
    """Return what was measured in words."""
    regret, nothing, broadcasts, waited, seconds, requests = np.array(found).T
    asks, sent = nothing.sum() / broadcasts.sum(), requests.sum() / broadcasts.sum()
    return (
        f"regret {shown(regret)}, {asks:.3f} asks for nothing and {sent:.2f} requests per broadcast, "
        f"{waited.mean():.1f} s waited, {seconds.mean():,.0f} s in all"
    )


def prediction(pool, rule, pace, runs, seed):
    """Compare live play with the simulator: with paces alone, and with the time that requests take."""
    found = np.array(pool.map(partial(live, rule=rule, pace=pace, seed=seed), range(runs)))[:, 0]
    trips = 2 * LATENCY * pace  # a claim and its report are two requests
    paced, late = (simulated(rule, one, runs, seed) for one in (game(SLOWER), game(SLOWER, trips)))
    print(
        f"{rule}, {pace}/s: live {shown(found)}, simulated {shown(paced)}, with requests {shown(late)}, "
        f"live beyond that {shown(found - late)}",
        flush=True,
    )


def limit(pool, rule, pace, runs, seed):
    """Measure the limits of local pulls per board."""
    for most in LIMITS:
        found = pool.map(partial(live, rule=rule, pace=pace, seed=seed, max_pulls_per_board=most), range(runs))
        print(f"{rule}, {pace}/s, at most {most}: {row(found)}", flush=True)


def offering(pool, rule, pace, runs, seed):
    """Offer claims to whoever asks first, or to those who explored least, where two sharers of five are fast."""
    for name, offer in (("first asker", Controller), ("fewest explored", FewestFirst)):
        found = pool.map(
            partial(live, rule=rule, pace=pace, seed=seed, played=game(SLOWER, eager=2), offer=offer), range(runs)
        )
        print(f"{rule}, {pace}/s, {name}: {row(found)}", flush=True)


def crowd(pool, rule, pace, runs, seed):
    """Let thirty members share both arms, who all ask for the same claims."""
    played = Game(bernoulli(MEANS), Sharing.everything(CROWD, len(MEANS)), HORIZON // 20, traits=[Traits()] * CROWD)
    found = pool.map(partial(live, rule=rule, pace=pace, seed=seed, played=played), range(runs))
    print(f"{rule}, {pace}/s, {CROWD} sharers: {row(found)}", flush=True)


def sharers(pool, rule, pace, runs, seed):
    """Let members share one of five arms each, and compare asks that wait for a claim with asks that do not."""
    for members in SIZES:
        shares = Sharing.lists([[member % len(FIVE)] for member in range(members)], len(FIVE))
        played = Game(bernoulli(FIVE), shares, HORIZON // 50)
        found = {}
        for keeps in (False, True):
            work = partial(live, rule=rule, pace=pace, seed=seed, played=played, keeps_asks=keeps)
            found[keeps] = np.array(pool.map(work, range(runs), chunksize=1))
            what = "waits" if keeps else "does not wait"
            print(f"{rule}, {pace}/s, {members} members, an ask {what}: {row(found[keeps])}", flush=True)
        print(
            f"    regret beyond that of asks that do not wait: {shown((found[True] - found[False])[:, 0])}",
            flush=True,
        )


PARTS = {"prediction": prediction, "limit": limit, "offering": offering, "crowd": crowd, "sharers": sharers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--paces", type=int, nargs="+", default=PACES)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    part = PARTS[asked.part]
    with Pool(asked.processes) as pool:
        for rule in RULES:
            for pace in asked.paces:
                part(pool, rule, pace, asked.runs, asked.seed)


if __name__ == "__main__":
    main()
