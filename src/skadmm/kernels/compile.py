"""How a Python function becomes a cached machine kernel that stays open to new types.

Every loss, regulariser, matrix kind and update rule is a ``NamedTuple``. A *generic* is a function that
means something for each of them; :func:`attach` gives it one meaning per class, for Python and for
compiled callers alike. Kernels are compiled once and kept on disk.
"""

import functools
import gc
import hashlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import overload, register_jitable

from skadmm.kernels import shipped

NAME = "skadmm"
PACKAGE = Path(__file__).parents[1]

T = TypeVar("T")

# Reassociation lets sums vectorise; infinities and NaN keep their meaning (they are how divergence shows).
FASTMATH = frozenset({"reassoc", "contract", "arcp", "nsz"})

# What a kernel calls becomes part of it. A function left out of line has a copy in every kernel that calls it, each
# optimised on its own, and of equal names a process takes the one it loaded first: with sums that may be reassociated,
# the process that compiles and those that find the kernels on disk would then differ in the last digit.
INLINE = {"forceinline": True}

# Nothing calls a kernel by a C pointer (no_cfunc_wrapper): the wrapper for it would be a tenth of the compile time.
# Division by zero gives an infinity or NaN, as in NumPy: the branches that raise an exception are not compiled.
SETTINGS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

# Numba counts references to each array that a variable names, so that it can free arrays that a kernel creates. Most
# create none and are compiled without the counts, which are an eighth of the compile time. Those that create arrays,
# or call NumPy functions that do, say `allocates=True`.
REFERENCES = "_nrt"


def generic(function: Callable[..., Any]) -> Any:
    """A function whose meaning depends on the class of its first argument; see :func:`attach`."""

    @functools.wraps(function)
    def undefined(instance: Any, *_: Any) -> Any:
        raise TypeError(f"{function.__name__} is not defined for {type(instance).__name__}")

    return functools.singledispatch(undefined)


def jitable(function: Callable[..., Any]) -> Any:
    """A function that compiled code and Python may call. In compiled code it is part of its callers."""
    return register_jitable(no_cfunc_wrapper=True)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A small function for compiled code only. It is copied into its callers before their types are inferred, so that
    it is not compiled by itself for each of their types."""
    return numba.njit(inline="always")(function)


_named: dict[str, type] = {}
"""The classes that generics are attached to, by their names."""


def _named_apart(cls: type) -> None:
    """Give `cls` a name that no other class has. Numba distinguishes the NamedTuples given to a kernel only by the
    names of their classes: a user's loss with the name of one of ours, or defined again in a notebook, would run the
    code of the other."""
    name, number = cls.__name__, 2
    while _named.setdefault(cls.__name__, cls) is not cls:
        cls.__name__ = f"{name}_{number}"
        number += 1


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == NAME


def _allocates(cls: type) -> bool:
    """Whether functions of `cls` may create arrays: those of users, and of ours where the class says so."""
    return getattr(cls, "allocates", not _is_ours(cls))


def attach(function: Any, cls: type, implementation: Callable[..., Any], *, compiled: bool = True) -> None:
    """Give the generic `function` the meaning `implementation` for instances of `cls`.

    With ``compiled`` the implementation must be in Numba's subset of Python, and kernels may call it. One that creates
    arrays, which it cannot return, needs the fact ``allocates=True`` of its class if that is a class of this package.
    """
    _named_apart(cls)
    function.register(cls, implementation)
    if not compiled:
        return
    body = jitable(implementation)

    def choose(*arguments: Any) -> Callable[..., Any] | None:
        return body if getattr(arguments[0], "instance_class", None) is cls else None

    # Numba binds a call by the chooser's parameter names, so it answers with the implementation's.
    choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
    options: Any = {"fastmath": set(FASTMATH), "no_cfunc_wrapper": True}
    if _allocates(cls):
        options[REFERENCES] = True  # otherwise as the kernel that calls it
    # Not inline="always": to find the types, Numba would compile the implementation before it copies it.
    overload(function, strict=False, jit_options=options)(choose)


def facts(**attributes: Any) -> Callable[[type[T]], type[T]]:
    """Class attributes of a NamedTuple: in its body, type checkers would take them for fields."""

    def decorate(cls: type[T]) -> type[T]:
        for name, attribute in attributes.items():
            setattr(cls, name, attribute)
        return cls

    return decorate


@functools.cache
def _fingerprint(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


SHARED = ("kernels", "losses", "regularizers", "solvers/base.py", "solvers/dual_update.py",
          "solvers/first_order/x_solve.py", "solvers/first_order/snapshot.py")  # fmt: skip
"""What kernels of other files call. A kernel depends on these, on its own file and on those of its arguments' classes;
``tests/integration/test_project.py`` checks that it imports nothing else that is compiled."""


@functools.cache
def shared_sources() -> tuple[Path, ...]:
    """The files of SHARED."""
    paths = [PACKAGE / name for name in SHARED]
    return tuple(sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])))


@functools.cache
def _shared_fingerprint() -> str:
    return hashlib.sha256("".join(_fingerprint(str(path)) for path in shared_sources()).encode()).hexdigest()


@functools.cache
def _announce() -> None:
    """Print, once per process and only on a terminal, why the first run takes seconds."""
    if sys.stderr is not None and sys.stderr.isatty():
        refusal = shipped.shipped().refusal
        reason = f" ({refusal})" if refusal else ""
        print(f"skadmm: compiling kernels once; they are kept on disk{reason}", file=sys.stderr, flush=True)


class _WithoutCollections(event.Listener):
    """Pauses garbage collection while a kernel is compiled. A compilation creates many objects and drops few, and
    collections would take an eighth of its time. Numba compiles one function at a time; compilations nest."""

    def __init__(self) -> None:
        self.depth, self.enabled = 0, False

    def on_start(self, event: Any) -> None:
        """Pause where a kernel of this package begins."""
        if self.depth == 0:
            module = event.data["dispatcher"].py_func.__module__ or ""  # functions of others may have none
            if module.split(".")[0] != NAME:
                return
            self.enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Resume where it ends."""
        if self.depth == 0:
            return
        self.depth -= 1
        if self.depth == 0 and self.enabled:
            gc.enable()


event.register("numba:compile", _WithoutCollections())


def _classes(kind: Any) -> Iterator[type]:
    """The NamedTuple classes inside the type of a kernel's argument."""
    if hasattr(kind, "instance_class"):
        yield kind.instance_class
    for member in getattr(kind, "types", ()):
        yield from _classes(member)


def _sources_of(sig: Any) -> str:
    """A fingerprint of the files of ours that define the classes in a signature."""
    modules = {cls.__module__ for argument in sig for cls in _classes(argument)}
    ours = sorted(name for name in modules if name.split(".")[0] == NAME)
    return "".join(_fingerprint(str(sys.modules[name].__file__)) for name in ours)


def _all_ours(sig: Any) -> bool:
    return all(_is_ours(cls) for argument in sig for cls in _classes(argument))


class _Wheel:
    """The kernels of one function that the wheel carries; see :mod:`skadmm.kernels.shipped`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def key(self, sig: Any) -> str:
        """What a compiled kernel is made from: the function, the types, and every source it may depend on."""
        function = self.function
        cells = dumps(tuple(cell.cell_contents for cell in function.__closure__ or ()))
        parts = (
            function.__module__,
            function.__qualname__,
            str(function.__code__.co_firstlineno),
            hashlib.sha256(function.__code__.co_code + cells).hexdigest(),
            _fingerprint(function.__code__.co_filename),
            _shared_fingerprint(),
            _sources_of(sig),
            *(f"{cls.__module__}.{cls.__qualname__}" for argument in sig for cls in _classes(argument)),
            str(sig),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def load(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel; None where the wheel has none for this process."""
        if not self.ours or not _all_ours(sig) or not shipped.shipped().checksums:
            return None
        key = self.key(sig)
        data = shipped.payload(key)
        if data is None:
            return None
        try:
            target_context.refresh()
            kept = CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception:  # the kernel is compiled in place of one that cannot be loaded
            return None
        shipped.used.add(key)
        return kept

    def record(self, sig: Any, result: Any) -> None:
        """Keep what was just compiled, where a wheel is being built."""
        folder = shipped.recording()
        if folder is not None and self.ours and _all_ours(sig):
            # Numba adds a listing with the types of all variables, which only `inspect_types` shows.
            parts = tuple("" if isinstance(part, str) else part for part in result._reduce())
            shipped.record(folder, self.key(sig), dumps(parts))

    @property
    def ours(self) -> bool:
        """Is the function from this package?"""
        return self.function.__module__.split(".")[0] == NAME


class _WheelOnly(NullCache):
    """The cache where no folder is writable: what the wheel carries, and nothing is kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._wheel = _Wheel(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self._wheel.load(sig, target_context)


class KernelFiles(IndexDataCacheFile):
    """The files of a kernel: an index, and one file of machine code for each signature.

    Numba numbers the files in order. Two processes that compile a kernel for different signatures at the same time may
    take the same number, and then one runs the machine code of the other. Here a file is named by what it is compiled
    for; of two indices that are written at the same time one is lost, and what it named is compiled again.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep the machine code `data` of one signature."""
        digest = hashlib.sha256(dumps((self._source_stamp, key))).hexdigest()
        name = self._data_name(int(digest[:15], 16))
        self._save_data(name, data)
        overloads = self._load_index()
        if overloads.get(key) != name:
            self._save_index(overloads | {key: name})


class _SourceKeyedCache(FunctionCache):
    """Numba's cache on disk sees changes in a kernel's own file only. This one also keys on what kernels share and on
    the sources of its arguments' classes. A kernel for a class from elsewhere (a user's own loss) has an index file of
    its own, keyed on the sources of that class: with its entry in the common index, programs that cannot import the
    class could not read the index."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._wheel = _Wheel(function)
        self._cache_file = self._files(self._impl.filename_base)

    def _files(self, name: str) -> KernelFiles:
        return KernelFiles(
            cache_path=self._cache_path, filename_base=name, source_stamp=self._impl.locator.get_source_stamp()
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _shared_fingerprint(), _sources_of(sig))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        def found() -> Any:
            kept = super(_SourceKeyedCache, self).load_overload(sig, target_context)
            if kept is None:
                kept = self._wheel.load(sig, target_context)
            if kept is None:
                _announce()
            return kept

        return self._with_index_of(sig, found)

    def save_overload(self, sig: Any, data: Any) -> None:
        self._with_index_of(sig, lambda: super(_SourceKeyedCache, self).save_overload(sig, data))
        if self._impl.check_cachable(data):
            self._wheel.record(sig, data)

    def _readable(self, action: Callable[[], Any]) -> Any:
        """An index names classes. One written before a class was renamed or removed cannot be read, and is replaced."""
        try:
            return action()
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            self._cache_file.flush()
            return action()

    def _with_index_of(self, sig: Any, action: Callable[[], Any]) -> Any:
        sources = set()
        for argument in sig:
            for cls in _classes(argument):
                if cls.__module__.split(".")[0] == NAME:
                    continue
                source = getattr(sys.modules.get(cls.__module__), "__file__", None)
                if cls.__module__ == "__main__" or source is None:
                    return None  # the class cannot be imported elsewhere, so the kernel is compiled each time
                sources.add(source)
        if not sources:
            return self._readable(action)
        digest = hashlib.sha256("".join(map(_fingerprint, sorted(sources))).encode()).hexdigest()[:16]
        common = self._cache_file
        self._cache_file = self._files(f"{self._impl.filename_base}.{digest}")
        try:
            return self._readable(action)
        finally:
            self._cache_file = common


def kernel(function: Callable[..., Any] | None = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile `function`, cached on disk; with `allocates` it may create arrays. Set ``SKADMM_KERNEL_CACHE=0`` to
    compile it in every process."""
    if function is None:
        return functools.partial(kernel, allocates=allocates, **options)
    settings: dict[str, Any] = {"fastmath": set(FASTMATH), **SETTINGS, **INLINE, REFERENCES: allocates} | options
    dispatcher: Any = numba.njit(**settings)(function)
    if os.environ.get("SKADMM_KERNEL_CACHE", "1") != "0":
        try:
            dispatcher._cache = _SourceKeyedCache(function)
        except RuntimeError:  # no folder is writable: nothing can be kept; the kernel still works
            dispatcher._cache = _WheelOnly(function)
    return dispatcher


@functools.cache
def _kernel_of(implementation: Callable[..., Any], cls: type) -> Any:
    return kernel(implementation, allocates=_allocates(cls))


def compiled(function: Any) -> Callable[..., Any]:
    """The generic `function` for callers in Python, compiled. The implementation for a class is a kernel itself: one
    that calls it would be a second function to compile."""
    undefined = function.dispatch(object)

    def call(instance: Any, *arguments: Any) -> Any:
        cls: Any = type(instance)
        implementation = function.dispatch(cls)
        return (implementation if implementation is undefined else _kernel_of(implementation, cls))(
            instance, *arguments
        )

    return call
