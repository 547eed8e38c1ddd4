"""The promises of settlements that limit what anyone can lose or gain, checked in money on played runs.

They hold in every run by arithmetic (docs/trust.md), so a single violation refutes them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from partage.board import Board, Record
from partage.engine import play_runs
from partage.engine.rewards import run_keys
from partage.engine.run import Run
from partage.game import Game
from partage.rules.rule import Rule
from partage.settle import DUES, Settlement
from partage.settle.money import MICRO, Settled, settle
from partage.theory.audit_row import HOLDS, VIOLATED, AuditRow, number

CHECKED_RUNS = 1000  # at most; settling a run in exact arithmetic takes longer than playing it


class _Check(NamedTuple):
    """A promise, and for each run what was measured and its limit, in micro-units."""

    says: str
    values: Callable[[Settled], Iterator[tuple[int, int]]]


def settlement_verdicts(game: Game, rule: Rule, settlement: Settlement, runs: int, seed: int) -> list[AuditRow]:
    """Judge every promise of a settlement on the first runs of a game; none if the controller bears any loss."""
    if settlement.underwriting is None:
        return []
    played = min(runs, CHECKED_RUNS)
    settled = [_settled(run, settlement) for run in play_runs(game, rule, run_keys(seed, 0, played))]
    note = "" if played == runs else f"Checked in {played:,} of {runs:,} runs."
    return [_judged(check, settled, settlement.name, note) for check in _checks(settlement)]


def _settled(run: Run, settlement: Settlement) -> Settled:
    """Settle a run in money, with a value of 1."""
    tally, table = run.tally(), run.table
    board = Board(table.horizon, range(table.arms), table.public.tolist())
    board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    board.active = tally.active.tolist()
    paid = tally.explore + tally.commit if settlement.pays_commits else tally.explore
    return settle(settlement, board, paid.tolist())


def _checks(settlement: Settlement) -> Iterator[_Check]:
    def zero(settled: Settled) -> Iterator[tuple[int, int]]:
        yield abs(sum(each.net for each in settled.accounts) + settled.profit), 0

    def loss(settled: Settled) -> Iterator[tuple[int, int]]:
        yield -settled.profit, settled.underwriting or 0

    def charge(settled: Settled) -> Iterator[tuple[int, int]]:
        yield max(each.charge for each in settled.accounts), settled.prepaid

    def gain(settled: Settled) -> Iterator[tuple[int, int]]:
        """The k agents who gain most, for every k."""
        nets, together = sorted((each.net for each in settled.accounts), reverse=True), 0
        for k, net in enumerate(nets, start=1):
            together += net
            others = (len(nets) - k) * settled.prepaid + (settled.underwriting or 0)
            yield together, 0 if settlement.kind == DUES else others

    yield _Check("all nets and what the controller keeps sum to 0", zero)
    yield _Check("the controller loses at most U", loss)
    if settlement.is_prepaid:
        yield _Check("nobody is charged more than D", charge)
        bound = "0" if settlement.kind == DUES else "(M − k) D + U"
        yield _Check(f"any k agents together gain at most {bound}", gain)


def _judged(check: _Check, settled: list[Settled], name: str, note: str) -> AuditRow:
    """Return the row of one promise, with the case that comes closest to its limit."""
    violations, closest = 0, (0, 0)
    for place, each in enumerate(settled):
        worst = max(check.values(each), key=lambda pair: pair[0] - pair[1])
        violations += worst[0] > worst[1]
        if place == 0 or worst[0] - worst[1] > closest[0] - closest[1]:
            closest = worst
    measured, limit = (amount / MICRO for amount in closest)
    return AuditRow(
        label=name,
        number="docs/trust.md",
        says=check.says,
        premise="–",
        premise_met=None,
        bound=f"≤ {number(limit)}",
        measured=number(measured),
        slack=limit / measured if measured > 0 else None,
        violations=violations,
        runs=len(settled),
        verdict=VIOLATED if violations else HOLDS,
        note=note,
        bound_value=limit,
        measured_value=measured,
    )
