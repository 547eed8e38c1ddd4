"""A layer between SQLite and its files: it records what is written and synced, fails or kills on demand.

`python -m tests.crashes.disk serve …` is `partage serve …` on this layer. It needs no compiler: it is a copy of
SQLite's own layer (a `sqlite3_vfs`), with the functions that change files replaced through ctypes. SQLite's library
must be one that ctypes can reach, which `unavailable` tells.

The environment says what the layer does:

- `DISK_LOG`: a file that gets a record of every change (`Change`), in order.
- `DISK_FAULT`: a file that does not exist yet. While it exists, the fault in it (`Fault`) strikes; what it struck is
  appended to the same name with `.struck`.
"""

import _sqlite3
import ctypes
import errno
import os
import signal
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

SECTOR = 512
SUFFIXES = ("", "-wal", "-journal")  # of the files of a database
WRITE, SYNC, TRUNCATE, DELETE, OPEN = KINDS = ("write", "sync", "truncate", "delete", "open")

_HEADER = struct.Struct("<BBqi")  # kind, file, place, bytes that follow

# https://www.sqlite.org/rescode.html
_FULL, _IOERR = 13, 10
_FAILED = {WRITE: _IOERR | 3 << 8, SYNC: _IOERR | 4 << 8, TRUNCATE: _IOERR | 6 << 8, DELETE: _IOERR | 10 << 8}


class Change(NamedTuple):
    """A change of a file: `place` is where it was written, its new size, or whether the folder was synced."""

    kind: str
    suffix: str
    place: int
    data: bytes


class Fault(msgspec.Struct, kw_only=True):
    """What goes wrong: from the change with number `after` on (the first is 0), `times` times or (-1) for good.

    Attributes
    ----------
    what
        `EIO` or `ENOSPC`: the change fails, a write half done. `kill`: the process is killed, with a write half done.
    suffix
        Only changes of this file count; "" is the database itself, None any file.
    """

    what: str
    after: int = 0
    times: int = 1
    suffix: str | None = None


class Struck(NamedTuple):
    """A change that a fault struck."""

    kind: str
    suffix: str


def read_log(log: bytes) -> Iterator[tuple[int, Change]]:
    """Yield each change with the place in the log where its record ends; a record cut short is left out."""
    place = 0
    while place + _HEADER.size <= len(log):
        kind, file, where, length = _HEADER.unpack_from(log, place)
        place += _HEADER.size + length
        if place > len(log):
            return
        yield place, Change(KINDS[kind], SUFFIXES[file], where, log[place - length : place])


class Disk:
    """The layer of one process, by the names of SQLite's files."""

    def __init__(self, log: str | None, fault: str | None) -> None:
        self._log = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._fault_file = fault
        self._fault: Fault | None = None
        self._raw = b""
        self._seen = 0

    def record(self, change: Change) -> None:
        """Append a change to the log."""
        if self._log is not None:
            file, kind = SUFFIXES.index(change.suffix), KINDS.index(change.kind)
            os.write(self._log, _HEADER.pack(kind, file, change.place, len(change.data)) + change.data)

    def fault(self, kind: str, suffix: str) -> Fault | None:
        """Return the fault that strikes this change, if any."""
        if self._fault_file is None:
            return None
        try:
            raw = Path(self._fault_file).read_bytes()
        except FileNotFoundError:
            return None
        if raw != self._raw:
            self._fault, self._raw, self._seen = msgspec.json.decode(raw, type=Fault), raw, 0
        fault = self._fault
        assert fault is not None
        if fault.suffix not in (None, suffix):
            return None
        number, self._seen = self._seen, self._seen + 1
        if number < fault.after or (fault.times >= 0 and number >= fault.after + fault.times):
            return None
        with open(f"{self._fault_file}.struck", "a") as struck:
            struck.write(f"{kind} {suffix}\n")
        return fault


class Faults:
    """The other end of `DISK_FAULT`, for the process that tests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._struck = path.with_name(path.name + ".struck")
        self._number = 0

    def set(self, fault: Fault) -> None:
        """Let this fault strike from now on."""
        self._struck.unlink(missing_ok=True)
        self._number += 1
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_bytes(msgspec.json.encode(fault) + b" " * self._number)  # differs from the one before
        new.replace(self.path)

    def clear(self) -> None:
        """Let nothing fail any more."""
        self.path.unlink(missing_ok=True)

    def struck(self) -> list[Struck]:
        """Return what the last fault struck."""
        if not self._struck.exists():
            return []
        return [Struck(*line.split(" ", 1)) for line in self._struck.read_text().splitlines()]


# SQLite's structures, https://www.sqlite.org/c3ref/vfs.html and https://www.sqlite.org/c3ref/io_methods.html

# The name is a pointer here: SQLite keeps it while the file is open.
_XOpen = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_XDelete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_XWrite = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_XTruncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_XSync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", _XOpen),
        ("xDelete", _XDelete),
        ("others", c_void_p * 14),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("iVersion", c_int),
        ("xClose", c_void_p),
        ("xRead", c_void_p),
        ("xWrite", _XWrite),
        ("xTruncate", _XTruncate),
        ("xSync", _XSync),
        ("others", c_void_p * 13),
    )


class _File(ctypes.Structure):
    _fields_ = (("pMethods", POINTER(_Methods)),)


_installed: list[Any] = []  # SQLite keeps pointers to these


def _libraries() -> Iterator[Any]:
    """Yield the places where the library that Python uses may be."""
    for name in ("libsqlite3.so.0", getattr(_sqlite3, "__file__", None), None):
        try:
            library = ctypes.CDLL(name)
            library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        except (OSError, AttributeError):
            continue
        yield library


def unavailable() -> str | None:
    """Return why the layer cannot be used here, or None if it can."""
    if sys.platform != "linux":
        return "the layer under SQLite works on Linux only"
    try:
        _library()
    except RuntimeError as error:
        return str(error)
    return None


def _library() -> Any:
    """Return the library that Python's sqlite3 uses, and not another copy of it."""
    name = b"partage-probe"
    for library in _libraries():
        probe = _Vfs.from_buffer_copy(library.sqlite3_vfs_find(None).contents)
        probe.zName, probe.pNext = name, None
        library.sqlite3_vfs_register(ctypes.byref(probe), 0)
        try:
            with closing(sqlite3.connect(f"file::memory:?vfs={name.decode()}", uri=True)):
                return library
        except sqlite3.OperationalError:
            continue  # no such vfs: Python has a copy of its own
        finally:
            library.sqlite3_vfs_unregister(ctypes.byref(probe))
    raise RuntimeError("Python's SQLite is built in, where ctypes cannot reach it")


def install(disk: Disk) -> None:
    """Put the layer under all databases that this process opens from now on."""
    library = _library()
    original = library.sqlite3_vfs_find(None).contents
    layer = _Vfs.from_buffer_copy(original)
    methods: dict[int, _Methods] = {}  # by the address of the original ones
    suffixes: dict[int, str] = {}  # by the address of an open file

    def changed(change: Change, do: Callable[[bytes], int]) -> int:
        """Make a change, or fail; `do` gets the bytes to write."""
        fault = disk.fault(change.kind, change.suffix)
        if fault is None:
            result = do(change.data)
            if not result:
                disk.record(change)
            return result
        if change.kind == WRITE:
            do(change.data[: len(change.data) // 2])
        if fault.what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return _FULL if change.kind == WRITE and fault.what == errno.errorcode[errno.ENOSPC] else _FAILED[change.kind]

    def replaced(found: _Methods) -> _Methods:
        new = _Methods.from_buffer_copy(found)

        def write(file: int, data: int, length: int, place: int) -> int:
            change = Change(WRITE, suffixes[file], place, ctypes.string_at(data, length))
            return changed(change, lambda given: found.xWrite(file, data, len(given), place))

        def truncate(file: int, size: int) -> int:
            return changed(Change(TRUNCATE, suffixes[file], size, b""), lambda _: found.xTruncate(file, size))

        def sync(file: int, flags: int) -> int:
            return changed(Change(SYNC, suffixes[file], 0, b""), lambda _: found.xSync(file, flags))

        new.xWrite, new.xTruncate, new.xSync = _XWrite(write), _XTruncate(truncate), _XSync(sync)
        return new

    def open_(_: int, name: int | None, file: int, flags: int, out: int) -> int:
        path = None if name is None else ctypes.string_at(name).decode()
        new = path is None or not os.path.exists(path)
        result = int(original.xOpen(ctypes.addressof(layer), name, file, flags, out))
        opened = _File.from_address(file)
        suffix = None if path is None else _suffix(path)
        if result or suffix is None or not opened.pMethods:  # a temporary file
            return result
        if new:
            disk.record(Change(OPEN, suffix, 0, b""))
        address = ctypes.addressof(opened.pMethods.contents)
        if address not in methods:
            methods[address] = replaced(_Methods.from_address(address))
        suffixes[file] = suffix
        opened.pMethods = ctypes.pointer(methods[address])
        return result

    def delete(_: int, name: bytes, sync_folder: int) -> int:
        suffix = _suffix(name.decode())
        if suffix is None or not os.path.exists(name):
            return int(original.xDelete(ctypes.addressof(layer), name, sync_folder))
        change = Change(DELETE, suffix, sync_folder, b"")
        return changed(change, lambda _: original.xDelete(ctypes.addressof(layer), name, sync_folder))

    layer.zName, layer.pNext = b"partage-disk", None
    layer.xOpen, layer.xDelete = _XOpen(open_), _XDelete(delete)
    _installed.extend((layer, methods, original))
    if library.sqlite3_vfs_register(ctypes.byref(layer), 1):
        raise RuntimeError("SQLite refused the layer")


def _suffix(path: str) -> str | None:
    """Return which of a database's files this is; None for a temporary one."""
    _, found, suffix = path.rpartition(".db")
    return suffix if found and suffix in SUFFIXES else None


if __name__ == "__main__":
    from partage.cli import main

    install(Disk(os.environ.get("DISK_LOG"), os.environ.get("DISK_FAULT")))
    main()
