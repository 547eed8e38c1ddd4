"""A time limit for code that is not ours: it is interrupted, wherever it is, and everything else goes on.

Python raises an exception in the thread that runs the code. That works for Python code; a call into C that does not
return cannot be interrupted. Where the system can tell, the thread's own processor time counts: a busy machine
interrupts nobody.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.1  # seconds between two looks at the clock


class Overdue(BaseException):
    """The code took too long. It is no `Exception`, which the code may catch."""


class _Watched:
    """A call that is being watched: when it is overdue, whether it was interrupted, and whether it is over."""

    def __init__(self, deadline: float) -> None:
        self.deadline, self.interrupted, self.over = deadline, False, False


_lock = threading.Lock()
_calls: dict[int, _Watched] = {}  # by thread
_watching: list[threading.Thread] = []


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what a call returns.

    Raises
    ------
    TimeoutError
        It was interrupted after this time.
    """
    thread = threading.get_ident()
    if thread in _calls:  # a call inside such a call
        return call()
    watched = _begin(thread, seconds)
    try:
        return call()
    except Overdue:
        raise TimeoutError from None
    finally:
        watched.over = True
        try:
            _end(thread)
        except Overdue:  # it arrived before the first line
            _end(thread)
        if watched.interrupted:
            raise TimeoutError


def time_spent() -> float:
    """Return the time of the thread that calls this, by the clock of `within`, in seconds."""
    return _now(threading.get_ident())


def _begin(thread: int, seconds: float) -> _Watched:
    with _lock:
        if not _watching:
            _watching.append(threading.Thread(target=_watch, name="partage-time-limit", daemon=True))
            _watching[0].start()
        watched = _calls[thread] = _Watched(_now(thread) + seconds)
    return watched


def _end(thread: int) -> None:
    """Stop the clock. An interruption that is on its way arrives here."""
    while thread in _calls:
        try:
            with _lock:
                del _calls[thread]
        except Overdue:
            continue
    try:
        for _ in range(10):  # Python looks for it whenever a loop goes on
            pass
    except Overdue:
        pass


def _watch() -> None:
    while True:
        time.sleep(PAUSE)
        with _lock:
            for thread, watched in _calls.items():
                if not watched.over and _now(thread) > watched.deadline:
                    watched.interrupted = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Overdue))


def _now(thread: int) -> float:
    """Return the processor time of a thread that runs, in seconds; the wall clock's where the system cannot tell."""
    if hasattr(time, "pthread_getcpuclockid"):
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    return time.monotonic()
