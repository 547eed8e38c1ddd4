"""Shared-IMED: its parameters, and which kernel plays it: `by_evidence` or `broadcast_by_broadcast`."""

import math
from typing import TYPE_CHECKING

from partage.arms import BernoulliTable
from partage.engine import broadcast_by_broadcast, by_evidence
from partage.engine.decisions import IMED, RuleTable
from partage.engine.tally import GameTable

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import SharedIMED

PLAYS_HIDDEN_ARMS = False


def play(run: "Run", rule: "SharedIMED") -> None:
    """Play one run."""
    kernel = by_evidence if isinstance(run.table.rewards, BernoulliTable) else broadcast_by_broadcast
    kernel.play(run, rule_table(rule, run.table))


def rule_table(rule: "SharedIMED", table: GameTable) -> RuleTable:
    """Lay out the rule for kernels."""
    return RuleTable(IMED, 0.0, rule.lead, math.inf, True, 0, clock=rule.clock)
