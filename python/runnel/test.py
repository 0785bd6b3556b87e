"""tf.test: unit tests of graphs."""

import collections.abc
import contextlib
import functools
import os
import random
import tempfile
import threading
import unittest
import unittest.mock

from runnel import _core, errors
from runnel.core import framework, session as session_lib
from runnel.core.session import Session
from runnel.graph import default_graph, graph_stack

mock = unittest.mock
_temp_dir = None
_clusters = []


def get_temp_dir():
    """Returns a folder for the files of tests."""
    global _temp_dir
    if _temp_dir is None:
        _temp_dir = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    return _temp_dir


def main(argv=None):
    """Runs the tests of the program, with absl's runner and its flags if absl is installed."""
    try:
        from absl.testing import absltest
    except ImportError:
        return unittest.main(argv=argv)
    return absltest.main(argv=argv)


def is_built_with_cuda():
    """Tells whether this installation can use NVIDIA GPUs here: its CUDA part and a GPU are found."""
    from runnel import config
    return bool(config.list_physical_devices("GPU"))


def is_built_with_rocm():
    """Returns False: AMD's GPUs are not supported."""
    return False


def is_built_with_xla():
    """Returns False: XLA is not part of this library."""
    return False


is_built_with_gpu_support = is_built_with_cuda


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Tells whether there is a GPU, of at least this compute capability."""
    from runnel import config
    details = [config.get_device_details(gpu) for gpu in config.list_physical_devices("GPU")]
    least = min_cuda_compute_capability or (0, 0)
    return any(row.get("compute_capability", (0, 0)) >= tuple(least) for row in details)


def gpu_device_name():
    """Returns the name of the first GPU, or "" if there is none."""
    from runnel import config
    return next((gpu.name for gpu in config.list_logical_devices("GPU")), "")


def test_src_dir_path(relative_path):
    """Returns the path of a source file."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), relative_path)


def is_cpu_target_available(target):
    """Tells whether code can be compiled for another processor."""
    return False


def disable_with_predicate(pred, skip_message):
    """A decorator that skips the test if `pred()` is true."""
    def decorate(function):
        @functools.wraps(function)
        def run(self, *args, **kwargs):
            if pred():
                self.skipTest(skip_message)
            return function(self, *args, **kwargs)
        return run
    return decorate


def with_eager_op_as_function(cls=None, only_as_function=False):
    """Returns the class unchanged: eager ops do not run as functions here."""
    return (lambda c: c) if cls is None else cls


def assert_equal_graph_def(actual, expected, checkpoint_v2=False, hash_table_shared_name=False):
    """Fails unless two GraphDefs have the same nodes, in any order."""
    if type(actual) is not type(expected):
        raise TypeError("Expected tf.GraphDef for actual and expected, got %s and %s" % (
            type(actual).__name__, type(expected).__name__))
    rows = [{node.name: str(node) for node in graph.node} for graph in (actual, expected)]
    if rows[0] != rows[1]:
        names = sorted(name for name in set(rows[0]) | set(rows[1]) if rows[0].get(name) != rows[1].get(name))
        raise AssertionError("The graphs differ in: %s" % ", ".join(names[:20]))


def benchmark_config():
    """Returns the ConfigProto for benchmarks."""
    from runnel.core.protobuf import message_class
    return message_class("ConfigProto")()


def create_local_cluster(num_workers, num_ps, protocol="grpc", worker_config=None, ps_config=None):
    """Starts a cluster in this process. Returns (workers, parameter servers)."""
    import socket

    from runnel.train import server_lib
    sockets = [socket.socket() for _ in range(num_workers + num_ps)]
    for one in sockets:  # bound until the servers listen, so that no other program gets the ports
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("localhost", 0))
    addresses = ["localhost:%d" % one.getsockname()[1] for one in sockets]
    jobs = {"worker": addresses[:num_workers], "ps": addresses[num_workers:]}
    cluster = server_lib.ClusterSpec({job: rows for job, rows in jobs.items() if rows})
    servers = tuple([server_lib.Server(cluster, job_name=job, task_index=i, protocol=protocol, config=config, start=True)
                  for i in range(count)]
                    for job, count, config in (("worker", num_workers, worker_config), ("ps", num_ps, ps_config)))
    for one in sockets:
        one.close()
    _clusters.append(servers)  # keep the servers alive until the process ends
    return servers


class StubOutForTesting:
    """Replaces attributes temporarily."""

    def __init__(self):
        self._before = []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.CleanUp()

    def CleanUp(self):
        """Restores all attributes."""
        self.SmartUnsetAll()
        self.UnsetAll()

    def Set(self, parent, child_name, new_child):
        """Replaces an attribute."""
        self._before.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    SmartSet = Set

    def UnsetAll(self):
        """Restores the attributes that Set replaced."""
        for parent, name, value in reversed(self._before):
            setattr(parent, name, value)
        self._before = []

    SmartUnsetAll = UnsetAll


class Benchmark:
    """The base of benchmark classes: their methods begin with "benchmark"."""

    def report_benchmark(self, iters=None, cpu_time=None, wall_time=None, throughput=None, extras=None, name=None, metrics=None):
        """Prints one result."""
        row = [("iters", iters), ("cpu_time", cpu_time), ("wall_time", wall_time), ("throughput", throughput)]
        row += sorted((extras or {}).items())
        print("%s: %s" % (name or type(self).__name__, ", ".join("%s %s" % pair for pair in row if pair[1] is not None)))

    def run_op_benchmark(self, sess, op_or_tensor, feed_dict=None, burn_iters=2, min_iters=10, store_trace=False,
                         store_memory_usage=True, name=None, extras=None, mbs=0):
        """Times an operation in a session and reports the result."""
        import time
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict=feed_dict)
        times = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(op_or_tensor, feed_dict=feed_dict)
            times.append(time.perf_counter() - start)
        median = sorted(times)[len(times) // 2]
        self.report_benchmark(iters=min_iters, wall_time=median, extras=extras, name=name)
        return {"iters": min_iters, "wall_time": median, "extras": extras or {}, "name": name}

    def evaluate(self, tensors):
        """Returns the values of tensors in the default session."""
        return session_lib.get_default_session().run(tensors)


class _Place:
    """A file or a folder of a test."""

    def __init__(self, full_path):
        self.full_path = full_path

    def __fspath__(self):
        return self.full_path

    def read_text(self, encoding="utf8"):
        with open(self.full_path, encoding=encoding) as stream:
            return stream.read()

    def create_file(self, file_path=None, content=None, mode="w"):
        """Creates a file in the folder."""
        path = os.path.join(self.full_path, file_path or "file%d" % len(os.listdir(self.full_path)))
        with open(path, mode) as stream:
            if content:
                stream.write(content)
        return _Place(path)


class _Captured:
    def __init__(self, path, stream):
        self._path, self._stream = path, stream

    def contents(self):
        self._stream.flush()
        with open(self._path, "rb") as stream:
            return stream.read().decode()


class _EagerSession:
    """The result of `with self.session() as sess` in eager execution."""

    def __init__(self, case):
        self._case = case

    def run(self, fetches, *args, **kwargs):
        return self._case.evaluate(fetches)


def _value_of(tensor):
    """Returns the value of an eager tensor; that of a composite tensor has arrays for tensors."""
    from runnel.core import composite
    if isinstance(tensor, composite.SparseTensor):
        return composite.SparseTensorValue(*(_value_of(part) for part in (tensor.indices, tensor.values, tensor.dense_shape)))
    if isinstance(tensor, composite.IndexedSlices):
        return composite.IndexedSlicesValue(_value_of(tensor.values), _value_of(tensor.indices), _value_of(tensor.dense_shape))
    if hasattr(tensor, "nested_row_splits") and hasattr(tensor, "flat_values"):
        from runnel.ragged.ragged_tensor import RaggedTensorValue
        return RaggedTensorValue(_value_of(tensor.values), _value_of(tensor.row_splits))
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def _is_ragged(a, b):
    """Tells whether lists must be compared element by element, because they do not form numeric arrays."""
    import numpy as np
    for value in (a, b):
        if any(isinstance(x, (dict, framework.Tensor)) or hasattr(x, "_asdict") or hasattr(x, "_as_graph_element") for x in value):
            return True
        try:
            if np.asarray(value).dtype == object:
                return True
        except ValueError:
            return True
    return False


class _CheckedThread:
    """A thread that raises its exception when it is joined."""

    def __init__(self, target, args, kwargs):
        self._call = target, args or (), kwargs or {}
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        target, args, kwargs = self._call
        try:
            target(*args, **kwargs)
        except Exception as error:
            self._error = error

    def start(self):
        self._thread.start()

    def join(self):
        self._thread.join()
        if self._error is not None:
            raise AssertionError("Error in checkedThread: %s" % self._error) from self._error

    def is_alive(self):
        return self._thread.is_alive()

    def check_termination(self):
        if self._thread.is_alive():
            raise AssertionError("Thread was not joined with main thread, and is still running when the test finished.")


class TestCase(unittest.TestCase):
    """A test case with a session and comparisons of arrays."""

    def __init__(self, methodName="runTest"):  # noqa: N803
        super().__init__(methodName)
        self._cached, self._threads, self._temporary = None, [], None
        self._set_up_graph = None  # the graph in which setUp runs, if a decorator of the class has made one

    def setUp(self):
        super().setUp()
        if self._testMethodName == "test_session":  # test runners collect it because of its name
            self.skipTest("Not a test.")
        in_graph = default_graph._eager_enabled and not framework.executing_eagerly()
        if graph_stack._stack.graphs != [self._set_up_graph]:  # what earlier tests have left
            graph_stack._stack.graphs.clear()
            _core.set_current(False)
            framework.reset_default_graph()
            if in_graph:  # the program executes eagerly but was inside a graph: continue in the new graph
                _core.set_current(framework.get_default_graph())
        if framework.executing_eagerly():
            from runnel.eager import context as eager
            eager.set_seed(87654321)
        else:
            framework.get_default_graph().seed = 87654321
        random.seed(87654321)
        import numpy
        numpy.random.seed(87654321)

    def tearDown(self):
        for thread in self._threads:
            thread.check_termination()
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        super().tearDown()

    def get_temp_dir(self):
        """Returns a folder of this test; it is the same at every call."""
        if self._temporary is None:
            self._temporary = tempfile.mkdtemp(dir=get_temp_dir())
        return self._temporary

    def create_tempdir(self, name=None):
        """Creates a folder in it; `full_path` is its path."""
        path = tempfile.mkdtemp(dir=self.get_temp_dir()) if name is None else os.path.join(self.get_temp_dir(), name)
        os.makedirs(path, exist_ok=True)
        return _Place(path)

    def create_tempfile(self, file_path=None, content=None, mode="w", encoding="utf8", errors="strict"):
        """Creates a file in it; `full_path` is its path."""
        path = os.path.join(self.get_temp_dir(), file_path or "file%d" % len(os.listdir(self.get_temp_dir())))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        is_text = "b" not in mode
        with open(path, mode, encoding=encoding if is_text else None, errors=errors if is_text else None) as stream:
            if content:
                stream.write(content)
        return _Place(path)

    def enter_context(self, manager):
        """Enters a context until the test ends."""
        result = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return result

    @contextlib.contextmanager
    def session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """A context manager: a session on `graph` or the default graph."""
        if framework.executing_eagerly():
            yield _EagerSession(self)
            return
        with (graph or framework.get_default_graph()).as_default(), Session(graph=graph, config=config) as sess:
            yield sess

    @contextlib.contextmanager
    def cached_session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """A context manager: the test's one session, so variables keep their values between blocks."""
        if framework.executing_eagerly():
            yield _EagerSession(self)
            return
        if self._cached is None:
            self._cached = Session(graph=graph, config=config)
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    def test_session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """Like `session` if a graph is given, else like `cached_session`."""
        make = self.cached_session if graph is None else self.session
        return make(graph, config, use_gpu, force_gpu)

    def evaluate(self, tensors):
        """Returns the values of tensors in the default session; in eager execution also those that a function returns."""
        if framework.executing_eagerly():
            from runnel import nest
            return self.evaluate(tensors()) if callable(tensors) else nest.map_structure(_value_of, tensors)
        sess = session_lib.get_default_session()
        if sess is None:
            with self.cached_session() as sess:
                return sess.run(tensors)
        return sess.run(tensors)

    def checkedThread(self, target, args=None, kwargs=None):
        """Returns a thread that the test must join; joining it raises its exception."""
        thread = _CheckedThread(target, args, kwargs)
        self._threads.append(thread)
        return thread

    @contextlib.contextmanager
    def captureWritesToStream(self, stream):
        """A context manager that captures what is written to a stream; `.contents()` of its value returns it."""
        path = os.path.join(self.get_temp_dir(), "captured%d" % len(os.listdir(self.get_temp_dir())))
        stream.flush()
        number, kept = stream.fileno(), os.dup(stream.fileno())
        with open(path, "w+b") as out:
            os.dup2(out.fileno(), number)
            try:
                yield _Captured(path, stream)
            finally:
                stream.flush()
                os.dup2(kept, number)
                os.close(kept)

    def _array(self, value):
        import numpy as np
        if isinstance(value, _core.EagerTensor):
            value = value.numpy()
        elif isinstance(value, framework.Tensor) or hasattr(value, "_as_graph_element"):
            value = self.evaluate(value)
        elif isinstance(value, (list, tuple)) and any(isinstance(x, framework.Tensor) for x in value):
            value = self.evaluate(list(value))
        try:
            return np.asarray(value)
        except ValueError as error:
            if "inhomogeneous shape" not in str(error):
                raise
            return np.array(value, dtype=object)

    _GetNdArray = _array

    def _rows(self, value):
        """Converts rows of any lengths to lists of lists."""
        is_tensor = hasattr(value, "flat_values") and not isinstance(value, tuple) or isinstance(value, framework.Tensor)
        value = self.evaluate(value) if is_tensor else value
        if hasattr(value, "to_list"):
            return value.to_list()
        if hasattr(value, "tolist"):
            return value.tolist()
        return [self._rows(x) if isinstance(x, list) or getattr(x, "shape", ()) else x for x in value]

    def evaluate_if_both_tensors(self, a, b):
        """Evaluates both if both are tensors; else returns them unchanged."""
        if isinstance(a, framework.Tensor) and isinstance(b, framework.Tensor):
            return self.evaluate([a, b])
        return a, b

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Asserts that nested arrays are nearly equal."""
        import numpy as np
        if any(hasattr(x, "to_list") and hasattr(x, "ragged_rank") for x in (a, b)):
            a, b = self._rows(a), self._rows(b)
        if hasattr(a, "_asdict"):
            a = a._asdict()
        if hasattr(b, "_asdict"):
            b = b._asdict()
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertEqual(isinstance(a, dict), isinstance(b, dict), "Can't compare dict to non-dict, %s vs %s. %s" % (a, b, msg or ""))
            self.assertEqual(set(a), set(b), "mismatched keys: %s and %s. %s" % (set(a), set(b), msg or ""))
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and _is_ragged(a, b):
            self.assertEqual(len(a), len(b), "Mismatched length: %d and %d. %s" % (len(a), len(b), msg or ""))
            for one, two in zip(a, b):
                self.assertAllClose(one, two, rtol, atol, msg)
            return
        a, b = self.evaluate_if_both_tensors(a, b)
        a, b = self._array(a), self._array(b)
        if b.size <= 3 and b.ndim == 0 and a.shape != b.shape:
            self.fail("Shape mismatch: expected %s, got %s. %s" % (a.shape, b.shape, msg or ""))
        self.assertEqual(a.shape, b.shape, "Shape mismatch: expected %s, got %s. %s" % (a.shape, b.shape, msg or ""))
        if a.dtype.name == "bfloat16":
            a = a.astype(np.float32)
        if b.dtype.name == "bfloat16":
            b = b.astype(np.float32)
        if np.ndim(rtol) or np.ndim(atol):  # a tolerance per element, which NumPy's message cannot show
            self.assertTrue(np.allclose(b, a, rtol=rtol, atol=atol, equal_nan=True), msg or "%s and %s are not close" % (a, b))
        else:
            np.testing.assert_allclose(b, a, rtol=rtol, atol=atol, err_msg=msg or "", equal_nan=True)

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, float_rtol=1e-6, float_atol=1e-6,
                                      half_rtol=1e-3, half_atol=1e-3, bfloat16_rtol=1e-2, bfloat16_atol=1e-2, msg=None):
        """Like assertAllClose, with the tolerance of the less precise type."""
        a, b = self.evaluate_if_both_tensors(a, b)
        a, b = self._array(a), self._array(b)
        for kinds, kind_rtol, kind_atol in ((("float32", "complex64"), float_rtol, float_atol),
                                            (("float16",), half_rtol, half_atol),
                                            (("bfloat16",), bfloat16_rtol, bfloat16_atol)):
            if a.dtype.name in kinds or b.dtype.name in kinds:
                rtol, atol = max(rtol, kind_rtol), max(atol, kind_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertAllEqual(self, a, b, msg=None):
        """Asserts that arrays are equal; NaNs count as equal."""
        import numpy as np
        if any(hasattr(x, "to_list") and hasattr(x, "ragged_rank") for x in (a, b)):
            return self.assertEqual(*(self._rows(x) for x in (a, b)), msg)
        a, b = self.evaluate_if_both_tensors(a, b)
        a, b = self._array(a), self._array(b)
        self.assertEqual(a.shape, b.shape, "Shape mismatch: expected %s, got %s. %s" % (a.shape, b.shape, msg or ""))
        same = a == b
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b)))
        if not np.all(same):
            if a.dtype.kind != b.dtype.kind and {a.dtype.kind, b.dtype.kind} <= set("USO"):  # compare strings as bytes
                a, b = ([x.encode() if isinstance(x, str) else x for x in array.ravel().tolist()] for array in (a, b))
            np.testing.assert_array_equal(a, b, err_msg=msg or "")

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        try:
            self.assertAllClose(a, b, rtol=rtol, atol=atol)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements. %s" % (msg or ""))

    def assertNotAllEqual(self, a, b, msg=None):
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError("The two values are equal at all elements. %s" % (msg or ""))

    def assertAllGreater(self, a, comparison_target):
        self.assertGreater(self._array(a).min(), comparison_target)

    def assertAllLess(self, a, comparison_target):
        self.assertLess(self._array(a).max(), comparison_target)

    def assertAllGreaterEqual(self, a, comparison_target):
        self.assertGreaterEqual(self._array(a).min(), comparison_target)

    def assertAllLessEqual(self, a, comparison_target):
        self.assertLessEqual(self._array(a).max(), comparison_target)

    def assertAllInRange(self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False):
        target = self._array(target)
        self.assertTrue(((target > lower_bound) if open_lower_bound else (target >= lower_bound)).all())
        self.assertTrue(((target < upper_bound) if open_upper_bound else (target <= upper_bound)).all())

    def assertAllInSet(self, target, expected_set):
        import numpy as np
        found = set(np.unique(self._array(target)).tolist())
        self.assertLessEqual(found, set(np.asarray(list(expected_set)).tolist()))

    def assertNear(self, f1, f2, err, msg=None):
        if not (f1 == f2 or abs(f1 - f2) <= err):
            self.fail("%s != %s +/- %s %s" % (f1, f2, err, msg or ""))

    def assertArrayNear(self, farray1, farray2, err, msg=None):
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for f1, f2 in zip(farray1, farray2):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertShapeEqual(self, np_array, tf_tensor, msg=None):
        self.assertAllEqual(np_array.shape, tf_tensor.shape.as_list(), msg=msg)

    def assertDTypeEqual(self, target, expected_dtype):
        from runnel import dtypes
        self.assertEqual(dtypes.as_dtype(self._array(target).dtype), dtypes.as_dtype(expected_dtype))

    def assertDeviceEqual(self, device1, device2, msg=None):
        from runnel.core.device_spec import canonical_name
        self.assertEqual(canonical_name(device1), canonical_name(device2), msg)

    def assertProtoEquals(self, expected_message_maybe_ascii, message, msg=None):
        """Asserts that a message equals another message or its text form."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            if hasattr(message, "DESCRIPTOR") and type(message).__module__.endswith("_pb2"):  # a message of the protobuf package
                from google.protobuf.text_format import Parse
            else:
                from runnel.core.text_format import Parse
            expected = Parse(expected, type(message)())
        self.assertEqual(str(expected), str(message), msg)

    def assertNDArrayNear(self, ndarray1, ndarray2, err, msg=None):
        import numpy as np
        difference = np.asarray(ndarray1) - np.asarray(ndarray2)
        self.assertLessEqual(float(np.linalg.norm(difference)) if difference.size else 0.0, err, msg)

    def assertProtoEqualsVersion(self, expected, actual, producer=None, min_consumer=0, msg=None):
        import runnel
        version = producer if producer is not None else runnel.GRAPH_DEF_VERSION
        text = "versions { producer: %d%s };\n%s" % (version, " min_consumer: %d" % min_consumer if min_consumer else "", expected)
        self.assertProtoEquals(text, actual, msg)

    def assertRaisesIncompatibleShapesError(self, exception_type=errors.InvalidArgumentError):
        return self.assertRaisesWithPredicateMatch(
            exception_type, r"Incompatible shapes|Dimensions must be equal|required broadcastable shapes")

    # Methods that absl's test cases have

    def assertLen(self, container, expected_len, msg=None):
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container, msg=None):
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container, msg=None):
        self.assertNotEqual(len(container), 0, msg)

    def assertBetween(self, value, minv, maxv, msg=None):
        self.assertTrue(minv <= value <= maxv, msg or "%r is not between %r and %r" % (value, minv, maxv))

    def assertSameElements(self, expected_seq, actual_seq, msg=None):
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    def assertItemsEqual(self, expected_seq, actual_seq, msg=None):
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertContainsSubset(self, expected_subset, actual_set, msg=None):
        self.assertLessEqual(set(expected_subset), set(actual_set), msg)

    def assertNoCommonElements(self, expected_seq, actual_seq, msg=None):
        self.assertFalse(set(expected_seq) & set(actual_seq), msg)

    def assertContainsInOrder(self, strings, target, msg=None):
        at = 0
        for text in [strings] if isinstance(strings, str) else strings:
            at = target.find(text, at)
            self.assertGreaterEqual(at, 0, msg or "%r is not in %r after what came before it" % (text, target))
            at += len(text)

    def assertContainsSubsequence(self, container, subsequence, msg=None):
        rest = iter(container)
        self.assertTrue(all(any(x == y for y in rest) for x in subsequence), msg or "%r is no subsequence of %r" % (
            subsequence, container))

    def assertContainsExactSubsequence(self, container, subsequence, msg=None):
        container, subsequence = list(container), list(subsequence)
        self.assertTrue(any(container[i:i + len(subsequence)] == subsequence for i in range(len(container) + 1)), msg)

    def assertSequenceStartsWith(self, prefix, whole, msg=None):
        prefix = list(prefix) if isinstance(prefix, (list, tuple, str)) else [prefix]
        self.assertEqual(list(whole)[:len(prefix)], prefix, msg)

    def assertSequenceAlmostEqual(self, expected_seq, actual_seq, places=None, msg=None, delta=None):
        self.assertLen(actual_seq, len(expected_seq), msg)
        for one, two in zip(expected_seq, actual_seq):
            self.assertAlmostEqual(one, two, places, msg, delta)

    def assertDictAlmostEqual(self, expected_dict, actual_dict, places=None, msg=None, delta=None):
        self.assertEqual(set(expected_dict), set(actual_dict), msg)
        for key, value in expected_dict.items():
            self.assertAlmostEqual(value, actual_dict[key], places, msg, delta)

    def assertMappingEqual(self, a, b, msg=None, mapping_type=collections.abc.Mapping):
        for x in (a, b):
            self.assertIsInstance(x, mapping_type, msg)
        unittest.TestCase.assertDictEqual(self, dict(a), dict(b), msg)

    def assertSameStructure(self, a, b, aname="a", bname="b", msg=None):
        self.assertEqual(a, b, msg)

    def assertJsonEqual(self, first, second, msg=None):
        import json
        self.assertEqual(json.loads(first), json.loads(second), msg)

    def assertRegexMatch(self, actual_str, regexes, message=None):
        import re
        self.assertTrue(any(re.search(regex, actual_str) for regex in regexes), message)

    def assertRaisesWithLiteralMatch(self, expected_exception, expected_exception_message, callable_obj=None, *args, **kwargs):
        import re
        regex = "^" + re.escape(expected_exception_message) + "$"
        if callable_obj is None:
            return self.assertRaisesRegex(expected_exception, regex)
        return self.assertRaisesRegex(expected_exception, regex, callable_obj, *args, **kwargs)

    def assertTotallyOrdered(self, *groups, **kwargs):
        for i, group in enumerate(groups):
            for later in groups[i + 1:]:
                for small in group:
                    for large in later:
                        self.assertLess(small, large)
                        self.assertGreater(large, small)

    def assertIsSubclass(self, subclass, superclass, msg=None):
        self.assertTrue(issubclass(subclass, superclass), msg)

    def assertNotIsSubclass(self, subclass, superclass, msg=None):
        self.assertFalse(issubclass(subclass, superclass), msg)

    def assertNotStartsWith(self, actual, unexpected_start, msg=None):
        self.assertFalse(actual.startswith(unexpected_start), msg)

    def assertEndsWith(self, actual, expected_end, msg=None):
        self.assertTrue(actual.endswith(expected_end), msg or "%r does not end with %r" % (actual, expected_end))

    def assertNotEndsWith(self, actual, unexpected_end, msg=None):
        self.assertFalse(actual.endswith(unexpected_end), msg)

    def assertStartsWith(self, actual, expected_start, msg=None):
        self.assertTrue(actual.startswith(expected_start), msg or "%r does not start with %r" % (actual, expected_start))

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type, expected_err_re_or_predicate):
        import re
        predicate = expected_err_re_or_predicate
        if isinstance(predicate, str):
            def predicate(error):
                return re.search(expected_err_re_or_predicate, getattr(error, "message", str(error))) is not None
        try:
            yield
        except exception_type as error:
            if not predicate(error):
                raise AssertionError("Exception of type %s: %s" % (type(error), error)) from error
            return
        self.fail(exception_type.__name__ + " not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate):
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)


def _real_view(array, dtype):
    """Returns the numbers as a flat array; complex numbers count as two each."""
    import numpy as np
    return np.ascontiguousarray(array).ravel().view(dtype.real_dtype.as_numpy_dtype)


def _jacobians(forward, backward, start, x_dtype, y_shape, y_dtype, delta):
    """Returns the Jacobian that `backward` gives and that of central differences of `forward`: one row per number of x, one column per number of y."""
    import numpy as np
    y_size = int(np.prod(y_shape)) * (2 if y_dtype.is_complex else 1)
    theory = np.zeros((_real_view(start, x_dtype).size, y_size), x_dtype.real_dtype.as_numpy_dtype)
    for column in range(y_size):
        unit = np.zeros(y_size, y_dtype.real_dtype.as_numpy_dtype)
        unit[column] = 1
        value = backward(unit.view(y_dtype.as_numpy_dtype).reshape(y_shape))
        if hasattr(value, "dense_shape"):
            rows = np.zeros(start.shape, x_dtype.as_numpy_dtype)
            np.add.at(rows, value.indices, value.values)
            value = rows
        if value is not None:
            theory[:, column] = _real_view(value, x_dtype)
    numeric = np.zeros_like(theory)
    for row in range(len(numeric)):
        sides = []
        for sign in (1, -1):
            moved = _real_view(start, x_dtype).copy()
            moved[row] += sign * delta
            sides.append(_real_view(forward(moved.view(x_dtype.as_numpy_dtype).reshape(start.shape)), y_dtype))
        numeric[row] = (sides[0] - sides[1]) / (2 * delta)
    return theory, numeric


def _one_gradient(x, x_shape, y, y_shape, start, delta, feed):
    import numpy as np
    from runnel.core.gradients_impl import gradients
    from runnel.ops.array_ops import placeholder
    sess = session_lib.get_default_session()
    x_dtype, y_dtype = x.dtype.base_dtype, y.dtype.base_dtype
    if start is None:
        start = np.random.random_sample(x_shape).astype(x_dtype.as_numpy_dtype)
        if x_dtype.is_complex:
            start.imag = np.random.random_sample(x_shape)
    start = np.array(start, dtype=x_dtype.as_numpy_dtype).reshape(x_shape)
    dy = placeholder(y.dtype, y_shape)
    dx = gradients(y, x, dy)[0]
    return _jacobians(lambda moved: sess.run(y, {**feed, x: moved}),
                      lambda unit: sess.run(dx, {**feed, x: start, dy: unit}), start, x_dtype, y_shape, y_dtype, delta)


def compute_gradient(x, x_shape, y, y_shape, x_init_value=None, delta=1e-3, init_targets=None, extra_feed_dict=None):
    """Returns (theoretical, numerical) Jacobians of `y` with respect to `x`; for a list of `x`, a list of pairs."""
    if init_targets is not None:
        for target in init_targets if isinstance(init_targets, (list, tuple)) else [init_targets]:
            target.run()
    feed = dict(extra_feed_dict or {})
    if isinstance(x, list):
        starts = x_init_value or [None] * len(x)
        return [_one_gradient(one, shape, y, y_shape, start, delta, feed) for one, shape, start in zip(x, x_shape, starts)]
    return _one_gradient(x, x_shape, y, y_shape, x_init_value, delta, feed)


def compute_gradient_error(x, x_shape, y, y_shape, x_init_value=None, delta=1e-3, init_targets=None, extra_feed_dict=None):
    """Returns the largest difference between the two Jacobians of compute_gradient."""
    import numpy as np
    pairs = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    return max((float(np.abs(theory - numeric).max()) if theory.size else 0.0)
               for theory, numeric in ([pairs] if isinstance(pairs, tuple) else pairs))
