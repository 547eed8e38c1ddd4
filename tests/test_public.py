"""The public namespace: what `partage` exports, and how light it is to import."""

import inspect
import subprocess
import sys
import typing

import pytest

import partage

NAMES = {
    "arms": "Bernoulli Beta Constant Discrete Empirical Mixture RandomBernoulli TruncatedNormal Uniform bernoulli",
    "game": "Change Delay Game GameFile RandomSharing Sharing Traits Unit read_game",
    "rules": (
        "BalancedETC BalancedGLR FullSharing IMED KLETC KLUCB NetworkGLR NoProtocol SharedIMED Thompson TwoUCB "
        "UnbalancedETC rules "
        "Board Draws Pull Record Rule"
    ),
    "play": (
        "ArmFigures Comparison Disagreeing Estimate Forecast Proposal Result Settlement Tally Value compare forecast "
        "play play_run propose_prepaid value_of_sharing"
    ),
    "sweep": "Sweep SweepProgress sweep",
    "theory": "AuditRow audit",
    "live": "Verified verify",
    "errors": "FileError InputError MissingExtra PartageError RuleError SettlementError",
}


def test_the_namespace_is_pinned() -> None:
    """A name that is added or removed on purpose is added or removed here too."""
    assert sorted(partage.__all__) == sorted(" ".join(NAMES.values()).split())


def test_every_name_is_there_and_listed() -> None:
    for name in partage.__all__:
        assert getattr(partage, name) is not None
    assert {*partage.__all__, "__version__"} <= {*dir(partage)}


def test_rooms_can_be_reached_and_misspelt_names_not() -> None:
    assert partage.sharing.Sharing is partage.Sharing
    with pytest.raises(AttributeError, match="no attribute 'pley'"):
        _ = partage.pley


def test_rules_lists_the_rules() -> None:
    listed = partage.rules()
    assert "balanced-etc" in listed
    assert all(summary.endswith(".") for summary in listed.values())
    assert partage.rules.make_rule("two-ucb") == partage.TwoUCB()


def test_play_takes_options_by_keyword_only() -> None:
    kinds = {name: option.kind for name, option in inspect.signature(partage.play).parameters.items()}
    assert {name for name, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY} == {"game", "rule"}


def test_what_public_methods_return_is_public() -> None:
    """Every class of Partage in the annotations of a public function or method is exported."""
    for owner in (partage.play, partage.play_run, partage.audit, partage.read_game, partage.verify, partage.Result):
        functions = [owner] if inspect.isfunction(owner) else [
            member.fget if isinstance(member, property) else getattr(member, "func", member)
            for name, member in vars(owner).items()
            if not name.startswith("_") and (callable(member) or hasattr(member, "fget") or hasattr(member, "func"))
        ]  # fmt: skip
        for function in functions:
            if function.__name__ in ("frame", "plot", "to_pandas"):  # types of Polars, Matplotlib and pandas
                continue
            returned = typing.get_type_hints(function).get("return")
            for kind in (returned, *typing.get_args(returned)):
                if inspect.isclass(kind) and kind.__module__.startswith("partage"):
                    assert kind.__name__ in partage.__all__, f"{function.__qualname__} returns {kind.__name__}"


def fresh(program: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


HEAVY = "{'numpy', 'numba', 'scipy', 'polars', 'matplotlib', 'joblib', 'sqlalchemy', 'litestar'}"


def test_importing_partage_imports_nothing_heavy() -> None:
    program = f"import sys, partage; partage.BalancedETC(); print(sorted({HEAVY} & {{*sys.modules}}))"
    assert fresh(program) == "[]"


def test_playing_imports_neither_tables_nor_figures() -> None:
    program = f"import sys, partage; partage.play; print(sorted({HEAVY} & {{*sys.modules}}))"
    assert fresh(program).replace(", 'scipy'", "") == "['numba', 'numpy']"  # numba imports scipy if it is installed


def test_a_name_that_needs_an_extra_says_which() -> None:
    program = """
import sys
for module in ("numpy", "numba"):
    sys.modules[module] = None  # as if it were not installed
import partage
for name in ("play", "Game", "audit"):
    try:
        getattr(partage, name)
    except partage.MissingExtra as error:
        print(error)
"""
    install = "needs the extra research; install it with: pip install 'partage[research]'."
    assert fresh(program).splitlines() == [f"partage.{name} {install}" for name in ("play", "Game", "audit")]
