"""Methods that some parameters exclude: ``hasattr`` is False for them, and the error names the parameter."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any


class _Available:
    """A method that is an attribute of those instances only which a check accepts."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], None]) -> None:
        self._method, self._check = method, check
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is not None:
            self._check(instance)
            return MethodType(self._method, instance)

        @wraps(self._method)
        def unbound(*args: Any, **given: Any) -> Any:
            self._check(args[0])
            return self._method(*args, **given)

        return unbound


class OfRelax:
    """A fitted attribute that only ``relax=True`` sets; the error of a model without it says so."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        of = type(instance).__name__
        fault = "is not fitted" if instance.relax else "was fitted with relax=False: set relax=True, and fit again"
        raise AttributeError(f"{of} has no {self._name}: it {fault}")


def available_where(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a method that exists where `check` of the instance raises no AttributeError. scikit-learn's
    ``available_if`` hides the message of the check behind "has no attribute"."""
    return lambda method: _Available(method, check)
