"""The client of the live controller: an agent asks what to pull, pulls it, and tells what it gave.

`Agent` blocks, `AsyncAgent` is its twin for asyncio. Rewards that are not shared never leave the process.
"""

from partage.client.agent import Agent
from partage.client.async_agent import AsyncAgent
from partage.client.errors import Closed, HorizonReached, Refused, Unreachable
from partage.client.pulls import Played, Pull

__all__ = ["Agent", "AsyncAgent", "Closed", "HorizonReached", "Played", "Pull", "Refused", "Unreachable"]
