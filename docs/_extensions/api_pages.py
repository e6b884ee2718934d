"""Write a page for each public object, and one for each module that lists them, before Sphinx reads the sources."""

import importlib
import inspect
import re
from pathlib import Path

from skadmm import SOLVERS
from skadmm._names import Registry

PAGES = {
    "skadmm": "Problems, solving, paths",
    "skadmm.estimators": "Estimators",
    "skadmm.losses": "Losses",
    "skadmm.regularizers": "Regularisers",
    "skadmm.operators": "Operators",
    "skadmm.solvers": "Methods and solvers",
    "skadmm.plotting": "Plots",
    "skadmm.datasets": "Data sets",
    "skadmm.backends": "Backends",
    "skadmm.paper.theory": "Bounds",
    "skadmm.paper": "The paper's experiments",
}

CLASS_OPTIONS = ":exclude-members: count, index, with_traceback, add_note"
ESTIMATOR_OPTIONS = """:inherited-members: BaseEstimator, ClassifierMixin, RegressorMixin
   :exclude-members: get_metadata_routing, set_fit_request, set_score_request, set_partial_fit_request,
                     set_predict_request, set_predict_proba_request, set_predict_log_proba_request,
                     set_decision_function_request"""


def entries() -> dict[str, list[tuple[str, object]]]:
    """The public names of each page, as (full name, object); each object once."""
    pages: dict[str, list[tuple[str, object]]] = {}
    core = importlib.import_module("skadmm")
    estimators = importlib.import_module("skadmm.estimators")
    for module_name in PAGES:
        module = importlib.import_module(module_name)
        names = getattr(module, "__all__", None) or [
            name for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module_name
        ]  # fmt: skip
        if module_name == "skadmm":
            names = [name for name in names if name not in estimators.__all__]
        found = []
        for name in names:
            shown_in = "skadmm" if module_name == "skadmm.estimators" and name in core.__all__ else module_name
            if (
                module_name not in ("skadmm", "skadmm.estimators")
                and name in core.__all__
                and (getattr(core, name) is getattr(module, name))
            ):
                continue
            found.append((f"{shown_in}.{name}", getattr(module, name)))
        pages[module_name] = found
    return pages


def directive(name: str, value: object) -> str:
    """The directive that documents one name."""
    if inspect.ismodule(value):
        return f"``{name}``: {inspect.getdoc(value).splitlines()[0]}\n"
    if isinstance(value, Registry):
        return f".. py:data:: {name}\n\n   By name: {', '.join(f'``{key}``' for key in value)}.\n"
    if inspect.isclass(value):
        options = ESTIMATOR_OPTIONS if hasattr(value, "fit") else CLASS_OPTIONS
        return f".. autoclass:: {name}\n   :members:\n   {options}\n"
    if callable(value):
        return f".. autofunction:: {name}\n"
    return f".. autodata:: {name}\n   :no-value:\n"


def settings() -> list[str]:
    """The Config of every second-order solver, whose fields ``solve(..., options=...)`` sets."""
    lines = ["Settings of the second-order solvers", "-" * 36, ""]
    lines.append("``solve(problem, name, options={...})`` sets the fields of a solver's Config.\n")
    for name, solver in SOLVERS.items():
        config = solver.Config
        lines += [name, "~" * len(name), "", f"{solver.summary}.", ""]
        lines.append(f".. autoclass:: {config.__module__}.{config.__qualname__}\n   :members:\n")
    return lines


def is_object(value: object) -> bool:
    """Has it a page of its own? Registries, modules and constants are described on the page of their module."""
    return callable(value) and not inspect.ismodule(value)


def summary(value: object) -> str:
    """The first sentence of a docstring."""
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")


def object_page(name: str, value: object) -> str:
    """The page of one object, reStructuredText."""
    title = name.removeprefix("skadmm.")
    return "\n".join([title, "=" * len(title), "", directive(name, value)])


def page(module: str, found: list[tuple[str, object]]) -> str:
    """The page of a module, reStructuredText: a table of its objects, then everything that has no page of its own."""
    title = f"{PAGES[module]}: ``{module}``"
    lines = [title, "=" * len(title), "", inspect.getdoc(importlib.import_module(module)).split("\n")[0], ""]
    objects = [(name, value) for name, value in found if is_object(value)]
    lines += [".. list-table::", "   :widths: 35 65", ""]
    for name, value in objects:
        lines += [f"   * - :doc:`{name.removeprefix('skadmm.')} <{name}>`", f"     - {summary(value)}"]
    lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {name}" for name, _ in objects), ""]
    lines += [directive(name, value) for name, value in found if not is_object(value)]
    if module == "skadmm.solvers":
        lines += settings()
    return "\n".join(lines)


def write(app):
    """Write the pages; an unchanged page is not touched, and one whose object is gone is removed."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    texts = {}
    for module, found in entries().items():
        texts[f"{module}-module.rst"] = page(module, found)
        texts |= {f"{name}.rst": object_page(name, value) for name, value in found if is_object(value)}
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def tidied(app, what, name, value, options, lines):
    """Escape vertical bars, which are absolute values and not substitutions, and drop the numbers of tuple fields."""
    lines[:] = [line for line in lines if not line.startswith("Alias for field number")]
    lines[:] = [re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line) for line in lines]


def setup(app):
    """Connect the extension to Sphinx."""
    app.connect("autodoc-process-docstring", tidied, priority=900)
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True}
