"""How a game is played: one kernel per rule, and the plain reference that every kernel must match.

`play_runs` is the entry point. It finds the kernel of a rule (`BuiltIn.kernel` names its module here), and falls back
to the reference for a rule without one. A kernel module has

- `play(run, rule)`, which plays one run into `run.outcome` and `run.curve`;
- `PLAYS_HIDDEN_ARMS`, whether it plays games with arms that nobody shares. If it does not, `pull_by_pull` plays
  those, and `rule_table(rule, table)` lays out the rule for it;
- `PLAYS_UNEVEN`, if it plays uneven games itself. If it does not, `uneven` and `uneven_pulls` play those by the same
  table, and the reference if there is none.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partage.engine.front_door import by_reference, game_of_run, has_kernel, play_runs
    from partage.engine.run import Run

__all__ = ["Run", "by_reference", "game_of_run", "has_kernel", "play_runs"]


def __getattr__(name: str) -> Any:
    """Import on first use: the engine needs numba."""
    if name == "Run":
        from partage.engine.run import Run

        return Run
    if name in __all__:
        from partage.engine import front_door

        globals()[name] = found = getattr(front_door, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
