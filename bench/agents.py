"""Memory and time of one run with very many agents."""

import resource
import time
from pathlib import Path

from bench.elsewhere import Failed, TooLong, elsewhere
from bench.evidence_rules import RULES, compile_, evenly_spaced, played
from bench.rows import Row

ABOUT = "One run with 10 arms and T = 10^6, in which every agent shares one arm. Its process may use 8 GiB."
MEMORY = 8 * 2**30  # of address space: a run that needs more fails and leaves the machine alone
LIMIT = 20.0  # seconds
SIZES = {10**6: (1.0, None), 10**7: (2.0, 5.0)}  # agents, and the goals: GiB and seconds
SHOWN = ("balanced-etc", "balanced-glr")


def peak():
    """Return the most memory that this process had, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def one_run(name, agents):
    """Yield the memory of a process that has compiled a rule, and then what one run takes: seconds and memory."""
    compile_(RULES[name])
    yield peak()
    began = time.perf_counter()
    game = evenly_spaced(10, agents, 10**6)
    made = time.perf_counter()
    played(game, RULES[name])()
    yield [made - began, time.perf_counter() - made, peak()]


def measure(sizes=SIZES, rules=SHOWN):
    """Yield the rows of each size."""
    for agents, (most, soonest) in sizes.items():
        for name in rules:
            what = f"{name}: one run with {agents:,} agents"
            try:
                before, (making, playing, after) = elsewhere(
                    "bench.agents:one_run", name, agents, seconds=90, each=LIMIT, memory=MEMORY
                )
            except TooLong as error:
                yield Row(f"{what}, waiting time", error.seconds, soonest, unit="s", above=True, note=str(error))
            except Failed as error:
                yield Row(f"{what}, memory", None, most, unit="GiB", note=f"failed within 8 GiB: {error}")
            else:
                yield Row(
                    f"{what}, memory", after / 2**30, most, unit="GiB", note=f"{before / 2**30:.2g} GiB before it"
                )
                note = f"and {making:.2g} s to make the game"
                yield Row(f"{what}, waiting time", playing, soonest, unit="s", note=note)
