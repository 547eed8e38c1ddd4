import inspect
import math
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.strategies import balances, board, boards, games, records, rules

from partage.board import Board, Pull, Record, radius
from partage.errors import InputError
from partage.rules.balanced_etc import BalancedETC
from partage.rules.exploring import commit
from partage.rules.full_sharing import FullSharing
from partage.rules.kl_etc import KLETC
from partage.rules.no_protocol import NoProtocol
from partage.rules.seeing import seen_by
from partage.rules.two_ucb import TwoUCB
from partage.sharing import RandomSharing


def revised(made, rule=None):
    after = deepcopy(made)
    (rule or BalancedETC()).revise(after)
    return after.actives()


def explores(made, shares, balance=1.0):
    return BalancedETC(balance).decide(made, shares).share


# --- elimination: Eq. 1 ---------------------------------------------------------------------------------------


@given(boards())
def test_arms_leave_by_eq_1(made):
    highest = max(
        made.mean(j) - radius(made.horizon, made.counts[j]) for j in range(made.arms) if made.counts[j] >= 0
    )
    staying = [
        i
        for i in made.actives()
        if made.counts[i] == 0 or made.mean(i) + radius(made.horizon, made.counts[i]) > highest
    ]
    assert revised(made) == (staying or [made.leader()])


@given(boards())
def test_elimination_is_permanent_and_never_empties_the_active_set(made):
    after = revised(made)
    assert after
    assert set(after) <= set(made.actives())


@given(boards())
def test_revising_changes_nothing_but_the_active_set_and_once_is_enough(made):
    after = deepcopy(made)
    BalancedETC().revise(after)
    assert (after.record, after.tie_order, after.public) == (made.record, made.tie_order, made.public)
    assert revised(after) == after.actives()


def test_an_arm_leaves_when_the_intervals_part():
    """T = 100: with N broadcasts of a 1 and a 0 each, 2 sqrt(2 log T / N) <= 1 from N = 36.8 on."""
    assert revised(board([36, 36], [1.0, 0.0])) == [0, 1]
    assert revised(board([37, 37], [1.0, 0.0])) == [0]


def test_an_arm_leaves_when_the_intervals_touch():
    """One arm's upper bound is put on the other's lower one; means are exact, for 4,096 is a power of two."""
    count, rad = 4096, radius(100, 4096)
    lower = 0.9 - rad
    mean = lower - rad
    while mean + rad < lower:
        mean = math.nextafter(mean, 1)
    assert mean + rad == lower
    assert revised(board([count, count], [0.9, mean])) == [0]
    above = mean
    while above + rad == lower:
        above = math.nextafter(above, 1)
    assert revised(board([count, count], [0.9, above])) == [0, 1]


def test_the_lower_bound_of_an_eliminated_arm_counts():
    """Arm 0 is gone. Its lower bound, 0.80, is above arm 1's upper one, 0.70, but not above arm 2's, 1.03."""
    assert revised(board([1000, 1000, 50], [0.9, 0.6, 0.6], gone=[0])) == [2]
    assert revised(board([1, 1000, 50], [0.9, 0.6, 0.6], gone=[0])) == [1, 2]


@pytest.mark.parametrize("tie_order", [[0, 1, 2, 3], [0, 3, 2, 1], [2, 3, 1, 0]])
def test_if_all_would_leave_the_highest_mean_stays_and_ties_go_by_the_tie_order(tie_order):
    stays = next(arm for arm in tie_order if arm in (2, 3))
    made = board([1000, 1000, 1000, 1000], [0.9, 0.2, 0.3, 0.3], gone=[0], tie_order=tie_order)
    assert revised(made) == [stays]


def test_an_arm_never_broadcast_does_not_leave():
    assert revised(board([1000, 0, 1000], [1.0, 0.0, 0.0])) == [0, 1]


def test_no_arm_leaves_a_fresh_board():
    assert revised(board([0, 0, 0], [0, 0, 0])) == [0, 1, 2]


def test_two_arms_may_leave_at_once():
    assert revised(board([1000, 1000, 1000], [0.9, 0.1, 0.2])) == [0]


def test_arms_that_nobody_shares_neither_leave_nor_count():
    made = board([1000, 0, 1000], [0.9, 0, 0.1], hidden=[1])
    assert revised(made) == [0]
    assert not made.active[1]


@given(boards(hidden=True), st.sampled_from([TwoUCB(), NoProtocol()]))
def test_2_ucb_and_no_protocol_eliminate_nothing(made, rule):
    assert revised(made, rule) == made.actives()


# --- explore or commit ----------------------------------------------------------------------------------------


@given(boards(), balances(), st.data())
def test_an_agent_explores_its_least_broadcast_arm_if_it_shares_an_open_one(made, balance, data):
    """Both forms of the condition: by its least-broadcast active arm, and by the open arms."""
    shares = data.draw(st.sets(st.integers(0, made.arms - 1)))
    active = made.actives()
    least = min(made.counts[arm] for arm in active)
    opens = {arm for arm in active if balance == math.inf or made.counts[arm] <= balance * least}
    expected = Pull(made.leader(), share=False)
    if len(active) > 1 and opens & shares:
        expected = Pull(made.least(shares.intersection(active)), share=True)
    assert BalancedETC(balance).decide(made, shares) == expected


@given(boards(), st.data())
def test_a_higher_balance_explores_whatever_a_lower_one_does(made, data):
    shares = data.draw(st.sets(st.integers(0, made.arms - 1)))
    pulls = [BalancedETC(balance).decide(made, shares) for balance in (1, 1.5, 2, 3, math.inf)]
    first = next((place for place, pull in enumerate(pulls) if pull.share), len(pulls))
    assert len(set(pulls[:first])) <= 1
    assert len(set(pulls[first:])) <= 1


@pytest.mark.parametrize("balance", [1, 1.5, 3, math.inf])
def test_at_the_start_every_arm_is_open(balance):
    """0 <= B * 0: what the paper's ratio 0/0 leaves open."""
    fresh = board([0, 0], [0, 0])
    assert BalancedETC(balance).decide(fresh, {1}) == Pull(1, share=True)
    assert BalancedETC(balance).decide(fresh, {0}) == Pull(0, share=True)


@pytest.mark.parametrize("balance", [1, 1.5, 1e300])
def test_an_arm_that_was_broadcast_is_closed_while_another_never_was(balance):
    assert not explores(board([0, 1], [0, 0.5]), {1}, balance)


def test_an_infinite_balance_opens_every_active_arm():
    made = board([0, 1000, 7], [0, 0.5, 0.5], gone=[2])
    assert BalancedETC(math.inf).decide(made, {1}) == Pull(1, share=True)
    assert not explores(made, {2}, math.inf)
    assert explores(board([3, 1000], [0.5, 0.5]), {1}, math.inf)


def test_a_balance_between_whole_numbers():
    """B = 1.5: with 4 broadcasts of the least-broadcast arm, 6 are open and 7 are not."""
    assert explores(board([4, 6], [0.5, 0.5]), {1}, 1.5)
    assert not explores(board([4, 7], [0.5, 0.5]), {1}, 1.5)
    assert not explores(board([4, 6], [0.5, 0.5]), {1}, 1.4)


def test_only_active_arms_count_for_the_balance():
    assert explores(board([1, 5, 5], [0.1, 0.5, 0.6], gone=[0]), {2})
    assert not explores(board([1, 5, 5], [0.1, 0.5, 0.6]), {2})


def test_an_agent_pulls_its_least_broadcast_arm_ties_by_the_tie_order():
    made = board([5, 4, 4, 3], [0.9, 0.1, 0.1, 0.1], tie_order=[0, 2, 1, 3])
    assert BalancedETC(2).decide(made, {0, 1, 2}) == Pull(2, share=True)


def test_two_active_arms_are_enough_to_explore():
    """The paper's text once says more than two: a slip."""
    assert explores(board([5, 5, 5], [0.1, 0.5, 0.6], gone=[0]), {1})


def test_with_one_arm_left_an_agent_commits_to_it():
    made = board([9, 5, 5], [0.9, 0.5, 0.6], gone=[0, 2])
    assert BalancedETC(math.inf).decide(made, {0, 1, 2}) == Pull(1, share=False)


@given(boards(), balances())
def test_an_agent_who_shares_nothing_or_only_what_is_gone_commits(made, balance):
    gone = set(range(made.arms)) - set(made.actives())
    for shares in (set(), gone):
        assert BalancedETC(balance).decide(made, shares) == Pull(made.leader(), share=False)


@given(st.integers(0, 50), balances(), st.booleans())
def test_with_one_arm_everyone_commits(count, balance, sharing):
    made = board([count], [0.5])
    BalancedETC(balance).revise(made)
    assert BalancedETC(balance).decide(made, {0} if sharing else set()) == Pull(0, share=False)


@pytest.mark.parametrize("balance", [0.999, 0, -1, math.nan, -math.inf, "2", None, True])
def test_a_balance_below_1_is_refused(balance):
    with pytest.raises(InputError, match="at least 1"):
        BalancedETC(balance)


# --- 2-UCB and no protocol ------------------------------------------------------------------------------------


def by_brute_force(made, among, counts, sums):
    """The first arm in tie order whose index nothing exceeds; arms never seen have an infinite one."""

    def index(arm):
        return sums[arm] / counts[arm] + radius(made.horizon, counts[arm]) if counts[arm] else math.inf

    return next(arm for arm in made.tie_order if arm in among and all(index(arm) >= index(other) for other in among))


@given(boards(hidden=True), st.data())
def test_2_ucb_pulls_the_highest_index_of_its_own_pulls_and_shares_nothing(made, data):
    own = data.draw(records(made.arms))
    expected = by_brute_force(made, range(made.arms), own.counts, own.sums)
    for shares in (set(), set(range(made.arms))):
        assert TwoUCB().decide(made, shares, own) == Pull(expected, share=False)


@given(boards(hidden=True), st.data())
def test_without_a_protocol_an_agent_follows_all_it_has_seen_and_broadcasts_what_it_shares(made, data):
    own = data.draw(records(made.arms))
    shares = data.draw(st.sets(st.integers(0, made.arms - 1)))
    counts = [mine + public for mine, public in zip(own.counts, made.counts, strict=True)]
    sums = [mine + public for mine, public in zip(own.sums, made.record.sums, strict=True)]
    expected = by_brute_force(made, range(made.arms), counts, sums)
    assert NoProtocol().decide(made, shares, own) == Pull(expected, share=expected in shares)


def test_2_ucb_by_hand():
    """T = 100. Index of arm 0: 0.9 + 3.035 / 10 = 1.20; of arm 1: 0.4 + 3.035 / 3 = 1.41; of arm 2: 0.5 + 0.61."""
    fresh = Board(100, [0, 1, 2], [True] * 3)
    own = Record([100, 9, 25], [90.0, 3.6, 12.5])
    assert TwoUCB().decide(fresh, set(), own).arm == 1
    assert TwoUCB().decide(fresh, set(), Record([100, 9, 0], [90.0, 3.6, 0.0])).arm == 2


@given(boards(), st.data())
def test_what_an_agent_has_seen_leaves_the_board_and_its_record_alone(made, data):
    own = data.draw(records(made.arms))
    before = deepcopy((made.record, own))
    seen_by(made, own).add(0, 1.0)
    assert (made.record, own) == before


# --- arms that nobody shares ----------------------------------------------------------------------------------


@given(boards(hidden=True), st.data())
def test_a_commit_plays_2_ucb_over_the_leader_and_the_arms_nobody_shares(made, data):
    own = data.draw(records(made.arms))
    hidden = [arm for arm in range(made.arms) if not made.public[arm]]
    leader = [made.leader()] if made.actives() else []
    assume(hidden)
    counts, sums = list(own.counts), list(own.sums)  # private alone for hidden arms: the board has none of them
    for arm in leader:
        counts[arm] += made.counts[arm]
        sums[arm] += made.record.sums[arm]
    assert commit(made, own) == Pull(by_brute_force(made, hidden + leader, counts, sums), share=False)
    assert BalancedETC().decide(made, set(), own) == commit(made, own)


@given(boards(), st.data())
def test_where_every_arm_is_shared_a_commit_is_on_the_leader_whatever_the_agent_saw_itself(made, data):
    own = data.draw(records(made.arms))
    assert commit(made, own) == commit(made) == Pull(made.leader(), share=False)


@given(boards(hidden=True), balances(), st.data())
def test_whether_an_agent_explores_does_not_depend_on_arms_nobody_shares(made, balance, data):
    """The public protocol runs on the other arms as if there were no more."""
    public = [arm for arm in range(made.arms) if made.public[arm]]
    assume(public)
    shares = data.draw(st.sets(st.sampled_from(public)))
    pull = BalancedETC(balance).decide(made, shares, data.draw(records(made.arms)))
    alone = board(
        [made.counts[arm] for arm in public],
        [made.mean(arm) if made.counts[arm] else 0.0 for arm in public],
        horizon=made.horizon,
        tie_order=[public.index(arm) for arm in made.tie_order if arm in public],
        gone=[place for place, arm in enumerate(public) if not made.active[arm]],
    )
    without = BalancedETC(balance).decide(alone, {public.index(arm) for arm in shares})
    assert pull.share == without.share
    if pull.share:
        assert pull.arm == public[without.arm]


@given(boards(hidden=True), st.data())
def test_if_nobody_shares_anything_it_is_2_ucb_alone(made, data):
    nobody = Board(made.horizon, made.tie_order, [False] * made.arms)
    own = data.draw(records(made.arms))
    assert BalancedETC().decide(nobody, set(), own) == TwoUCB().decide(nobody, set(), own)


def test_a_leader_is_weighed_by_the_public_record_and_its_own_pulls_of_it():
    """Arm 1 is hidden, arm 0 leads. T = 100: a hidden arm of 25 pulls and mean 0.5 has the index 1.107."""
    made = board([4, 0, 4], [0.5, 0, 0.4], hidden=[1])
    assert commit(made, Record([0, 25, 0], [0, 12.5, 0])).arm == 0  # 4 broadcasts: 2.02
    assert commit(made, Record([96, 25, 0], [48.0, 12.5, 0])).arm == 1  # with 96 of its own: 0.80
    assert commit(made, Record([0, 25, 999], [0, 12.5, 999.0])).arm == 0  # arm 2 does not lead: no matter
    assert commit(made, Record([0, 0, 0], [0, 0, 0])).arm == 1  # never pulled: first


# --- ties -----------------------------------------------------------------------------------------------------


def draws(rule):
    """Whether the rule decides at random, with draws that belong to the numbers of arms."""
    wanted = inspect.signature(rule.decide).parameters.get("draws")
    return wanted is not None and wanted.default is wanted.empty


@given(boards(hidden=True), rules().filter(lambda rule: not draws(rule)), st.data())
def test_decisions_depend_on_the_names_of_arms_through_the_tie_order_alone(made, rule, data):
    """Give the arms other numbers, in the tie order too: the same arms are pulled and leave."""
    name = data.draw(st.permutations(range(made.arms)))
    own = data.draw(records(made.arms))
    shares = data.draw(st.sets(st.integers(0, made.arms - 1)))

    def renamed(values):
        return [values[name.index(arm)] for arm in range(made.arms)]

    other = Board(made.horizon, [name[arm] for arm in made.tie_order], renamed(made.public))
    other.record = Record(renamed(made.counts), renamed(made.record.sums))
    other.active = renamed(made.active)
    their_own = Record(renamed(own.counts), renamed(own.sums))

    pull = rule.decide(made, shares, own)
    assert rule.decide(other, {name[arm] for arm in shares}, their_own) == Pull(name[pull.arm], pull.share)
    assume(made.actives())
    assert revised(other, rule) == sorted(name[arm] for arm in revised(made, rule))


# --- full sharing ---------------------------------------------------------------------------------------------


@given(games())
def test_full_sharing_plays_the_same_game_with_everything_shared(game):
    prepared = FullSharing().prepare(game)
    assert (prepared.arms, prepared.horizon, prepared.agents) == (game.arms, game.horizon, game.agents)
    assert prepared.sharing.shuffled == game.sharing.shuffled
    assert all(prepared.sharing.of(agent) == list(range(len(game.arms))) for agent in range(game.agents))


@given(games(every_arm_shared=True), st.booleans())
def test_full_sharing_of_a_random_game_is_fixed(game, shuffled):
    assume(game.agents >= len(game.arms))
    random = game.with_sharing(RandomSharing(game.agents, len(game.arms), shuffled))
    prepared = FullSharing().prepare(random)
    assert prepared.sharing.shuffled == shuffled
    assert np.array_equal(prepared.sharing.sharers(), [game.agents] * len(game.arms))


@given(
    horizon=st.integers(2, 50),
    pulls=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.25, 1.0])), max_size=120),
)
def test_kl_etc_looks_at_the_latest_arm_alone_and_finds_what_all_pairs_tell(horizon, pulls):
    public = [True] * 4
    quick, whole = Board(horizon, [2, 0, 3, 1], public), Board(horizon, [2, 0, 3, 1], public)
    for arm, reward in pulls:
        for made in (quick, whole):
            made.record.add(arm, reward)
        whole.record.latest = None
        for made in (quick, whole):
            KLETC().revise(made)
        assert quick.active == whole.active
