"""A check of SQLite's write-ahead log, before SQLite recovers from it after a crash.

SQLite uses the log up to the first frame whose checksum is wrong, and silently drops the rest. That is right for a
transaction that a power cut interrupted: only the last one can be incomplete, since each is synced before the next
begins. If more than one transaction would be dropped, the log was damaged, and dropping them would lose rows that
were acknowledged. The format is described at https://www.sqlite.org/fileformat.html#the_write_ahead_log.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEADER, FRAME_HEADER = 32, 24  # bytes
MAGIC = 0x377F0682  # with 1 added if the words of the checksums are big-endian
LARGEST_PAGE = 65536


class _Frame(NamedTuple):
    commits: bool
    salts: bytes
    stored: tuple[int, int]  # the checksum of the log up to this frame
    content: bytes


def wal_is_damaged(database: Path) -> bool:
    """Whether more than the last transaction of a database's write-ahead log would be dropped."""
    wal = database.with_name(database.name + "-wal")
    if not wal.exists() or wal.stat().st_size <= HEADER:
        return False
    with wal.open("rb") as log:
        head = log.read(HEADER)
        order = ">" if int.from_bytes(head[:4], "big") & 1 else "<"
        first = _checksum(head[:24], (0, 0), order)
        sound = int.from_bytes(head[:4], "big") | 1 == MAGIC | 1 and first == struct.unpack(">II", head[24:])
        size = int.from_bytes(head[8:12], "big") if sound else _page_size(database)
        if size & (size - 1) or not 512 <= size <= LARGEST_PAGE:
            return False  # SQLite will refuse the database
        content = log.read()
    if sound:
        return _lost_commits(_frames(content, size), head[16:24], first, order) > 1
    salts = _usual_salts(content, size)
    return any(_lost_commits(_frames(content, size), salts, None, either) > 1 for either in "<>")


def _lost_commits(frames: Iterator[_Frame], salts: bytes, start: tuple[int, int] | None, order: str) -> int:
    """Return how many frames that complete a transaction are dropped: the first wrong one, and sound ones after."""
    found, wrong = 0, False
    before = [] if start is None else [start]
    for frame in frames:
        # Each frame is checked by its predecessor, so one wrong frame does not hide those after it.
        of_this_log = frame.salts == salts  # SQLite leaves frames of earlier logs in the file
        computed = [_checksum(frame.content, one, order) for one in before] if of_this_log else []
        sound = frame.stored in computed
        if frame.commits and (sound if wrong else of_this_log and not sound):
            found += 1
        wrong = wrong or not sound
        # If this frame is wrong, either its content or its checksum may still be what was written.
        before = [frame.stored] if sound else [frame.stored, *computed[:1]]
    return found


def _frames(content: bytes, size: int) -> Iterator[_Frame]:
    step = FRAME_HEADER + size
    for start in range(0, len(content) - step + 1, step):
        head, page = content[start : start + FRAME_HEADER], content[start + FRAME_HEADER : start + step]
        one, two = struct.unpack(">II", head[16:24])
        yield _Frame(head[4:8] != bytes(4), head[8:16], (one, two), head[:8] + page)


def _usual_salts(content: bytes, size: int) -> bytes:
    """Return the salts that most frames have, where the header of the log cannot tell."""
    counted = Counter(frame.salts for frame in _frames(content, size))
    return counted.most_common(1)[0][0] if counted else b""


def _page_size(database: Path) -> int:
    with database.open("rb") as file:
        found = int.from_bytes(file.read(18)[16:18], "big")
    return LARGEST_PAGE if found == 1 else found


def _checksum(content: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Return the checksum of the log with this content after what has the checksum `before`."""
    one, two = before
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for place in range(0, len(words), 2):
        one = (one + words[place] + two) & 0xFFFFFFFF
        two = (two + words[place + 1] + one) & 0xFFFFFFFF
    return one, two
