"""How many threads the linear algebra behind NumPy may use.

On small matrices threads cost more than they bring, most of all on a busy machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

LARGE = 3000
"""From this order on a dense factorisation is given threads. Below it they gain little on an idle machine and cost a
multiple on a busy one; and the result does not depend on how many there are."""


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def fitting_threads(order: int) -> Iterator[None]:
    """One BLAS thread for matrices below LARGE; as many as allowed otherwise."""
    if order >= LARGE:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
