"""Commit pulls that the client decides by itself: handed out, counted, and reported in bulk."""

import logging
import math
import re
from collections.abc import Callable

from msgspec import UNSET

from partage.client.calls import Calls
from partage.client.effects import Steps
from partage.client.errors import Refused
from partage.client.following import Following
from partage.client.pulls import Pull
from partage.client.receipts import Receipts, Sent
from partage.client.statefile import AgentState
from partage.ledger.events import Commit, Run
from partage.ledger.messages import CommitRun, Commits, Told

log = logging.getLogger("partage.client")

MOST_RUNS = 500  # in one report, which stays well below the largest body that the controller accepts

# Refusals that repeating the report cannot fix: these pulls are not counted.
NOT_COUNTED = frozenset(
    {
        "closed",
        "left",
        "horizon_used",
        "too_many_pulls",
        "version_ahead",
        "version_fell",
        "version_expired",
        "not_the_leader",
        "request_reused",
    }
)


class Reports:
    """Local pulls of an agent.

    Attributes
    ----------
    until
        The time until which a pull may be repeated without any other check.
    reported_at
        When the last report was acknowledged.
    """

    def __init__(
        self,
        saved: AgentState,
        calls: Calls,
        following: Following,
        receipts: Receipts,
        save: Callable[[], Steps[None]],
        clock: Callable[[], float],
        max_pulls_per_board: int,
    ) -> None:
        self._saved, self._calls, self._following, self._receipts = saved, calls, following, receipts
        self._save, self._clock, self._most = save, clock, max_pulls_per_board
        self.until = self.reported_at = -math.inf
        self._pull: Pull | None = None  # what the agent pulls until something changes
        self._named = True  # whether its arm is reported
        self._budget = self._left = 0  # how often it may be repeated in all, and how often still
        self._fresh = -1  # the freshness of the board that `_on_board` counts for
        self._on_board = 0  # counted pulls on that board
        self._warned = False

    # handing out

    def repeat(self) -> Pull | None:
        """Return the last pull again if nothing can have changed since; otherwise None."""
        following = self._following
        if (
            self._left
            and following.news is None
            and self._fresh == following.freshness
            and self._clock() < self.until
        ):
            self._left -= 1
            return self._pull
        return None

    @property
    def too_far_ahead(self) -> bool:
        """Whether the agent has made as many pulls on this board as it may, while somebody may still explore."""
        return self._following.exploration_ahead and self._made() >= self._allowance

    def hand_out(self, arm: int, *, once: bool, own: bool) -> Pull:
        """Return a pull of this arm.

        It may be repeated as long as nothing changes, unless its reward may change what the agent pulls next
        (`once`). If the agent's `own` rewards chose it, the controller does not learn its arm, and neither does it
        where commits earn nothing.
        """
        following, view = self._following, self._following.view
        assert view is not None
        budget = following.horizon - self._saved.used
        if following.exploration_ahead:
            budget = min(budget, self._allowance - self._made())
        if once:
            budget = 1
        if self._fresh != following.freshness:
            self._fresh, self._on_board = following.freshness, 0
        hidden = not own and arm != following.leader
        self._pull = Pull(view.arms[arm].name, False, hidden, view.version, None)
        self._named = following.names_commits and not own
        self._budget, self._left = budget, budget - 1
        return self._pull

    @property
    def _allowance(self) -> int:
        """How many pulls the agent may make on this board while somebody may still explore.

        Where the rule reads a clock, exploration never ends, and the clock opens the next arm. It advances by a
        quarter at a time: an agent that makes an eighth more pulls than before misses little, even if the sharers of
        an open arm have stopped. An agent that shares no active arm does not wait for them for long either.
        """
        view = self._following.view
        assert view is not None
        grows = bool(view.clock) or not self._following.shares_active
        return max(self._most, self._saved.used // 8) if grows else self._most

    def _made(self) -> int:
        return self._on_board if self._fresh == self._following.freshness else 0

    # counting

    @property
    def uncounted(self) -> bool:
        """Whether pulls were handed out since the last count."""
        return self._budget > self._left

    def count(self) -> None:
        """Count the pulls that were handed out since the last count."""
        made, self._budget, self._left = self._budget - self._left, 0, 0
        if made == 0 or self._pull is None:
            return
        self._saved.used += made
        self._on_board += made
        if self._pull.hidden:
            return
        if not self._named:
            self._saved.unnamed += made
            return
        runs, version, arm = self._saved.runs, self._pull.version, self._pull.arm
        if runs and (runs[-1].version, runs[-1].arm) == (version, arm):
            made += runs.pop().pulls
        runs.append(CommitRun(version=version, arm=arm, pulls=made))

    # reporting

    @property
    def pending(self) -> bool:
        """Whether pulls were counted that are not in a report yet."""
        return bool(self._saved.runs or self._saved.unnamed)

    @property
    def due(self) -> bool:
        """Whether it is time for a report."""
        return self._clock() >= self.next_due() or len(self._saved.runs) >= MOST_RUNS

    @property
    def due_before_claim(self) -> bool:
        """Whether to report before a claim, which may take long to pull."""
        return self.pending and self._clock() >= self.reported_at + self._following.report_every / 4

    def next_due(self) -> float:
        """Return when the next report is due."""
        return self.reported_at + self._following.report_every

    def send(self) -> Steps[None]:
        """Report all commit pulls so far. Report ids are written to disk first, so that none counts twice."""
        self.count()
        saved = self._saved
        if not self._following.names_commits:
            self._without_arms()
        while saved.report is not None or self.pending:
            if saved.report is None:
                request = self._calls.new_request()
                saved.report = Commits(request=request, runs=saved.runs[:MOST_RUNS], unnamed=saved.unnamed)
                saved.runs, saved.unnamed = saved.runs[MOST_RUNS:], 0
                yield from self._save()
            report = saved.report
            try:
                told = yield from self._receipts.fetch(Told, "POST", "/commits", report, self._row(report))
            except Refused as refused:
                uncoded = not refused.code and refused.status == 409  # release 0.1 sends no codes
                if refused.code not in NOT_COUNTED and not uncoded:
                    raise
                if saved.report is report:
                    self._give_up(report, refused)
                    saved.report = None
            else:
                if saved.report is report:  # otherwise another call has sent it too, and was answered first
                    if told.receipt is not None:
                        self._keep_receipted(report)
                    saved.report = None
                saved.head = told.head
        self.reported_at = self._clock()

    def _row(self, report: Commits) -> Sent:
        """Return the row that a report must become."""
        arms = self._following.arms
        runs = tuple(Run(run.version, arms[run.arm], run.pulls) for run in report.runs)
        return Sent(
            Commit,
            agent=self._saved.agent,
            request=report.request,
            runs=runs,
            unnamed=report.unnamed or UNSET,
            asked=False,
        )

    def _keep_receipted(self, report: Commits) -> None:
        """Count what a receipt proves. It is saved together with the end of the report, so nothing counts twice."""
        receipted = self._saved.receipted
        for run in report.runs:
            receipted.commits[run.arm] = receipted.commits.get(run.arm, 0) + run.pulls
        receipted.unnamed += report.unnamed

    def _without_arms(self) -> None:
        """Turn what an earlier release of the client counted by arm into the number that the controller takes."""
        saved = self._saved
        saved.unnamed += sum(run.pulls for run in saved.runs)
        saved.runs = []
        if saved.report is not None and saved.report.runs:
            pulls = saved.report.unnamed + sum(run.pulls for run in saved.report.runs)
            saved.report = Commits(request=saved.report.request, unnamed=pulls)

    def _give_up(self, report: Commits, refused: Refused) -> None:
        """Give up the run that was refused, or all if none is named; the others are reported again."""
        named = re.match(r"runs\[(\d+)\]", refused.field or "")
        place = int(named[1]) if named else len(report.runs)
        lost = report.runs[place : place + 1] or report.runs
        if named:
            self._saved.unnamed += report.unnamed
        self._saved.runs = [run for run in report.runs if run not in lost] + self._saved.runs
        self._saved.unpaid += sum(run.pulls for run in lost)
        self._following.distrust()
        if not self._warned:
            self._warned = True
            log.warning("Commit pulls were refused and do not count in the settlement (logged once): %s", refused)
