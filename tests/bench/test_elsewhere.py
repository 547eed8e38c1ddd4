"""Work in a process of its own: its results, its failures and its limits."""

import os
import time
from functools import partial

import pytest
from bench.elsewhere import Failed, NotStarted, TooLong, elsewhere, one_by_one
from bench.rows import Chart, Line, Point, Row

HERE = "tests.bench.test_elsewhere"
PATIENCE = 120  # seconds that only a hanging test reaches


def rows(unit):
    yield Row("a", 1.0, unit=unit)
    yield Chart("t", "x", "y", (Line("l", (Point(1.0, 2.0, 1.5, 2.5),)),))
    yield [1, 2.5, "three", None]


def fails():
    yield 1
    raise ValueError("the reason")


def dies():
    yield 1
    os._exit(7)


def hungry():
    yield 1
    yield len(bytearray(4 * 2**30))


def sleeps():
    yield os.getpid()
    time.sleep(10 * PATIENCE)
    yield 2


def sleeps_first(first, then):
    time.sleep(first)
    yield "warm"
    for case in then:
        time.sleep(case)
        yield case


def squares(work, sign, numbers, seconds, each, warming, memory):
    """Stand in for `elsewhere`."""
    yield "warm"
    for number in numbers:
        if number == 3:
            raise TooLong(each)
        if number == 5:
            raise Failed("five")
        yield sign * number**2


@pytest.fixture
def squared(monkeypatch):
    """Return `one_by_one` without processes."""
    monkeypatch.setattr("bench.elsewhere.elsewhere", squares)
    return partial(one_by_one, "work", [-1])


def test_results_arrive_as_they_were_yielded():
    found = list(elsewhere(f"{HERE}:rows", "ms", seconds=PATIENCE))
    assert found == [*rows("ms")]


def test_an_error_arrives_with_its_message():
    found = elsewhere(f"{HERE}:fails", seconds=PATIENCE)
    assert next(found) == 1
    with pytest.raises(Failed, match="ValueError: the reason"):
        next(found)


def test_a_process_that_dies_is_a_failure():
    with pytest.raises(Failed, match="code 7"):
        list(elsewhere(f"{HERE}:dies", seconds=PATIENCE))


def test_memory_is_limited():
    with pytest.raises(Failed, match="MemoryError"):
        list(elsewhere(f"{HERE}:hungry", seconds=PATIENCE, memory=2 * 2**30))


def test_work_that_takes_too_long_is_ended():
    found = elsewhere(f"{HERE}:sleeps", seconds=PATIENCE, each=0.2)
    process = next(found)
    with pytest.raises(TooLong, match=r"stopped after 0\.2 s"):
        next(found)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_cases_after_one_that_was_ended_are_still_measured(squared):
    found = dict(squared([2, 3, 4, 5, 6], PATIENCE, 0.5))
    assert (found[2], found[4], found[6]) == (-4, -16, -36)
    assert isinstance(found[3], TooLong)
    assert isinstance(found[5], Failed)


def test_hopeless_cases_are_left_out(squared):
    found = squared([2, 3, 4, 7], PATIENCE, 0.5, hopeless=lambda case, failed: (case, failed) == (4, 3))
    assert [case for case, _ in found] == [2, 3, 7]


def test_cases_beyond_the_time_of_all_are_not_started(squared):
    found = list(squared([2, 4], 0.0, 0.5))
    assert [case for case, _ in found] == [2, 4]
    assert all(isinstance(result, NotStarted) for _, result in found)


def test_a_case_that_the_time_of_all_ends_has_its_own_time_and_those_after_it_have_none():
    """The first case sleeps for longer than all cases may take, after a start that counts for none of them."""
    (slow, ended), (after, never) = one_by_one(f"{HERE}:sleeps_first", [0.3], [PATIENCE, 0], 0.2, PATIENCE)
    assert (slow, after) == (PATIENCE, 0)
    assert isinstance(ended, TooLong)
    assert isinstance(never, NotStarted)
    assert "0.2 s for all cases were over" in str(never)


def test_becoming_warm_takes_none_of_the_time_of_the_cases():
    found = list(elsewhere(f"{HERE}:sleeps_first", 2.0, [0, 0], seconds=1.9, warming=PATIENCE))
    assert found == ["warm", 0, 0]


def test_no_case_is_started_if_the_process_does_not_become_warm():
    found = list(one_by_one(f"{HERE}:sleeps_first", [10 * PATIENCE], [1, 2], PATIENCE, PATIENCE, warming=0.2))
    assert [case for case, _ in found] == [1, 2]
    assert all("did not become ready" in str(result) for _, result in found)
    found = list(one_by_one(f"{HERE}:nothing_of_this_name", [], [1, 2], PATIENCE, PATIENCE))
    assert all(isinstance(result, NotStarted) and "AttributeError" in str(result) for _, result in found)


def test_cases_that_end_without_a_result_are_failures(monkeypatch):
    monkeypatch.setattr("bench.elsewhere.elsewhere", lambda *_, **__: iter(["warm"]))
    assert [str(result) for _, result in one_by_one("work", [], [1, 2], PATIENCE, 1)] == [
        "ended without a result"
    ] * 2
