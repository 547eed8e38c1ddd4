"""A program of a user who checks types: `make check` runs mypy on it."""

import partage
from partage.client import Agent, Operator


def simulate() -> partage.Estimate:
    """Simulate a small game."""
    game = partage.Game(partage.bernoulli([0.9, 0.5]), partage.Sharing.round_robin(2, 2), horizon=100)
    result: partage.Result = partage.play(game, partage.BalancedGLR(), runs=2)
    return result.overall_regret


def list_rules() -> dict[str, str]:
    """Return the built-in rules."""
    return partage.rules()


def take_part(url: str, collaboration: str, invite: str) -> str:
    """Join a collaboration and make one pull."""
    with Agent.join(url, collaboration, invite, name="Shop", shares=["North Mill"]) as agent:
        pull = agent.ask()
        agent.tell(pull, 1.0)
        return pull.arm


def settle(url: str, token: str, collaboration: str) -> int:
    """Close a collaboration and return the profit."""
    with Operator(url, token) as operator:
        return operator.close(collaboration).profit
