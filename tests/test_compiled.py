"""Compiled code is never older than the sources it came from, and importing a shared function imports no numba."""

import gc
import shutil
import subprocess
import sys
from pathlib import Path

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
    """A package with the real `compiled.py`, one kernel, and a function that it calls from another file."""
    package = folder / "partage"
    (package / "engine").mkdir(parents=True)
    shutil.copy(Path(partage.__file__).with_name("compiled.py"), package)
    for name in ("__init__.py", *compiled._MODULES, "engine/__init__.py"):
        (package / name).touch()  # what is there stays
    (package / "engine" / "part.py").write_text(INNER.format(2))
    (package / "engine" / "kernel.py").write_text(KERNEL)
    return package


def run(folder, *command):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(folder), "HOME": str(folder)},
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
    beside = tmp_path / "__pycache__" / "compiled-digest"
    assert find() == beside
    beside.chmod(0o777)
    assert find() != beside
    beside.chmod(0o755)
    assert find() == beside


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
