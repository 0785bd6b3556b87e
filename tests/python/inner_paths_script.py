"""A test in the style of TensorFlow's own: everything by tensorflow.python paths. See test_inner_paths.py."""

import numpy as np

from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import device_lib, session
from tensorflow.python.eager import backprop
from tensorflow.python.framework import constant_op, dtypes, errors, ops, tensor_shape, test_util
from tensorflow.python.ops import (
    array_ops, control_flow_ops, gen_array_ops, gen_math_ops, gradient_checker, gradient_checker_v2, gradients_impl, init_ops,
    list_ops, math_ops, nn_ops, random_ops, state_ops, variable_scope, variables, while_loop)
import tensorflow.python.ops.nn_grad  # noqa: F401
from tensorflow.python.platform import benchmark, gfile, test, tf_logging
from tensorflow.python.training import adam, gradient_descent, saver as saver_lib
from tensorflow.python.util import compat, nest, numpy_compat, tf_inspect


class InnerPathsTest(test.TestCase):

    @test_util.run_deprecated_v1
    def testGraph(self):
        with self.cached_session(config=config_pb2.ConfigProto(allow_soft_placement=True)) as sess:
            x = array_ops.placeholder(dtypes.float32, shape=[None, 2])
            y = math_ops.matmul(x, constant_op.constant([[1.0], [2.0]]))
            self.assertEqual(y.shape.as_list(), tensor_shape.TensorShape([None, 1]).as_list())
            self.assertAllClose(sess.run(y, {x: [[3, 4]]}), [[11]])
            self.assertIsInstance(ops.get_default_graph().as_graph_def(), graph_pb2.GraphDef)
            self.assertAllClose(gradients_impl.gradients(y, x)[0].eval({x: [[3, 4]]}), [[1, 2]])
            with self.assertRaisesRegex(errors.InvalidArgumentError, "must feed a value"):
                sess.run(y)

    @test_util.run_deprecated_v1
    def testGradientChecker(self):
        x = constant_op.constant([[1.0, -2.0], [0.5, 3.0]])
        y = nn_ops.softmax(x)
        with self.cached_session():
            self.assertLess(gradient_checker.compute_gradient_error(x, [2, 2], y, [2, 2]), 1e-3)

    @test_util.run_in_graph_and_eager_modes
    def testGradientCheckerOfFunctions(self):
        rows, column = constant_op.constant([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5], [-1.0]], np.float32)
        theory, numeric = gradient_checker_v2.compute_gradient(math_ops.matmul, [rows, column])
        self.assertEqual([jacobian.shape for jacobian in theory], [(2, 4), (2, 2)])
        self.assertAllClose(theory[1], [[1, 2], [3, 4]])
        self.assertLess(gradient_checker_v2.max_error(theory, numeric), 1e-3)
        self.assertEqual(gradient_checker_v2.max_error([np.array([[1.0, 5.0]])], [np.array([[1.5, 3.0]])]), 2)
        turn, _ = gradient_checker_v2.compute_gradient(lambda z: z * 1j, [constant_op.constant([2.0 + 1j])])
        self.assertAllClose(turn[0], [[0, -1], [1, 0]])
        with self.assertRaisesRegex(ValueError, "must be a list or tuple"):
            gradient_checker_v2.compute_gradient(math_ops.square, 3.0)

    @test_util.run_deprecated_v1
    def testTools(self):
        self.assertEqual(device_lib.list_local_devices()[0].name, "/device:CPU:0")
        self.assertEqual(device_lib.list_local_devices()[0].device_type, "CPU")
        self.assertTrue(issubclass(test.Benchmark, benchmark.Benchmark))
        self.assertAllEqual(numpy_compat.np_where(numpy_compat.np_asarray([0, 3, 0, 2])), [[1, 3]])
        graph = ops.Graph()
        test_util.set_producer_version(graph, 8)
        self.assertEqual(graph.graph_def_versions.producer, 8)
        x = constant_op.constant([1.0, 2.0])
        for use_tape in False, True:
            with test_util.device(use_gpu=False), test_util.AbstractGradientTape(use_tape=use_tape) as tape:
                tape.watch(x)
                y = x * x
            self.assertAllClose(self.evaluate(tape.gradient(y, x)), [2, 4])
        ignored = array_ops.gather_nd([1, 2, 3], [[0], [7], [2]], bad_indices_policy="IGNORE")
        self.assertAllEqual(self.evaluate(ignored), [1, 0, 3])

    @test_util.run_in_graph_and_eager_modes
    def testLists(self):
        rows = list_ops.tensor_list_from_tensor([[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
        rows = list_ops.tensor_list_set_item(rows, 0, [5.0, 6.0])
        rows, last = list_ops.tensor_list_pop_back(rows, dtypes.float32)
        rows = list_ops.tensor_list_push_back(rows, last * 2)
        self.assertAllEqual(self.evaluate(list_ops.tensor_list_stack(rows, dtypes.float32, element_shape=None)), [[5, 6], [6, 8]])
        self.assertAllEqual(self.evaluate(list_ops.tensor_list_get_item(rows, 1, dtypes.float32)), [6, 8])
        self.assertAllEqual(self.evaluate(list_ops.tensor_list_concat(rows, dtypes.float32)), [5, 6, 6, 8])
        numbers = list_ops.tensor_list_scatter([7, 8], [2, 0], element_shape=[])
        self.assertAllEqual(self.evaluate(list_ops.tensor_list_gather(numbers, [0, 2], dtypes.int32)), [8, 7])
        parts = list_ops.tensor_list_split([1, 2, 3], element_shape=[None], lengths=[1, 2])
        self.assertAllEqual(self.evaluate(list_ops.tensor_list_length(parts)), 2)
        full = list_ops.empty_tensor_list(element_shape=None, element_dtype=dtypes.int32, max_num_elements=1)
        full = list_ops.tensor_list_push_back(full, 1)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "Tried to push item into a full list"):
            self.evaluate(list_ops.tensor_list_push_back(full, 2))

    @test_util.run_in_graph_and_eager_modes
    @test_util.run_deprecated_v1
    def testGraphInBothModes(self):
        self.assertAllEqual(self.evaluate(test_util.matmul_without_tf32(constant_op.constant([[2.0]]), [[3.0]])), [[6]])

    @test_util.run_in_graph_and_eager_modes
    def testBothModes(self):
        total = math_ops.reduce_sum(constant_op.constant(np.arange(6).reshape([2, 3])), axis=1)
        self.assertAllEqual(self.evaluate(total), [3, 12])
        self.assertAllEqual(gen_array_ops.reverse_v2(total, [0]), [12, 3])
        self.assertAllEqual(gen_math_ops._sum(total, 0), 15)
        turns = while_loop.while_loop(lambda i: i < 7, lambda i: i + 2, [constant_op.constant(0)])
        self.assertAllEqual(turns, 8)

    @test_util.run_in_graph_and_eager_modes
    def testTape(self):
        x = constant_op.constant(3.0)
        with backprop.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        self.assertAllClose(tape.gradient(y, x), 6.0)

    @test_util.run_deprecated_v1
    def testTraining(self):
        for optimizer in gradient_descent.GradientDescentOptimizer(0.1), adam.AdamOptimizer(0.1):
            with ops.Graph().as_default(), session.Session() as sess:
                w = variable_scope.get_variable("w", [2], initializer=init_ops.ones_initializer())
                loss = math_ops.reduce_sum(math_ops.square(w))
                step = optimizer.minimize(loss)
                saver = saver_lib.Saver()
                sess.run(variables.global_variables_initializer())
                before = sess.run(loss)
                sess.run(step)
                self.assertLess(sess.run(loss), before)
                path = saver.save(sess, self.get_temp_dir() + "/model")
                self.assertTrue(gfile.Exists(path + ".index"))
                sess.run(state_ops.assign(w, random_ops.random_uniform([2])))

    def testUtilities(self):
        self.assertEqual(compat.as_bytes("x"), b"x")
        self.assertEqual(nest.flatten({"b": [1, 2], "a": 3}), [3, 1, 2])
        self.assertEqual(tf_inspect.getfullargspec(lambda a, b=1: a).args, ["a", "b"])
        tf_logging.debug("not shown")
        self.assertIsInstance(test.is_built_with_cuda(), bool)
        self.assertTrue(callable(control_flow_ops.group))


if __name__ == "__main__":
    test.main()
