"""Decorators and helpers of TensorFlow's own tests (tensorflow.python.framework.test_util).

Each test runs in graph mode with a graph of its own. Tests that ask for eager execution (`eager_mode`) get it.
"""

import contextlib
import functools
import unittest

from runnel import test
from runnel.alias.eager_names import TF_PickUnusedPortOrDie as pick_unused_port  # noqa: F401
from runnel.core import framework, gradients_impl, v2_switches
from runnel.eager import backprop, context as eager
from runnel.graph import graph_stack
from runnel.test import (  # noqa: F401
    gpu_device_name, is_built_with_rocm, is_cpu_target_available, is_gpu_available)

TensorFlowTestCase = test.TestCase


def _graph_only(function):
    @functools.wraps(function)
    def run(self, *args, **kwargs):
        if not framework.executing_eagerly():
            return function(self, *args, **kwargs)
        with framework.get_default_graph().as_default():  # the same one in setUp and in the test
            return function(self, *args, **kwargs)
    return run


def _each_test(decorator):
    """Makes a decorator of functions also accept a class, and then decorate all its tests."""
    def decorate(decorated=None):
        if not isinstance(decorated, type):
            return decorator(decorated)
        for name in dir(decorated):
            function = getattr(decorated, name)
            if name.startswith(unittest.TestLoader.testMethodPrefix) and name != "test_session" and callable(function):
                setattr(decorated, name, decorator(function))
        return decorated
    return decorate


def for_all_test_methods(decorator, *args, **kwargs):
    """Returns a decorator of classes that decorates each test with `decorator(*args, **kwargs)`."""
    return _each_test(lambda function: decorator(*args, **kwargs)(function))


def _set_up_in_graph(function):
    @functools.wraps(function)
    def run(self):
        graph_stack._stack.graphs.clear()
        framework.reset_default_graph()
        self._set_up_graph = framework.get_default_graph()
        with self._set_up_graph.as_default():
            function(self)
    return run


def deprecated_graph_mode_only(func=None):
    """A decorator for a test, or a class with its setUp, that builds a graph."""
    if isinstance(func, type) and "setUp" in vars(func):
        func.setUp = _set_up_in_graph(func.setUp)
    return _with_options(_each_test(_graph_only), func)


run_deprecated_v1 = deprecated_graph_mode_only
run_all_in_deprecated_graph_mode_only = run_deprecated_v1


def run_v1_only(reason=None, func=None):
    """A decorator for a test of 1.x behaviour: it runs in graph mode, and is skipped with 2.x behaviour."""
    decorator = _each_test(unittest.skip("for TensorFlow 1 behaviour")) if v2_switches.v2_behavior_enabled() else run_deprecated_v1
    return _with_options(decorator, reason if not isinstance(reason, str) else func)


def run_v2_only(reason=None, func=None):
    """A decorator for a test of 2.x behaviour: it is skipped with 1.x behaviour."""
    decorator = _as_it_is if v2_switches.v2_behavior_enabled() else _each_test(unittest.skip("for TensorFlow 2 behaviour"))
    return _with_options(decorator, reason if not isinstance(reason, str) else func)


def _with_options(decorator, decorated):
    return decorator if decorated is None else decorator(decorated)


def _both_modes(function):
    @functools.wraps(function)
    def run(self, *args, **kwargs):
        with framework.Graph().as_default(), self.session(use_gpu=kwargs.get("use_gpu", False)):
            function(self, *args, **kwargs)
        self.tearDown()
        self._temporary = None
        self.setUp()
        with eager_mode():
            function(self, *args, **kwargs)
    return run


def run_in_graph_and_eager_modes(func=None, config=None, use_gpu=True, assert_no_eager_garbage=False):
    """A decorator that runs a test twice: in a graph with a session, and eagerly."""
    return _with_options(_each_test(_both_modes), func)


run_all_in_graph_and_eager_modes = run_in_graph_and_eager_modes


@contextlib.contextmanager
def eager_mode():
    """A context manager: eager execution."""
    eager.start()
    with framework._DefaultGraph(None):
        yield


def graph_mode():
    """A context manager: a new graph."""
    return framework.Graph().as_default()


def num_gpus():
    """Returns the number of GPUs."""
    return 0


def _as_it_is(*args, **kwargs):
    """A decorator that changes nothing, with or without arguments."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


def matmul_without_tf32(a, b, *args, **kwargs):
    """tf.matmul, which has the precision of its type on the CPU."""
    from runnel.ops import math_ops
    return math_ops.matmul(a, b, *args, **kwargs)


disable_xla = disable_mlir_bridge = disable_tfrt = disable_all_xla = disable_mlir_bridge_for_tests = _as_it_is
run_without_tensor_float_32 = run_all_without_tensor_float_32 = xla_allow_fallback = _as_it_is
disable_control_flow_v2 = enable_control_flow_v2 = build_as_function_and_v1_graph = _as_it_is
enable_all_control_flow_v2 = disable_all_control_flow_v2 = with_control_flow_v2 = _as_it_is
assert_no_new_tensors = assert_no_garbage_created = assert_no_new_pyobjects_executing_eagerly = _as_it_is
with_eager_op_as_function = disable_eager_op_as_function = enable_eager_op_as_function = run_in_async_and_sync_mode = _as_it_is
disable_cudnn_autotune = enable_output_all_intermediates = _as_it_is


def is_mlir_bridge_enabled():
    """Returns None: there is none."""


class InstallStackTraceHandler:
    """Does nothing: errors of C code come as statuses."""


def _skipped(*args, **kwargs):
    skip = unittest.skip("There is no GPU")
    return skip(args[0]) if len(args) == 1 and callable(args[0]) else skip


run_cuda_only = run_gpu_only = run_gpu_or_tpu = _skipped


IsMklEnabled = IsBuiltWithROCm = IsBuiltWithNvcc = is_xla_enabled = is_built_with_rocm
IsCPUTargetAvailable = is_cpu_target_available
GpuSupportsHalfMatMulAndConv = is_gpu_available


@contextlib.contextmanager
def use_gpu(use_gpu=True):
    """A context manager that does nothing."""
    yield


force_gpu = force_cpu = device = deterministic_ops = use_gpu


def also_run_as_tf_function(f):
    """A decorator of a test that runs it eagerly, then in a tf.function."""
    @functools.wraps(f)
    def run(*args, **kwargs):
        from runnel.eager.def_function import function
        f(*args, **kwargs)
        function(lambda: [f(*args, **kwargs), None][1], autograph=False)()
    return run


class random_seed:  # noqa: N801  a module in TensorFlow
    """The function of tensorflow.python.framework.random_seed that tests reach through test_util."""

    @staticmethod
    def set_seed(seed):
        """Sets the seed of operations."""
        from runnel.ops.random_ops import set_random_seed
        set_random_seed(seed)


class TestDelta:
    """Compares counters by name with their values when it was made."""

    def __init__(self):
        self._before = {}

    def Get(self, name, label=""):  # noqa: N802
        """Returns how much a counter grew."""
        return 0


def with_forward_compatibility_horizons(*horizons):
    """A decorator that changes nothing: no behaviour depends on the day."""
    return _as_it_is


def set_producer_version(graph, producer_version):
    """Gives a graph without nodes the version of its producer."""
    from runnel.core import graph_io
    from runnel.core.protobuf import GraphDef
    graph_def = GraphDef()
    graph_def.versions.producer = producer_version
    with graph.as_default():
        graph_io.import_graph_def(graph_def)
    assert graph.graph_def_versions.producer == producer_version


def assert_meta_graph_protos_equal(tester, a, b):
    """Asserts that two MetaGraphDefs are equal, apart from random names of checkpoint parts and the order of nodes."""
    from runnel.test import assert_equal_graph_def
    tester.assertEqual(sorted(a.collection_def), sorted(b.collection_def))
    for key in a.collection_def:
        tester.assertEqual(a.collection_def[key], b.collection_def[key])
    assert_equal_graph_def(a.graph_def, b.graph_def, checkpoint_v2=True)
    tester.assertEqual(a.graph_def.versions, b.graph_def.versions)
    for meta in (a, b):
        meta.ClearField("collection_def")
        meta.ClearField("graph_def")
    tester.assertEqual(a, b)


class AbstractGradientTape:
    """A context manager that gives gradients by a tape, or by tf.gradients."""

    def __init__(self, use_tape, persistent=False):
        self._tape = backprop.GradientTape(persistent=persistent) if use_tape else None

    def __enter__(self):
        return self if self._tape is None else self._tape.__enter__()

    def __exit__(self, *error):
        if self._tape is not None:
            self._tape.__exit__(*error)

    def watch(self, x):
        """Does nothing: a graph has a path from every tensor."""

    def gradient(self, ys, xs):
        """Returns the gradient of the sum of `ys`, as a tape does: one tensor for one of `xs`, or a list."""
        found = gradients_impl.gradients(ys, xs)
        return found if isinstance(xs, (list, tuple)) else found[0]


def NHWCToNCHW(value):
    """Converts shapes or tensors of images from channels last to channels first."""
    return _move(value, {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)})


def NCHWToNHWC(value):
    """Converts shapes or tensors of images from channels first to channels last."""
    return _move(value, {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)})


def _move(value, orders):
    from runnel.ops import array_ops
    if isinstance(value, framework.Tensor):
        return array_ops.transpose(value, orders[value.shape.ndims])
    return [value[i] for i in orders[len(value)]]
