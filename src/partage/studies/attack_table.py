"""A collaboration with liars, played in memory by the moves of live play.

Every member makes one pull per round, in turn, as simulated agents do: claims are told at once, and commits are
reported in bulk before the clock would tick. So honest members play the run that `partage.play_run` plays.
A stretch in which nobody may explore is not played pull by pull: it ends when the clock ticks or somebody acts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from partage.arms import reward_table
from partage.clock import next_tick, rounded
from partage.engine.rewards import Rewards, run_keys
from partage.game import Game
from partage.ledger import moves
from partage.ledger.config import LiveRule
from partage.ledger.events import FORMAT, Create, Order, Run
from partage.ledger.members import Member
from partage.ledger.state import State
from partage.rules import live_parameters
from partage.settle import settlement_for
from partage.sharing import Sharing
from partage.tape import Draws


class Conduct:
    """How a member behaves. This one is honest; liars override what they do differently.

    Attributes
    ----------
    shares
        The arms that it shares from the start; None: as the game says.
    joins, leaves
        The rounds in which it joins and leaves, as fractions of the horizon; None: it stays.
    pace
        How often it asks for a claim in a round.
    commits
        Whether it commits if it may not explore, and reports that.
    """

    shares: tuple[int, ...] | None = None
    joins: float = 0.0
    leaves: float | None = None
    pace = 1
    commits = True

    def begins(self, table: "Table", seat: "Seat") -> None:
        """Act when all members of the start have joined, or on joining later."""

    def hears(self, table: "Table", seat: "Seat") -> None:
        """Act after a broadcast."""

    def tells(self, table: "Table", seat: "Seat", arm: int) -> float:
        """Return the reward that it reports for a claim."""
        return table.pulled(seat, arm)


HONEST = Conduct()


@dataclass(eq=False)
class Seat:
    """A member at the table: how it behaves, what it really pulled, and the commits that it has not reported yet."""

    agent: str
    conduct: Conduct
    pulls: list[int]
    pending: dict[tuple[int, int], int] = field(default_factory=dict)  # by version and arm

    @property
    def is_honest(self) -> bool:
        """Whether it does what the protocol asks."""
        return type(self.conduct) is Conduct


class Table:
    """A collaboration of honest members, one per agent of the game, and of liars.

    Parameters
    ----------
    game, rule, seed, run
        As for `partage.play_run`.
    liars
        They join after the honest members, and act before them in every round.
    operator
        What the operator does after each broadcast.
    named
        Whether commits are reported with their arms, as settlements need that pay commits. Otherwise reports are
        counts. The board does not depend on it.
    """

    def __init__(
        self,
        game: Game,
        rule: LiveRule,
        seed: int,
        run: int,
        liars: Sequence[Conduct] = (),
        operator: "Callable[[Table], None]" = lambda table: None,
        named: bool = True,
    ) -> None:
        sharing = game.sharing
        assert isinstance(sharing, Sharing)
        (key,) = run_keys(seed, run, run + 1)
        self.game, self.named, self.operator = game, named, operator
        self.key = int(key[0]), int(key[1])
        self.state = State(_created(game, rule, named))
        tie_seed = f"{self.key[0]:016x}{self.key[1]:016x}"  # as in the simulation of this run
        self.state.apply(Order(seq=2, time=0, format=FORMAT, seed="", tie_seed=tie_seed, skipped=()))
        self.rewards = Rewards(key, reward_table(game.fixed_arms()))
        self.drawn = [0] * len(game.arms)  # rewards read from the tape
        self.waiting = 0  # commits not reported yet, of all members
        self.round = 0
        self._requests = count()
        self._open: tuple[int, frozenset[int]] = (-1, frozenset())
        self.seats: list[Seat] = []
        self.absent = [conduct for conduct in liars if conduct.joins > 0]
        for agent in range(game.agents):
            self._seat(HONEST, sharing.of(agent))
        for conduct in liars:
            if not conduct.joins:
                self._seat(conduct, conduct.shares or ())

    # --- what liars may do ----------------------------------------------------------------------------------------

    def turn(self) -> moves.Turn:
        """Return a move to be made now."""
        return moves.Turn(self.state, self.state.time)

    def member(self, seat: Seat) -> Member:
        """Return a member's part of the state."""
        return self.state.members[seat.agent]

    def pulled(self, seat: Seat, arm: int) -> float:
        """Let a member pull an arm, and return its reward."""
        seat.pulls[arm] += 1
        self.drawn[arm] += 1
        return float(self.rewards.broadcast(arm, self.drawn[arm] - 1))

    def draws(self, seat: Seat) -> Draws:
        """Return randomness that no other member and no other pull of this one has."""
        return Draws(self.key, int(seat.agent[1:]) - 1, self.member(seat).used)

    def explore(self, seat: Seat) -> bool:
        """Let a member claim a pull and report it, if there is one for it."""
        member, (seen, opened) = self.member(seat), self._open
        if member.left or member.used >= self.game.horizon or not member.shares:
            return False
        if seen == self.state.seq and member.shares.isdisjoint(opened):
            return False
        answered = moves.ask(self.turn(), seat.agent, None, explore_only=True)
        if answered is None:
            self.open_arms()  # whoever comes next need not ask
            return False
        moves.tell(self.turn(), seat.agent, answered.seq, seat.conduct.tells(self, seat, answered.arm))
        for other in self.seats:
            if not other.is_honest:
                other.conduct.hears(self, other)
        self.operator(self)
        return True

    def consent(self, seat: Seat, shares: Iterable[int]) -> None:
        """Let a member share exactly these arms."""
        moves.consent(self.turn(), seat.agent, tuple(shares))

    def report(self, seat: Seat, pulls: int, version: int, arm: int) -> None:
        """Let a member report commits, made or made up."""
        self._report(seat, {(version, arm): pulls})

    def set_aside(self, seat: Seat) -> None:
        """Let the operator take a member's broadcasts out of the record."""
        moves.set_aside(self.turn(), seat.agent, "The operator says so.")

    # --- play -----------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Play to the horizon, and report all commits."""
        horizon = self.game.horizon
        for seat in self.seats:
            seat.conduct.begins(self, seat)
        while self.round < horizon:
            self._come_and_go()
            silent = self._silent_rounds()
            if silent:
                for seat in self.seats:
                    self._commit(seat, silent)
                self.round += silent
                continue
            for seat in self._order():
                for ask in range(seat.conduct.pace):
                    self._see_clock()
                    if not self.explore(seat) and not ask:
                        self._commit(seat, 1)
            self.round += 1
        self._flush()

    def open_arms(self) -> frozenset[int]:
        """Return the arms that may be explored now."""
        if self._open[0] != self.state.seq:
            self._open = self.state.seq, frozenset(self.state.open_arms())
        return self._open[1]

    def _order(self) -> list[Seat]:
        return sorted(self.seats, key=lambda seat: seat.is_honest)

    def _seat(self, conduct: Conduct, shares: Iterable[int]) -> Seat:
        number = len(self.seats) + 1
        joined = moves.join(self.turn(), f"Member {number}", tuple(int(arm) for arm in shares), f"invite {number}")
        self.seats.append(Seat(joined.agent, conduct, [0] * len(self.game.arms)))
        return self.seats[-1]

    def _come_and_go(self) -> None:
        """Let members join and leave that do so in this round."""
        horizon = self.game.horizon
        for conduct in [each for each in self.absent if each.joins * horizon <= self.round]:
            self.absent.remove(conduct)
            seat = self._seat(conduct, conduct.shares or ())
            conduct.begins(self, seat)
        for seat in self.seats:
            leaves = seat.conduct.leaves
            if leaves is not None and leaves * horizon <= self.round and not self.member(seat).left:
                moves.leave(self.turn(), seat.agent)

    def _silent_rounds(self) -> int:
        """Return for how many whole rounds nothing but commits happens: the clock does not tick, nobody acts."""
        self._see_clock()
        opened, horizon = self.open_arms(), self.game.horizon
        committing = 0
        for seat in self.seats:
            member = self.member(seat)
            if not member.left and member.used < horizon and not member.shares.isdisjoint(opened):
                return 0
            committing += self._commits(seat)
        until = horizon
        for conduct in (*self.absent, *(seat.conduct for seat in self.seats)):
            for moment in (conduct.joins, conduct.leaves):
                if moment is not None and moment * horizon > self.round:
                    until = min(until, -int(-moment * horizon // 1))
        if self.state.rule.clocked and committing:
            made = self.state.pulls_made + self.waiting
            until = min(until, self.round + (next_tick(max(made, self.state.board.clock)) - made) // committing)
        return until - self.round

    def _commits(self, seat: Seat) -> bool:
        return seat.conduct.commits and not self.member(seat).left and self.state.target() is not None

    def _commit(self, seat: Seat, pulls: int) -> None:
        """Let a member commit."""
        if self._commits(seat):
            arm = self.state.target()
            assert arm is not None
            seat.pulls[arm] += pulls
            at = self.state.version, arm
            seat.pending[at] = seat.pending.get(at, 0) + pulls
            self.waiting += pulls

    def _see_clock(self) -> None:
        """If the clock is due, report all commits and let it tick."""
        if self.state.rule.clocked and rounded(self.state.pulls_made + self.waiting) > self.state.board.clock:
            self._flush()
            moves.tick(self.turn())

    def _flush(self) -> None:
        """Let every member report its commits."""
        for seat in self.seats:
            if seat.pending:
                pending, seat.pending = seat.pending, {}
                self.waiting -= sum(pending.values())
                self._report(seat, pending)

    def _report(self, seat: Seat, made: dict[tuple[int, int], int]) -> None:
        request = f"commits {next(self._requests)}"
        runs = [Run(version, arm, pulls) for (version, arm), pulls in made.items()]
        if self.named:
            moves.commits(self.turn(), seat.agent, request, runs)
        else:
            moves.commits(self.turn(), seat.agent, request, (), sum(made.values()))

    # --- what came of it ------------------------------------------------------------------------------------------

    def told(self) -> list[list[int]]:
        """Return the claims that each member told, by arm."""
        return [[member.explore.get(arm, 0) for arm in range(len(self.game.arms))] for member in self._members()]

    def paid(self) -> list[list[int]]:
        """Return the claims that each member told and the commits that it reported, by arm."""
        return self.state.pulls()

    def _members(self) -> list[Member]:
        return list(self.state.members.values())


def _created(game: Game, rule: LiveRule, named: bool) -> Create:
    """Return the create event of a collaboration that plays this game."""
    settlement = settlement_for("equal-share-expected" if named else "none", rule)
    parameters = {name: getattr(rule, name) for name in live_parameters(rule.name)}
    return Create(
        seq=1,
        time=0,
        format=FORMAT,
        collaboration="c1",
        name="Attacked",
        arms=tuple(f"Arm {arm + 1}" for arm in range(len(game.arms))),
        horizon=game.horizon,
        rule=rule.name,
        balance=getattr(rule, "balance", None),
        parameters=parameters,
        settlement=settlement.name,
        fee=0.0,
        value=1.0,
        claim_seconds=60.0,
        alone=settlement.alone,
        coverage=settlement.coverage,
    )
