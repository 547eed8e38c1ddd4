"""What past rewards save, and what a false history costs: docs/histories.md.

`python -m bench.past_rewards [RUNS]` plays the moves of live collaborations, without a server. Two arms of means 0.8
and 0.6, five members who share both, 300 pulls each.
"""

import random
import statistics
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from partage.ledger import moves
from partage.ledger.config import Config, checked_config
from partage.ledger.moves import Turn
from partage.ledger.state import State
from partage.ledger.ties import commitment_to

MEANS = (0.8, 0.6)
MEMBERS, HORIZON, LIE = 5, 300, 100
RULES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("shared-imed", {}),
    ("balanced-glr", {}),
    ("balanced-glr", {"tolerate": 1}),
)


class Found(NamedTuple):
    """Regret per member, broadcasts, and whether the right arm leads at the end."""

    regret: float
    told: int
    right: bool


def played(seed: int, rule: str, parameters: dict[str, Any], past: int, lies: bool) -> Found:
    """Play once: members attach so many past rewards of each arm, or the first one attaches lies and tells them."""
    chance, part = random.Random(seed), seed.to_bytes(16)
    config = Config(
        name="Bench",
        arms=["a", "b"],
        horizon=HORIZON,
        rule=rule,
        parameters=parameters,
        prepaid=10.0,
        histories=LIE,
        claim_seconds=1.0,
    )
    create = moves.create(0, commitment_to(part), collaboration="c1", **checked_config(config))
    state = State(create)

    def move(made: Callable[..., Any], *given: Any) -> Any:
        return made(Turn(state, 0, lambda: part), *given)

    def seen(arm: int) -> float:
        return float(chance.random() < MEANS[arm])

    agents = [move(moves.join, f"Agent {place}", (0, 1), f"invite {place}").agent for place in range(MEMBERS)]
    for agent in agents:
        if lies and agent == agents[0]:
            move(moves.attach, agent, 0, [0.0] * LIE)
            move(moves.attach, agent, 1, [1.0] * LIE)
        elif past:
            for arm in (0, 1):
                move(moves.attach, agent, arm, [seen(arm) for _ in range(past)])
    bad = 0
    for _ in range(HORIZON):
        for agent in agents:
            pull = move(moves.ask, agent, None, False)
            bad += pull.arm
            if pull.share:
                reward = seen(pull.arm)
                move(moves.tell, agent, pull.seq, float(pull.arm) if lies and agent == agents[0] else reward)
    told = sum(sum(member.explore.values()) for member in state.members.values())
    return Found((MEANS[0] - MEANS[1]) * bad / MEMBERS, told, state.target() == 0)


def main() -> None:
    """Print a line for each rule and history."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    cases = {"none": (0, False), "20 each": (20, False), "100 each": (100, False), "a liar's 100": (0, True)}
    for rule, parameters in RULES:
        for name, (past, lies) in cases.items():
            found = [played(seed, rule, parameters, past, lies) for seed in range(runs)]
            regret = [one.regret for one in found]
            error = statistics.stdev(regret) / runs**0.5
            told, right = statistics.mean(one.told for one in found), statistics.mean(one.right for one in found)
            print(f"{rule} {parameters} {name}: regret {statistics.mean(regret):.2f} ± {error:.2f}, ", end="")
            print(f"{told:,.0f} broadcasts, the right arm leads in {right:.0%}", flush=True)


if __name__ == "__main__":
    main()
