"""Binary classification data that scikit-learn includes, so that nothing has to be downloaded."""

from collections.abc import Callable

import numpy as np

from skadmm._names import Registry

BUILTIN: Registry[Callable[[], tuple[np.ndarray, np.ndarray]]] = Registry("built-in data set")


def _breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """569 × 30: benign (+1) or malignant tumours."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return np.asarray(data.data, dtype=float), np.where(data.target == 1, 1.0, -1.0)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 × 64: odd (+1) or even digits, from pixels in 0 … 1."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return np.asarray(data.data, dtype=float) / 16.0, np.where(data.target % 2 == 1, 1.0, -1.0)


BUILTIN.add("breast-cancer", _breast_cancer)
BUILTIN.add("digits", _digits)


def load_builtin(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load one of the data sets of scikit-learn as a problem of two classes.

    Parameters
    ----------
    name : {"breast-cancer", "digits"}
        The name of the set.

    Returns
    -------
    X : ndarray of shape (n, d)
        The rows.
    target : ndarray of shape (n,)
        The classes, −1 and +1.

    See Also
    --------
    skadmm.datasets.load : Loads these and other sets.

    Examples
    --------
    >>> from skadmm.datasets import load_builtin
    >>> X, target = load_builtin("breast-cancer")
    >>> X.shape
    (569, 30)
    """
    return BUILTIN[name]()
