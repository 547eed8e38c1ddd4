"""Record what Partage computes, to show that a refactoring changes nothing.

    python -m tests.golden.record "why the values change" [PART]

computes everything again, or the part that is named, writes `golden.json`, and appends every value that changed to
`changes.csv`, with the reason. `tests/golden/test_golden.py` compares what is computed now with `golden.json`, value
by value. `release-0.1/` holds what release 0.1 left behind: see `tests/golden/live.py`.
"""

import csv
import hashlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import partage
from partage.cli import app

HERE = Path(__file__).parent
FILE = HERE / "golden.json"
CHANGES = HERE / "changes.csv"
SEEDS = range(20)

MEANS = [0.9, 0.8, 0.6, 0.3]


def games() -> Iterator[tuple[str, partage.Game]]:
    """Yield small games: every sharing pattern, hidden arms, every kind of arm, shuffled orders, random games."""
    arms = len(MEANS)
    sharing = partage.Sharing
    patterns = {
        "round-robin": sharing.round_robin(8, arms),
        "dealt": sharing.dealt(3, arms),
        "scarce-best": sharing.scarce_best(9, arms),
        "neighbours-2": sharing.neighbours(6, arms, 2),
        "random": sharing.random(7, arms),
        "everyone-everything": sharing.everything(4, arms),
        "nobody-nothing": sharing.nothing(3, arms),
        "shuffled": sharing.neighbours(5, arms, 2).in_shuffled_order(),
        "hidden-best": sharing.lists([[1], [2, 3], [1, 3], []], arms),
        "hidden-worst": sharing.lists([[0], [1, 2], [2], []], arms),
        "hidden-two-shuffled": sharing.lists([[0, 2], [0], [2], []], arms).in_shuffled_order(),
        "lists": sharing.lists([[0, 1, 2, 3], [], [0], [1], [2], [3]], arms),
    }
    for name, pattern in patterns.items():
        yield name, partage.Game(partage.bernoulli(MEANS), pattern, horizon=400)
    kinds: list[Any] = [
        partage.Beta(2, 5),
        partage.Uniform(0.2, 0.9),
        partage.TruncatedNormal(0.7, 0.2),
        partage.Discrete([0.0, 0.5, 1.0], [0.2, 0.3, 0.5]),
        partage.Empirical([0.1, 0.4, 0.4, 0.9]),
        partage.Constant(0.5),
    ]
    yield "kinds", partage.Game(kinds, sharing.round_robin(12, 6), horizon=400)
    yield "kinds-hidden", partage.Game(kinds, sharing.lists([[0, 1], [2], [3], []], 6), horizon=200)
    drawn = [partage.RandomBernoulli() for _ in range(3)]
    yield "random-means", partage.Game(drawn, sharing.random(5, 3), horizon=400)
    yield "long", partage.Game(partage.bernoulli([0.9, 0.5]), sharing.round_robin(6, 2), horizon=100_000)


def rules() -> Iterator[tuple[str, Any]]:
    """Yield every rule, with some parameters."""
    yield "balanced-etc", partage.BalancedETC()
    yield "balanced-etc B=2.5", partage.BalancedETC(2.5)
    yield "unbalanced-etc", partage.BalancedETC(math.inf)
    yield "balanced-glr", partage.BalancedGLR()
    yield "balanced-glr lead=1.5", partage.BalancedGLR(1.5)
    yield "balanced-glr that does not stop", partage.BalancedGLR(indifference=False)
    yield "balanced-glr by betting", partage.BalancedGLR(evidence="betting")
    yield "shared-imed", partage.SharedIMED()
    yield "shared-imed own=5", partage.SharedIMED(own=5)
    yield "kl-etc", partage.KLETC()
    yield "kl-etc B=2", partage.KLETC(2.0)
    yield "two-ucb", partage.TwoUCB()
    yield "kl-ucb", partage.KLUCB()
    yield "imed", partage.IMED()
    yield "thompson", partage.Thompson()
    yield "kl-ucb that sees both", partage.KLUCB(sees="both")
    yield "imed that sees what is shared", partage.IMED(sees="shared")
    yield "thompson that sees both", partage.Thompson(sees="both")
    yield "full-sharing", partage.FullSharing()
    yield "no-protocol", partage.NoProtocol()


SETTLED = ("round-robin", "dealt", "random", "hidden-best", "kinds", "random-means", "long")
SETTLEMENTS = (
    ("paper", 0.0),
    ("equal-share", 0.0),
    ("equal-share", 0.1),
    ("equal-share-expected", 0.05),
    ("none", 0.0),
)
MEASURED = 3  # runs of a settlement whose ceiling is measured by plays, which take long

COMMANDS = (
    "--means 0.9,0.8,0.7 --agents 30 --horizon 1e5 --runs 20",
    "--means 0.9,0.8,0.7 --agents 30 --horizon 1e5 --runs 20 --balance 2 --order shuffled",
    "--means 0.9,0.5 --agents 3 --horizon 1e4 --runs 20 --rule balanced-glr --settlement equal-share-expected",
    "--means 0.9,0.5 --agents 3 --horizon 1e4 --runs 4 --rule kl-etc --settlement equal-share --fee 0.1",
    "--means 0.9,0.5 --agents 3 --horizon 1e3 --runs 20 --rule two-ucb",
    "--means 0.9,0.5 --agents 3 --horizon 1e3 --runs 20 --rule no-protocol",
    "--means 0.9,0.5 --agents 3 --horizon 1e3 --runs 20 --rule full-sharing",
    "--means 0.9,0.5,0.4 --agents 5 --horizon 1e3 --runs 20 --rule unbalanced-etc --sharing neighbours-2",
    "--means 0.9,0.5,0.4 --agents 5 --horizon 1e3 --runs 20 --reward constant --sharing nobody-nothing",
)


def _is_slow(rule_name: str) -> bool:
    return rule_name == "no-protocol" or " sees " in rule_name


def tally_digest(tally: partage.Tally) -> str:
    """Digest everything that a run's tally holds."""
    digest = hashlib.sha256()
    for name in ("explore", "commit", "broadcasts", "sums", "active", "eliminated_step", "eliminated_agent"):
        array = np.ascontiguousarray(getattr(tally, name))
        digest.update(name.encode() + str(array.dtype).encode() + str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()[:32]


def played() -> dict[str, Any]:
    """Play every rule on every game, 20 seeds each."""
    return {
        f"{rule_name} | {game_name}": [tally_digest(partage.play_run(game, rule, seed=seed)) for seed in SEEDS]
        for game_name, game in games()
        for rule_name, rule in rules()
        if not (game_name == "long" and _is_slow(rule_name))  # a step for every pull
    }


def settled() -> dict[str, Any]:
    """Settle some of them in every way: the figures of merit of each run."""
    found: dict[str, Any] = {}
    for game_name, game in games():
        if game_name not in SETTLED:
            continue
        for rule_name, rule in rules():
            if game_name == "long" and _is_slow(rule_name):
                continue
            for settlement, fee in SETTLEMENTS:
                runs = len(SEEDS) if settlement in ("paper", "none") else MEASURED
                name = f"{rule_name} | {game_name} | {settlement} {fee:g}"
                try:
                    result = partage.play(
                        game, rule, runs=runs, seed=1, settlement=settlement, fee=fee, baseline=False
                    )
                except partage.SettlementError:
                    found[name] = "not defined"
                    continue
                frame = result.frame()
                found[name] = {
                    "by run": {column: frame[column].to_list() for column in frame.columns},
                    "by agent": result.frame(by="agent")["incentive_regret"].to_list(),
                    "viable": result.viable,
                    "finished": result.finished,
                    "uncovered": None if result.uncovered is None else result.uncovered.mean,
                }
    return found


def simulated() -> dict[str, Any]:
    """Run `partage simulate --json`."""
    found = {}
    for command in COMMANDS:
        outcome = CliRunner().invoke(app, ["simulate", *command.split(), "--json"], catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.output
        answer = json.loads(outcome.stdout)
        del answer["seconds"]
        found[command] = answer
    return found


def openapi() -> Any:
    """Return the OpenAPI document."""
    from tests.golden.live import openapi_document

    return openapi_document()


def verdicts() -> dict[str, Any]:
    """Verify the ledgers that release 0.1 wrote, and open its database."""
    from tests.golden.live import database_of_release, verdicts_of_release

    return {"ledgers": verdicts_of_release(), "database": database_of_release()}


PARTS = {
    "played": played,
    "settled": settled,
    "simulated": simulated,
    "openapi": openapi,
    "release 0.1": verdicts,
}


def differences(expected: Any, found: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each place at which two JSON values differ, with both values."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            missing = object()
            yield from differences(expected.get(key, missing), found.get(key, missing), f"{place} / {key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for at, (before, after) in enumerate(zip(expected, found, strict=True)):
            yield from differences(before, after, f"{place} [{at}]")
    elif isinstance(expected, float) and isinstance(found, float) and math.isnan(expected) and math.isnan(found):
        return
    elif type(expected) is not type(found) or expected != found:
        yield place, _short(expected), _short(found)


def _short(value: Any) -> str:
    """Return a value for people: a value that is absent is empty, a long one is cut."""
    text = "" if type(value) is object else json.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def main() -> None:
    """Record everything or one part, and list what changed and why."""
    if len(sys.argv) not in (2, 3) or not set(sys.argv[2:]) <= set(PARTS):
        sys.exit(__doc__)
    before = json.loads(FILE.read_text())
    found = {part: PARTS[part]() for part in sys.argv[2:] or PARTS}
    golden = before | json.loads(json.dumps(found))
    with open(CHANGES, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for place, old, new in differences(before, golden):
            writer.writerow([partage.__version__, place.removeprefix(" / "), old, new, sys.argv[1]])
    FILE.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
