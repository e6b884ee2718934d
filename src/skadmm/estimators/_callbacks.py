"""scikit-learn's callback protocol, where the installed version has it.

A fit is a task; each problem it solves (a class, or a fold of a path) is a subtask.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """A base class without members, for versions of scikit-learn that have no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


class Tasks:
    """The subtasks of one fit, reported to the callbacks of the estimator where it has any."""

    def __init__(self, estimator: Any, count: int, X: Any, y: Any) -> None:
        self._estimator, self._X, self._y = estimator, X, y
        self._context = None
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=count)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        """One subtask, from its beginning to its end."""
        if self._context is None:
            yield
            return
        context = {"estimator": self._estimator, "X": self._X, "y": self._y}
        inner = self._context.subcontext(task_name=name)
        inner.call_on_fit_task_begin(**context)
        yield
        inner.call_on_fit_task_end(**context)

    def close(self) -> None:
        """Report that the fit has ended."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, X=self._X, y=self._y)


__all__ = ["CallbackSupport", "Tasks", "with_callbacks"]
