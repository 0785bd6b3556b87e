"""autograph.free_variables, which tensorflow.core.function.capture.free_vars_detect is: what functions use of their surroundings."""

import functools
import math
import sys
import os

from both import ROOT

sys.path.insert(0, os.path.join(ROOT, "python"))

from runnel.autograph import free_variables  # noqa: E402

factor = 3


def names(function):
    return {name: [variable.name for variable in found] for name, found in free_variables._detect_function_free_vars(function).items()}


def scaled(x):
    return math.floor(x) * factor


class Model:
    bias = 1

    def apply(self, x):
        return self.scale(x) + self.bias + len([x for _ in range(2)])

    def scale(self, x):
        return scaled(x)

    def maker(self):
        def inner(x):
            return self.bias + x
        return inner


def test_functions_are_followed():
    x = 2

    def outer(y, z=x):
        local = y + z
        return scaled(local) + x
    assert names(outer) == {"outer": ["scaled", "x"], "scaled": ["factor"]}
    half = lambda y: y / factor  # noqa: E731
    assert names(half) == {"half": ["factor"]}
    assert names(lambda y: y) == {}


def test_attributes_of_self_are_variables():
    assert names(Model().apply) == {"Model.apply": ["self.bias", "self.scale"], "Model.scale": ["scaled"], "scaled": ["factor"]}
    assert names(Model().maker()) == {"inner": ["self", "self.bias"]}


def test_reports_once_and_shortens():
    a = b = c = 1

    def f(x):
        return a + b + c + scaled(x)
    report = free_variables.generate_free_var_logging(functools.partial(f, 1), fn_threshold=1, var_threshold=2)
    assert report.split("\n")[2:] == ["Inside function f(): a, b...", "..."]
    assert free_variables.generate_free_var_logging(f) is None
    assert free_variables.generate_free_var_logging(Model()) is None
