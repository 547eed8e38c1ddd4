"""Crashes of the first start on a database: each change that it makes to the files fails, or is the last one.

`python -m tests.crashes.starts FOLDER STEP [DATABASE]` starts on an empty file, or on a copy of an older release's
database, which the start migrates. Each start is a forked process of its own. After each one, the next must work and
find all rows. STEP is 1 for all changes, and n for every n-th.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.crashes.disk import Disk, Fault, Faults, install
from tests.crashes.memory import in_memory

from partage.service.runtime.server_secret import ServerSecret
from partage.service.runtime.sessions import set_operator_token
from partage.service.runtime.system import System
from partage.service.store import StoreError, open_store

ROOT = Path(__file__).parents[2]
OLDER = ROOT / "tests" / "golden" / "release-0.1" / "partage.db"
WORKED, REFUSED, BROKEN = 0, 3, 4
MOST = 1000  # changes of one start; there are far fewer


def start(database: Path) -> None:
    """Do what a start does to the database, and write down a digest of all its rows."""
    with closing(open_store(f"sqlite:///{database}")) as store:
        set_operator_token(store, System(), "pt_op_a-token-that-opens-nothing")
        ServerSecret(store, System())
        rows = [
            (collaboration, *row) for collaboration in store.collaborations() for row in store.rows(collaboration)
        ]
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    database.with_name("digest").write_text(f"{len(rows)} {digest}")


def started(database: Path, fault: Path | None) -> int:
    """Start in a process of its own; return its exit code, or minus the signal that ended it."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = BROKEN
    try:
        if fault is not None:
            install(Disk(None, str(fault)))
        start(database)
        code = WORKED
    except StoreError as error:  # a sentence for the operator
        code = REFUSED if str(error).endswith(".") else BROKEN
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def crash_each_change(folder: Path, step: int, older: Path | None) -> Counter[str]:
    """Let each change of a start fail once, fail for good, and kill."""
    counts: Counter[str] = Counter()
    expected = ""
    for what, times in (("EIO", 1), ("ENOSPC", -1), ("kill", 1)):
        for number in range(0, MOST, step):
            place = folder / f"{what}-{number}"
            place.mkdir()
            database, faults = place / "partage.db", Faults(place / "fault")
            if older is not None:
                shutil.copy(older, database)
            faults.set(Fault(what=what, after=number, times=times))
            code = started(database, faults.path)
            struck = faults.struck()
            assert code in ((WORKED, REFUSED, -9) if struck else (WORKED,)), (what, number, code, struck)
            assert started(database, None) == WORKED, (what, number, struck)
            digest = (place / "digest").read_text()
            expected = expected or digest
            assert digest == expected, (what, number, struck)
            shutil.rmtree(place)
            if not struck:
                break
            counts[f"{what}: {'worked' if code == WORKED else 'refused' if code == REFUSED else 'killed'}"] += 1
        else:
            raise AssertionError("a start has no end")
    return counts


def run(folder: Path, step: int = 1, older: Path | None = None) -> Counter[str]:
    """Do it in a process that is small enough to be forked often; return how often what happened."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    with in_memory(folder) as memory:
        command = [sys.executable, "-m", "tests.crashes.starts", memory, str(step), *([older] if older else [])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(done.stdout))


if __name__ == "__main__":
    folder, step, *older = sys.argv[1:]
    print(json.dumps(crash_each_change(Path(folder), int(step), Path(older[0]) if older else None)))
