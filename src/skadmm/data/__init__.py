"""Data: the paper's sets and their substitutes with checks, any svmlight file, built-in and synthetic data."""

from skadmm.data.builtin import BUILTIN, load_builtin
from skadmm.data.catalogue import CATALOGUE, DataSet, Facts
from skadmm.data.fetching import fetch
from skadmm.data.loading import Loaded, load
from skadmm.data.locating import DataError, data_folders, find_file
from skadmm.data.svmlight import read_svmlight
from skadmm.data.synthetic import make_fused_signal, make_graph_classification

__all__ = [
    "BUILTIN",
    "CATALOGUE",
    "DataError",
    "DataSet",
    "Facts",
    "Loaded",
    "data_folders",
    "fetch",
    "find_file",
    "load",
    "load_builtin",
    "make_fused_signal",
    "make_graph_classification",
    "read_svmlight",
]
