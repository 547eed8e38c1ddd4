"""The client of the live controller.

`Agent` joins a collaboration: it asks what to pull, pulls it, and reports the reward. `AsyncAgent` does the same for
asyncio. Rewards that are not shared never leave the process. `Operator` creates and settles collaborations. The
other names are what their methods return and raise.
"""

from partage.client.agent import Agent
from partage.client.async_agent import AsyncAgent
from partage.client.errors import Closed, Forked, HorizonReached, Refused, Unreachable
from partage.client.operator import Operator
from partage.client.pulls import Played, Pull
from partage.ledger.messages import (
    AgentView,
    ArmOnBoard,
    BoardView,
    CollaborationView,
    Created,
    InviteView,
    SettlementRow,
    SettlementView,
)

__all__ = [
    "Agent",
    "AgentView",
    "ArmOnBoard",
    "AsyncAgent",
    "BoardView",
    "Closed",
    "CollaborationView",
    "Created",
    "Forked",
    "HorizonReached",
    "InviteView",
    "Operator",
    "Played",
    "Pull",
    "Refused",
    "SettlementRow",
    "SettlementView",
    "Unreachable",
]
