"""The bench of a close runs: a collaboration whose members are only in memory is settled and closed."""

from bench.close import Case, measure


def test_a_close_settles_all_members_beside_the_event_loop() -> None:
    found = measure(Case("equal-share", "best", 5, 1000, 4, left=True))
    assert found.view.closed
    assert found.view.settlement == "equal-share"
    assert [row.agent for row in found.view.rows] == ["a1", "a2", "a3", "a4"]
    assert found.view.compensation > 0
    assert found.looks > 0  # the event loop turned while the close was under way
