"""The methods whose step is nonlinear equal their NumPy twins, whose steps are solved by Newton's method in full."""

import pytest
import reference
from twins import KINDS, assert_twins, pair


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", reference.LOSSES)
@pytest.mark.parametrize("method", ["exact-admm", "online-admm"])
def test_iterates_are_the_twins(method, loss, kind):
    for batch_size in (1, 7):
        assert_twins(pair(loss, kind), method, batch_size)
