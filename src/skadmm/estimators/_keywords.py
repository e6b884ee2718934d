"""Keyword arguments that a method does not take: the message lists what it takes, and names what may be meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from skadmm._names import nearest

P = ParamSpec("P")
R = TypeVar("R")


def known_keywords(method: Callable[P, R]) -> Callable[P, R]:
    """`method` with a plain message for a keyword argument that it does not have."""
    names = [name for name in signature(method).parameters if name != "self"]

    @wraps(method)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name not in names:
                raise TypeError(unexpected(method.__name__, name, names))
        return method(*args, **given)

    return checked


def unexpected(method: str, name: str, names: Sequence[str], more: str = "") -> str:
    """The message for the argument `name`; `more` says what else the method could take."""
    takes = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    if name == "exposure" and "offset" in names:
        return f"{method}() got 'exposure': it takes {takes}{more}; for an exposure give offset=np.log(exposure)"
    guess = nearest(name, names)
    return f"{method}() got {name!r}: it takes {takes}{more}" + (f".{guess}" if guess else "")
