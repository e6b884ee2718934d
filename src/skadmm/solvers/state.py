"""What a second-order solver hands to a warm start: its point."""

import numpy as np

from skadmm.solvers.dual_update import Point


def point_tables(point: Point, rho: float) -> dict[str, np.ndarray]:
    """What a second-order method hands to a warm start: its point and ρ, for a model is quickly built anew."""
    return point._asdict() | {"rho": np.array([rho])}


def take_point(point: Point, tables: dict[str, np.ndarray]) -> float:
    """Fill `point` from the tables of an earlier run; its ρ."""
    for name, array in point._asdict().items():
        if name not in tables or tables[name].shape != array.shape:
            raise ValueError(f"warm_start: the earlier run has no matching table {name!r}")
        array[...] = tables[name]
    return float(tables["rho"][0])
