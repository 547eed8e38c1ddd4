"""The lines of a ledger's file: their numbers, their hashes, and the events in them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from partage.errors import FileError, InputError
from partage.ledger.chain import next_head, row_hash
from partage.ledger.events import AnyEvent, decode, encode
from partage.ledger.refusals import Refused
from partage.ledger.tallies import SALT

LONGEST_LINE = 256 * 2**20  # bytes: more than a close event takes that tallies 1,000 arms of 1,000 members

# A line as `chain.line` writes it: a row and its salt, or, if it is hidden, its hash and number. The salts of a close
# event's tallies come after it.
_SHOWN = re.compile(
    rb'\{"head":"([0-9a-f]{64})","row":(.*),"salt":"([0-9a-f]{32})"(?:,"tally":(\{.*\}))?\}\n?', re.DOTALL
)
_HIDDEN = re.compile(rb'\{"head":"([0-9a-f]{64})","row_hash":"([0-9a-f]{64})","seq":([1-9][0-9]{0,17})\}\n?')

_BAD_HASH = "its hash does not match: this row, or a line before it, was changed."


class Wrong(Exception):
    """The ledger is wrong: in the current line, or as a whole."""

    def __init__(self, sentence: str, in_line: bool = True) -> None:
        super().__init__(sentence)
        self.in_line = in_line


class Line(NamedTuple):
    """A line whose number and hash are right.

    It has the head after it, the hash of its row, its event (None if it is hidden), and the salts of the tallies that
    the reader knows, by agent.
    """

    head: str
    row_hash: bytes
    event: AnyEvent | None
    salts: dict[str, bytes] | None = None


def read_lines(source: str | Path | Iterable[bytes | str]) -> Iterator[bytes]:
    """Yield the lines of a file, or those given, one at a time."""
    if not isinstance(source, str | Path):
        if not isinstance(source, Iterable):
            raise InputError(f"The ledger is {source!r}; it must be the path of a file, or its lines.")
        for given in source:
            if not isinstance(given, str | bytes | bytearray):
                raise InputError(f"A line of the ledger is {given!r}; it must be a string or bytes.")
            yield given.encode(errors="surrogatepass") if isinstance(given, str) else bytes(given)
        return
    try:
        with open(source, "rb") as file:
            while line := file.readline(LONGEST_LINE):
                yield line
    except OSError as error:
        raise FileError(f"The file {source} cannot be read: {error.strerror or error}.") from None
    except ValueError:  # a null character in the name
        raise FileError("The file cannot be read: its name is invalid.") from None


def check_line(text: bytes, number: int, head: str) -> Line:
    """Check the number and the hash of the line that comes after this head.

    Raises
    ------
    Wrong
        It is not the line that belongs here.
    """
    shown, hidden = _SHOWN.fullmatch(text), _HIDDEN.fullmatch(text)
    if shown is not None:
        stated, body = shown[1].decode(), shown[2]
        hashed = row_hash(bytes.fromhex(shown[3].decode()), body)
        matches = next_head(head, hashed) == stated
        event = _event(body, matches)
        seq = event.seq
    elif hidden is not None:
        stated, body, event, seq = hidden[1].decode(), b"", None, int(hidden[3])
        hashed = bytes.fromhex(hidden[2].decode())
        matches = next_head(head, hashed) == stated
    else:
        _not_a_line(text)
    if seq != number:
        raise Wrong(f"its number is {seq:,} instead of {number:,}: a line is missing, repeated or out of place.")
    if not matches:
        raise Wrong(_BAD_HASH)
    if event is not None and encode(event) != body:  # or two files could say the same and have different hashes
        raise Wrong("its row is not in canonical form: the controller writes the same event in other bytes.")
    return Line(stated, hashed, event, None if shown is None or shown[4] is None else _salts(shown[4]))


def _salts(text: bytes) -> dict[str, bytes]:
    """Return the salts beside a close event."""
    try:
        salts = {agent: bytes.fromhex(salt) for agent, salt in msgspec.json.decode(text, type=dict[str, str]).items()}
    except (msgspec.MsgspecError, ValueError):
        salts = {"": b""}
    if any(len(salt) != SALT for salt in salts.values()):
        raise Wrong("the salts of its tallies are not salts by agent.")
    return salts


def _event(body: bytes, matches: bool) -> AnyEvent:
    """Return the event of a row."""
    try:
        return decode(body)
    except Refused as newer:
        raise Wrong(_BAD_HASH if not matches else f"it cannot be read. {newer.sentence}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Wrong(_BAD_HASH if not matches else "its row is not an event that this release knows.") from None


def _not_a_line(text: bytes) -> NoReturn:
    """Say why a text is not a line of a ledger."""
    if not text.strip():
        raise Wrong("it is empty.")
    if not text.endswith(b"\n") and len(text) < LONGEST_LINE and text.startswith(b'{"head"'):
        raise Wrong("the file ends in the middle of it; download the ledger again.")
    raise Wrong('it is not a line of a ledger: {"head":…,"row":…,"salt":…} or {"head":…,"row_hash":…,"seq":…}.')
