"""Compiled code is never older than the sources it came from, and importing a shared function imports no numba."""

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import partage
from partage import compiled

INNER = "from partage.compiled import inner\n@inner\ndef part(x):\n    return {} * x\n"
KERNEL = (
    "from partage.compiled import compiled, is_cold\nfrom partage.engine.part import part\n"
    "@compiled\ndef kernel(x):\n    return part(x) + 1\n"
    "print(is_cold(), kernel(10), is_cold(), *kernel.stats.cache_hits.values())\n"
)


def small_package(folder):
    """A package with what compiles kernels, one kernel, and a function that it calls from another file."""
    package = folder / "partage"
    (package / "engine").mkdir(parents=True)
    for name in ("compiled.py", "indexing.py"):
        shutil.copy(Path(partage.__file__).with_name(name), package)
    for name in ("__init__.py", *compiled._MODULES, "engine/__init__.py"):
        (package / name).touch()  # what is there stays
    (package / "engine" / "part.py").write_text(INNER.format(2))
    (package / "engine" / "kernel.py").write_text(KERNEL)
    return package


def run(folder, *command, **settings):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(folder), "HOME": str(folder)} | settings,
    )
    return done.stdout.split()


def test_a_change_in_one_file_reaches_compiled_callers_in_another(tmp_path):
    package = small_package(tmp_path)
    assert run(tmp_path, "-m", "partage.engine.kernel")[:3] == ["True", "21", "False"]
    again = run(tmp_path, "-m", "partage.engine.kernel")
    assert again == ["False", "21", "False", "1"]  # read from disk, not compiled
    (package / "engine" / "part.py").write_text(INNER.format(3))
    assert run(tmp_path, "-m", "partage.engine.kernel")[:3] == ["True", "31", "False"]


def test_a_shared_function_needs_no_numba(tmp_path):
    package = small_package(tmp_path)
    (package / "evidence.py").write_text(
        "import sys\nfrom partage.compiled import shared\n@shared\ndef double(x):\n    return 2 * x\n"
        "print(double(21), 'numba' in sys.modules)\n"
    )
    assert run(tmp_path, "-m", "partage.evidence") == ["42", "False"]


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, monkeypatch):
    """Loading compiled code runs it."""
    monkeypatch.setattr(compiled, "_PACKAGE", tmp_path)
    monkeypatch.setattr(compiled, "sources", lambda: "digest")
    monkeypatch.setattr(compiled, "_user_cache", lambda: None)
    find = compiled.folder.__wrapped__
    beside = find()
    assert beside.parent == tmp_path / "__pycache__"
    assert beside.name.startswith("compiled-digest")
    beside.chmod(0o777)
    assert find() != beside
    beside.chmod(0o755)
    assert find() == beside


@pytest.mark.parametrize(("setting", "checked"), [("", False), ("0", False), ("1", True)])
def test_code_that_checks_indices_has_a_folder_of_its_own(setting, checked, tmp_path):
    """An empty setting is none: numba warns and compiles without checks."""
    small_package(tmp_path)
    look = "from partage.compiled import folder; print(folder().name)"
    (name,) = run(tmp_path, "-W", "ignore::RuntimeWarning", "-c", look, NUMBA_BOUNDSCHECK=setting)
    assert name.endswith("-checked") == checked


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(compiled.Path, "home", no_home)
    assert compiled._user_cache() is None


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_paused_and_then_as_before(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with compiled.collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def _read(numbers, at):
    return numbers[at], numbers[-1]


def _write(numbers, row, column):
    numbers[row, column] = 7.0


def test_a_computed_index_counts_from_the_start():
    """What is before these arrays, which are parts of larger ones, is read and written, unless numba checks that."""
    read, write = compiled.compiled(_read), compiled.compiled(_write)
    numbers, table = np.arange(6.0), np.zeros((4, 3))
    assert read(numbers[2:], 1) == (3.0, 5.0)
    if numba.config.BOUNDSCHECK:
        with pytest.raises(IndexError):
            read(numbers[2:], -1)
        with pytest.raises(IndexError):
            write(table[2:], -1, 0)
    else:
        assert read(numbers[2:], -1) == (1.0, 5.0)
        write(table[2:], -1, 0)
        assert np.argwhere(table).tolist() == [[1, 0]]


LAST, _SECOND_LAST = -1, np.int64(-2)


def _read_mixed(table, i):
    at = (i, -1)
    return table[-1, i], table[i, -1], table[LAST, i], table[i, _SECOND_LAST], table[at], table[-2, :][i]


def _write_mixed(table, i):
    table[-1, i] = 1.0
    table[i, -1] = 2.0
    table[LAST, i - 1] = 3.0
    table[-1, i] += 4.0
    table[i, _SECOND_LAST] -= 5.0


def test_constants_beside_a_computed_index_count_from_the_end():
    """What is before the array, which is part of a larger one, stays as it is."""
    table = np.arange(60.0).reshape(12, 5)
    for i in (1, 2):
        assert compiled.compiled(_read_mixed)(table[8:], i) == _read_mixed(table[8:], i)
    expected = table.copy()
    compiled.compiled(_write_mixed)(table[8:], 1)
    _write_mixed(expected[8:], 1)
    assert table.tolist() == expected.tolist()


def _double(number, numbers):
    for i in range(len(numbers)):
        numbers[i] = number + number


def test_the_code_of_a_kernel_is_that_for_the_types_it_was_called_with():
    kernel = compiled.compiled(_double)
    whole, real = np.zeros(2, np.int64), np.zeros(2)
    kernel(0, whole)
    for_whole = compiled.code_for(kernel, (0, whole))
    kernel(0.0, real)
    for_real = compiled.code_for(kernel, (0.0, real))
    for_whole(3, whole)
    for_real(1.25, real)
    assert (whole.tolist(), real.tolist()) == ([6, 6], [2.5, 2.5])
    compiled.code_for(kernel, (0, whole))(4, whole)
    assert whole.tolist() == [8, 8]
