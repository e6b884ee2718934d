"""Every public object is documented by numpydoc's rules, and its examples print what they say."""

import doctest
import inspect
import runpy
import warnings
from enum import Enum
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from numpydoc.validate import ERROR_MSGS, Validator, get_doc_object, validate

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = runpy.run_path(str(DOCS / "_extensions" / "api_pages.py"))["entries"]()
NAMES = sorted(name for found in PAGES.values() for name, value in found if callable(value))
OBJECTS = {name: value for found in PAGES.values() for name, value in found}

LEFT_OUT = {"ES01"}
"""All of numpydoc's rules hold but this one: a summary that says everything needs no second paragraph."""


def without_signature(value):
    """Protocols, enumerations and most exceptions are not made by calling them with documented arguments."""
    return inspect.isclass(value) and (getattr(value, "_is_protocol", False) or issubclass(value, Enum))


class PublicValidator(Validator):
    """numpydoc's validator, on the object itself: a function and its module may have one name."""

    def __init__(self, obj_name):
        super().__init__(get_doc_object(OBJECTS[obj_name]))
        self.value = OBJECTS[obj_name]

    @property
    def signature_parameters(self):
        if without_signature(self.value):
            return ()
        if inspect.isfunction(self.value):  # numpydoc takes a first parameter "cls" for that of a class method
            kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
            parameters = inspect.signature(self.value).parameters.values()
            return tuple(kinds.get(parameter.kind, "") + parameter.name for parameter in parameters)
        return super().signature_parameters


def test_the_rules_that_are_left_out_exist():
    assert set(ERROR_MSGS) >= LEFT_OUT


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_follows_numpydoc(name):
    found = validate(name, validator_cls=PublicValidator)
    assert not [(code, message) for code, message in found["errors"] if code not in LEFT_OUT]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_print_what_they_say(name, tmp_path, monkeypatch):
    """Warnings are errors, and an example leaves no file in the current folder."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(OBJECTS[name]), {"__name__": "__main__"}, name, None, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner.run(test, out=said.append)
    plt.close("all")
    assert not runner.failures, "".join(said)
    assert not list(tmp_path.iterdir())
