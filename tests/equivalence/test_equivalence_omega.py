"""Ω in every way a method takes it, against the twin that takes it the same way."""

import itertools

import pytest
import reference
from twins import KINDS, assert_twins, with_omega

from skadmm import ALGORITHMS

# "system" only shifts the linear system: the kernels are those of the run without Ω.
REGULARIZERS = {"prox": ["l1"], "system": ["squared-l2"], "subgradient": ["squared-l2", "l1"], "fold": ["l1"]}
COSTLY = ("exact-admm", "online-admm")  # to compile; one regulariser shows how a subgradient enters
CASES = [
    (name, mode, omega)
    for name, algorithm in ALGORITHMS.items()
    if name in reference.METHODS
    for mode in algorithm.omega
    for omega in REGULARIZERS[mode][: 1 if name in COSTLY else None]
]
# Losses and matrix kinds take turns: their product is covered without Ω, and Ω never meets the samples.
CELLS = itertools.cycle(itertools.product(reference.LOSSES, KINDS))
TURNS = [case + cell for case, cell in zip(CASES, CELLS, strict=False)]


@pytest.mark.parametrize(("method", "mode", "omega", "loss", "kind"), TURNS)
def test_iterates_are_the_twins(method, mode, omega, loss, kind):
    for batch_size in (1, 7):
        assert_twins(with_omega(loss, kind, mode, omega), method, batch_size)
