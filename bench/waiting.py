"""How long requests wait at the live controller by their rate, beside a queue that is served in batches."""

from bench.live_scale import curve_rows

ABOUT = (
    "Requests arrive at random, and all that wait are served as one batch. A batch of k takes a + b k, fitted to "
    "connections without a pause; 1 / b is the most requests per second. All figures but processor times are waiting "
    "times, measured once. There is no goal: the rows show how well a queue in batches predicts the waiting."
)
LOADS = (0.1, 0.3, 0.5, 0.7)
BATCHES = (1, 4, 16, 64)


def measure(loads=LOADS, seconds=1.5, batches=BATCHES, connections=256):
    """Yield a short curve; `make bench-all` measures a longer one."""
    yield from curve_rows(loads, seconds, batches, connections)
