"""Unit tests in the style that authors of ops and models use with tf.test; test_case_class.py runs them here and in stock."""

import collections
import os
import sys
import threading

import numpy as np
import tensorflow.compat.v1 as tf
from absl.testing import parameterized


class OpTest(tf.test.TestCase, parameterized.TestCase):

    def _compare(self, x, op, expected, dtype):
        with self.cached_session(use_gpu=False) as sess:
            out = op(tf.constant(x, dtype=dtype))
            self.assertShapeEqual(expected, out)
            self.assertEqual(out.dtype.base_dtype, dtype)
            self.assertAllCloseAccordingToType(expected, sess.run(out))
            self.assertAllCloseAccordingToType(expected, self.evaluate(out))

    @parameterized.parameters(tf.float16, tf.float32, tf.float64)
    def testUnary(self, dtype):
        x = np.linspace(0.1, 2.0, 6).reshape(2, 3)
        for op, reference in ((tf.exp, np.exp), (tf.sqrt, np.sqrt), (tf.log, np.log), (tf.square, np.square)):
            self._compare(x, op, reference(x.astype(dtype.as_numpy_dtype)), dtype)

    @parameterized.named_parameters(("Rows", 0, [3.0, 5.0, 7.0]), ("Columns", 1, [3.0, 12.0]))
    def testReduce(self, axis, expected):
        with self.test_session():
            value = tf.reduce_sum(tf.reshape(tf.range(6.0), [2, 3]), axis)
            self.assertAllEqual(value, expected)
            self.assertAllClose(expected, value.eval())

    def testGradient(self):
        with self.cached_session():
            x = tf.constant(np.random.rand(3, 4), dtype=tf.float64, name="x")
            w = tf.constant(np.random.rand(4, 2), dtype=tf.float64, name="w")
            y = tf.tanh(tf.matmul(x, w))
            self.assertLess(tf.test.compute_gradient_error(x, [3, 4], y, [3, 2]), 1e-7)
            theory, numeric = tf.test.compute_gradient(w, [4, 2], y, [3, 2], delta=1e-5)
            self.assertAllClose(theory, numeric, rtol=1e-5, atol=1e-6)
            self.assertEqual(theory.shape, (8, 6))

    def testOpError(self):
        with self.session() as sess:
            x = tf.placeholder(tf.float32)
            y = tf.reshape(x, [2, 3])
            with self.assertRaisesOpError("Input to reshape is a tensor with 4 values"):
                sess.run(y, {x: np.ones(4)})
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "must feed a value"):
                sess.run(y)

    def testBuildError(self):
        with self.assertRaisesRegex(ValueError, "must be"):
            tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
        with self.assertRaisesWithPredicateMatch(TypeError, lambda e: True):
            tf.add(tf.constant(1), tf.constant(1.0))
        with self.assertRaisesRegex(ValueError, "Dimensions must be equal"):
            tf.ones([2]) + tf.ones([3])

    def testCachedSession(self):
        with self.cached_session() as first:
            v = tf.Variable(1.0)
            first.run(v.initializer)
            first.run(v.assign_add(2.0))
        with self.cached_session() as second:
            self.assertIs(first, second)
            self.assertEqual(3.0, second.run(v))
            self.assertEqual(3.0, self.evaluate(v))
        with self.session(graph=tf.Graph()) as other:
            self.assertIsNot(first, other)
            self.assertIs(tf.get_default_graph(), other.graph)

    def testSeeds(self):
        self.assertEqual(tf.get_default_graph().seed, 87654321)
        with self.cached_session() as sess:
            a, b = sess.run([tf.random_normal([4]), tf.random_normal([4])])
        self.assertNotAllClose(a, b)
        self.assertAllInRange(np.random.rand(3), 0.0, 1.0)
        tf.reset_default_graph()
        tf.set_random_seed(7)
        with tf.Session() as sess:
            c = sess.run(tf.random_uniform([3]))
        tf.reset_default_graph()
        tf.set_random_seed(7)
        with tf.Session() as sess:
            self.assertAllEqual(c, sess.run(tf.random_uniform([3])))

    def testNested(self):
        Pair = collections.namedtuple("Pair", ["a", "b"])
        self.assertAllClose({"x": [1.0, 2.0], "y": (np.ones(2), 3)}, {"x": [1.0, 2.0 + 1e-8], "y": (np.ones(2), 3)})
        self.assertAllClose(Pair([1.0], 2.0), Pair([1.0], 2.0))
        self.assertAllClose([np.ones(2), np.ones((2, 2))], [np.ones(2), np.ones((2, 2))])
        with self.assertRaises(AssertionError):
            self.assertAllClose({"x": [1.0]}, {"x": [1.1]})
        with self.assertRaises(AssertionError):
            self.assertAllEqual([1, 2], [1, 3])
        with self.assertRaises(AssertionError):
            self.assertAllClose([1.0, 2.0], [1.0])
        self.assertAllEqual([1.0, float("nan")], np.array([1.0, np.nan]))
        self.assertAllEqual(np.array(["a", "b"]), ["a", "b"])

    def testRanges(self):
        x = tf.constant([1.0, 2.0, 3.0])
        with self.cached_session():
            self.assertAllGreater(x, 0.5)
            self.assertAllGreaterEqual(x, 1.0)
            self.assertAllLess(x, 3.5)
            self.assertAllLessEqual(x, 3.0)
            self.assertAllInSet(x, [1.0, 2.0, 3.0, 4.0])
            self.assertAllInRange(x, 1.0, 3.0)
            with self.assertRaises(AssertionError):
                self.assertAllInRange(x, 1.0, 3.0, open_upper_bound=True)
        self.assertNear(1.0, 1.001, 0.01)
        self.assertArrayNear([1.0, 2.0], [1.001, 2.0], 0.01)
        self.assertNDArrayNear(np.ones(3), np.ones(3), 1e-6)

    def testContainers(self):
        self.assertLen([1, 2], 2)
        self.assertEmpty([])
        self.assertNotEmpty([1])
        self.assertSameElements([1, 2, 2], [2, 1])
        self.assertCountEqual([1, 2], [2, 1])
        self.assertBetween(2, 1, 3)
        self.assertContainsSubset([1], [1, 2])
        self.assertStartsWith("abc", "ab")
        self.assertEndsWith("abc", "bc")
        self.assertContainsInOrder(["a", "c"], "abc")
        self.assertSequenceAlmostEqual([1.0, 2.0], [1.0, 2.00000001])
        self.assertRaisesWithLiteralMatch(ValueError, "no (way)", self._fail)

    def _fail(self):
        raise ValueError("no (way)")

    def testProtos(self):
        with tf.Graph().as_default() as graph:
            tf.constant(1.0, name="one")
            node = graph.as_graph_def().node[0]
        self.assertProtoEquals("name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } "
                               "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1.0 } } }", node)
        tf.test.assert_equal_graph_def(graph.as_graph_def(), graph.as_graph_def())
        with self.assertRaises(AssertionError):
            tf.test.assert_equal_graph_def(graph.as_graph_def(), tf.Graph().as_graph_def())
        self.assertProtoEquals(tf.ConfigProto(allow_soft_placement=True), tf.ConfigProto(allow_soft_placement=True))

    def testFilesAndThreads(self):
        folder = self.get_temp_dir()
        self.assertEqual(folder, self.get_temp_dir())
        self.assertTrue(os.path.isdir(folder))
        with self.cached_session() as sess:
            queue = tf.FIFOQueue(1, tf.float32)
            enqueue, dequeue = queue.enqueue([3.0]), queue.dequeue()
            found = []
            thread = self.checkedThread(target=lambda: found.append(sess.run(dequeue)))
            thread.start()
            sess.run(enqueue)
            thread.join()
            self.assertEqual([3.0], found)

        def fails():
            raise ZeroDivisionError("in a thread")
        thread = self.checkedThread(target=fails)
        thread.start()
        with self.assertRaisesRegex(AssertionError, "in a thread"):
            thread.join()

    def testMock(self):
        with tf.test.mock.patch.object(os, "getcwd", return_value="there"):
            self.assertEqual("there", os.getcwd())
        self.assertFalse(tf.test.is_gpu_available())
        self.assertEqual("", tf.test.gpu_device_name())
        self.assertIsInstance(threading.current_thread().name, str)

    def testDevicesAndShapes(self):
        with tf.device("/device:CPU:0"):
            x = tf.constant([[1.0, 2.0]])
        self.assertDeviceEqual("/device:CPU:0", x.device)
        self.assertEqual([1, 2], x.get_shape().as_list())
        self.assertAllEqual([1, 2], self.evaluate(tf.shape(x)))
        self.assertDTypeEqual(self.evaluate(x), np.float32)

    def testStub(self):
        stubs = tf.test.StubOutForTesting()
        stubs.Set(sys, "maxsize", 3)
        self.assertEqual(3, sys.maxsize)
        stubs.UnsetAll()
        self.assertGreater(sys.maxsize, 3)

    def testVariables(self):
        with self.cached_session() as sess:
            with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
                v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
                self.assertIs(v, tf.get_variable("v", [2]))
            self.evaluate(tf.global_variables_initializer())
            self.assertAllEqual([1.0, 1.0], v)
            tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(v * v)).run()
            self.assertAllClose([0.0, 0.0], sess.run(v))
            w = tf.get_variable("w", [2], initializer=tf.zeros_initializer(), use_resource=True)
            self.evaluate(w.initializer)
            self.assertAllClose([w, w], [v, w])

    @tf.test.mock.patch.object(os, "getpid")
    def testMockedMethod(self, getpid):
        getpid.return_value = 5
        self.assertEqual(5, os.getpid())


if __name__ == "__main__":
    tf.disable_v2_behavior()
    tf.test.main()
