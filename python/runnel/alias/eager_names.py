"""tensorflow.python.eager.context, execute and pywrap_tfe: what TensorFlow's own tests of eager execution import."""

import contextlib
import socket

from runnel import config, errors, raw_ops
from runnel.config import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice  # noqa: F401
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.tensor_shape import TensorShape
from runnel.dtypes import DType
from runnel.eager import context as eager
from runnel.eager.backprop import stop_recording  # noqa: F401
from runnel.eager.cancellation import CancellationManager  # noqa: F401

IMPLEMENTS = "_implements"
GRAPH_MODE, EAGER_MODE = 0, 1
_NotOkStatusException = errors.OpError


class _FallbackException(Exception):
    """Raised where the fast path does not apply: never."""


def ensure_initialized():
    """Creates the eager context."""
    eager.start()


def global_seed():
    """Returns the seed that tf.random.set_seed set, or None."""
    return eager.seed_state()[0]


def eager_mode():
    """A context manager: eager execution."""
    from runnel.alias import test_util
    return test_util.eager_mode()


@contextlib.contextmanager
def graph_mode():
    """A context manager: the default graph."""
    with framework.get_default_graph().as_default():
        yield


def in_eager_mode():
    """Tells whether operations run when they are called."""
    return framework.executing_eagerly()


def in_graph_mode():
    """Tells whether operations build a graph."""
    return not framework.executing_eagerly()


@contextlib.contextmanager
def execution_mode(mode):
    """A context manager: operations run before they return, whatever the mode."""
    yield


device_policy = execution_mode


@contextlib.contextmanager
def async_scope():
    """A context manager: operations may run after they return. Here they run before, so that errors are raised at once."""
    yield
    eager.async_wait()


@contextlib.contextmanager
def function_executor_type(executor_type):
    """A context manager: which executor runs functions. There is one here, so it changes nothing."""
    yield


class Executor:
    """Runs operations at once."""

    def __init__(self, is_async=False):
        self._is_async = is_async

    def is_async(self):
        """Tells whether operations may run after they return."""
        return self._is_async

    def wait(self):
        """Waits for operations."""
        eager.async_wait()

    def clear_error(self):
        """Does nothing: errors are raised at once."""

    def handle(self):
        """Returns None."""


def new_executor(enable_async, enable_streaming_enqueue=True, in_flight_nodes_limit=0):
    """Returns an executor."""
    return Executor(enable_async)


@contextlib.contextmanager
def executor_scope(e):
    """A context manager: operations run before they return."""
    yield


def async_clear_error():
    """Does nothing: errors are raised at once."""


def is_tfrt_enabled():
    """Returns False."""
    return False


run_eager_op_as_function_enabled = is_tfrt_enabled


def get_device_name():
    """Returns the device that tf.device set, or ""."""
    from runnel import _core
    name = _core.eager_device(None)
    _core.eager_device(name)
    return name or ""


def is_custom_device(device_name):
    """Returns False: Python programs cannot register custom devices."""
    return False


def get_function_def(name):
    """Returns the FunctionDef of a function of the eager context."""
    from runnel.core.protobuf import message_class
    from runnel.eager import tracing
    name = name.decode() if isinstance(name, bytes) else name
    found = tracing.eager_functions().get(name)
    if found is None:
        raise errors.NotFoundError(None, None, "Unable to find FunctionDef: %s" % name)
    return message_class("FunctionDef").FromString(found)


# execute

def execute(op_name, num_outputs, inputs, attrs=None, ctx=None, name=None):
    """Runs an op by name. Returns its `num_outputs` outputs as a list.

    Args:
      op_name: the name of the op.
      num_outputs: how many outputs it has.
      inputs: the tensors, in a flat list.
      attrs: a flat tuple of names of attributes and their values.
      ctx: the eager context.
      name: the name of the operation.
    """
    if not isinstance(num_outputs, int):
        raise TypeError("expected int for num_outputs, got %s" % type(num_outputs).__name__)
    op_name = op_name.decode() if isinstance(op_name, bytes) else op_name
    function = getattr(raw_ops, op_name, None)
    if function is None:
        raise errors.NotFoundError(None, None, "Op type not registered '%s'" % op_name)
    from runnel.core.protobuf import message_class
    definition = message_class("OpDef").FromString(function._op_def)
    own = dict(zip([attr.name for attr in definition.attr], [attr.name for attr in raw_ops._op_def(function).attr]))
    pairs = dict(zip((attrs or ())[::2], (attrs or ())[1::2]))
    unknown = sorted(pairs.keys() - own.keys())
    if unknown:
        raise errors.InvalidArgumentError(None, None, "Attribute '%s' does not exist for operation '%s'" % (unknown[0], op_name))
    for attr in definition.attr:
        if attr.name in pairs:
            _check_attribute(attr, pairs[attr.name])
    given, counts = _by_argument(definition, list(inputs), pairs)
    try:
        result = function(*given, **{own[key]: value for key, value in pairs.items() if key not in counts}, name=name)
    except (TypeError, ValueError) as error:
        raise errors.InvalidArgumentError(None, None, str(error)) from None
    if result is None or isinstance(result, framework.Operation):
        return []
    if not isinstance(result, (list, tuple)):
        return [result]
    return [part for item in result for part in (item if isinstance(item, (list, tuple)) else [item])]


def _check_attribute(attr, value):
    """Raises InvalidArgumentError if a value is no list where the attribute is one, or has items that are no numbers or strings."""
    is_list = attr.type.startswith("list(")
    items, kind = (value if is_list and isinstance(value, (list, tuple)) else [value]), attr.type.removeprefix("list(").removesuffix(")")
    wanted = {"int": int, "float": (int, float), "bool": (int, bool), "string": (str, bytes)}.get(kind)
    fits = (not is_list or isinstance(value, (list, tuple))) and (wanted is None or all(isinstance(item, wanted) for item in items))
    if kind == "shape" and fits:
        fits = all(item is None or isinstance(item, (list, tuple, TensorShape)) for item in items)
    if kind == "type" and fits:
        fits = all(isinstance(item, (int, DType)) for item in items)
    if not fits:
        raise errors.InvalidArgumentError(None, None, "Expecting %s value for attr %s, got %s" % (attr.type, attr.name, type(value).__name__))


def _by_argument(definition, inputs, pairs):
    """Returns (a flat list of tensors divided among the op's arguments, names of the attributes that follow from them)."""
    given, counts = [], set()
    for arg in definition.input_arg:
        if arg.number_attr or arg.type_list_attr:
            key = arg.number_attr or arg.type_list_attr
            size = pairs.get(key, len(inputs))
            size = len(size) if isinstance(size, (list, tuple)) else size
            given.append([inputs.pop(0) for _ in range(min(size, len(inputs)))])
            counts.add(key)
        elif inputs:
            given.append(inputs.pop(0))
        if arg.type_attr:
            counts.add(arg.type_attr)
    if inputs:
        raise errors.InvalidArgumentError(None, None, "The op '%s' has %d more inputs than expected." % (definition.name, len(inputs)))
    return given, counts


def args_to_matching_eager(inputs, ctx, allowed_dtypes, default_dtype=None):
    """Converts values to tensors of one type. Returns (the type, the tensors)."""
    known = next((x.dtype for x in inputs if isinstance(x, framework.Tensor)), None)
    made = []
    for value in inputs:
        tensor = convert_to_tensor(value, known)
        if known is None and allowed_dtypes and tensor.dtype not in allowed_dtypes and default_dtype is not None:
            tensor = convert_to_tensor(value, dtype_hint=default_dtype)
        known = known or tensor.dtype
        made.append(tensor)
    return known or default_dtype, made


def convert_to_mixed_eager_tensors(values, ctx):
    """Converts values to tensors. Returns (their types, the tensors)."""
    made = [convert_to_tensor(value) for value in values]
    return [x.dtype for x in made], made


def graph_placeholder(dtype, shape, name=None):
    """Returns a placeholder of the graph under construction."""
    return raw_ops.Placeholder(dtype=dtype, shape=shape, name=name)


# pywrap_tfe

TF_ATTR_STRING, TF_ATTR_INT, TF_ATTR_FLOAT, TF_ATTR_BOOL, TF_ATTR_TYPE, TF_ATTR_SHAPE, TF_ATTR_TENSOR, TF_ATTR_FUNC = range(8)


def TF_PickUnusedPortOrDie():  # noqa: N802
    """Returns a free port."""
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


def TF_ListPluggablePhysicalDevices():  # noqa: N802
    """Returns the devices of plug-ins: none are listed apart from the others."""
    return []


def TFE_Py_FastPathExecute(ctx, op_name, name, *args):  # noqa: N802
    """Runs an op by name; after its inputs come names and values of attributes."""
    function = getattr(raw_ops, op_name, None)
    if function is None:
        raise errors.NotFoundError(None, None, "Op type not registered '%s'" % op_name)
    from runnel.core import op_def_registry
    count = len(op_def_registry.get(op_name).input_arg)
    return function(*args[:count], **dict(zip(args[count::2], args[count + 1::2])), name=name)


def TFE_Py_TensorShapeSlice(tensors, slice_dim):  # noqa: N802
    """Returns a vector of one dimension of the shape of each tensor."""
    from runnel import dtypes
    if not isinstance(tensors, (list, tuple)):
        raise TypeError("tensors argument must be a list or a tuple. Got \"%s\"" % type(tensors).__name__)
    if slice_dim < 0:
        raise ValueError("Slice dimension must be non-negative. Got %d" % slice_dim)
    sizes = []
    for tensor in tensors:
        if not isinstance(tensor, framework.Tensor):
            raise TypeError("Expected a list of EagerTensors but element %d has type \"%s\"" % (len(sizes), type(tensor).__name__))
        if slice_dim >= tensor.shape.rank:
            raise IndexError("Slice dimension (%d) must be smaller than rank of all tensors, but tensor at index %d has rank %d" % (
                slice_dim, len(sizes), tensor.shape.rank))
        sizes.append(tensor.shape[slice_dim])
    return convert_to_tensor(sizes, dtypes.int32)


run_functions_eagerly, functions_run_eagerly = config.run_functions_eagerly, config.functions_run_eagerly
