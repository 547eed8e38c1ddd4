"""Arms: reward distributions on [0, 1] with exactly known means.

Every kind of arm is a small frozen class with a `mean`. `partage.engine.rewards` draws from them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import ClassVar, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from partage.checks import count
from partage.errors import InputError

BERNOULLI, UNIFORM, CONSTANT, DISCRETE, EMPIRICAL, BETA, TRUNCATED_NORMAL, MIXTURE = range(8)


def _number(what: str, value: object, low: float = -math.inf, high: float = math.inf, allowed: str = "") -> float:
    """Return `value` as a float in [low, high], or say what is allowed."""
    allowed = allowed or f"a number between {low:g} and {high:g}"
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise InputError(f"{what} is {value!r}; it must be {allowed}.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {value!r}; it must be {allowed}.") from None
    if not low <= number <= high or math.isinf(number):
        raise InputError(f"{what} is {value!r}; it must be {allowed}.")
    return number


def _positive(what: str, value: object) -> float:
    number = _number(what, value, 0.0, math.inf, "a finite number above 0")
    if number == 0:
        raise InputError(f"{what} is {value!r}; it must be a finite number above 0.")
    return number


def _sequence(what: str, values: object) -> tuple[object, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"{what} must be a list of numbers, not {values!r}.")
    given = tuple(values)
    if not given:
        raise InputError(f"{what} must contain at least one number.")
    return given


def _check_weights(what: str, of: str, size: int, weights: Sequence[float]) -> None:
    if len(weights) != size:
        raise InputError(f"{what} has {size} {of}s and {len(weights)} weights; each {of} needs one weight.")
    if abs(math.fsum(weights) - 1) > 1e-9:
        raise InputError(
            f"The weights of {what[0].lower()}{what[1:]} sum to {math.fsum(weights):.12g}; they must sum to 1."
        )


@dataclass(frozen=True)
class Bernoulli:
    """Pays 1 with probability `mean`, otherwise 0.

    >>> Bernoulli(0.9).mean
    0.9
    """

    kind: ClassVar[int] = BERNOULLI
    mean: float
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _number("The mean of a Bernoulli arm", self.mean, 0, 1))

    @property
    def parameters(self) -> tuple[float, float]:
        """Parameters that `partage.engine.rewards` draws with."""
        return self.mean, 0.0


@dataclass(frozen=True)
class Uniform:
    """Pays uniformly between `low` and `high`.

    >>> Uniform(0.25, 0.75).mean
    0.5
    """

    kind: ClassVar[int] = UNIFORM
    low: float = 0.0
    high: float = 1.0
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _number("The low end of a uniform arm", self.low, 0, 1))
        object.__setattr__(self, "high", _number("The high end of a uniform arm", self.high, 0, 1))
        if self.low > self.high:
            raise InputError(
                f"The low end of a uniform arm is {self.low!r}, above its high end {self.high!r}; "
                "it must be at most the high end."
            )

    @property
    def mean(self) -> float:
        """The expected reward."""
        return (self.low + self.high) / 2

    @property
    def parameters(self) -> tuple[float, float]:
        """Parameters that `partage.engine.rewards` draws with."""
        return self.low, self.high


@dataclass(frozen=True)
class Constant:
    """Always pays `value`.

    >>> Constant(0.3).mean
    0.3
    """

    kind: ClassVar[int] = CONSTANT
    value: float
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _number("The value of a constant arm", self.value, 0, 1))

    @property
    def mean(self) -> float:
        """The expected reward."""
        return self.value

    @property
    def parameters(self) -> tuple[float, float]:
        """Parameters that `partage.engine.rewards` draws with."""
        return self.value, 0.0


@dataclass(frozen=True)
class Beta:
    """Pays according to a Beta(`a`, `b`) distribution.

    >>> Beta(2, 6).mean
    0.25
    """

    kind: ClassVar[int] = BETA
    a: float
    b: float
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", _positive("The parameter a of a beta arm", self.a))
        object.__setattr__(self, "b", _positive("The parameter b of a beta arm", self.b))

    @property
    def mean(self) -> float:
        """The expected reward."""
        total = self.a + self.b
        return self.a / total if math.isfinite(total) else self.a / 2 / (self.a / 2 + self.b / 2)

    @property
    def parameters(self) -> tuple[float, float]:
        """Parameters that `partage.engine.rewards` draws with."""
        return self.a, self.b


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    return np.polynomial.legendre.leggauss(100)


@dataclass(frozen=True)
class TruncatedNormal:
    """Pays according to a normal distribution (`location`, `scale`) conditioned on [0, 1].

    >>> TruncatedNormal(0.5, 0.2).mean
    0.5
    """

    kind: ClassVar[int] = TRUNCATED_NORMAL
    location: float
    scale: float
    name: str | None = None

    def __post_init__(self) -> None:
        what = "The location of a truncated normal arm"
        location = _number(what, self.location, -math.inf, math.inf, "a finite number")
        object.__setattr__(self, "location", location)
        object.__setattr__(self, "scale", _positive("The scale of a truncated normal arm", self.scale))

    @property
    def mean(self) -> float:
        """The expected reward, exact up to rounding.

        The textbook formula, a difference of normal densities, loses precision in the tails and for wide scales. So
        the density is integrated around its highest point in [0, 1], wherever it is above e^-50 of its height.
        """
        mode = min(max(self.location, 0.0), 1.0)
        away = abs(self.location - mode) / self.scale
        reach = self.scale * 100 / (away + math.hypot(away, 10))
        if reach == 0:
            return mode
        low, high = max(-mode, -reach), min(1 - mode, reach)
        nodes, weights = _quadrature()
        off = (low + high) / 2 + (high - low) / 2 * nodes
        weights = weights * np.exp(-abs(off / self.scale) * (abs(off / self.scale) + 2 * away) / 2)
        return min(max(mode + float(weights @ off / weights.sum()), 0.0), 1.0)

    @property
    def parameters(self) -> tuple[float, float]:
        """Parameters that `partage.engine.rewards` draws with."""
        return self.location, self.scale


@dataclass(frozen=True)
class Discrete:
    """Pays `values[j]` with probability `weights[j]`.

    >>> Discrete([0, 0.5, 1], [0.2, 0.3, 0.5]).mean
    0.65
    """

    kind: ClassVar[int] = DISCRETE
    parameters: ClassVar[tuple[float, float]] = (0.0, 0.0)
    values: tuple[float, ...]
    weights: tuple[float, ...]
    name: str | None = None

    def __init__(self, values: Sequence[float], weights: Sequence[float], name: str | None = None) -> None:
        pays = tuple(_number("A value of a discrete arm", v, 0, 1) for v in _sequence("The values", values))
        shares = tuple(_number("A weight of a discrete arm", w, 0, 1) for w in _sequence("The weights", weights))
        _check_weights("A discrete arm", "value", len(pays), shares)
        object.__setattr__(self, "values", pays)
        object.__setattr__(self, "weights", shares)
        object.__setattr__(self, "name", name)

    @property
    def mean(self) -> float:
        """The expected reward, rounded once."""
        weights = [Fraction(weight) for weight in self.weights]
        paid = sum(Fraction(value) * weight for value, weight in zip(self.values, weights, strict=True))
        return float(paid / sum(weights))


@dataclass(frozen=True)
class Empirical:
    """Pays a value drawn uniformly, with replacement, from a `sample`.

    With `counts`, the sample has the value `sample[j]` so many times: a short form for long samples.

    >>> Empirical([0.1, 0.4, 0.4, 0.7]).mean, Empirical([0.1, 0.4, 0.7], counts=[1, 2, 1]).mean
    (0.4, 0.4)
    """

    kind: ClassVar[int] = EMPIRICAL
    parameters: ClassVar[tuple[float, float]] = (0.0, 0.0)
    values: tuple[float, ...] = field(repr=False)
    name: str | None = None
    counts: tuple[int, ...] | None = field(default=None, repr=False)

    def __init__(self, sample: Sequence[float], name: str | None = None, counts: Sequence[int] | None = None) -> None:
        pays = tuple(_number("A value of an empirical arm", v, 0, 1) for v in _sequence("The sample", sample))
        object.__setattr__(self, "values", pays)
        object.__setattr__(self, "name", name)
        if counts is not None:
            often = tuple(count("A count of an empirical arm", one) for one in _sequence("The counts", counts))
            if len(often) != len(pays):
                raise InputError(
                    f"An empirical arm has {len(pays)} values and {len(often)} counts; each value needs one count."
                )
            counts = often
        object.__setattr__(self, "counts", counts)

    @property
    def mean(self) -> float:
        """The sample's mean, which is the expected reward."""
        if self.counts is None:
            return math.fsum(self.values) / len(self.values)
        paid = sum(Fraction(value) * often for value, often in zip(self.values, self.counts, strict=True))
        return float(paid / sum(self.counts))


@dataclass(frozen=True)
class Mixture:
    """Pays as `parts[j]` does with probability `weights[j]`; the part is drawn for each pull.

    >>> Mixture([Constant(0), Beta(2, 2)], [0.6, 0.4]).mean
    0.2
    """

    kind: ClassVar[int] = MIXTURE
    parameters: ClassVar[tuple[float, float]] = (0.0, 0.0)
    parts: "tuple[Arm, ...]"
    weights: tuple[float, ...]
    name: str | None = None

    def __init__(self, parts: "Sequence[Arm]", weights: Sequence[float], name: str | None = None) -> None:
        given = tuple(parts) if isinstance(parts, Iterable) else (parts,)
        for part in given:
            if not isinstance(part, get_args(Arm)):
                raise InputError(f"A part of a mixture is {part!r}; it must be an arm, e.g. partage.Beta(2, 6).")
        shares = tuple(_number("A weight of a mixture", w, 0, 1) for w in _sequence("The weights", weights))
        _check_weights("A mixture", "part", len(given), shares)
        flat: list[tuple[Arm, float]] = []
        for part, share in zip(given, shares, strict=True):
            if isinstance(part, Mixture):
                flat += [(inner, share * weight) for inner, weight in zip(part.parts, part.weights, strict=True)]
            else:
                flat.append((part, share))
        object.__setattr__(self, "parts", tuple(part for part, _ in flat))
        object.__setattr__(self, "weights", tuple(weight for _, weight in flat))
        object.__setattr__(self, "name", name)

    @property
    def mean(self) -> float:
        """The expected reward."""
        paid = math.fsum(part.mean * weight for part, weight in zip(self.parts, self.weights, strict=True))
        return min(paid / math.fsum(self.weights), 1.0)


@dataclass(frozen=True)
class RandomBernoulli:
    """A Bernoulli arm whose mean is drawn between `low` and `high` in each run.

    It is drawn uniformly, or with `a` and `b` from a Beta(a, b) distribution on that interval.

    >>> 0.2 <= RandomBernoulli(0.2, 0.4).drawn(np.random.default_rng(0)).mean <= 0.4
    True
    """

    mean: ClassVar[float] = math.nan
    low: float = 0.0
    high: float = 1.0
    name: str | None = None
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        Uniform(self.low, self.high)  # the same values are allowed
        Beta(self.a, self.b)

    def __repr__(self) -> str:
        """Name a and b only if they are given: studies store arms in this form."""
        shape = "" if self.uniform else f", a={self.a!r}, b={self.b!r}"
        return f"RandomBernoulli(low={self.low!r}, high={self.high!r}, name={self.name!r}{shape})"

    @property
    def uniform(self) -> bool:
        """Whether the mean is drawn uniformly."""
        return self.a == self.b == 1

    def drawn(self, generator: np.random.Generator) -> Bernoulli:
        """Return the arm of one run."""
        if self.uniform:
            return Bernoulli(float(generator.uniform(self.low, self.high)), self.name)
        return Bernoulli(self.low + (self.high - self.low) * float(generator.beta(self.a, self.b)), self.name)


Arm = Bernoulli | Uniform | Constant | Beta | TruncatedNormal | Discrete | Empirical | Mixture


def bernoulli(means: Sequence[float]) -> tuple[Bernoulli, ...]:
    """Return Bernoulli arms with these means.

    >>> [arm.mean for arm in bernoulli([0.9, 0.8])]
    [0.9, 0.8]
    """
    return tuple(Bernoulli(mean) for mean in _sequence("The means", means))  # type: ignore[arg-type]


class RewardTable(NamedTuple):
    """The arms as arrays, for compiled code.

    Arm i is of kind `kinds[i]` with parameters `first[i]` and `second[i]`. The values and cumulated weights of a
    discrete or empirical arm are at `starts[i]:starts[i + 1]`. The parts of mixtures are rows after those of the
    arms, and the values of a mixture are the numbers of these rows.
    """

    kinds: NDArray[np.int64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    cumulated: NDArray[np.float64]


class BernoulliTable(RewardTable):
    """A table of Bernoulli arms only. A kernel that plays it compiles nothing for other kinds."""


def reward_table(arms: Sequence[Arm]) -> RewardTable:
    """Return the arms as arrays."""
    if all(arm.kind == BERNOULLI for arm in arms):
        means, none = np.array([arm.mean for arm in arms], np.float64), np.zeros(0)
        starts_at = np.zeros(len(means) + 1, np.int64)
        return BernoulliTable(np.full(len(means), BERNOULLI), means, np.zeros(len(means)), starts_at, none, none)
    rows: list[Arm] = list(arms)
    values: list[float] = []
    cumulated: list[float] = []
    starts = [0]
    for arm in rows:  # grows by the parts of mixtures, which are not mixtures
        if isinstance(arm, (Discrete, Empirical, Mixture)):
            weights = _weights(arm)
            support = range(len(rows), len(rows) + len(weights)) if isinstance(arm, Mixture) else arm.values
            possible = weights > 0
            running = np.cumsum(weights[possible]) / np.sum(weights)
            running[-1] = 1.0  # a draw below 1 always finds its value
            values += np.array(support, np.float64)[possible].tolist()
            cumulated += running.tolist()
        if isinstance(arm, Mixture):
            rows += [_as_part(part) for part in arm.parts]
        starts.append(len(values))
    return RewardTable(
        np.array([arm.kind for arm in rows], dtype=np.int64),
        np.array([arm.parameters[0] for arm in rows], dtype=np.float64),
        np.array([arm.parameters[1] for arm in rows], dtype=np.float64),
        np.array(starts, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(cumulated, dtype=np.float64),
    )


def _weights(arm: Discrete | Empirical | Mixture) -> NDArray[np.float64]:
    if isinstance(arm, Empirical):
        return np.ones(len(arm.values)) if arm.counts is None else np.array(arm.counts, np.float64)
    return np.array(arm.weights)


def _as_part(part: Arm) -> Arm:
    """Return a part of a mixture. Bernoulli rewards come 64 to an entry, so a Bernoulli part is a discrete one."""
    return Discrete([0.0, 1.0], [1.0 - part.mean, part.mean]) if isinstance(part, Bernoulli) else part
