"""Contexts of eager execution, placement on several CPUs, functions as nodes, and what tapes and accumulators record. Prints the same in stock."""

import weakref

from tensorflow.python.eager import backprop, context, def_function, forwardprop, forwardprop_util, monitoring, record
from tensorflow.python.eager.polymorphic_function import atomic_function, concrete_function
from tensorflow.python.framework import config, constant_op, dtypes, errors, ops, tensor
from tensorflow.python.ops import array_ops, math_ops, resource_variable_ops, variable_scope, variables

# Contexts
other = context.Context()
other.set_logical_cpu_devices(3)
print(len(other.list_logical_devices("CPU")), len(context.context().list_logical_devices("CPU")), context.context() is other)
try:
    other.set_logical_cpu_devices(2)
except RuntimeError as error:
    print(str(error).split(",")[0])
x = constant_op.constant(9.5)
original = context.context()
context._set_context(other)
y = constant_op.constant(1.5)
print((y + y).numpy(), len(config.list_logical_devices("CPU")))
context._set_context(original)
print((x + x).numpy(), y.numpy(), len(config.list_logical_devices("CPU")))
with original.device("GPU:0"):
    print(original.device_name, original.device_spec.device_type)
print(repr(original.device_name), repr(original.scope_name))

# Placement: a new context has two CPUs
context._reset_context()
config.set_logical_device_configuration(config.list_physical_devices("CPU")[0], [context.LogicalDeviceConfiguration()] * 2)
with ops.device("CPU:1"):
    a = constant_op.constant([1.0, 2.0])
    print(a.device[-5:], array_ops.identity(a).device[-5:])
with ops.device("GPU:0"):
    print(constant_op.constant(1.0).device[-5:], (a + 1.0).device[-5:])
config.set_soft_device_placement(False)
context._reset_context()
config.set_soft_device_placement(False)
try:
    with ops.device("GPU:7"):
        array_ops.identity(constant_op.constant([[1.0]]))
except (errors.InvalidArgumentError, RuntimeError):
    print("no such device")

# The handle of a variable keeps its value
handle = resource_variable_ops.ResourceVariable(3.0).handle
print(resource_variable_ops.read_variable_op(handle, dtypes.float32).numpy())
reference = weakref.WeakKeyDictionary()
key = x.ref()
reference[key] = 1
del key
print(len(reference))


# Functions
@def_function.function
def add(given):
    return {"sum": given["a"] + given["v"], "n": given["n"]}


given = {"a": constant_op.constant(1.0), "v": variables.Variable(2.0), "n": 3}
concrete = add.get_concrete_function(given)
definition, kind = concrete.function_def, concrete.function_type
del add, concrete
atomic = atomic_function.from_function_def(definition, kind)
result = concrete_function.ConcreteFunction(atomic)(given)
print(result["sum"].numpy(), result["n"].numpy(), str(atomic).split()[0])
found = def_function.function(lambda x: x * 2.0).get_concrete_function(constant_op.constant(1.0))
print(context.get_function_def(found.name).signature.name == found.name.decode())
try:
    context.get_function_def("this_is_not_there")
except errors.NotFoundError:
    print("not found")

# Timers
counter = monitoring.Counter("test/sections", "sections")
with monitoring.MonitoredTimer(counter.get_cell(), "one", avoid_repetitive_counting=True):
    with monitoring.MonitoredTimer(counter.get_cell(), "one", avoid_repetitive_counting=True):
        print(monitoring.MonitoredTimerSections)
    print(counter.get_cell().value())

# Tapes and accumulators
c, two, three = constant_op.constant(1.0), constant_op.constant(2.0), constant_op.constant(3.0)
with forwardprop.ForwardAccumulator([c, three], [two, constant_op.constant(4.0)]) as outer:
    with forwardprop.ForwardAccumulator(c, three):
        indices, tangents = forwardprop_util.pack_tangents([c])
        print(indices, [float(x) for x in tangents])
    with backprop.GradientTape(persistent=True) as tape:
        print(record.should_record_backprop([c]))
        tape.watch(c)
        print(record.should_record_backprop([c]), record.should_record_backprop([outer.jvp(math_ops.cos(c))]))
        with record.stop_recording():
            print(record.should_record_backprop([c]))
            d, e = c * two, c * three
        record.record_operation_forwardprop_only("Forward", [d], [c, two], lambda g: (two * g, c * g), None)
        record.record_operation_backprop_only("Backward", [e], [c, three], lambda g: (three * g, c * g))
        record.record_operation("Both", [f := constant_op.constant(7.0)], [c], lambda g: [5.0 * g], lambda t: [-t])
    print(float(outer.jvp(d)), outer.jvp(e), tape.gradient(d, c), float(tape.gradient(e, c)), float(tape.gradient(f, c)), float(outer.jvp(f)))
rule = forwardprop._jvp_dispatch(op_name="Mul", attr_tuple=(), inputs=(two, three), outputs=(c,), tangents=(c, two))
print([float(x) for x in rule])
try:
    forwardprop._jvp_dispatch("Add", (), (two, three), (c,), (constant_op.constant([1.0]), constant_op.constant([[1.0]])), use_batch=True)
except ValueError as error:
    print("was expected to be of shape" in str(error))

# Functions in plain graphs
made = []


@def_function.function
def doubled(x):
    ops.add_to_collection("inside", 1)
    return x * 2.0


@def_function.function
def with_variable(x):
    if not made:
        made.append(variables.Variable(3.0))
    return x * made[0]


pure = def_function.function(lambda x, y: x + y, experimental_implements="plus")
with ops.Graph().as_default() as graph:
    y = doubled(array_ops.placeholder(dtypes.float32, [2]))
    print(y.op.type, y.shape, ops.get_collection("inside"), len(graph.as_graph_def().library.function))
    v = variables.Variable(1.0, use_resource=True)
    first, second = pure(v, 2.0), pure(2.0, v)
    print(first.op.type, len(graph.as_graph_def().library.function))
    try:
        def_function.function(lambda x: x + y[0], experimental_implements="captures")(v)
    except AssertionError:
        print("captures")
    print(made == [], with_variable(constant_op.constant(2.0)).dtype, len(made))
    name = next(iter(graph._functions))
    graph._remove_function(name)
    print(graph._is_function(name))
    handle = def_function.function(lambda: v.handle)()
    print(resource_variable_ops.read_variable_op(handle, dtypes.float32).shape)

# Variables in functions
kept, own = [], []
with variable_scope.variable_creator_scope(lambda following, **kwargs: kept.append(1) or following(**kwargs)):
    print(def_function.function(lambda: (own or own.append(variables.Variable(4.0)) or own)[0] + 1.0)().numpy(), len(kept) > 0)
direct = def_function.function(lambda: resource_variable_ops.ResourceVariable(lambda: constant_op.constant(2.0)).read_value())
print(direct().numpy())
concrete = doubled.get_concrete_function(constant_op.constant([1.0]))
print(concrete(constant_op.constant([1.0, 2.0])).numpy())
captured = array_ops.ones([200])
concrete = def_function.function(lambda: captured + 1.0).get_concrete_function()
try:
    concrete.replace_capture_with_deferred_capture(captured, lambda: True, spec=tensor.TensorSpec([], dtypes.bool))
except ValueError as error:
    print(str(error).split(" TensorSpec")[0])
concrete.replace_capture_with_deferred_capture(captured, lambda: captured * 2.0, spec=tensor.TensorSpec([200], dtypes.float32))
print(concrete().numpy()[0])
