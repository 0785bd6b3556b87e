"""More of tensorflow.python.framework.test_util: decorators without effect here, and checks of graphs."""

import contextlib
import functools
import unittest

from runnel.alias.test_util import _as_it_is

enable_output_all_intermediates = disable_output_all_intermediates = _as_it_is
enable_quantized_dtypes_training = enable_nested_function_shape_inference = _as_it_is


def add_graph_building_optimization_tests(cls):
    """A decorator of a class of tests: each runs a second time, under the name that it has in stock with faster building of graphs.

    There is one way of building graphs here, which is in C.
    """
    for name, value in list(vars(cls).items()):
        if name.startswith("test") and callable(value):
            setattr(cls, name + "WithGraphBuildingOptimization", value)
    return cls


def no_xla_auto_jit(description):
    """A decorator without effect."""
    return lambda decorated: decorated


no_xla_auto_jit_true = no_xla_auto_jit
disable_asan = disable_msan = disable_tsan = disable_ubsan = no_xla_auto_jit


def is_asan_enabled():
    """Tells whether the library was built with a sanitizer: no."""
    return False


is_msan_enabled = is_tsan_enabled = is_ubsan_enabled = is_asan_enabled


def set_xla_env_flag(func=None, flag=""):
    """A decorator without effect."""
    return func if func is not None else lambda function: function


def sync_devices():
    """Waits for devices: the CPU needs none."""


def skip_if(condition):
    """A decorator that skips a test if `condition`, a value or a function, is true."""
    def decorate(function):
        @functools.wraps(function)
        def run(self, *args, **kwargs):
            if condition() if callable(condition) else condition:
                raise unittest.SkipTest("Skipped by skip_if")
            return function(self, *args, **kwargs)
        return run
    return decorate


@contextlib.contextmanager
def skip_if_error(test_obj, error_type, messages=None):
    """A context manager that skips the test if an error of this type, with one of the messages, is raised."""
    wanted = [messages] if isinstance(messages, str) else list(messages or [])
    try:
        yield
    except error_type as error:
        if wanted and not any(message in str(error) for message in wanted):
            raise
        test_obj.skipTest("Skipping error: %s: %s" % (type(error), error))


def run_functions_eagerly(run_eagerly):
    """A context manager: functions run op by op, or not."""
    @contextlib.contextmanager
    def within():
        from runnel import config
        before = config.functions_run_eagerly()
        config.run_functions_eagerly(run_eagerly)
        try:
            yield
        finally:
            config.run_functions_eagerly(before)
    return within()


def get_node_def_from_graph(node_name, graph_def):
    """Returns the node of this name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def assert_ops_in_graph(expected_ops, graph):
    """Returns the nodes with the expected names; raises ValueError if one is missing or has another op."""
    found = {node.name: node for node in graph.as_graph_def().node if node.name in expected_ops}
    for name, op in expected_ops.items():
        if name in found and found[name].op != op:
            raise ValueError("Expected op for node %s is different. %s vs %s" % (name, op, found[name].op))
    if set(expected_ops) != set(found):
        raise ValueError("Not all expected ops are present. Expected %s, found %s" % (expected_ops.keys(), found.keys()))
    return found


def _regrouped(value, shape_of, transpose):
    """Applies a change of layout to a shape, a list, or to a tensor."""
    import runnel as tf
    if isinstance(value, (list, tuple)):
        return shape_of(list(value))
    return transpose(tf, value)


def NHWCToNCHW_VECT_C(input_shape_or_tensor):  # noqa: N802
    """Returns a shape or a tensor with channels in groups of four at the end."""
    def change(tf, x):
        n, *space, c = x.shape.as_list()
        parts = tf.reshape(x, [n, *space, c // 4, 4])
        return tf.transpose(parts, [0, len(space) + 1, *range(1, len(space) + 1), len(space) + 2])
    if (input_shape_or_tensor if isinstance(input_shape_or_tensor, (list, tuple)) else input_shape_or_tensor.shape.as_list())[-1] % 4:
        raise ValueError("NHWC channel dimension must be divisible by 4.")
    return _regrouped(input_shape_or_tensor, lambda s: [s[0], s[-1] // 4, *s[1:-1], 4], change)


def NCHW_VECT_CToNHWC(input_shape_or_tensor):  # noqa: N802
    """Returns a shape or a tensor with channels at the end, where they are in groups of four."""
    def change(tf, x):
        n, groups, *space, c = x.shape.as_list()
        parts = tf.transpose(x, [0, *range(2, len(space) + 2), 1, len(space) + 2])
        return tf.reshape(parts, [n, *space, groups * c])
    return _regrouped(input_shape_or_tensor, lambda s: [s[0], *s[2:-1], s[1] * s[-1]], change)
