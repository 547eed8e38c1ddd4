"""Balanced-GLR: its parameters, and which kernel plays it.

That is `by_evidence` or `by_betting`, `broadcast_by_broadcast` or `bounded`.
"""

from typing import TYPE_CHECKING

from partage.arms import BernoulliTable
from partage.engine import bounded, broadcast_by_broadcast, by_betting, by_evidence
from partage.engine.decisions import BETTING, GLR, RuleTable
from partage.engine.tally import GameTable
from partage.rules.balanced_glr import elimination_threshold
from partage.rules.betting import betting_threshold

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import BalancedGLR

PLAYS_HIDDEN_ARMS = False


def play(run: "Run", rule: "BalancedGLR") -> None:
    """Play one run."""
    table = rule_table(rule, run.table)
    if rule.tolerate:
        bounded.play(run, table)
    elif isinstance(run.table.rewards, BernoulliTable):
        (by_betting if table.kind == BETTING else by_evidence).play(run, table)
    else:
        broadcast_by_broadcast.play(run, table)


def rule_table(rule: "BalancedGLR", table: GameTable) -> RuleTable:
    """Lay out the rule for kernels."""
    all_pulls = table.agents * table.horizon if rule.indifference else 0
    if rule.evidence == "betting":
        threshold = betting_threshold(table.horizon)
        return RuleTable(BETTING, 0.0, rule.lead, threshold, rule.indifference, all_pulls)
    threshold = elimination_threshold(table.arms, table.horizon)
    made = RuleTable(GLR, 0.0, rule.lead, threshold, rule.indifference, all_pulls)
    return made._replace(tolerate=rule.tolerate, worst=rule.late == "worst")
