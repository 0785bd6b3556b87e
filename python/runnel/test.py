"""tf.test: unit tests of graphs."""

import contextlib
import os
import tempfile
import unittest

from runnel import errors, framework, session as session_lib
from runnel.session import Session

_temp_dir = None


def get_temp_dir():
    """A folder for the files of tests."""
    global _temp_dir
    if _temp_dir is None:
        _temp_dir = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    return _temp_dir


def main(argv=None):
    """Runs the tests of the program."""
    unittest.main(argv=argv)


def is_built_with_cuda():
    return False


is_built_with_gpu_support = is_built_with_rocm = is_built_with_xla = is_built_with_cuda


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Whether there is a GPU to compute on."""
    return False


def gpu_device_name():
    """The name of the GPU; "": none."""
    return ""


class TestCase(unittest.TestCase):
    """A test case with a session and comparisons of arrays."""

    def setUp(self):
        super().setUp()
        framework._stack.graphs.clear()
        framework._core.set_current(False)
        framework.reset_default_graph()
        framework.get_default_graph().seed = 87654321

    def get_temp_dir(self):
        return tempfile.mkdtemp(dir=get_temp_dir())

    @contextlib.contextmanager
    def session(self, graph=None, config=None, use_gpu=False, force_gpu=False):
        """A session over `graph`, or over the default graph."""
        with (graph or framework.get_default_graph()).as_default(), Session(graph=graph, config=config) as sess:
            yield sess

    test_session = cached_session = session

    def evaluate(self, tensors):
        """Values of tensors, in the default session."""
        if framework.executing_eagerly():
            from runnel import nest
            return nest.map_structure(lambda t: t.numpy(), tensors)
        sess = session_lib.get_default_session()
        if sess is None:
            with self.session() as sess:
                return sess.run(tensors)
        return sess.run(tensors)

    def _array(self, value):
        import numpy as np
        if isinstance(value, framework.Tensor):
            value = self.evaluate(value)
        return np.asarray(value)

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        import numpy as np
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertEqual(sorted(a), sorted(b))
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        a, b = self._array(a), self._array(b)
        self.assertEqual(a.shape, b.shape, "Shape mismatch: expected %s, got %s." % (a.shape, b.shape))
        np.testing.assert_allclose(b, a, rtol=rtol, atol=atol, err_msg=msg or "", equal_nan=True)

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, half_rtol=1e-3, half_atol=1e-3, **kwargs):
        a, b = self._array(a), self._array(b)
        if "float16" in (a.dtype.name, b.dtype.name):
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        self.assertAllClose(a, b, rtol, atol)

    def assertAllEqual(self, a, b, msg=None):
        import numpy as np
        a, b = self._array(a), self._array(b)
        self.assertEqual(a.shape, b.shape, "Shape mismatch: expected %s, got %s." % (a.shape, b.shape))
        np.testing.assert_array_equal(a, b, err_msg=msg or "")

    def assertNotAllClose(self, a, b, **kwargs):
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements.")

    def assertNotAllEqual(self, a, b, msg=None):
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError("The two values are equal at all elements.")

    def assertAllGreater(self, a, comparison_target):
        self.assertTrue((self._array(a) > comparison_target).all())

    def assertAllLess(self, a, comparison_target):
        self.assertTrue((self._array(a) < comparison_target).all())

    def assertAllInRange(self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False):
        target = self._array(target)
        self.assertTrue(((target > lower_bound) if open_lower_bound else (target >= lower_bound)).all())
        self.assertTrue(((target < upper_bound) if open_upper_bound else (target <= upper_bound)).all())

    def assertNear(self, f1, f2, err, msg=None):
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, "%f != %f +/- %f %s" % (f1, f2, err, msg or ""))

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
        from runnel.device_spec import canonical_name
        self.assertEqual(canonical_name(device1), canonical_name(device2), msg)

    def assertProtoEquals(self, expected_message_maybe_ascii, message, msg=None):
        self.assertEqual(str(expected_message_maybe_ascii), str(message), msg)

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


def compute_gradient(x, x_shape, y, y_shape, x_init_value=None, delta=1e-3, init_targets=None, extra_feed_dict=None):
    """(from the graph, from differences) the Jacobian of y by x, in the default session."""
    import numpy as np
    from runnel.gradients_impl import gradients
    sess = session_lib.get_default_session()
    for target in init_targets or []:
        target.run()
    if x_init_value is None:
        x_init_value = np.random.random_sample(x_shape).astype(x.dtype.as_numpy_dtype)
    start = np.array(x_init_value, dtype=x.dtype.as_numpy_dtype)
    x_size, y_size = int(np.prod(x_shape)), int(np.prod(y_shape))
    feed = dict(extra_feed_dict or {})
    from runnel.array_ops import placeholder
    dy = placeholder(y.dtype, y_shape)
    dx = gradients(y, x, dy)[0]
    theory = np.zeros((x_size, y_size), start.dtype)
    for row in range(y_size):
        unit = np.zeros(y_size, y.dtype.as_numpy_dtype)
        unit[row] = 1
        feed.update({x: start, dy: unit.reshape(y_shape)})
        theory[:, row] = np.ravel(sess.run(dx, feed))
    feed.pop(dy, None)
    numeric = np.zeros((x_size, y_size), start.dtype)
    for column in range(x_size):
        sides = []
        for sign in (1, -1):
            moved = start.copy()
            moved.ravel()[column] += sign * delta
            feed[x] = moved
            sides.append(np.ravel(sess.run(y, feed)))
        numeric[column] = (sides[0] - sides[1]) / (2 * delta)
    return theory, numeric


def compute_gradient_error(x, x_shape, y, y_shape, x_init_value=None, delta=1e-3, init_targets=None, extra_feed_dict=None):
    """The largest difference between the two."""
    import numpy as np
    theory, numeric = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    return float(np.abs(theory - numeric).max()) if theory.size else 0.0
