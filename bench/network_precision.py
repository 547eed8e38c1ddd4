"""Choose the precision rho of network-glr's mixture: how much information elimination takes, by gap and by rho.

`python -m bench.network_precision [PATHS]` prints, for each rho, the largest ratio over gaps, horizons and numbers of
arms of the information that it takes to that of the best rho for that case.
"""

import sys

import numpy as np

from partage.rules.network_glr import GROWTH

RHOS = (5, 10, 20, 30, 40, 60, 80, 120, 200, 400, 1000)
GAPS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4)
HORIZONS = (10**3, 10**4, 10**5, 10**6)
ARMS = (2, 5)


def information_at_elimination(gap: float, threshold: float, paths: int, seed: int) -> np.ndarray:
    """Return the mean information at which an arm of this gap is eliminated, for each rho, on the same paths."""
    at = (1 + GROWTH) ** np.arange(300)
    steps = np.random.default_rng(seed).normal(size=(paths, len(at))) * np.sqrt(np.diff(at, prepend=0.0))
    scores = np.maximum(gap * at + np.cumsum(steps, axis=1), 0.0)
    found = []
    for rho in RHOS:
        half = scores**2 / (2 * (at + rho))
        net = half + np.log(2 - np.exp(-half)) - np.log((at + rho) / rho) / 2
        reached = net >= threshold
        assert reached.any(axis=1).all()
        found.append(at[np.argmax(reached, axis=1)].mean())
    return np.array(found)


def main() -> None:
    paths = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    worst = np.ones(len(RHOS))
    for horizon in HORIZONS:
        for arms in ARMS:
            for seed, gap in enumerate(GAPS):
                found = information_at_elimination(gap, np.log((arms - 1) * horizon), paths, seed)
                worst = np.maximum(worst, found / found.min())
    for rho, ratio in zip(RHOS, worst, strict=True):
        print(f"rho {rho:>5}  {ratio:.3f}")


if __name__ == "__main__":
    main()
