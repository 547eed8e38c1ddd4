"""When is it better to learn alone? Prints the figures of docs/which.md.

    python -m bench.when_not_to_collaborate

Short horizons, near ties, one member, and arms that nobody shares are games that `partage.play` simulates. Members
that differ and members that lie are not: a game has the same arms for everybody, and everybody tells the truth.
`play_mixed` plays those pull by pull, with the rules of Partage.
"""

import argparse

import numpy as np

from partage import IMED, KLUCB, BalancedGLR, Game, SharedIMED, Sharing, Thompson, TwoUCB, bernoulli, play
from partage.board import Board, Record
from partage.clock import rounded

RULES = {"Shared-IMED": SharedIMED(), "Balanced-GLR, betting": BalancedGLR(evidence="betting")}
LEARNERS = {"Thompson": Thompson(), "IMED": IMED(), "KL-UCB": KLUCB(), "2-UCB": TwoUCB()}
PAPER = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
THREE = [0.9, 0.8, 0.7]


def play_mixed(rule, sharing, means, horizon, random, told=lambda agent, arm, reward: reward):
    """Play one run in which agent m's arms have the means in row m, and return the regret of each agent.

    `told` returns the reward that an agent reports when it broadcasts.
    """
    agents, arms = means.shape
    board = Board(horizon, [int(arm) for arm in random.permutation(arms)], [True] * arms)
    board.all_pulls = agents * horizon
    shares = [frozenset(sharing.of(agent)) for agent in range(agents)]
    own = [Record.empty(arms) for _ in range(agents)]
    regrets = np.zeros(agents)
    for pull in range(agents * horizon):
        agent = pull % agents
        board.clock = rounded(pull)
        arm, share = rule.decide(board, shares[agent], own[agent])
        regrets[agent] += means[agent].max() - means[agent, arm]
        if share:
            board.broadcast(agent, arm, told(agent, arm, float(random.random() < means[agent, arm])))
            rule.revise(board)
    return regrets


def mixed(rule, means, horizon, runs, seed, told=lambda agent, arm, reward: reward):
    """Return the regrets of agents (columns) by run (rows); agent m shares arm m mod N."""
    sharing = Sharing.round_robin(*means.shape)
    return np.array(
        [play_mixed(rule, sharing, means, horizon, np.random.default_rng([seed, run]), told) for run in range(runs)]
    )


def shown(values):
    values = np.asarray(values, dtype=float)
    digits = 1 if abs(values.mean()) < 100 else 0
    return f"{values.mean():,.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):,.{digits}f}"


def overall(game, rule, runs, seed):
    """Return overall regret by run, and mean broadcasts."""
    result = play(game, rule, runs=runs, seed=seed, settlement="none", baseline=False)
    return result.folded.figures[:, 0], result.broadcasts.mean


def best_alone(game, runs, seed):
    """Return the name of the learner that loses least alone, and its regret by run."""
    regrets = {name: overall(game.alone(), rule, runs, seed)[0] for name, rule in LEARNERS.items()}
    return min(regrets.items(), key=lambda item: item[1].mean())


def compare(title, game, runs, seed):
    """Print what a group loses by each rule, and alone."""
    name, alone = best_alone(game, runs, seed)
    told = [f"alone at best ({name}) {shown(game.agents * alone)}"]
    for rule_name, rule in RULES.items():
        regrets, broadcasts = overall(game, rule, runs, seed)
        told.append(f"{rule_name} {shown(regrets)} with {broadcasts:,.0f} broadcasts")
    print(f"{title}: {'; '.join(told)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1000, help="runs of short games; longer ones have a tenth")
    asked = parser.parse_args()
    many, few, seed = asked.runs, max(2, asked.runs // 10), asked.seed

    print("# Short horizons: the paper's ten arms")
    for agents in (2, 10, 100):
        sharing = Sharing.dealt(agents, 10)
        for horizon in (10, 30, 100):
            compare(f"M = {agents}, T = {horizon}", Game(bernoulli(PAPER), sharing, horizon), many, seed)

    print("# Near ties: 0.6 and 0.599, ten agents")
    for horizon, runs in ((1000, many), (10**4, few), (10**5, few // 3)):
        compare(f"T = {horizon:,}", Game(bernoulli([0.6, 0.599]), Sharing.round_robin(10, 2), horizon), runs, seed)

    print("# One member, and arms that nobody shares: 0.9/0.8/0.7, T = 3,000")
    compare("one member", Game(bernoulli(THREE), Sharing.everything(1, 3), 3000), many, seed)
    hidden = Sharing.lists([[1], [2], [1]], arms=3)
    compare("three members, nobody shares 0.9", Game(bernoulli(THREE), hidden, 3000), many, seed)
    hidden = Sharing.lists([[0], [1], [0]], arms=3)
    compare("three members, nobody shares 0.7", Game(bernoulli(THREE), hidden, 3000), many, seed)

    print("# Members that differ or lie: 0.9/0.8/0.7, M = 12, T = 3,000")
    alike = np.tile(THREE, (12, 1))
    name, alone = best_alone(Game(bernoulli(THREE), Sharing.round_robin(12, 3), 3000), many, seed)
    print(f"alone at best ({name}): {shown(alone)} each")
    differs = alike.copy()
    differs[11] = [0.7, 0.8, 0.9]
    for rule_name, rule in RULES.items():
        regrets = mixed(rule, differs, 3000, few // 5, seed)
        print(
            f"{rule_name}, for one member 0.9 is worst: it {shown(regrets[:, 11])}, the others together "
            f"{shown(regrets[:, :11].sum(axis=1))}",
            flush=True,
        )
        lied = mixed(rule, alike, 3000, few // 5, seed, lambda agent, arm, reward: 0.0 if agent == 0 else reward)
        print(f"{rule_name}, one of four sharers of 0.9 reports 0 always: all {shown(lied.sum(axis=1))}", flush=True)


if __name__ == "__main__":
    main()
