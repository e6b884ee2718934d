"""Rules of the code's structure, read from its source. The layers are contracts of import-linter in pyproject.toml."""

import ast
import gc
import inspect
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from skadmm.backends import BACKENDS, Backend, FileBackend, LocalBackend, RemoteBackend

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/skadmm"
LONGEST_FUNCTION = 60
"""Lines of a function's body, without its docstring."""
NAMED_TUPLE = {"_replace", "_fields", "_asdict", "_make"}
"""Public in spite of their names."""
THIRD_PARTY = {
    ("kernels/compile.py", "_cache"),  # numba: the cache of a dispatcher …
    ("kernels/compile.py", "_rebuild"),  # … and what it stores
    ("kernels/compile.py", "_reduce"),
    ("paper/runner.py", "_exit"),  # os: documented
    ("paper/runner.py", "_processes"),  # concurrent.futures: no other way to end workers before Python 3.14
    ("estimators/_callbacks.py", "_init_callback_context"),  # scikit-learn: how estimators call callbacks
}
"""Private names of other packages, and the only file that may use each."""

Rule = Callable[[str, ast.Module], Iterator[ast.AST]]


@pytest.fixture(autouse=True, scope="module")
def no_garbage():
    """What earlier tests left may not be collected while a file is parsed: Python 3.11 then miscounts its recursion."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def no_remote_attribute(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """Nobody asks a problem whether it is remote: backends have capabilities."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "remote")


def no_storage_sniffing(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """Only backends and kernels know the classes of rows."""
    if path.startswith(("backends/", "kernels/")):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {ast.unparse(part).split(".")[-1] for part in ast.walk(node.args[1]) if isinstance(part, ast.expr)}
            if any(name.endswith("Rows") for name in names):
                yield node


def no_object_new(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """Objects are made by their classes, so that none is half made."""
    return (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "__new__" and ast.unparse(node.value) == "object"
    )


def no_private_access(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """Private attributes are used on ``self``, ``cls``, ``super()`` and the classes of the same file."""
    own = {"self", "cls", "super()"} | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if node.attr in NAMED_TUPLE or (path, node.attr) in THIRD_PARTY or ast.unparse(node.value) in own:
            continue
        yield node


def no_private_imports(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """Private functions and classes are used in their own file; private modules may be imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skadmm"):
            folder = ROOT / "src" / (node.module or "").replace(".", "/")
            for alias in node.names:
                private = alias.name.startswith("_") and not alias.name.startswith("__")
                if private and not (folder / f"{alias.name}.py").exists():
                    yield node


def no_forwarding_classes(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """A class lists its methods: ``__getattr__`` hides them from readers and type checkers."""
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef):
            yield from (node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__")


def no_long_functions(path: str, tree: ast.Module) -> Iterator[ast.AST]:
    """A function fits on a screen."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            if (node.end_lineno or 0) - body[0].lineno + 1 > LONGEST_FUNCTION:
                yield node


RULES: list[Rule] = [
    no_remote_attribute,
    no_storage_sniffing,
    no_object_new,
    no_private_access,
    no_private_imports,
    no_forwarding_classes,
    no_long_functions,
]


def broken_at(rule: Rule, path: str, source: str) -> list[int]:
    """The lines at which a file breaks a rule."""
    return sorted(getattr(node, "lineno", 0) for node in rule(path, ast.parse(source)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule):
    broken = {}
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        if lines := broken_at(rule, path, file.read_text(encoding="utf-8")):
            broken[path] = lines
    assert not broken, rule.__doc__


def test_the_files_that_rules_name_exist():
    named = {path for path, _ in THIRD_PARTY}
    assert not [path for path in named if not (SOURCE / path).is_file()]


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (no_remote_attribute, "def f(problem):\n    return problem.remote"),
        (no_storage_sniffing, "isinstance(rows, CSRRows)"),
        (no_storage_sniffing, "isinstance(rows, (int, rows_module.DenseRows))"),
        (no_object_new, "made = object.__new__(Problem)"),
        (no_private_access, "def f(engine):\n    return engine._polish"),
        (no_private_access, "self.solver._split"),
        (no_private_imports, "from skadmm.plotting.convergence import _pyplot"),
        (no_forwarding_classes, "class Proxy:\n    def __getattr__(self, name): ..."),
        (no_long_functions, "def f():\n    '''Text.'''\n" + "    x = 1\n" * (LONGEST_FUNCTION + 1)),
    ],
)
def test_a_rule_finds_what_it_forbids(rule, source):
    assert broken_at(rule, "run/made_up.py", source)


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (
            no_private_access,
            "class A:\n  def f(self):\n    return self._x, super()._x, A._x, self.t._replace(a=1)",
        ),
        (no_private_imports, "from skadmm import _cancel\nfrom skadmm.regularizers import _base"),
        (no_long_functions, "def f():\n    '''Text.'''\n" + "    x = 1\n" * LONGEST_FUNCTION),
    ],
)
def test_a_rule_passes_what_it_allows(rule, source):
    assert not broken_at(rule, "run/made_up.py", source)


# -- imports ---------------------------------------------------------------------------------------------------------


def test_no_module_imports_itself_through_others():
    """Also inside functions and for type checkers."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("skadmm", cache_dir=None)
    imports = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    while loose := [
        module
        for module, others in imports.items()
        if not others & imports.keys() or not any(module in several for several in imports.values())
    ]:
        for module in loose:
            del imports[module]
    assert not imports, "each of these imports another of them, and is imported by another"


def test_no_test_imports_another_test():
    """What tests share is in ``tests/support``."""
    tests = {file.stem for file in (ROOT / "tests").rglob("test_*.py")}
    for file in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not tests & {name.split(".")[0] for name in named}, file.name


# -- backends --------------------------------------------------------------------------------------------------------


def members_of(protocol: type) -> dict[str, object]:
    """Attributes, properties and methods of a Protocol and of those it extends."""
    members: dict[str, object] = {}
    for cls in reversed(protocol.__mro__):
        if getattr(cls, "_is_protocol", False) and cls.__module__.startswith("skadmm"):
            members |= dict.fromkeys(inspect.get_annotations(cls))
            members |= {name: value for name, value in vars(cls).items() if not name.startswith("_")}
    return members


def parameters_of(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    """Names, kinds and defaults. Types are compared by mypy, where a backend is opened."""
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def dask_backend() -> type:
    pytest.importorskip("distributed")
    from skadmm.backends.dask.backend import DaskBackend

    return DaskBackend


def process_backend() -> type:
    from skadmm.backends.processes.backend import ProcessBackend

    return ProcessBackend


@pytest.mark.parametrize(
    ("backend", "protocol"),
    [
        (lambda: LocalBackend, Backend),
        (lambda: FileBackend, Backend),
        (dask_backend, Backend),
        (dask_backend, RemoteBackend),
        (process_backend, Backend),
        (process_backend, RemoteBackend),
    ],
    ids=["memory", "files", "dask", "dask-remote", "processes", "processes-remote"],
)
def test_backends_have_every_member_of_the_protocol(backend, protocol):
    """Attributes set in ``__init__`` are looked for in its source, and in that of the classes it extends."""
    backend = backend()
    assigned = {
        node.attr
        for cls in backend.__mro__
        if "__init__" in vars(cls) and cls.__module__.startswith("skadmm")
        for node in ast.walk(ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    members = members_of(protocol)
    assert len(members) > 20
    for name, member in members.items():
        assert hasattr(backend, name) or name in assigned, name
        if inspect.isfunction(member):
            assert parameters_of(getattr(backend, name)) == parameters_of(member), name


def test_backends_are_recognised_in_order():
    """The last one added is tried first, so the backend in memory, which takes everything, is the first one added."""
    assert next(iter(BACKENDS)) == "memory"
    for X, name in ((np.eye(2), "memory"), ("folder", "files"), (Path("folder"), "files")):
        assert [key for key, kind in BACKENDS.items() if kind.recognises(X)][-1] == name


MAX_FILES, MAX_SWITCHES = 52, 180
"""Bounds of the way from ``fit`` to ``coef_``, a little above what ``python benchmarks/walk.py`` prints (52 and 179).
Version 0.1.0 had 54 files and 194 switches."""


def test_the_way_from_fit_to_coef_is_short(monkeypatch):
    """What a model does not use is not visited, and calls into one file follow one another."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    walk = runpy.run_path(str(ROOT / "benchmarks" / "walk.py"))
    files = [file for file, _ in dict.fromkeys(walk["calls_of_a_fit"]())]
    assert len(set(files)) <= MAX_FILES
    assert walk["switches"](files) <= MAX_SWITCHES
