"""Prints what inner helpers of TensorFlow 2 do: subscriptions, unused results, stacks, flags, records of tapes. See test_inner_paths_v2.py."""

import gc
import os
import tempfile
import types
from unittest import mock

import numpy as np
import tensorflow as tf

from tensorflow.core.config import flags
from tensorflow.core.function.capture import capture_container
from tensorflow.core.protobuf import fingerprint_pb2
from tensorflow.python import pywrap_tfe, tf2
from tensorflow.python.compat import v2_compat
from tensorflow.python.eager import backprop, backprop_util, record
from tensorflow.python.framework import (
    c_api_util, composite_tensor_gradient, error_interpolation, ops, subscribe, tensor_util, traceable_stack, type_spec, versions)
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import array_ops, math_ops
from tensorflow.python.platform import _pywrap_tf2, tf_logging
from tensorflow.python.saved_model import (
    builder_impl, constants, fingerprinting, fingerprinting_utils, loader_impl, method_name_updater, signature_constants, tracing_utils)
from tensorflow.python.saved_model.pywrap_saved_model import metrics
from tensorflow.python.training.experimental import mixed_precision, mixed_precision_global_state
from tensorflow.python.util import dispatch, fast_module_type, module_wrapper, tf_inspect, tf_should_use, tf_stack
from tensorflow.tools.compatibility import all_renames_v2


def outcome(call, *args, **kwargs):
    """Returns the value of a call, or the class of its error."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


def subscriptions():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        a, b = tf.constant(1), tf.constant(2)
        c = a + b
        with tf.control_dependencies([c]):
            d = tf.constant(42)
        e = -c
        seen = []

        def look(t):
            return tf.compat.v1.py_func(lambda x: (seen.append(int(x)), x)[1], [t], [t.dtype])
        once = subscribe.subscribe({"c": c, "pair": (a, [b])}, look)
        twice = subscribe.subscribe(c, [look, look])
        print(once["c"].name, once["pair"][0].name, twice is once["c"], [op.name for op in d.op.control_inputs], e.op.inputs[0] is twice)
        print(session.run([e, d]), sorted(seen), outcome(subscribe.subscribe, "c", look))


def unused_results():
    @tf_should_use.should_use_result(warn_in_eager=True)
    def made(x):
        return tf.constant(x, name="made")
    with mock.patch.object(tf_should_use.tf_logging, "error") as error:
        made(1)
        gc.collect()
        print(error.call_count)
        made(1).mark_used()
        y = made(2)
        print((y + 1).numpy(), y.shape, error.call_count)

    @tf.function
    def f():
        tf_should_use._add_should_use_warning(tf.constant(1), warn_in_eager=True, error_in_function=True)
        return tf.constant(2)
    print(outcome(f))


def stacks():
    def here():
        return tf_stack.extract_stack()
    trace = here()
    frame = trace[-1]
    print(frame.name, os.path.basename(frame.filename), str(frame).endswith("in here"), here()[-1] == frame, hash(frame) == hash(trace[-1]))
    print(list(trace.get_user_frames())[-2].name, trace.last_user_frame().name, outcome(lambda: trace[len(trace)]))
    builder = tf_stack.GraphDebugInfoBuilder()
    builder.AccumulateStackTrace("f", "node", trace)
    loaded = tf_stack.LoadTracesFromDebugInfo(builder.Build())
    print(list(loaded), [frame.name for frame in loaded["node@f"]][-2:])
    rows = [traceable_stack.TraceableObject("/cpu:0", filename="a.py", lineno=3)]
    print(error_interpolation._compute_device_summary_from_list("n", rows, prefix=" ").replace(" ", ""))
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="One")
        text = error_interpolation.interpolate_graph("{{function_node f}}{{node One}} {{node Two}}", graph)
        print("defined at" in text, "function_node" in text, "{{node Two}}" in text, "in stacks" in text)


def saved_models():
    module = tf.Module()
    module.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], name="x")])
    folder, other = tempfile.mkdtemp(), tempfile.mkdtemp()
    tf.saved_model.save(module, folder)
    made = fingerprinting_utils.to_proto(fingerprinting.read_fingerprint(folder))
    written = fingerprint_pb2.FingerprintDef.FromString(open(folder + "/fingerprint.pb", "rb").read())
    print("fingerprint.pb" in file_io.list_directory_v2(folder), made.saved_model_checksum == written.saved_model_checksum)
    flag = flags.config().saved_model_fingerprinting
    flag.reset(False)
    tf.saved_model.save(module, other)
    print(flag.value(), "fingerprint.pb" in file_io.list_directory_v2(other))
    flag.reset(True)
    tf.saved_model.load(folder)
    print(metrics.GetReadPathAndSingleprint()[0] == folder, metrics.GetReadPath() == folder)
    updater = method_name_updater.MethodNameUpdater(folder)
    updater.replace_method_name(signature_key="serving_default", method_name="classify")
    updater.save()
    print(tf.saved_model.load(folder).f(1.0).numpy(), loader_impl.parse_saved_model(folder).meta_graphs[0].signature_def["serving_default"].method_name)
    writes = metrics.GetWriteApi(builder_impl._SAVE_BUILDER_LABEL), metrics.GetWrite(write_version="1")
    made = builder_impl.SavedModelBuilder(folder + "/graph")
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        tf.constant(1)
        made.add_meta_graph_and_variables(session, ["t"])
    made.save()
    reads = metrics.GetReadApi(loader_impl._LOADER_LABEL), metrics.GetRead(write_version="1")
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        loader_impl.SavedModelLoader(folder + "/graph").load(session, ["t"])
    print(metrics.GetWriteApi(builder_impl._SAVE_BUILDER_LABEL) - writes[0], metrics.GetWrite(write_version="1") - writes[1],
          metrics.GetReadApi(loader_impl._LOADER_LABEL) - reads[0], metrics.GetRead(write_version="1") - reads[1])
    print(constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_KEY, signature_constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY)
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(tf.constant(["a"]), tf.constant([3], tf.int64))
    save, restore = tracing_utils.trace_save_and_restore(table)
    found = save()
    table.insert(tf.constant(["a"]), tf.constant([5], tf.int64))
    restore(found)
    print(table.lookup(tf.constant(["a"])).numpy())


def tapes():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with record.stop_recording():
            y = x * x
        record.record_operation("Mine", [y], [x], lambda dy: [dy * 10.0])
    print(tape.gradient(y, x).numpy())
    print(backprop.op_attr_type("Add", "T") == int(pywrap_tfe.TF_ATTR_TYPE), backprop.op_attr_type("MaxPool", "ksize") == [int(pywrap_tfe.TF_ATTR_INT)])
    print(backprop.make_attr([int(pywrap_tfe.TF_ATTR_STRING)], ["a"]), backprop.make_attr(int(pywrap_tfe.TF_ATTR_TYPE), 1))
    rows = math_ops._as_indexed_slices(tf.constant([[1.0], [2.0]]))
    both = backprop_util.AggregateIndexedSlicesGradients([rows, None, tf.IndexedSlices(tf.constant([[5.0]]), tf.constant([1], tf.int64), tf.constant([2, 1]))])
    print(tf.convert_to_tensor(both).numpy().tolist(), both.indices.dtype, backprop_util.AggregateIndexedSlicesGradients([]))


def modules():
    wrapped = types.ModuleType("wrapped")
    wrapped.foo, wrapped._hidden = 1, 2
    all_renames_v2.symbol_renames["tf.here.foo"] = "tf.there.foo"
    module = module_wrapper.TFModuleWrapper(wrapped, "here", public_apis={"path": ("os", "path"), "sys": ("", "sys")})
    with mock.patch.object(tf_logging, "warning") as warning:
        print(module.foo, module.foo, module._hidden, warning.call_count, "path" in vars(module), module.path is os.path, "path" in vars(module))
    module.bar = 3
    print(wrapped.bar, sorted(module.__all__), outcome(lambda: module.nothing), module._fastdict_get("bar"))
    fast = fast_module_type.get_fast_module_type_class()("fast")
    fast._fastdict_insert("x", 1)
    print(fast.x, fast._fastdict_key_in("y"), outcome(fast._fastdict_get, "y"))


def captures():
    x, v = tf.random.normal([200]), tf.Variable(1.0)
    graph = tf.function(lambda y: y + x[0] + v).get_concrete_function(1.0).graph
    found = graph.function_captures
    print(sorted(str(kind.dtype) for kind in found.capture_types.values()), [len(pair) for pair in found.by_val_capture_tuples])
    own = capture_container.FunctionCaptures()
    own.add_or_replace("a", 1, -1)
    own.add_or_replace("b", lambda: 5, -2, 7, is_by_ref=True)
    print(own.by_val_capture_tuples, own.get_by_ref_snapshot(), own.pop("a")[:2], len(own.capture_types))


def descriptions():
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [3, 4])
    print(sparse._is_eager(), sparse._numpy().tolist(), outcome(sparse.with_values, [[5.0, 1.0]]), sparse.with_values([5.0, 1.0]).values.numpy())
    owned = []
    pointer = c_api_util.UniquePtr(name="mine", deleter=owned.append, obj="object")
    with pointer.get() as lent:
        print(lent, owned)
    del pointer
    gc.collect()
    print(owned)
    apis = c_api_util.ApiDefMap()
    apis.put_api_def('op {\n  graph_op_name: "Add"\n  summary: "Adds."\n  description: <<END\nTwo\nlines.\nEND\n}\n')
    print(apis.get_api_def("Add").summary, repr(apis.get_api_def("Add").description), apis.get_api_def("Sub").summary == "")
    proto = tensor_util.make_tensor_proto([1, 2, 3, 4], shape=[2, 2])
    print(tensor_util.ShapeEquals(proto, (2, 2)), tensor_util.ShapeEquals(proto, [4]), outcome(tensor_util.make_tensor_proto, [3], dtype=tf.qint8))
    make, arguments = tf.TensorShape([2, None]).__reduce__()
    print(make is tf.TensorShape, arguments)
    with tf.Graph().as_default() as graph:
        spec = type_spec.type_spec_from_value(np.array([1, 2], np.int32))
        print(spec, len(graph.get_operations()), spec._graph_placeholder(graph, "x").name, spec._graph_placeholder(graph, "a%!").name)
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), [2, 1])
    print(composite_tensor_gradient.get_flat_tensors_for_gradients([rows])[0] is rows, type(versions.__compiler_version__).__name__)


def states():
    print(mixed_precision_global_state.is_using_mixed_precision_policy(), mixed_precision_global_state.is_mixed_precision_graph_rewrite_enabled())
    tf.__internal__.train.set_using_mixed_precision_policy(True)
    print(mixed_precision_global_state.is_using_mixed_precision_policy())
    tf.__internal__.train.set_using_mixed_precision_policy(False)
    with tf.Graph().as_default() as graph:
        with ops.resource_creator_scope("Mine", print):
            print(len(graph._resource_creator_stack["Mine"]), len(graph._resource_creator_stack["Other"]))
        print(len(graph._resource_creator_stack["Mine"]))
    print(outcome(tf.nest.assert_same_structure, [1], [2], check_types=tf.ones(2)))
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default():
        tf.compat.v1.add_to_collection("numbers", 3)
        with tf.Graph().as_default() as other:
            tf.constant(1)
        tf.compat.v1.summary.FileWriter(folder, graph=other).close()
    events = list(tf.compat.v1.train.summary_iterator(os.path.join(folder, os.listdir(folder)[0])))
    meta = [tf.compat.v1.MetaGraphDef.FromString(event.meta_graph_def) for event in events if event.meta_graph_def]
    print([sorted(one.collection_def) for one in meta])
    apis = dispatch.apis_with_type_based_dispatch()
    print(math_ops.add in apis, array_ops.concat in apis, tf.Module in apis)

    def by_name(*args, b=2, c="Hello"):
        return args
    print(tf_inspect.getargspec(by_name).args, tf_inspect.getargspec(by_name).defaults)


def switches():
    print(tf2.enabled(), _pywrap_tf2.is_enabled())
    v2_compat.disable_v2_behavior()
    print(tf2.enabled(), _pywrap_tf2.is_enabled(), tf.executing_eagerly())


subscriptions()
unused_results()
stacks()
saved_models()
tapes()
modules()
captures()
descriptions()
states()
switches()


class Optimizer:
    """An optimizer that is none of TensorFlow's."""


class Scaled(Optimizer):
    """What wraps it."""

    def __init__(self, inner, loss_scale):
        self.inner, self.loss_scale = inner, loss_scale


mixed_precision.register_loss_scale_wrapper(Optimizer, lambda inner, scale: Scaled(inner, scale), Scaled)
wrapped = mixed_precision.enable_mixed_precision_graph_rewrite_v1(Optimizer(), 123.0)
print(type(wrapped).__name__, wrapped.loss_scale, outcome(mixed_precision.enable_mixed_precision_graph_rewrite_v1, wrapped))
mixed_precision.disable_mixed_precision_graph_rewrite_v1()
