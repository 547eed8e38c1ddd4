"""Compilation: kernels that numba compiles, and plain functions that kernels and plain Python share.

- `@compiled` makes a kernel, and `@inner`, `@inlined` or `@uncounted` a function that only kernels call. They need
  numba, so only rooms of the `research` and `server` extras use them.
- `@shared` marks a plain function that kernels call too. Plain Python calls it as it is; a kernel calls its compiled
  twin. Importing a shared function does not import numba. Both give the same bits, provided that the function uses
  only arithmetic, comparisons, `math.sqrt`, `math.log` and `math.exp`: other functions of `math`, and powers, are
  implemented differently in numba.

numba caches compiled code on disk until the file of the function itself changes, and does not notice changes in the
functions it calls. So the cache folder is named after a digest of all sources that compiled code may come from.
"""

import gc
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial, update_wrapper
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

R = TypeVar("R")

_PACKAGE = Path(__file__).parent
_ROOMS = ("engine", "rules", "settle", "simulate", "theory")
_MODULES = (
    "arms.py", "betting.py", "clock.py", "compiled.py", "contrasts.py", "evidence.py", "indexing.py", "tape.py",
    "traits.py",
)  # fmt: skip
_KEPT = 7 * 24 * 3600  # seconds


class Shared(partial[R], Generic[R]):  # a partial is called without a Python frame in between
    """A plain function that kernels may call. `compiled` is its compiled twin."""

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The function as numba compiles it."""
        return compiled(self.func)


def shared(function: Callable[..., R]) -> Shared[R]:
    """Let kernels call a plain function."""
    made = Shared(function)
    update_wrapper(made, function)
    return made


@cache
def can_compile() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a kernel: compile a function with numba, for callers in plain Python and in other kernels.

    It releases the interpreter's lock, so threads run side by side.
    """
    from numba import config, njit

    from partage.indexing import KernelCompiler

    _teach_numba()
    options = {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder())
    try:
        return njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_DIR = before


class Inner:
    """An inner function of kernels. Plain Python cannot call it."""

    def __init__(self, function: Callable[..., Any], inlined: bool, counts_references: bool) -> None:
        from numba import njit

        from partage.indexing import KernelCompiler

        _teach_numba()
        options = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "forceinline": inlined}
        if not counts_references:
            options["_nrt"] = False
        self.dispatcher = njit(pipeline_class=KernelCompiler, **options)(function)
        self.name = function.__qualname__

    def __call__(self, *_: object) -> Any:
        """Refuse: the function has no entry for plain Python, and calling it anyway would crash."""
        raise TypeError(f"{self.name} is an inner function of kernels; plain Python cannot call it.")


def inner(function: Callable[..., Any]) -> Inner:
    """Make an inner function of kernels.

    A kernel has an entry point for plain Python and a file in the cache. Both take time to compile, and an inner
    function needs neither.
    """
    return Inner(function, inlined=False, counts_references=True)


def inlined(function: Callable[..., Any]) -> Inner:
    """Make an inner function that is copied into its callers: a small one, in the innermost loop.

    A call passes every array as seven numbers, which takes longer than a small function does. Like one that is
    `uncounted`, it must not make arrays.
    """
    return Inner(function, inlined=True, counts_references=False)


def uncounted(function: Callable[..., Any]) -> Inner:
    """Make an inner function that only borrows arrays: it neither makes one nor keeps one.

    numba counts references to arrays, with atomic operations that take longer than most steps of a loop. A function
    that only borrows them needs no counts.
    """
    return Inner(function, inlined=False, counts_references=False)


def code_for(kernel: Any, arguments: Sequence[Any]) -> Callable[..., None]:
    """Return the code of a kernel that was just called with these arguments.

    To find it, numba looks at every array in a call, which can take longer than the call. The code itself takes other
    arguments of the same types, and nothing checks that they are.
    """
    if len(kernel.overloads) == 1:
        return _only_code(kernel)
    return kernel.compile(tuple(map(kernel.typeof_pyval, arguments)))  # type: ignore[no-any-return]


@cache
def _only_code(kernel: Any) -> Callable[..., None]:
    """Return the code of a kernel that was compiled for one list of types. To list it, numba hashes all of them."""
    (compiled_once,) = kernel.overloads.values()
    return compiled_once.entry_point  # type: ignore[no-any-return]


@cache
def _teach_numba() -> None:
    """Tell numba to use the compiled form of shared and inner functions inside a kernel."""
    from numba import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Shared)  # type: ignore[untyped-decorator]
    def _twin(value: Shared[Any], _context: object) -> Any:
        return types.Dispatcher(value.compiled)

    @typeof_impl.register(Inner)  # type: ignore[untyped-decorator]
    def _inner(value: Inner, _context: object) -> Any:
        return types.Dispatcher(value.dispatcher)


@cache
def sources() -> str:
    """Return a digest of every source file that compiled code may come from."""
    digest = hashlib.sha256()
    rooms = [source for room in _ROOMS for source in (_PACKAGE / room).glob("*.py")]
    for source in sorted([*(_PACKAGE / module for module in _MODULES), *rooms]):
        digest.update(str(source.relative_to(_PACKAGE)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@cache
def folder() -> Path:
    """Return where compiled code is stored: beside the sources, or in the user's cache if that is not writable.

    Loading compiled code runs it, so a folder that somebody else owns or can write to is not used. Code that is
    compiled with `NUMBA_BOUNDSCHECK=1` goes into a separate folder.
    """
    from numba import config

    checked = "-checked" if config.BOUNDSCHECK else ""
    for home in (_PACKAGE / "__pycache__", _user_cache()):
        if home is None:
            continue
        found = home / f"compiled-{sources()}{checked}"
        try:
            if not found.exists():
                _remove_old(home)
                found.mkdir(mode=0o755, parents=True, exist_ok=True)
            if os.access(found, os.W_OK) and _is_ours(found):
                return found
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="partage-"))


def _user_cache() -> Path | None:
    """Return the user's cache; None for a user without a home."""
    try:
        return Path.home() / ".cache" / "partage"
    except RuntimeError:
        return None


def _is_ours(found: Path) -> bool:
    """Whether this user, or the administrator, owns a folder and nobody else can write to it."""
    if os.name != "posix":
        return True
    status = found.stat()
    return status.st_uid in (0, os.getuid()) and not status.st_mode & 0o022


def _remove_old(home: Path) -> None:
    """Remove compiled code of other versions of the sources, unless it may be in use."""
    for old in home.glob("compiled-*"):
        if time.time() - old.stat().st_mtime > _KEPT:
            shutil.rmtree(old, ignore_errors=True)


def is_cold() -> bool:
    """Whether nothing is compiled yet, so that the next kernel takes seconds to start."""
    return next(folder().rglob("*.nbi"), None) is None


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector while kernels are compiled: it takes a tenth of that time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
