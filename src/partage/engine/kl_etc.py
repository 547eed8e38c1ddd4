"""KL-ETC: parameters for the kernels of `broadcast_by_broadcast` and, if members may lie, `bounded`."""

from typing import TYPE_CHECKING

from partage.engine import bounded, broadcast_by_broadcast
from partage.engine.decisions import KL_ETC, RuleTable
from partage.engine.tally import GameTable
from partage.rules.balanced_glr import elimination_threshold

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import KLETC

PLAYS_HIDDEN_ARMS = False


def play(run: "Run", rule: "KLETC") -> None:
    """Play one run."""
    (bounded if rule.tolerate else broadcast_by_broadcast).play(run, rule_table(rule, run.table))


def rule_table(rule: "KLETC", table: GameTable) -> RuleTable:
    """Lay out the rule for kernels."""
    threshold = elimination_threshold(table.arms, table.horizon)
    return RuleTable(KL_ETC, rule.balance, 0.0, threshold, tolerate=rule.tolerate)
