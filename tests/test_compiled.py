"""Compiled code is never older than the sources it came from."""

import shutil
import subprocess
import sys
from pathlib import Path

import partage

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from partage import BalancedETC, Game, Sharing, bernoulli, play
game = Game(bernoulli([1.0, 0.0]), Sharing.round_robin(agents=2, arms=2), horizon=300)
print(play(game, BalancedETC(), runs=1, baseline=False).controller_profit.mean)
"""


def profit(folder):
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_a_change_in_one_file_reaches_compiled_callers_in_another(tmp_path):
    package = tmp_path / "partage"
    shutil.copytree(Path(partage.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = profit(tmp_path)
    settlement = package / "settle" / "paper.py"
    settlement.write_text(settlement.read_text().replace("math.sqrt(8.0 * factor", "math.sqrt(32.0 * factor"))
    after = profit(tmp_path)
    assert before < 0
    assert after < 1.5 * before  # compensation is twice what it was
