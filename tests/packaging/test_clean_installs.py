"""The archives work in clean environments: alone, and with each extra, on every Python that the classifiers name.

Each extra is installed on top of an environment that holds a part of it, which gives the same packages as an empty
one: research needs all of the base install, dask all of research, and postgres all of server. Ray comes with `all`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.api import Host, hang_up
from tests.support.archives import ROOT, Archives
from tests.support.interpreters import find_python
from tests.support.server import Server

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1800)]

CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
VERSIONS = [name for classifier in CLASSIFIERS if "." in (name := classifier.rpartition(" :: ")[2])]
LEDGER = ROOT / "tests" / "golden" / "release-0.1" / "glr-expected.ndjson"
BASE_LIMIT = 60 * 10**6  # bytes, a quarter of them for cryptography
SIMULATE = ("simulate", "--means", "0.9,0.5", "--agents", "4", "--horizon", "1000", "--runs", "2", "--json")
REPRODUCE = ("reproduce", "balanced", "--runs", "2", "--out", "results")
PLAY = """
import sys, partage
game = partage.Game(partage.bernoulli([0.9, 0.5]), partage.Sharing.round_robin(4, 2), horizon=1000)
print(partage.play(game, partage.BalancedETC(), runs=4, seed=1, on=sys.argv[1]).frame().rows())
"""


class Environment:
    """A virtual environment outside the checkout."""

    def __init__(self, folder: Path, python: str, constraints: Path) -> None:
        self.folder, self._constraints = folder, constraints
        # Nothing of the checkout and of the environment that runs the tests may reach the clean one.
        self._variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PARTAGE_", "VIRTUAL_"))
        }
        self._run(python, "-m", "venv", str(folder / "venv"))
        self.python = str(folder / "venv" / "bin" / "python")

    def install(self, archive: Path, *extras: str) -> None:
        """Install the wheel or the source archive with these extras, as a user does, at the project's pins."""
        wanted = f"{archive}[{','.join(extras)}]" if extras else str(archive)
        pip = (self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        self._run(*pip, "--constraint", str(self._constraints), wanted)

    def partage(self, *arguments: str, code: int = 0) -> str:
        """Run the command, check its exit code, and return what it printed: its error where it must fail."""
        done = self._run(self.python, "-m", "partage.cli", *arguments, code=code)
        return done.stderr if code else done.stdout

    def call(self, program: str, *arguments: str) -> str:
        """Run a Python program and return what it printed."""
        return self._run(self.python, "-c", program, *arguments).stdout

    @contextmanager
    def dead_ray_cluster(self) -> Iterator[None]:
        """Leave what a dead Ray cluster leaves behind: its address, in a file and in the environment."""
        before = self._variables
        # A short path: Ray makes sockets in it, and their paths have at most 107 bytes.
        with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
            left = Path(folder, "ray", "ray_current_cluster")
            left.parent.mkdir()
            left.write_text("127.0.0.1:1\n")
            self._variables = {**before, "RAY_TMPDIR": folder, "RAY_ADDRESS": "127.0.0.1:1"}
            try:
                yield
            finally:
                self._variables = before

    def size(self) -> int:
        """Return the bytes of all that is installed, except for pip and setuptools, which venv brings."""
        (site,) = self.folder.glob("venv/lib/python*/site-packages")
        return sum(
            path.stat().st_size
            for path in site.rglob("*")
            if path.is_file() and not path.relative_to(site).parts[0].startswith(("pip", "setuptools", "_distutils"))
        )

    def _run(self, *command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=self.folder, env=self._variables, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done


@pytest.fixture(scope="session")
def constraints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pins of the project without their hashes, since the wheel that is tried has none."""
    file = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    lines = (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    file.write_text("".join(f"{line.removesuffix(chr(92)).rstrip()}\n" for line in lines if "==" in line))
    return file


@pytest.fixture(params=VERSIONS)
def environment(request: pytest.FixtureRequest, tmp_path: Path, constraints: Path) -> Iterator[Environment]:
    """An empty environment; the test runs once with each Python."""
    python = find_python(request.param)
    if python is None:
        # In CI too: which Pythons a machine has is its own affair, and the reason is printed at the end of the run.
        pytest.skip(f"Python {request.param} is not installed, so the wheel is not tried with it.")
    yield Environment(tmp_path, python, constraints)
    shutil.rmtree(tmp_path, ignore_errors=True)  # a gigabyte, which pytest would keep


def test_base_research_and_clusters(environment: Environment, archives: Archives) -> None:
    environment.install(archives.wheel)
    assert environment.size() < BASE_LIMIT
    assert environment.partage("--version") == f"partage {archives.version}\n"
    assert "verify" in environment.partage("--help")
    verdict = environment.partage("verify", str(LEDGER))
    assert "656 lines" in verdict
    assert "The ceilings of all agents" in verdict.partition("Taken on trust:")[2]
    assert environment.call("import partage.client; print(partage.client.Agent.__name__)") == "Agent\n"
    for command, extra in (
        (SIMULATE, "research"),
        (("audit",), "research"),
        (("reproduce",), "research"),
        (("serve",), "server"),
        (("demo",), "server"),
    ):
        sentence = environment.partage(*command, code=2)
        assert f"pip install 'partage[{extra}]'" in " ".join(sentence.split())

    environment.install(archives.wheel, "research")
    assert json.loads(environment.partage(*SIMULATE))["runs"] == 2
    environment.partage(*REPRODUCE)
    assert "<svg" in (environment.folder / "results" / "report.html").read_text()
    figures = environment.call(PLAY, "threads")
    for place in ("dask", "ray"):
        sentence = environment.partage(*REPRODUCE, "--on", place, code=2)
        assert f"pip install 'partage[{place}]'" in " ".join(sentence.split())

    environment.install(archives.wheel, "dask")
    assert environment.call(PLAY, "dask") == figures

    environment.install(archives.wheel, "all")
    # Ray reports on standard output, too, when it had to start a task again on another worker.
    with environment.dead_ray_cluster():
        assert environment.call(PLAY, "ray").splitlines()[-1:] == figures.splitlines()


def test_the_source_archive(archives: Archives, tmp_path: Path, constraints: Path) -> None:
    """pip builds and installs it; once is enough, since the wheels of all other tests are built from it."""
    environment = Environment(tmp_path, sys.executable, constraints)
    environment.install(archives.sdist)
    assert environment.partage("--version") == f"partage {archives.version}\n"
    assert "656 lines" in environment.partage("verify", str(LEDGER))


def test_server_and_postgres(environment: Environment, archives: Archives, tmp_path: Path, postgres_url: str) -> None:
    environment.install(archives.wheel, "server")
    _play(environment, f"sqlite:///{tmp_path}/partage.db")
    sentence = environment.partage("serve", "--database", postgres_url, code=2)
    assert "pip install 'partage[postgres]'" in " ".join(sentence.split())

    environment.install(archives.wheel, "postgres")
    _play(environment, postgres_url)


def _play(environment: Environment, database_url: str) -> None:
    """Serve, create a collaboration, join it, play and close it."""
    with Server(database_url, python=environment.python, env={"PYTHONPATH": ""}) as server:
        operator = Host(server.url, server.operator_token)
        try:
            member = operator.join("a", "b", name="Ann")
            assert member.work()["share"]
            closed = operator.ok("POST", "/close")
            assert [(row["agent"], row["explore"]) for row in closed["rows"]] == [(member.agent, 1)]
        finally:
            hang_up(server.url)
