"""Tests for every combination of settings: tensorflow.python.framework.combinations and test_combinations.

    @combinations.generate(combinations.combine(mode=["graph", "eager"], size=[1, 2]))
    def testSomething(self, size): ...

runs the test once per combination, in a graph or eagerly as `mode` says.
"""

import collections
import functools
import inspect
import itertools
import re
import sys
import types
import unittest

from runnel.core import framework, v2_switches


def combine(**kwargs):
    """Returns all combinations of the keywords' values, a list of dicts. A value that is no list is a list of one."""
    choices = [[(key, value) for value in (values if isinstance(values, list) else [values])] for key, values in sorted(kwargs.items())]
    return [collections.OrderedDict(one) for one in itertools.product(*choices)]


def times(*combined):
    """Returns every way of taking one combination of each list together. The lists may not share keywords."""
    made = [collections.OrderedDict()]
    for more in combined:
        for one in made[:1]:
            shared = set(one) & {key for other in more for key in other}
            if shared:
                raise ValueError("Keys of combinations overlap: %s" % ", ".join(sorted(shared)))
        made = [collections.OrderedDict({**one, **other}) for one in made for other in more]
    return made


class NamedObject:
    """An object with a name for use in the names of tests."""

    def __init__(self, name, obj):
        self._name, self._obj = name, obj

    def __getattr__(self, name):
        return getattr(self._obj, name)

    def __call__(self, *args, **kwargs):
        return self._obj(*args, **kwargs)

    def __iter__(self):
        return iter(self._obj)

    def __repr__(self):
        return self._name


class ParameterModifier:
    """Changes the arguments of a test before it runs."""

    DO_NOT_PASS_TO_THE_TEST = object()

    def __init__(self, parameter_name=None):
        self._parameter_name = parameter_name

    def modified_arguments(self, kwargs, requested_parameters):
        """Returns a dict of arguments to replace."""
        return {}


class OptionalParameter(ParameterModifier):
    """Drops an argument that the test does not take."""

    def modified_arguments(self, kwargs, requested_parameters):
        if self._parameter_name in kwargs and self._parameter_name not in requested_parameters:
            return {self._parameter_name: ParameterModifier.DO_NOT_PASS_TO_THE_TEST}
        return {}


class TestCombination:
    """Decides whether a combination runs, and the contexts it runs in."""

    def should_execute_combination(self, kwargs):
        """Returns (whether the test runs, why it does not)."""
        return True, None

    def parameter_modifiers(self):
        return []

    def context_managers(self, kwargs):
        return []


class EagerGraphCombination(TestCombination):
    """Runs a test in a graph or eagerly, by the argument `mode`."""

    def context_managers(self, kwargs):
        mode = kwargs.pop("mode", None)
        if mode is None:
            return []
        if mode not in ("eager", "graph"):
            raise ValueError("Argument 'mode' must be either 'eager' or 'graph'. Received: %s." % mode)
        from runnel.alias import test_util
        return [test_util.eager_mode()] if mode == "eager" else [framework.Graph().as_default()]

    def parameter_modifiers(self):
        return [OptionalParameter("mode")]


class TFVersionCombination(TestCombination):
    """Skips a test of the other version, by the argument `tf_api_version`."""

    def should_execute_combination(self, kwargs):
        version = kwargs.pop("tf_api_version", None)
        is_v2 = v2_switches.v2_behavior_enabled()
        if version == 1 and is_v2:
            return False, "Skipping a TF1.x test when TF2 is enabled."
        if version == 2 and not is_v2:
            return False, "Skipping a TF2 test when TF2 is not enabled."
        return True, None

    def parameter_modifiers(self):
        return [OptionalParameter("tf_api_version")]


_DEFAULT = (EagerGraphCombination(), TFVersionCombination())


def _label(combination):
    """Returns the name of a combination; addresses in it are replaced by numbers, so that it is the same in each run."""
    words = [[key, re.sub("0[xX][0-9a-fA-F]+", str(i), str(value))] for i, (key, value) in enumerate(combination.items())]
    return "_test" + "".join("_" + "".join(c for c in word if c.isalnum()) for pair in words for word in pair)


def _generate(combinations, test_combinations):
    """A decorator of a test, or of all tests of a class, that runs it once per combination."""
    from absl.testing import parameterized

    def decorate(decorated):
        if isinstance(decorated, type):
            for name, test in list(vars(decorated).items()):
                if name.startswith(unittest.TestLoader.testMethodPrefix) and isinstance(test, types.FunctionType):
                    delattr(decorated, name)
                    for one in combinations:
                        setattr(decorated, name + _label(one), _bound(_running(test, test_combinations), one))
            return decorated
        named = []
        for one in combinations:
            if not isinstance(one, dict):
                raise ValueError("Combination must be a dict: %r" % (one,))
            named.append(collections.OrderedDict([*one.items(), ("testcase_name", _label(one))]))
        return parameterized.named_parameters(*named)(_running(decorated, test_combinations))
    return decorate


def _bound(test, combination):
    """Returns the test with the arguments of a combination."""
    @functools.wraps(test)
    def run(self):
        return test(self, **combination)
    run.__signature__ = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    run.__name__ = test.__name__ + _label(combination)
    return run


generate = functools.partial(_generate, test_combinations=_DEFAULT)


def _running(test, kinds):
    """Returns the test in the contexts of its combination, with the arguments that it takes."""
    parameters = list(inspect.signature(test).parameters.values())[1:]
    requested = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes_all = getattr(test, "_takes_combination", False)

    @functools.wraps(test)
    def run(self, *args, **kwargs):
        import contextlib
        given = dict(kwargs)
        for kind in kinds:
            is_run, why = kind.should_execute_combination(dict(given))
            if not is_run:
                self.skipTest(why)
        with contextlib.ExitStack() as stack:
            for kind in kinds:
                for manager in kind.context_managers(dict(given)):
                    stack.enter_context(manager)
            for modifier in [m for kind in kinds for m in kind.parameter_modifiers()]:
                for key, value in modifier.modified_arguments(given, list(given) if takes_all else requested).items():
                    if value is ParameterModifier.DO_NOT_PASS_TO_THE_TEST:
                        given.pop(key, None)
                    else:
                        given[key] = value
            missing = [key for key in given if key not in requested] if not takes_all else []
            if missing:
                raise ValueError("The test does not take the parameter %s of its combination" % missing[0])
            test(self, *args, **given)
    run.__signature__ = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
                                           inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    run._takes_combination = True
    return run


class MemoryChecker:
    """A context manager in place of one that looks for leaks: it looks for none."""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None

    def record_snapshot(self):
        """Does nothing."""

    def report(self):
        """Does nothing."""

    assert_no_leak_if_all_possibly_except_one = report

    def assert_no_new_python_objects(self, threshold=None):
        """Does nothing."""


def main():
    """Runs the tests of the program."""
    from runnel import test
    test.main(sys.argv)
