"""A check for rules of your own."""

import copy
import random
from collections.abc import Collection, Hashable

from partage.arms import Arm, Bernoulli, Constant, Uniform
from partage.board import Board, Pull, Record
from partage.clock import rounded
from partage.engine import own as own_rules
from partage.engine import play_runs
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.errors import InputError, RuleError
from partage.game import Game
from partage.ledger.own_rules import Served, as_served
from partage.ledger.refusals import Refused
from partage.rules.rule import Rule, checked_pull, decider, is_compiled
from partage.sharing import Sharing
from partage.simulate.chunk import checked_rule
from partage.tape import Draws


def check_rule(rule: Rule, seed: int = 0, *, compiled: bool = True) -> None:
    """Check that a rule follows the rules of the game.

    The reference plays it on small games of every shape: one agent, one arm, agents that share nothing, arms that
    nobody shares, equal arms, very short horizons. The rule must

    - pull arms that exist, and broadcast only arms that the agent shares;
    - decide from the board, the agent's shares and record and the given draws: asked twice, it gives the same answer;
    - leave the board and the record unchanged when it decides, and the record when it revises;
    - keep at least one public arm active, and no arm that nobody shares;
    - play the same game twice in the same way;
    - treat arms alike: with the arms and the tie order renumbered, it makes the same decision. This is not checked
      while the board has a state, which may refer to arms by their numbers;
    - if it is compiled, decide and revise as it does in plain Python, pull by pull. Compiling takes some seconds;
      `compiled=False` leaves it out.

    Raises
    ------
    RuleError
        The sentence says what the rule does wrong.

    >>> from partage import BalancedETC
    >>> check_rule(BalancedETC(balance=2))
    """
    try:
        checked_rule(rule)
    except InputError as error:
        raise RuleError(str(error)) from None
    compiled = compiled and is_compiled(rule)
    for number, game in enumerate([*_games(), *_random_games(seed)]):
        key = tape.run_keys(seed, number, number + 1)[0]
        tally = play_reference(game, _Watched(rule, compiled), key)
        pulls = (tally.explore + tally.commit).sum(axis=1)
        _require((pulls == game.horizon).all(), f"An agent pulled {pulls.min()} times in {game.horizon} steps.")
        again = play_reference(game, rule, key)
        _require(tally == again, "The rule played the same game in two ways: it keeps state or draws at random.")
        if compiled:
            (fast,) = play_runs(game, rule, key.reshape(1, 2))
            _require(fast.tally() == tally, "Compiled, the rule played another game than in plain Python.")


def check_live_rule(rule: Rule, seed: int = 0) -> None:
    """Check that a rule can be played live, by `partage serve --rules`.

    It must pass `check_rule`. It is also asked on the boards of live play, with claims that are open or lapsed and
    members who change what they share. Members decide commits without the controller, so the rule must

    - not read the agent's own record (`private = False`), and draw nothing;
    - explore whenever one of the agent's arms is open: one that an agent explores that shares it alone;
    - explore open arms only, and none that is eliminated;
    - let all who commit pull the same arm, which does not depend on claims, lapses or the clock;
    - commit only to arms that somebody shares, or once did: places on the board may have no arm yet;
    - stop changing which arms are active if it revises again and again, as it does after an agent was set aside;
    - keep only plain JSON data in `board.state`, and answer within seconds.

    Raises
    ------
    RuleError
        The sentence says what the rule does wrong.

    >>> from partage.testing import check_live_rule
    >>> class TenEach:
    ...     name, private = "ten-each", False
    ...     def decide(self, board, shares, own):
    ...         needed = [arm for arm in board.standing() if arm in shares and board.handed(arm) < 10]
    ...         if needed:
    ...             return board.least(needed), True
    ...         return board.best(board.actives() or range(board.arms)), False
    ...     def revise(self, board):
    ...         pass
    >>> check_live_rule(TenEach())
    """
    try:
        served = as_served(rule)
        for number, (arms, members, free) in enumerate(((1, 2, 0), (2, 3, 0), (3, 4, 0), (5, 6, 0), (2, 3, 4))):
            _play_live(served, arms, members, free, random.Random(1000 * seed + number))
    except (InputError, Refused) as error:
        raise RuleError(str(error)) from None
    check_rule(rule, seed, compiled=False)


def _play_live(served: Served, arms: int, members: int, free: int, drawn: random.Random) -> None:
    """Let members join, claim, tell, lapse and change their consent at random, and ask the rule after each event.

    The board has `free` places without an arm.
    """
    places = arms + free
    board = Board(1000, drawn.sample(range(places), places), [False] * places)
    board.sharers, board.all_pulls = [0] * places, 1000 * members
    claims: list[tuple[int, int]] = []
    pulls = 0
    for _ in range(150):
        member, chance = drawn.randrange(members), drawn.random()
        if chance < 0.1 or member not in board.shares:
            _share(board, member, frozenset(drawn.sample(range(arms), drawn.randint(0, arms))))
            claims = [one for one in claims if one[0] != member]
            board.claims = [sum(arm == claimed for _, claimed in claims) for arm in range(places)]
        elif chance < 0.6 or not claims:
            pulls += 1
            board.clock = rounded(pulls)
            busy = any(one == member for one, _ in claims)
            pull = served.decide(board, frozenset() if busy else board.shares[member])
            if pull.share:
                claims.append((member, pull.arm))
                board.claims[pull.arm] += 1
        else:
            member, arm = claims.pop(drawn.randrange(len(claims)))
            board.claims[arm] -= 1
            if chance < 0.9:
                board.broadcast(member, arm, float(drawn.random() < (arm + 1) / (arms + 1)))
                served.revise(board)
            else:
                board.lapses[arm] += 1
        _ask_all(served, board, drawn)


def _share(board: Board, member: int, shares: frozenset[int]) -> None:
    """Let a member share these arms."""
    board.shares[member] = shares
    for arm in range(board.arms):
        board.sharers[arm] = sum(arm in of for of in board.shares.values())
        board.shared[arm] = board.sharers[arm] > 0
        if board.shared[arm] and not board.public[arm]:
            board.public[arm] = board.active[arm] = True


def _ask_all(served: Served, board: Board, drawn: random.Random) -> None:
    """Ask what agents with several sets of shares pull, and compare the answers."""
    if not any(board.active):
        return
    opened, leader = set(served.open_arms(board)), served.leading(board)
    gone = sorted(arm for arm in opened if not board.active[arm])
    _require(not gone, f"Live, the rule explores arm {gone[:1]}, which is eliminated.")
    shared = [arm for arm in range(board.arms) if board.shared[arm]]
    for _ in range(4):
        shares = frozenset(drawn.sample(shared, drawn.randint(0, len(shared))))
        pull = served.decide(board, shares)
        _require(served.decide(board, shares) == pull, "Asked twice about the same board, the rule gave two answers.")
        mine = sorted(opened & shares)
        verb = "explores" if pull.share else "commits to"
        did = f"Live, an agent that shares {sorted(shares)} {verb} arm {pull.arm}"
        _require(
            pull.share == bool(mine), f"{did}, and of its arms an agent that shares one alone explores only {mine}."
        )
        allowed = mine if pull.share else [leader]
        _require(pull.arm in allowed, f"{did}, and it must be {'one of ' if pull.share else ''}{allowed}.")
    calm = board.copy()
    calm.claims, calm.lapses, calm.clock = [0] * board.arms, [0] * board.arms, 0
    _require(
        served.leading(calm) == leader,
        "Live, the arm of a commit changes with claims, lapses or the clock; it must not.",
    )
    for member in drawn.sample(list(board.shares), 1):
        calm.set_aside(member)
        served.settle(calm)


def _require(holds: object, sentence: str) -> None:
    if not holds:
        raise RuleError(sentence)


def _games() -> list[Game]:
    """Return small games of every shape."""
    two: list[Arm] = [Bernoulli(0.9), Bernoulli(0.2)]
    three: list[Arm] = [Constant(1.0), Uniform(0.0, 0.5), Constant(0.0)]
    return [
        Game([Bernoulli(0.5)], Sharing.round_robin(3, 1), 5),
        Game(two, Sharing.everything(1, 2), 200),
        Game(two, Sharing.round_robin(4, 2), 150),
        Game(two, Sharing.lists([[0], [1], []], 2), 100),
        Game(two, Sharing.nothing(2, 2), 50),
        Game(three, Sharing.round_robin(5, 3).in_shuffled_order(), 120),
        Game(three, Sharing.lists([[0], [0, 1], []], 3), 60),
        Game(three, Sharing.neighbours(4, 3, 2), 2),
        Game([Constant(0.5)] * 4, Sharing.round_robin(4, 4), 40),
    ]


def _random_games(seed: int) -> list[Game]:
    """Return some more games, drawn at random."""
    drawn = random.Random(seed)
    games = []
    for agents, arms in ((1, 3), (5, 4), (7, 3)):
        means: list[Arm] = [Bernoulli(drawn.random()) for _ in range(arms)]
        shares = [drawn.sample(range(arms), drawn.randint(0, arms)) for _ in range(agents)]
        games.append(Game(means, Sharing.lists(shares, arms), drawn.randint(20, 120)))
    return games


class _Watched:
    """A rule that is checked at each step."""

    def __init__(self, rule: Rule, compiled: bool) -> None:
        self.compiled = compiled
        self.rule, self.name, self.private = rule, rule.name, rule.private
        self.offers = getattr(rule, "offers", False)
        self._decide = decider(rule)
        self._steps = 0

    def open_arms(self, board: Board) -> Collection[int]:
        return self.rule.open_arms(board)  # type: ignore[attr-defined, no-any-return]

    def own_leaders(self, board: Board) -> dict[str, int]:
        return self.rule.own_leaders(board)  # type: ignore[attr-defined, no-any-return]

    def offered(
        self, board: Board, agent: Hashable, shares: Collection[int], opened: Collection[int]
    ) -> Collection[int]:
        return self.rule.offered(board, agent, shares, opened)  # type: ignore[attr-defined, no-any-return]

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws) -> Pull:
        before = copy.deepcopy((board, own))
        pull = self._decide(board, shares, own, draws.again())
        checked = checked_pull(self.name, pull, board.arms, shares)
        _require((board, own) == before, "`decide` changed the board or the agent's record; it must only read them.")
        asked_again = self._decide(board, shares, own, draws.again())
        _require(asked_again == pull, "Asked twice about the same board, the rule gave two answers.")
        if self.compiled:
            fast = Pull(*own_rules.decided(self.rule, board, shares, own, draws))
            place = f"At pull {draws.pull + 1} of agent {draws.agent}"
            _require(fast == checked, f"{place} the compiled `decide` returned {fast}, and the plain one {checked}.")
        self._steps += 1
        if self._steps % 7 == 0 and board.state is None:
            self._renumbered(board, shares, own, draws, checked)
        return checked

    def revise(self, board: Board) -> None:
        record = copy.deepcopy(board.record)
        fast = own_rules.revised(self.rule, board) if self.compiled else None
        self.rule.revise(board)
        if fast is not None:
            _require(
                fast == board.active,
                f"After {sum(record.counts)} broadcasts the compiled `revise` keeps the arms {_true(fast)} active, "
                f"and the plain one {board.actives()}.",
            )
        _require(board.record == record, "`revise` changed the record of broadcasts; it may only eliminate arms.")
        public = [arm for arm in range(board.arms) if board.public[arm]]
        _require(
            any(board.active[arm] for arm in public), "`revise` eliminated every arm; at least one must stay active."
        )
        hidden = [arm for arm in range(board.arms) if not board.public[arm] and board.active[arm]]
        _require(not hidden, f"`revise` made arm {hidden[:1]} active, which nobody shares.")

    def _renumbered(self, board: Board, shares: Collection[int], own: Record, draws: Draws, pull: Pull) -> None:
        """Number the arms backwards, and ask again."""
        last = board.arms - 1
        mirror = Board(board.horizon, [last - arm for arm in board.tie_order], board.public[::-1])
        mirror.shared, mirror.claims, mirror.active = board.shared[::-1], board.claims[::-1], board.active[::-1]
        mirror.sharers = board.sharers[::-1]
        mirror.shares = {member: frozenset(last - arm for arm in arms) for member, arms in board.shares.items()}
        mirror.leading = None if board.leading is None else last - board.leading
        mirror.record = _mirrored(board.record)
        mirror.clock, mirror.all_pulls = board.clock, board.all_pulls
        mirror.by_member = {member: _mirrored(record) for member, record in board.by_member.items()}
        mine = frozenset(last - arm for arm in shares)
        answer = self._decide(mirror, mine, _mirrored(own), draws.again())
        arm, share = checked_pull(self.name, answer, board.arms, mine)
        _require(
            last - arm == pull.arm and share == pull.share,
            "With the arms renumbered the rule decided differently; ties must be broken by `board.rank`.",
        )


def _true(active: Collection[bool]) -> list[int]:
    return [arm for arm, is_active in enumerate(active) if is_active]


def _mirrored(record: Record) -> Record:
    """Return a record with its arms numbered backwards."""
    latest = None if record.latest is None else len(record.counts) - 1 - record.latest
    return Record(record.counts[::-1], record.sums[::-1], latest, record.latest_reward)
