"""Data sets: those of the paper and their substitutes with checksums, svmlight files, built-in and synthetic data."""

from skadmm.backends.svmlight import read_svmlight
from skadmm.datasets.builtin import BUILTIN, load_builtin
from skadmm.datasets.catalogue import CATALOGUE, DataSet, Facts
from skadmm.datasets.claims import Claims, fetch_claims, make_claims
from skadmm.datasets.fetching import fetch
from skadmm.datasets.loading import Loaded, load
from skadmm.datasets.locating import DataError, data_folders, find_file
from skadmm.datasets.synthetic import make_fused_signal, make_graph_classification

__all__ = [
    "BUILTIN",
    "CATALOGUE",
    "Claims",
    "DataError",
    "DataSet",
    "Facts",
    "Loaded",
    "data_folders",
    "fetch",
    "fetch_claims",
    "find_file",
    "load",
    "load_builtin",
    "make_claims",
    "make_fused_signal",
    "make_graph_classification",
    "read_svmlight",
]
