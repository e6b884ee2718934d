"""How a Python function becomes a cached machine kernel that stays open to new types.

Every loss, regulariser, matrix kind and update rule is a ``NamedTuple``. A *generic* is a function that
means something for each of them; :func:`attach` gives it one meaning per class, for Python and for
compiled callers alike. Kernels are compiled once and kept on disk.
"""

import contextlib
import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache
from numba.extending import overload, register_jitable

PACKAGE = Path(__file__).parent

T = TypeVar("T")

# Reassociation lets sums vectorise; infinities and NaN keep their meaning (they are how divergence shows).
FASTMATH = frozenset({"reassoc", "contract", "arcp", "nsz"})


def generic(function: Callable[..., Any]) -> Any:
    """A function whose meaning depends on the class of its first argument; see :func:`attach`."""

    @functools.wraps(function)
    def undefined(instance: Any, *_: Any) -> Any:
        raise TypeError(f"{function.__name__} is not defined for {type(instance).__name__}")

    return functools.singledispatch(undefined)


def attach(function: Any, cls: type, implementation: Callable[..., Any], *, compiled: bool = True) -> None:
    """Give the generic `function` the meaning `implementation` for instances of `cls`.

    With ``compiled`` the implementation must be in Numba's subset of Python, and kernels may call it.
    """
    function.register(cls, implementation)
    if not compiled:
        return
    body = register_jitable(implementation)

    def choose(*arguments: Any) -> Callable[..., Any] | None:
        return body if getattr(arguments[0], "instance_class", None) is cls else None

    # Numba binds a call by the chooser's parameter names, so it answers with the implementation's.
    choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
    overload(function, strict=False, jit_options={"fastmath": set(FASTMATH)})(choose)


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


@functools.cache
def _package_fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _classes(kind: Any) -> Iterator[type]:
    """The NamedTuple classes inside the type of a kernel's argument."""
    if hasattr(kind, "instance_class"):
        yield kind.instance_class
    for member in getattr(kind, "types", ()):
        yield from _classes(member)


class _SourceKeyedCache(FunctionCache):
    """Numba's cache on disk sees changes in a kernel's own file only. This one also keys on the
    sources of the whole package and of every file that defines the class of an argument."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        files = set()
        for argument in sig:
            for cls in _classes(argument):
                source = getattr(sys.modules.get(cls.__module__), "__file__", None)
                if source and not Path(source).is_relative_to(PACKAGE):
                    files.add(source)
        foreign = tuple(_fingerprint(path) for path in sorted(files))
        return (*super()._index_key(sig, codegen), _package_fingerprint(), foreign)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile `function`, cached on disk. Set ``SKADMM_KERNEL_CACHE=0`` to compile afresh each time."""
    if function is None:
        return functools.partial(kernel, **options)
    settings: dict[str, Any] = {"fastmath": set(FASTMATH), "nogil": True} | options
    dispatcher: Any = numba.njit(**settings)(function)
    if os.environ.get("SKADMM_KERNEL_CACHE", "1") != "0":
        # Where no folder is writable there is nothing to keep; the kernel still works.
        with contextlib.suppress(RuntimeError):
            dispatcher._cache = _SourceKeyedCache(function)
    return dispatcher
