"""One agent at a time, without faults: the service decides exactly as the reference simulator does.

The last step is an exception. There the agents of a simulated game use the last of their horizons at the same
instant, and here one after another, so that an arm may be used up before the last of them ask (docs/real-members.md).
"""

from typing import Any

import msgspec
import numpy as np
from tests.simulator.servers import Network
from tests.simulator.witness import must

from partage.arms import bernoulli, reward_table
from partage.board import Board, Pull, Record
from partage.client.effects import Answer, Send
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.game import Game
from partage.rules import make_rule
from partage.sharing import Sharing
from partage.tape import run_key


class Noted:
    """A rule that notes what it decides."""

    private = False

    def __init__(self, name: str, **parameters: Any) -> None:
        self.rule: Any = make_rule(name, **parameters)
        self.name, self.offers = name, self.rule.offers
        self.open_arms, self.offered = self.rule.open_arms, self.rule.offered
        self.own_leaders = self.rule.own_leaders
        self.decisions: list[tuple[int, bool]] = []

    def decide(self, board: Board, shares: Any, own: Record) -> Pull:
        decided: Pull = self.rule.decide(board, shares, own)
        self.decisions.append((int(decided[0]), bool(decided[1])))
        return decided

    def revise(self, board: Board) -> None:
        self.rule.revise(board)


class Turns:
    """Agents that play in turns, and the game that the reference plays with the same rewards."""

    def __init__(self, network: Network, id: str, config: dict[str, Any], sharing: list[list[int]]) -> None:
        self.network, self.path, self.config = network, f"/v1/collaborations/{id}", config
        self.arms: list[str] = config["arms"]
        chances = [0.95 - 0.9 * place / (len(self.arms) - 1) for place in range(len(self.arms))]
        self.game = Game(
            bernoulli(chances), Sharing.lists(sharing, arms=len(self.arms)), horizon=int(config["horizon"])
        )
        self.sharing = sharing

    async def send(self, token: str, method: str, path: str, body: Any = None) -> Any:
        """Make a request; it must succeed."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        answer = await self.network.send(Send(method, self.path + path, headers, content))
        must(isinstance(answer, Answer) and answer.status < 300, f"{method} {path} was not answered: {answer}")
        assert isinstance(answer, Answer)
        return msgspec.json.decode(answer.body)

    async def play(self, codes: list[str]) -> None:
        """Play the whole game, and compare every decision."""
        tokens = []
        for code, shares in zip(codes, self.sharing, strict=False):
            body = {"name": f"Agent {len(tokens)}", "shares": [self.arms[arm] for arm in shares]}
            tokens.append((await self.send(code, "POST", "/agents", body))["token"])
        decisions: list[tuple[int, bool]] = []
        told = [0] * len(self.arms)
        rewards: Any = None
        for _ in range(self.game.horizon):
            for token in tokens:
                pull = await self.send(token, "POST", "/ask", {})
                if rewards is None:  # the tie order, from which the rewards follow, is drawn at the first ask
                    drawn = (await self.send(token, "GET", ""))["tie_seed"]
                    key = np.array(run_key(drawn), np.uint64)
                    rewards = tape.Rewards(key, reward_table(self.game.fixed_arms()))
                arm = self.arms.index(pull["arm"])
                decisions.append((arm, pull["share"]))
                must(pull["version"] == sum(told), "A pull was decided on another board than the newest.")
                if pull["share"]:
                    body = {"pull": pull["pull"], "reward": rewards.broadcast(arm, told[arm])}
                    await self.send(token, "POST", "/tell", body)
                    told[arm] += 1
        noted = Noted(self.config["rule"], **self.config.get("parameters", {}))
        tally = play_reference(self.game, noted, key)  # type: ignore[arg-type]
        board, before = await self.send(tokens[0], "GET", "/board"), len(decisions) - len(tokens)
        same = decisions == noted.decisions
        used_up = any(arm["used_up"] for arm in board["arms"]) and decisions[:before] == noted.decisions[:before]
        must(same or used_up, "The service decided otherwise than the reference.")
        if not same:
            return
        must([arm["broadcasts"] for arm in board["arms"]] == tally.broadcasts.tolist(), "The counts differ.")
        must([arm["sum"] for arm in board["arms"]] == tally.sums.tolist(), "The sums of rewards differ.")
        must([arm["active"] for arm in board["arms"]] == tally.active.tolist(), "The active arms differ.")
