"""Car insurance: policies with their exposure, the number and the cost of their claims; real and simulated."""

import os
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skadmm import _checks, _summary
from skadmm.datasets.locating import DataError

FREQUENCY, SEVERITY = 41214, 41215
"""The numbers of freMTPL2freq and freMTPL2sev on OpenML."""
MAX_CLAIMS, MAX_EXPOSURE, MAX_COST = 4, 1.0, 200_000.0
"""Larger values of freMTPL2 are set to these, as is usual: a few rows hold errors of the record."""
RANGES = {"DrivAge": (18, 90), "VehAge": (0, 20), "BonusMalus": (50, 150)}
"""Whole numbers that become ordered levels, with the smallest and the largest; values beyond belong to the ends."""
UNORDERED = ("VehBrand", "VehGas", "Region")
COLUMNS = ("DrivAge", "VehAge", "VehPower", "BonusMalus", "Area", *UNORDERED)


class Claims(NamedTuple):
    """Policies of car insurance, and their claims.

    Parameters
    ----------
    table : DataFrame of shape (n_policies, n_columns)
        The features: columns of ordered and unordered categories.
    counts : ndarray of shape (n_policies,)
        The number of claims of each policy.
    costs : ndarray of shape (n_policies,)
        The total cost of its claims.
    exposure : ndarray of shape (n_policies,)
        The share of a year that it was in force.
    rate : ndarray of shape (n_policies,) or None
        The expected number of claims per year; None where it is not known.
    mean_cost : ndarray of shape (n_policies,) or None
        The expected cost of a claim; None where it is not known.

    See Also
    --------
    skadmm.datasets.make_claims : Simulated policies.
    skadmm.datasets.fetch_claims : Real policies.

    Examples
    --------
    >>> from skadmm.datasets import make_claims
    >>> make_claims(100)._fields
    ('table', 'counts', 'costs', 'exposure', 'rate', 'mean_cost')
    """

    table: pd.DataFrame
    counts: np.ndarray
    costs: np.ndarray
    exposure: np.ndarray
    rate: np.ndarray | None = None
    mean_cost: np.ndarray | None = None

    def __repr__(self) -> str:
        return _summary.fields(self)


def make_claims(n_policies: int = 10_000, *, random_state: int = 0) -> Claims:
    """Simulate car insurance policies whose rates and costs are equal over ranges of levels.

    The number of claims has a Poisson distribution with the rate times the exposure, and each claim costs a gamma
    variable of shape 2. The rate is 0.2 per year times exp of effects: the first six ages of drivers 0.9 and those from
    48 on 0.4, cars of 8 years and more −0.4, the last five of twelve regions 0.35. The mean cost is 1,500 times exp of
    0.5 for drivers under 26 and 0.3 for engines of the three largest powers. The columns have the names of freMTPL2.

    Parameters
    ----------
    n_policies : int
        The number of policies.
    random_state : int
        The seed.

    Returns
    -------
    Claims
        Table, counts, costs and exposure, and the expected rate and cost.

    See Also
    --------
    skadmm.datasets.fetch_claims : Real policies.

    Examples
    --------
    >>> from skadmm.datasets import make_claims
    >>> data = make_claims(500)
    >>> list(data.table.columns), data.counts.shape
    (['DrivAge', 'VehAge', 'VehPower', 'Region'], (500,))
    """
    n = _checks.count(n_policies, "n_policies")
    rng = np.random.default_rng(_checks.count(random_state, "random_state", least=0))
    driver, car, power, region = (rng.integers(0, levels, n) for levels in (40, 20, 9, 12))
    exposure = rng.uniform(0.05, 1.0, n)
    effect = np.select([driver < 6, driver >= 30], [0.9, 0.4], 0.0) - 0.4 * (car >= 8) + 0.35 * (region >= 7)
    rate = np.exp(np.log(0.2) + effect)
    mean_cost = 1500.0 * np.exp(0.5 * (driver < 8) + 0.3 * (power >= 6))
    counts = rng.poisson(rate * exposure)
    costs = np.where(counts > 0, rng.gamma(np.maximum(2.0 * counts, 1.0), mean_cost / 2.0), 0.0)
    names = [f"R{number:02d}" for number in range(12)]
    table = pd.DataFrame(
        {
            "DrivAge": pd.Categorical(driver + 18, range(18, 58), ordered=True),
            "VehAge": pd.Categorical(car, range(20), ordered=True),
            "VehPower": pd.Categorical(power + 4, range(4, 13), ordered=True),
            "Region": pd.Categorical(np.array(names)[region], names),
        }
    )
    return Claims(table, counts.astype(float), costs, exposure, rate, mean_cost)


def fetch_claims(data_home: str | os.PathLike[str] | None = None) -> Claims:
    """Download the French car insurance policies freMTPL2 (678,013 rows) by scikit-learn's ``fetch_openml``.

    Numbers of claims above 4, exposures above one year and costs above 200,000 are set to these values, and claims
    without a cost do not count. Ages, powers, bonus and areas become ordered levels; brand, fuel and region unordered
    ones.

    Parameters
    ----------
    data_home : path, optional
        Where scikit-learn keeps what it downloads; by default its own folder.

    Returns
    -------
    Claims
        Table, counts, costs and exposure.

    Raises
    ------
    DataError
        Where the download fails, or has other columns.

    See Also
    --------
    skadmm.datasets.make_claims : A simulation, for use without a network.

    References
    ----------
    Dutang, C. and Charpentier, A. (2020). CASdatasets: insurance datasets.

    Examples
    --------
    >>> from skadmm.datasets import fetch_claims
    >>> data = fetch_claims()  # doctest: +SKIP
    >>> data.table.shape  # doctest: +SKIP
    (678013, 8)
    """
    return policies(_downloaded(FREQUENCY, data_home), _downloaded(SEVERITY, data_home))


def _downloaded(number: int, data_home: Any) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml(data_id=number, as_frame=True, parser="liac-arff", data_home=data_home).frame
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"freMTPL2 (OpenML {number}) could not be downloaded: {reason}; make_claims() needs no network"
        ) from error


def policies(frequency: pd.DataFrame, severity: pd.DataFrame) -> Claims:
    """The two tables of freMTPL2, joined and cleaned."""
    needed = {"IDpol", "ClaimNb", "Exposure", *COLUMNS}
    for frame, names in ((frequency, needed), (severity, {"IDpol", "ClaimAmount"})):
        missing = sorted(names - set(frame.columns))
        if missing:
            raise DataError(f"the table of freMTPL2 lacks the columns {', '.join(missing)}")
    total = severity["ClaimAmount"].astype(float).groupby(severity["IDpol"].astype(np.int64)).sum()
    costs = total.reindex(frequency["IDpol"].astype(np.int64)).fillna(0.0).to_numpy()
    costs = np.minimum(costs, MAX_COST)
    counts = np.minimum(frequency["ClaimNb"].to_numpy(float), MAX_CLAIMS)
    counts = np.where(costs > 0.0, counts, 0.0)
    exposure = np.minimum(frequency["Exposure"].to_numpy(float), MAX_EXPOSURE)
    table = pd.DataFrame({name: _levels(frequency[name], name) for name in COLUMNS})
    return Claims(table, counts, np.where(counts > 0.0, costs, 0.0), exposure)


def _levels(column: pd.Series, name: str) -> pd.Categorical:
    """A column as levels, ordered where its values are."""
    if name in UNORDERED or name == "Area":
        values = column.astype(str).str.strip("'")
        return pd.Categorical(values, sorted(values.unique()), ordered=name == "Area")
    numbers = column.to_numpy(float).astype(np.int64)
    if name in RANGES:
        numbers = np.clip(numbers, *RANGES[name])
    return pd.Categorical(numbers, np.unique(numbers), ordered=True)
