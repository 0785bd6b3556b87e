"""Contexts of eager execution, placement on several CPUs, and functions without what they capture. Prints the same in stock."""

import weakref

from tensorflow.python.eager import context, def_function, monitoring
from tensorflow.python.eager.polymorphic_function import atomic_function, concrete_function
from tensorflow.python.framework import config, constant_op, dtypes, errors, ops
from tensorflow.python.ops import array_ops, resource_variable_ops, variables

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
