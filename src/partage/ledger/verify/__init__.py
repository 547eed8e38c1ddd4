"""Verify a ledger: no line was changed, and every line follows from those before it.

Each event's move is played again, by the functions that the controller uses, and must write exactly that event. A
member's copy hides other agents' commit pulls behind their hashes: then what can be checked is checked, and the
verdict says what was taken on trust.

    lines.py        a line of the file: its number, its hash, its event
    replay.py       an event: the move that writes it
    tolerance.py    decisions that rounding on another platform explains
    closing.py      the close event: totals, ceilings, charges, profit
    log.py          the tree of all lines, and the signed checkpoints that must belong to it
    kept.py         a client's state file: the agent's own commit pulls that must be shown
    verdict.py      the result, in sentences
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from partage.errors import InputError
from partage.ledger.chain import GENESIS
from partage.ledger.checkpoints import public_key
from partage.ledger.own_rules import load_rules
from partage.ledger.verify.kept import read_kept
from partage.ledger.verify.lines import Wrong, check_line, read_lines
from partage.ledger.verify.log import CheckpointFound, Log
from partage.ledger.verify.replay import Replay
from partage.ledger.verify.verdict import Problem, Verified, describe

__all__ = ["Problem", "Verified", "verify"]

PROGRESS_EVERY = 10_000  # lines


def verify(
    source: str | Path | Iterable[bytes | str],
    head: str | None = None,
    *,
    agent: str | None = None,
    checkpoints: Sequence[str] = (),
    key: str | None = None,
    state: str | Path | None = None,
    rules: str | Path | Sequence[str | Path] = (),
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Verify a ledger.

    Parameters
    ----------
    source
        The path of the file, or its lines.
    head
        A head that was saved earlier. If no line has it, the history was rewritten.
    agent
        The agent whose copy it is. By default, the one whose commit pulls are not hidden.
    checkpoints
        Signed checkpoints, one's own and those of other members: each must belong to this ledger.
    key
        The public key that signed them, in base64. By default, the one that the first line states.
    state
        The state file of the agent whose copy it is. It has the agent, its checkpoint and the key, and the commit
        pulls that the agent has receipts for: the copy must show them all.
    rules
        The module of the collaboration's rule, if that is not one of Partage's: its path or its name, or several.
    progress
        Called with the number of lines, now and then.

    Returns
    -------
    Verified
        Whether everything is right, what was checked, and what was taken on trust. Wrong contents are a `problem`
        of the result, never an error.

    Raises
    ------
    FileError
        A file cannot be read.
    InputError
        An argument is not allowed.
    """
    load_rules(*([rules] if isinstance(rules, str | Path) else rules))
    if head is not None and not isinstance(head, str):
        raise InputError(f"The head is {head!r}; it must be a string, as the controller sent it.")
    if key is not None and public_key(key) is None:
        raise InputError("The key must be a public Ed25519 key: 32 bytes in base64.")
    kept = None if state is None else read_kept(state)
    if kept is not None:
        if agent not in (None, kept.agent):
            raise InputError(f"The state file is of agent {kept.agent}, and the given agent is {agent}.")
        agent, key = kept.agent, key or kept.log_key or None
        checkpoints = [*checkpoints, kept.checkpoint] if kept.checkpoint else checkpoints
    replay, log = Replay(agent), Log(checkpoints, None if key is None else public_key(key))
    lines, at = 0, GENESIS
    saved = None if head is None else head.strip().lower()
    saved_line = None
    problem = None
    found: list[CheckpointFound] = []
    try:
        for text in read_lines(source):
            line = check_line(text, lines + 1, at)
            replay.take(line.event, line.salts)
            log.take(line.row_hash)
            lines, at = lines + 1, line.head
            if at == saved:
                saved_line = lines
            if progress is not None and lines % PROGRESS_EVERY == 0:
                progress(lines)
        replay.finish()
        if saved is not None and saved_line is None:
            raise Wrong(f"The history was rewritten: no line has the head {saved[:64]}.", False)
        assert replay.state is not None
        found = log.check(replay.state)
        if kept is not None:
            kept.check(replay.state)
    except Wrong as wrong:
        problem = Problem(lines + 1 if wrong.in_line else None, str(wrong))
    if progress is not None:
        progress(lines)
    verdict = Verified(lines, at, problem, not replay.hidden, replay.owner, root=log.root)
    if problem is None:
        verdict.checkpoints = found
        describe(verdict, replay, saved_line, kept)
    return verdict
