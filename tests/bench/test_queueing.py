"""The queue that is served in batches agrees with what is known of its special cases, and with its Markov chain."""

import math

import numpy as np
import pytest
from bench.queueing import fitted, latencies, quantile


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_batches_of_one_are_the_m_d_1_queue(load: float) -> None:
    service = 0.002
    found = latencies(load / service, 0.0015, 0.0005, most=1, requests=200_000)
    assert np.mean(found) == pytest.approx(service + load * service / (2 * (1 - load)), rel=0.02)


def test_a_request_alone_takes_a_batch_of_one() -> None:
    assert np.mean(latencies(0.01, 0.003, 0.001, requests=1000)) == pytest.approx(0.004, rel=1e-3)


def test_if_a_batch_takes_the_same_time_whatever_its_size_a_busy_server_takes_one_and_a_half() -> None:
    """Whoever arrives waits for half a batch on average, and then takes a whole one."""
    assert np.mean(latencies(100_000, 0.01, 0.0, requests=200_000)) == pytest.approx(0.015, rel=0.01)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_the_mean_is_that_of_the_chain_of_batch_sizes(load: float) -> None:
    """The next batch is what arrives in this one, Poisson with mean rate (a + b k), or else one request."""
    a, b = 0.002, 0.001
    rate, most = load / b, 400
    sizes = np.arange(1, most)
    times = a + b * sizes
    logs = np.array([math.lgamma(size + 1) for size in range(most)])
    counts = np.arange(most)
    moves = np.exp(counts * np.log(rate * times)[:, None] - (rate * times)[:, None] - logs)
    nothing, moves = moves[:, 0], moves[:, 1:].copy()
    moves[:, 0] += nothing
    stationary = np.full(most - 1, 1 / (most - 1))
    for _ in range(2000):
        stationary = stationary @ moves
        stationary /= stationary.sum()
    # Whoever arrives during a batch waits for half of it on average, and then for all of the next one, which is the
    # larger the more arrive: E[K S(K)] over the batches that were not begun by a request alone.
    waits = stationary @ (rate * times * times / 2)
    next_batch = stationary @ (moves @ (sizes * times)) - stationary @ nothing * times[0]
    alone = stationary @ nothing * times[0]
    arrived = stationary @ (rate * times) + stationary @ nothing
    expected = (waits + next_batch + alone) / arrived
    assert np.mean(latencies(rate, a, b, requests=300_000)) == pytest.approx(expected, rel=0.03)


def test_the_line_through_cycles() -> None:
    assert fitted({n: 0.001 + 0.0002 * n for n in (1, 4, 16, 64)}) == pytest.approx((0.001, 0.0002))


def test_quantiles() -> None:
    assert (quantile([3.0, 1.0, 2.0], 0.5), quantile([1.0], 0.99)) == (2.0, 1.0)
