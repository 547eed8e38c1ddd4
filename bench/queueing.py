"""A queue that is served in batches, as the live controller serves requests that write.

All requests that wait are taken together, and are answered together when their commit is on disk. A batch of k takes
a + b k seconds: a for the commit, b for each request. So the server can take up to 1 / b requests per second, and
the fewer wait, the more of the time goes into commits.
"""

import math

import numpy as np


def latencies(rate, a, b, *, most=None, requests=100_000, seed=1):
    """Return the latencies of requests that arrive at random (Poisson) at this rate, in the order of arrival.

    `most` limits the size of a batch; with 1 this is the M/D/1 queue with service time a + b.
    """
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, requests))
    done = np.empty(requests)
    first, free = 0, 0.0
    while first < requests:
        start = max(free, arrivals[first])
        last = int(np.searchsorted(arrivals, start, side="right"))
        if most is not None:
            last = min(last, first + most)
        free = start + a + b * (last - first)
        done[first:last] = free
        first = last
    return done - arrivals


def fitted(cycles):
    """Return a and b of the line through cycle times, given as a mapping from batch sizes to seconds.

    A cycle of n connections without a pause is a batch of n. Relative errors count, as sizes differ a lot.
    """
    sizes, seconds = np.array(list(cycles)), np.array(list(cycles.values()))
    lines = np.column_stack([np.ones(len(sizes)), sizes]) / seconds[:, None]
    a, b = np.linalg.lstsq(lines, np.ones(len(sizes)), rcond=None)[0]
    return max(0.0, float(a)), max(0.0, float(b))


def quantile(values, share):
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.floor(share * len(ordered)))]
