"""Shared-IMED: parameters for the kernel of `partage.engine.broadcast_by_broadcast`."""

import math
from typing import TYPE_CHECKING

from partage.engine import broadcast_by_broadcast
from partage.engine.decisions import IMED, RuleTable
from partage.engine.tally import GameTable

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import SharedIMED

PLAYS_HIDDEN_ARMS = False


def play(run: "Run", rule: "SharedIMED") -> None:
    """Play one run."""
    broadcast_by_broadcast.play(run, rule_table(rule, run.table))


def rule_table(rule: "SharedIMED", table: GameTable) -> RuleTable:
    """Lay out the rule for kernels."""
    return RuleTable(IMED, 0.0, rule.lead, math.inf, True, 0, clock=rule.clock)
