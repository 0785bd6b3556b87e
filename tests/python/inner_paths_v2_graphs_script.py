"""Prints what the inner paths of TensorFlow 2 do with graphs: frozen functions, ops by name, NodeDefs, settings. See test_inner_paths_v2.py."""

import tempfile

import tensorflow as tf

from tensorflow.python.eager import context, execute, wrap_function
from tensorflow.python.framework import auto_control_deps, config, convert_to_constants, op_def_library, ops, test_ops


def outcome(call, *args, **kwargs):
    """Returns the value of a call, or the class and first line of its error."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, str(error).split("\n")[0])


def frozen_functions():
    v, table = tf.Variable([[3.0], [1.0]]), tf.Variable([1.0, 2.0, 4.0])

    @tf.function
    def f(x, i):
        y = tf.matmul(x, v)
        if tf.reduce_sum(x) > 0:
            y += tf.gather(table, i)
        while tf.reduce_sum(y) < 20.0:
            y *= v[0]
        return {"y": y, "x": x}
    before = f.get_concrete_function(tf.TensorSpec([None, 2]), tf.TensorSpec([], tf.int32))
    after = convert_to_constants.convert_variables_to_constants_v2(before)
    x, i = tf.constant([[1.0, 2.0]]), tf.constant(1)
    v.assign([[100.0], [100.0]])
    print([part.numpy().tolist() for part in after(x, i)], [part.numpy().tolist() for part in after(x=x + x, i=i)], len(after.captured_inputs))
    print(sorted({node.op for node in after.graph.as_graph_def().node} & {"ReadVariableOp", "VarHandleOp", "ResourceGather"}))
    module = tf.Module()
    module.v, module.f = v, tf.function(lambda x: tf.matmul(x, v), input_signature=[tf.TensorSpec([None, 2])])
    folder = tempfile.mkdtemp()
    tf.saved_model.save(module, folder)
    model = tf.saved_model.load(folder)
    loaded = convert_to_constants.convert_variables_to_constants_v2(model.signatures["serving_default"])
    print(loaded(x)[0].numpy().tolist(), "ReadVariableOp" in {node.op for node in loaded.graph.as_graph_def().node})
    g = tf.function(lambda: v.assign_add([[1.0], [1.0]])).get_concrete_function()
    print(outcome(convert_to_constants.convert_variables_to_constants_v2, g).split(":")[0] in ("ValueError", "NotImplementedError", "TypeError"))


def wrapped_functions_in_graphs():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        f = wrap_function.wrap_function(lambda x: x * 2.0, [tf.TensorSpec([2])])
        half = f.prune(f.inputs, [f.outputs[0]])
        x = tf.constant([1.0, 2.0])
        print(session.run([f(x), half(x)[0]]))


def ops_by_name():
    def added(name, **arguments):
        with tf.Graph().as_default():
            return outcome(op_def_library.apply_op, name, **arguments)
    print(added("Simple", a=3), added("Polymorphic", a="x").dtype, added("TypeList", a=["a", 1]).name, added("AttrMin", a=5).type)
    for name, arguments in [
            ("Simple", {}), ("Simple", {"a": 1, "b": 2}), ("Simple", {"a": "text"}), ("Polymorphic", {"a": 1, "T": tf.int32}),
            ("PolymorphicOut", {}), ("AttrMin", {"a": 2}), ("AttrListMin", {"a": [1]}), ("AttrEnum", {"a": "pears"}), ("Attr", {"a": "bad"}),
            ("AttrBool", {"a": 0}), ("AttrFloat", {"a": "bad"}), ("NIntsIn", {"a": [1]}), ("NIntsIn", {"a": ["a", "b"]}),
            ("NInTwice", {"a": [1, 2], "b": ["a"]}), ("Restrict", {"a": 1}), ("TypeListTwice", {"a": ["a", True], "b": ["a", 1]}),
            ("TypeList", {"a": 3}), ("FuncAttr", {"f": 3}), ("NoSuchOp", {})]:
        print(name, str(added(name, **arguments)).split(" found in")[0].split(" Error:")[0])
    print(execute.execute(b"AddN", 1, [tf.constant(3), tf.constant(4)], ("T", tf.int32.as_datatype_enum, "N", 2), context.context()))
    for arguments in ((b"AddN", 1, [tf.constant(3)], ("N", "1")), (b"Identity", 1, [tf.constant(3)], ("unknown", 1)), (b"Relu", [], [tf.constant(3.0)]),
                      (b"NoSuchOp", 1, [], None)):
        print(outcome(execute.execute, *arguments, ctx=context.context()).split(":")[0])


def nodes_and_graphs():
    g = tf.Graph()
    with g.as_default():
        x = test_ops.float_output(name="x")
        with g.control_dependencies([x]), g.device("/device:CPU:1"):
            op = ops.Operation.from_node_def(ops._NodeDef("TwoFloatInputs", "both"), g, [x, x], [])
    print(op.node_def, g.as_graph_def().HasField("library"))
    print(outcome(ops.Operation.from_node_def, ops._NodeDef("None", "_bad"), g).split(".")[0])
    other = tf.Graph().create_op("FloatOutput", [], [tf.float32]).outputs[0]
    with g.as_default():
        print(str(outcome(lambda: ops.name_scope("scope", values=[x, other]).__enter__())).split(":")[0])
    print([ops.prepend_name_scope(name, "a/") for name in ("b", "^b", "loc:@b")])


def effects():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        with auto_control_deps.AutomaticControlDependencies() as order:
            v.assign(v + 1.0)
            v.assign(v * 5.0)
            value = order.mark_as_return(v.read_value())
        print(session.run(value), len(order.ops_which_must_run) >= 3)


def settings():
    print(config.get_device_policy(), config.get_synchronous_execution(), context.context().soft_device_placement, context.context().execution_mode)
    config.set_device_policy("warn")
    print(config.get_device_policy(), int(context.context().device_policy), outcome(config.set_device_policy, "loud").split(".")[0])
    config.set_optimizer_experimental_options({"constant_folding": False})
    print(context.context().get_optimizer_experimental_options(), context.context().config.inter_op_parallelism_threads)
    print(outcome(config.set_intra_op_parallelism_threads, 7).split(":")[0])


def tensor_protos():
    for values, options in (([1 + 2j, 3j], {}), ([-8, 7], {"dtype": tf.dtypes.experimental.int4}), (10.0, {"shape": [1, 3]}), ([1.0, 2.0], {}),
                            (7, {"shape": [2], "dtype": tf.int64})):
        proto = tf.make_tensor_proto(values, **options)
        print(str(proto).split("\n}\n")[-1], tf.make_ndarray(proto).tolist())
    print(tf.get_static_value(tf.Variable(1.0)), tf.get_static_value(3))


for part in (frozen_functions, tensor_protos, wrapped_functions_in_graphs, ops_by_name, nodes_and_graphs, effects, settings):
    print("==", part.__name__)
    part()
