"""Each data set: where it comes from, and how a file is recognised as the right one."""

from dataclasses import dataclass, field

from skadmm._names import Registry

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


@dataclass(frozen=True)
class Facts:
    """The content of the right file of a data set; None means unknown, and is not checked.

    Parameters
    ----------
    samples : int
        The number of rows.
    features : int
        The number of columns.
    nonzeros : int or None
        The number of stored entries.
    labels : dict or None
        The number of rows with each label, as written in the file.
    text_sha256 : dict
        By stem of the file's name, the SHA-256 of the uncompressed text. It is the same for every compression.

    See Also
    --------
    skadmm.datasets.DataSet : Has such facts.

    Examples
    --------
    >>> from skadmm.datasets import CATALOGUE
    >>> CATALOGUE["a9a"].facts.labels
    {1.0: 7841, -1.0: 24720}
    """

    samples: int
    features: int
    nonzeros: int | None = None
    labels: dict[float, int] | None = None
    text_sha256: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DataSet:
    """An entry of the catalogue: where a data set comes from, and how its file is recognised.

    A substitute has a name of its own, not that of the set that it replaces.

    Parameters
    ----------
    name : str
        The name that :func:`load` takes.
    facts : Facts
        The content of the right file.
    source : str
        Who made the data.
    licence : str
        Under which terms.
    stems : tuple of str
        Possible file names, without the endings of compression; the first that is found is used.
    layout : str
        The format: "svmlight", "phy" (KDD Cup 2004) or "sido0" (Causality Workbench).
    url : str or None
        A file that can be downloaded without a form.
    by_hand : str or None
        What to download where, for a set that asks for a form or has no public address.
    stands_for : str or None
        The set of the paper that this one replaces, where it is a substitute.
    in_paper : bool
        True for a set of the paper.
    note : str
        Anything else worth knowing.

    See Also
    --------
    skadmm.datasets.load : Reads a set.

    Examples
    --------
    >>> from skadmm.datasets import CATALOGUE
    >>> CATALOGUE["a9a"].facts.samples, CATALOGUE["a9a"].in_paper
    (32561, True)
    """

    name: str
    facts: Facts
    source: str
    licence: str
    stems: tuple[str, ...]
    layout: str = "svmlight"
    url: str | None = None
    by_hand: str | None = None
    stands_for: str | None = None
    in_paper: bool = False
    note: str = ""


CATALOGUE: Registry[DataSet] = Registry("data set")


def _add(name: str, facts: Facts, **known: object) -> None:
    CATALOGUE.add(name, DataSet(name, facts, **known))  # type: ignore[arg-type]


_OF_THE_COLLECTION = (
    "{name} was made for the project's data collection and has no public address. Put {file} "
    "into a folder and point SKADMM_DATA or --data-dir at it"
)

_add(
    "a9a",
    Facts(
        32_561, 123, 451_592, {1.0: 7_841, -1.0: 24_720},
        {"a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
    ),
    source="LIBSVM archive (UCI Adult)",
    licence="CC BY 4.0 (UCI)",
    stems=("a9a.svm", "a9a"),
    url=LIBSVM + "a9a",
    in_paper=True,
)  # fmt: skip
_add(
    "covertype",
    Facts(
        581_012, 54, 6_901_775, {1.0: 297_711, 2.0: 283_301},
        {"covtype": "1c5b96e5367563e1895cb2afe6aab2ef9f15721ace6d1512598fa1368559196c"},
    ),
    source="LIBSVM archive (UCI Covertype)",
    licence="CC BY 4.0 (UCI)",
    stems=("covtype.svm", "covtype.libsvm.binary"),
    url=LIBSVM + "covtype.libsvm.binary.bz2",
    in_paper=True,
    note="unscaled; cover type 2 against the rest",
)  # fmt: skip
_add(
    "quantum",
    Facts(50_000, 78),
    source="KDD Cup 2004, the physics task",
    licence="for research; the site asks for a form",
    stems=("phy_train.dat", "quantum.svm"),
    layout="phy",
    by_hand=(
        "quantum needs a form: register at https://osmot.cs.cornell.edu/kddcup/datasets.html, download "
        "data_kddcup04.tar.gz, and put its phy_train.dat into {folder}"
    ),
    in_paper=True,
    note="missing values (999 and 9999) are read as 0",
)
_add(
    "rcv1",
    Facts(20_242, 47_236, 1_498_952),
    source="LIBSVM archive (Reuters Corpus Volume I, its training part)",
    licence="for research (Reuters)",
    stems=("rcv1_train.binary", "rcv1.svm"),
    url=LIBSVM + "rcv1_train.binary.bz2",
    in_paper=True,
)
_add(
    "sido",
    Facts(12_678, 4_932),
    source="Causality Workbench, SIDO0",
    licence="for research; the site asks for a form",
    stems=("sido0_train.data", "sido.svm"),
    layout="sido0",
    by_hand=(
        "sido needs a form: register at http://www.causality.inf.ethz.ch/data/SIDO.html, download sido0_text.zip, "
        "and put its sido0_train.data and sido0_train.targets into {folder}"
    ),
    in_paper=True,
)
_add(
    "qm9mu",
    Facts(
        50_000, 78, 2_662_613, {1.0: 24_998, -1.0: 25_002},
        {"qm9mu": "d542668ff084418258f464504491ce8dfe3cebead0c3e14eb683ca2bdb874b60"},
    ),
    source="QM9 molecules (MoleculeNet release), 78 RDKit descriptors",
    licence="QM9 and MoleculeNet terms",
    stems=("qm9mu.svm",),
    by_hand=_OF_THE_COLLECTION.format(name="qm9mu", file="qm9mu.svm.xz"),
    stands_for="quantum",
    note="dipole moment above the median or not",
)  # fmt: skip
_add(
    "20ng-ltc",
    Facts(
        18_820, 55_202, 1_680_911, {1.0: 8_820, -1.0: 10_000},
        {"20ng-ltc": "5e1e1eebdabd74104ce3d4621144e31b3ec887a8ab45634103f97aef8a9e85a2"},
    ),
    source="20 Newsgroups, ltc weights",
    licence="public newsgroup posts",
    stems=("20ng-ltc.svm",),
    by_hand=_OF_THE_COLLECTION.format(name="20ng-ltc", file="20ng-ltc.svm.xz"),
    stands_for="rcv1",
    note="comp.* and sci.* against the rest",
)  # fmt: skip
_add(
    "hiv-path4932",
    Facts(
        12_678, 4_932, 6_162_275, {1.0: 469, -1.0: 12_209},
        {"hiv-path4932": "0da7ec87c7d2706ac86f89991a62c99dc998b47c2139496615a0007e36120cda"},
    ),
    source="NCI DTP AIDS screen (MoleculeNet HIV), RDKit path fingerprints",
    licence="public (NCI); MoleculeNet terms",
    stems=("hiv-path4932.svm",),
    by_hand=_OF_THE_COLLECTION.format(name="hiv-path4932", file="hiv-path4932.svm.xz"),
    stands_for="sido",
    note="active molecules against the rest",
)  # fmt: skip
_add(
    "hiva",
    Facts(
        3_845, 1_617, 569_450, {1.0: 135, -1.0: 3_710},
        {"hiva": "66d7401fbb3fde4ae623f55b67fd069960ba4a070ee32596ae64502044509b9d"},
    ),
    source="HIVA, WCCI 2006 performance prediction challenge, its training part",
    licence="for research (challenge)",
    stems=("hiva.svm",),
    by_hand=_OF_THE_COLLECTION.format(name="hiva", file="hiva.svm.xz"),
    stands_for="sido",
)  # fmt: skip
