"""Graphs, operations and tensors, and the scopes in which new operations are created.

The types themselves are C (python/ext/graph.c). This file adds what is not needed for every node: collections,
stacks of scopes, text forms.
"""

import contextlib
import re
import threading

from runnel import _core, errors
from runnel.core import attr_values, device_spec as device_lib, tensor_shape

_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")
_ROOT_SCOPE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


class GraphKeys:
    """The names of the collections that the library itself uses."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    REGULARIZATION_LOSSES = "regularization_losses"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    _SUMMARY_COLLECTION = "_SUMMARY_V2"
    _VARIABLE_COLLECTIONS = [GLOBAL_VARIABLES, LOCAL_VARIABLES, METRIC_VARIABLES, MODEL_VARIABLES,
                             TRAINABLE_VARIABLES, MOVING_AVERAGE_VARIABLES, CONCATENATED_VARIABLES,
                             "trainable_resource_variables"]


class Operation(_core.Operation):
    """A node of a graph: `name`, `type`, `inputs`, `outputs`, `control_inputs`, `device`, `graph`.

    The functions that build graphs create operations.
    """

    def __repr__(self):
        return "<tf.Operation '%s' type=%s>" % (self.name, self.type)

    def __str__(self):
        return str(self.node_def)

    @property
    def node_def(self):
        """The NodeDef."""
        from runnel.core.protobuf import message_class
        return message_class("NodeDef").FromString(self._node_def())

    @property
    def op_def(self):
        """The OpDef."""
        from runnel.core.protobuf import message_class
        return message_class("OpDef").FromString(_core.op_def(self.type) or b"")

    @property
    def traceback(self):
        """[(file, line, function)] of the program's line that created it."""
        where = self._defined_at
        return [where] if where else []

    @property
    def values(self):
        """Returns the outputs as a tuple."""
        return lambda: tuple(self.outputs)

    def get_attr(self, name):
        """Returns the value of an attribute."""
        value = self._get_attr(name)
        if type(value) is not tuple:
            return value
        from runnel.core.protobuf import message_class
        attr = message_class("AttrValue").FromString(value[0])
        field = attr.WhichOneof("value")
        if field == "list":
            for row in attr.list.ListFields():
                return list(row[1])
            return []
        return getattr(attr, field)

    def _set_attr(self, name, attr_value):
        self._set_attr_bytes(name, attr_value.SerializeToString())

    def _set_device(self, device):
        self._set_device_string(device_lib.canonical_name(device))

    def _add_control_inputs(self, ops):
        for op in ops:
            self._add_control_input(op)

    def colocation_groups(self):
        """Returns the colocation groups, such as [b"loc:@name"]."""
        try:
            groups = [group for group in self.get_attr("_class") if group.startswith(b"loc:@")]
        except ValueError:
            groups = []
        return groups or [b"loc:@" + self.name.encode()]

    def run(self, feed_dict=None, session=None):
        """Runs the operation in a session, by default the default one."""
        _session_for(self.graph, session).run(self, feed_dict)

    def _get_control_flow_context(self):
        return self.__dict__.get("_control_flow_context")

    def _set_control_flow_context(self, context):
        self._control_flow_context = context

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


# Libraries recognize tensors by a base of this name and module, without importing TensorFlow.
RecognizedTensor = type("Tensor", (), {"__module__": "tensorflow.python.types.core", "__doc__": "The base of tensors.", "__slots__": ()})


class Tensor(_core.Tensor, RecognizedTensor):  # type: ignore[misc, valid-type]
    """An output of an operation: `op`, `value_index`, `dtype`, `shape`, `name`, `graph`.

    It holds no value; `Session.run` computes it.
    """

    __array_priority__ = 100
    OVERLOADABLE_OPERATORS = {"__%s__" % name for name in """
    abs add and div eq floordiv ge getitem gt invert le lt matmul mod mul ne neg or pow radd rand rdiv
    rfloordiv rmatmul rmod rmul ror rpow rsub rtruediv rxor sub truediv xor""".split()}

    @property
    def shape(self):
        """The static shape, a TensorShape."""
        return tensor_shape.TensorShape(self._dims())

    def get_shape(self):
        """Returns the static shape, a TensorShape."""
        return tensor_shape.TensorShape(self._dims())

    @property
    def ndim(self):
        """The number of dimensions, or None."""
        return self._rank()

    def set_shape(self, shape):
        """Refines the static shape. Raises ValueError if the shapes contradict each other."""
        dims = tensor_shape.as_shape(shape)._dims
        if dims is not None:
            self._set_dims([-1 if d is None else d for d in dims])

    def _shape_tuple(self):
        return self._dims()

    def _as_tf_output(self):
        return self

    @property
    def device(self):
        """The device that the operation asks for."""
        return self.op.device

    def eval(self, feed_dict=None, session=None):
        """Returns the value in a session, by default the default one."""
        return _session_for(self.graph, session).run(self, feed_dict)

    def _as_graph_element(self):
        return self

    def _rank(self):
        dims = self._dims()
        return None if dims is None else len(dims)

    def __repr__(self):
        return "<tf.Tensor '%s' shape=%s dtype=%s>" % (self.name, self.shape, self.dtype.name)

    def __str__(self):
        return "Tensor(\"%s\"%s, dtype=%s%s)" % (
            self.name,
            "" if self._dims() is None else ", shape=%s" % self.shape,
            self.dtype.name,
            ", device=%s" % self.op.device if self.op.device else "")

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other

    def __copy__(self):
        return self

    def ref(self):
        """Returns a reference: an object with a hash, which `deref()` turns into this tensor."""
        from runnel.ops.variables import Reference
        return Reference(self)

    def __bool__(self):
        if self.graph._building_function:
            raise errors.OperatorNotAllowedInGraphError(
                "Using a `tf.Tensor` as a Python `bool` is not allowed: a tf.function is traced before %s has a "
                "value. Write tf.cond(condition, true_fn, false_fn) instead of `if`, tf.while_loop(cond, body, "
                "loop_vars) instead of `while`, tf.logical_and instead of `and`; `if t is not None:` tests if a tensor is "
                "defined." % self.name)
        raise errors.OperatorNotAllowedInGraphError(
                        "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not "
                        "None:` instead of `if t:` to test if a tensor is defined, and use "
                        "TensorFlow ops such as tf.cond to execute subgraphs conditioned on the "
                        "value of a tensor.")

    __nonzero__ = __bool__

    @property
    def numpy(self):
        """Raises an error: a tensor of a graph has no value."""
        raise AttributeError("%r object has no attribute 'numpy': %s is a node of a graph. %s" % (
            type(self).__name__, self.name, _how_to_get_values(self.graph)))

    def __len__(self):
        raise TypeError("len is not well defined for a symbolic Tensor. (%s) Please call `x.shape` "
                        "rather than `len(x)` for shape information." % self.name)

    def __iter__(self):
        dims = self._dims()
        if dims is None or not dims or dims[0] is None:
            raise errors.OperatorNotAllowedInGraphError(
                "Cannot iterate over a tensor with %s first dimension." % ("no" if dims == () else "unknown"))
        return (self[i] for i in range(dims[0]))

    def __array__(self, *args, **kwargs):
        raise NotImplementedError(
            "Cannot convert a symbolic tf.Tensor (%s) to a numpy array. This error may indicate "
            "that you're trying to pass a Tensor to a NumPy call, which is not supported." % self.name)


def _how_to_get_values(graph):
    """For messages: returns how the program can get the value of a tensor."""
    if graph._building_function:
        return "A tf.function is traced before there are values; return the tensor, or use tf.py_function."
    return ("tf.Session().run(x) computes its value; with tf.enable_eager_execution() at the start of the program "
            "tensors have values.")


def _session_for(graph, session):
    if session is None:
        from runnel.core import session as session_lib
        session = session_lib.get_default_session()
        if session is None:
            raise ValueError("Cannot evaluate tensor using `eval()` or `run()`: No default session "
                             "is registered. Use `with sess.as_default()` or pass an explicit "
                             "session")
    if session.graph is not graph:
        raise ValueError("Cannot use the given session to evaluate the tensor or operation: it is "
                         "in another graph than the session's")
    return session


class Graph(_core.Graph):
    """A dataflow graph.

    Operations are created in the default graph, which is this one inside `with g.as_default():`.
    """

    def __init__(self):
        self.seed = None
        self._collections = {}
        self._device_stack = []
        self._colocation_stack = []
        self._control_flow_context = None
        self._container = ""
        self._unfeedable = set()
        self._unfetchable = set()
        self._building_function = False
        self._gradient_overrides = {}
        self._scopes = {}  # state of other modules for this graph, by module name
        self._observers = []
        self.outer_graph = None
        self._seeds_given = 0

    # The default graph

    def as_default(self):
        """A context manager that makes this the default graph."""
        return _DefaultGraph(self)

    def switch_to_thread_local(self):
        """Does nothing: each thread has its own default graph, and devices belong to the graph."""

    # Operations and tensors by name

    def as_graph_def(self, from_version=None, add_shapes=False):
        """Returns the GraphDef. With `add_shapes`, nodes get the attribute `_output_shapes`."""
        from runnel.core.protobuf import message_class
        graph_def = message_class("GraphDef").FromString(_core.to_graph_def(self))
        if from_version is not None:
            del graph_def.node[:from_version]
        if add_shapes:
            for node in graph_def.node:
                shapes = node.attr["_output_shapes"].list
                shapes.SetInParent()
                for tensor in self._find(node.name).outputs:
                    shapes.shape.append(tensor.shape.as_proto())
        return graph_def

    @property
    def graph_def_versions(self):
        """The VersionDef of the graph."""
        return self.as_graph_def().versions

    @property
    def version(self):
        """A number that grows with the graph."""
        return self._last_id

    @property
    def building_function(self):
        """Whether this is the graph of a function."""
        return self._building_function

    def get_operation_by_name(self, name):
        """Returns the operation of that name. Raises KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError("Operation names are strings (or similar), not %s." % type(name).__name__)
        return self.as_graph_element(name, allow_tensor=False)

    def get_tensor_by_name(self, name):
        """Returns the tensor "operation:index". Raises KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError("Tensor names are strings (or similar), not %s." % type(name).__name__)
        return self.as_graph_element(name, allow_operation=False)

    def _get_operation_by_name(self, name):
        return self.get_operation_by_name(name)

    def as_graph_element(self, obj, allow_tensor=True, allow_operation=True):
        """Returns the tensor or operation that `obj` names or stands for."""
        if isinstance(obj, Tensor) and obj.op is not None:
            if not allow_tensor:
                raise TypeError("Can not convert a Tensor into an Operation.")
            if obj.graph is not self:
                raise ValueError("Tensor %s is not an element of this graph." % obj)
            return obj
        if isinstance(obj, Operation):
            if not allow_operation:
                raise TypeError("Can not convert a Operation into a Tensor.")
            if obj.graph is not self:
                raise ValueError("Operation %r is not an element of this graph." % obj)
            return obj
        element = getattr(obj, "_as_graph_element", None)
        if element is not None:
            return self.as_graph_element(element(), allow_tensor, allow_operation)
        if isinstance(obj, bytes):
            obj = obj.decode()
        if not isinstance(obj, str):
            what = " or ".join(w for w, ok in (("Tensor", allow_tensor),
                                               ("Operation", allow_operation)) if ok)
            raise TypeError("Can not convert a %s into a %s." % (type(obj).__name__, what))
        if ":" in obj:
            return self._tensor_named(obj, allow_tensor)
        op = self._find(obj)
        if not allow_operation:
            raise ValueError(
                "The name %r %s. Tensor names must be of the form \"<op_name>:<output_index>\"." % (
                    obj, "looks like an (invalid) Operation name, not a Tensor" if op is None else
                    "refers to an Operation, not a Tensor"))
        if op is None:
            raise KeyError("The name %r refers to an Operation not in the graph." % obj)
        return op

    def _tensor_named(self, name, allow_tensor):
        if not allow_tensor:
            raise ValueError("Name %r appears to refer to a Tensor, not a Operation." % name)
        op_name, _, index = name.rpartition(":")
        if not index.isdigit() or ":" in op_name:
            raise ValueError("The name %r looks a like a Tensor name, but is not a valid one. Tensor "
                             "names must be of the form \"<op_name>:<output_index>\"." % name)
        op = self._find(op_name)
        if op is None:
            raise KeyError("The name %r refers to a Tensor which does not exist. The operation, %r, "
                           "does not exist in the graph." % (name, op_name))
        outputs = op.outputs
        if int(index) >= len(outputs):
            raise KeyError("The name %r refers to a Tensor which does not exist. The operation, %r, "
                           "exists but only has %d outputs." % (name, op_name, len(outputs)))
        return outputs[int(index)]

    def is_feedable(self, tensor):
        """Tells whether a tensor may be fed."""
        return tensor not in self._unfeedable

    def prevent_feeding(self, tensor):
        """Makes it an error to feed a tensor."""
        self._unfeedable.add(tensor)

    def is_fetchable(self, tensor_or_op):
        """Tells whether a tensor or operation may be fetched."""
        return getattr(tensor_or_op, "op", tensor_or_op) not in self._unfetchable

    def prevent_fetching(self, op):
        """Makes it an error to fetch an operation or its outputs."""
        self._unfetchable.add(op)

    @property
    def _c_graph(self):
        return self

    def finalize(self):
        """Makes the graph read-only."""
        self._finalized = True

    @property
    def finalized(self):
        """Whether the graph is read-only."""
        return self._finalized

    def _unsafe_unfinalize(self):
        self._finalized = False

    def _check_not_finalized(self):
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    # Creating operations

    def create_op(self, op_type, inputs, dtypes=None, input_types=None, name=None, attrs=None,
                  op_def=None, compute_shapes=True, compute_device=True):
        """Creates an operation from a flat list of inputs, and attributes as values or AttrValues."""
        from runnel import raw_ops
        values = {}
        for key, value in (attrs or {}).items():
            values[key] = attr_values.plain(value)
        return getattr(raw_ops, op_type)._create(self, list(inputs), values, name or op_type)

    @contextlib.contextmanager
    def name_scope(self, name):
        """A context manager that gives names the prefix "name/", made unique."""
        if name:
            if isinstance(name, bytes):
                name = name.decode()
            pattern = _SCOPE_NAME if self._name_stack else _ROOT_SCOPE_NAME
            if not pattern.match(name):
                raise ValueError("'%s' is not a valid scope name" % name)
        before = self._name_stack
        if not name:
            scope = ""
        elif name[-1] == "/":
            scope = name[:-1]
        else:
            scope = self.unique_name(name)
        self._name_stack = scope
        try:
            yield scope + "/" if scope else ""
        finally:
            self._name_stack = before

    def get_name_scope(self):
        """Returns the current name scope without its last "/"."""
        return self._name_stack

    @contextlib.contextmanager
    def device(self, device_name_or_function):
        """A context manager that sets the device of new operations.

        The device is a string, a function of an operation that returns one, or None to ignore the surrounding contexts.
        """
        spec = device_name_or_function
        if spec is not None and not callable(spec):
            spec = device_lib.canonical_name(spec)
        self._device_stack.append(spec)
        self._scopes_changed()
        try:
            yield
        finally:
            self._device_stack.pop()
            self._scopes_changed()

    @contextlib.contextmanager
    def colocate_with(self, op, ignore_existing=False):
        """A context manager that places new operations on the device of `op`."""
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        if op is not None and not isinstance(op, Operation):
            op = _to_operation(op)
        devices, colocation = self._device_stack, self._colocation_stack
        self._device_stack = []
        self._colocation_stack = ([] if ignore_existing else list(colocation))
        if op is not None:
            self._colocation_stack.append(op)
        self._scopes_changed()
        try:
            yield
        finally:
            self._device_stack, self._colocation_stack = devices, colocation
            self._scopes_changed()

    def _enter_references(self, ops):
        """For C: like colocate_with, for one node that takes references to `ops`."""
        before = self._device_stack, self._colocation_stack
        self._device_stack, self._colocation_stack = [], self._colocation_stack + ops
        self._scopes_changed()
        return before

    def _exit_references(self, before):
        self._device_stack, self._colocation_stack = before
        self._scopes_changed()

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs):
        """A context manager that makes new operations run after `control_inputs`; None ignores the surrounding contexts."""
        stack, context = self._control_stack, self._control_flow_context
        if control_inputs is None:
            self._control_stack = []
            self._set_control_flow_context(None)
        else:
            known = {op for group in stack for op in group[0]}
            ops = []
            for item in control_inputs:
                op = _to_operation(item)
                if op not in known and (context is None or context.keeps_control_input(op)):
                    known.add(op)
                    ops.append(op)
            self._control_stack = stack + [(tuple(ops), set())]
        try:
            yield
        finally:
            self._control_stack = stack
            if control_inputs is None:
                self._set_control_flow_context(context)

    def _current_control_dependencies(self):
        return [op for group in self._control_stack for op in group[0]]

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map):
        """A context manager that gives operations of a type another gradient, by its registered name."""
        before = self._op_type_attributes
        after = {key: dict(value) for key, value in before.items()}
        for op_type, gradient in op_type_map.items():
            after.setdefault(op_type, {})["_gradient_op_type"] = attr_values.to_bytes("string", gradient)
        self._op_type_attributes = after
        try:
            yield
        finally:
            self._op_type_attributes = before

    @contextlib.contextmanager
    def _attr_scope(self, attrs):
        before = self._attributes
        after = dict(before)
        for key, value in attrs.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value.SerializeToString()
        self._attributes = after
        try:
            yield
        finally:
            self._attributes = before

    @contextlib.contextmanager
    def container(self, container_name):
        """A context manager that puts the state of new operations into a resource container."""
        before = self._container
        self._container = container_name
        self._scopes_changed()
        try:
            yield container_name
        finally:
            self._container = before
            self._scopes_changed()

    # Effects of the scopes on the next operation

    def _get_control_flow_context(self):
        return self._control_flow_context

    def _set_control_flow_context(self, context):
        self._control_flow_context = context
        self._scopes_changed()

    def _observe(self, observer):
        """Calls `observer` for every new operation from now on."""
        self._observers.append(observer)
        self._scopes_changed()

    def _observe_no_more(self, observer):
        self._observers.remove(observer)
        self._scopes_changed()

    def _scopes_changed(self):
        """Tells C what new operations get, and whether Python must see them (`_after_op`)."""
        stack = self._device_stack
        simple = not any(callable(spec) for spec in stack)
        device = ""
        if simple:
            for spec in stack:
                device = "" if spec is None else device_lib.merge(device, spec) if device else spec
        groups = set()
        for op in self._colocation_stack:
            groups.update(op.colocation_groups())
            if op.device and not device:
                device = op.device
        self._device_string = device or None
        self._colocation = tuple(sorted(groups))
        is_seen = not simple or self._control_flow_context is not None or self._observers or self._container
        self._hook = self._after_op if is_seen else None

    def _after_op(self, op):
        if self._container:
            self._apply_container(op)
        if any(callable(spec) for spec in self._device_stack):
            self._apply_device_functions(op)
        context = self._control_flow_context
        if context is not None:
            op._control_flow_context = context
            context.AddOp(op)
        for observer in self._observers:
            observer(op)

    def _apply_container(self, op):
        """Puts a stateful operation without a container into the current one."""
        definition = op.op_def
        has_container = definition.is_stateful and any(attr.name == "container" for attr in definition.attr)
        if has_container and not op.get_attr("container"):
            from runnel.core.protobuf import message_class
            op._set_attr("container", message_class("AttrValue")(s=self._container.encode()))

    def _apply_device_functions(self, op):
        for spec in reversed(self._device_stack):
            if spec is None:
                break
            if callable(spec):
                op._set_device(spec(op))
            else:
                op._set_device(device_lib.merge(spec, op.device))

    # Collections

    def add_to_collection(self, name, value):
        """Appends a value to a collection of this graph."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names, value):
        """Appends a value to several collections of this graph."""
        names = (names,) if isinstance(names, str) else dict.fromkeys(names)
        for name in names:
            self.add_to_collection(name, value)

    def get_collection_ref(self, name):
        """Returns the collection's list itself."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name, scope=None):
        """Returns a copy of a collection. `scope` is a regular expression that names must begin with."""
        values = self._collections.get(name, [])
        if scope is None:
            return list(values)
        pattern = re.compile(scope)
        return [v for v in values if hasattr(v, "name") and pattern.match(v.name)]

    def get_all_collection_keys(self):
        """Returns the names of all collections."""
        return [name for name in self._collections if isinstance(name, str)]

    @property
    def collections(self):
        """The names of all collections."""
        return self.get_all_collection_keys()

    def clear_collection(self, name):
        """Empties a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    def _next_seed(self):
        """Returns the seed of the next random operation that has no seed of its own."""
        self._seeds_given += 1
        return self._seeds_given - 1

    def _is_function(self, name):
        return name in _core.functions_of(self)

    def __repr__(self):
        return "<tf.Graph of %d operations>" % self._last_id

    def _repr_svg_(self):
        from runnel.core import graph_svg
        return graph_svg.draw(self)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


def _to_operation(value):
    if isinstance(value, Operation):
        return value
    if isinstance(value, Tensor):
        return value.op
    change = getattr(value, "_parent_op", None)  # of a variable after an update: the operation that updates it
    if isinstance(change, Operation):
        return change
    element = getattr(value, "_as_graph_element", None)
    if element is not None:
        return _to_operation(element())
    op = getattr(value, "op", None)  # IndexedSlices, SparseTensor, Variable
    if isinstance(op, Operation):
        return op
    raise TypeError("Control input must be Operation or Tensor, not %r" % (value,))


# --- The default graph

class _Stack(threading.local):
    def __init__(self):
        self.graphs = []


_stack = _Stack()
_default_graph = None
_eager_enabled = False


def _global_graph():
    global _default_graph
    if _eager_enabled:
        return None
    if _default_graph is None:
        _default_graph = Graph()
    return _default_graph


class _DefaultGraph:
    """A context manager that makes a graph the default; None means eager execution."""

    __slots__ = ("_graph",)

    def __init__(self, graph):
        self._graph = graph

    def __enter__(self):
        _stack.graphs.append(self._graph)
        _core.set_current(self._graph)
        return self._graph

    def __exit__(self, *exc):
        graphs = _stack.graphs
        if graphs:  # empty if a test's setUp cleared it meanwhile
            if graphs[-1] is not self._graph:
                raise AssertionError("Nesting violated for default stack of graphs")
            graphs.pop()
        _core.set_current(graphs[-1] if graphs else False)


def executing_eagerly():
    """Tells whether operations run when they are called."""
    return _core.current() is None


def get_default_graph():
    """Returns the graph in which this thread creates operations."""
    graph = _core.current()
    if graph is None:
        # A program that executes eagerly may still build a graph.
        global _default_graph
        if _default_graph is None:
            _default_graph = Graph()
        return _default_graph
    return graph


def has_default_graph():
    """Tells whether this thread is inside `with graph.as_default()`."""
    return _default_graph is not None


def reset_default_graph():
    """Replaces the default graph by a new, empty one."""
    global _default_graph
    if _stack.graphs:
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs. If you "
                             "need a cleared graph, exit the nesting and create a new graph.")
    _default_graph = Graph()


# --- Scopes of the default graph

class _EagerScope(threading.local):
    """The name scope of eager execution: `name`, with a "/" at its end."""

    name = ""


eager_scope = _EagerScope()


class name_scope:  # noqa: N801
    """A context manager: `with tf.name_scope(name)` gives new operations the prefix "name/".

    Functions that build graphs call name_scope(name, default_name, values): `name` may be None, and `values` are the
    tensors they work on.
    """

    __slots__ = ("_name", "_values", "_graph", "_before", "_default")

    def __init__(self, name, default_name=None, values=None, skip_on_eager=True):
        self._name = default_name if name is None else name
        self._values = values
        self._default = None
        if self._name is None and values is not None:
            raise ValueError("At least one of name (None) and default_name (None) must be provided.")
        if self._name is not None and not isinstance(self._name, str):
            raise TypeError("name for name_scope must be a string.")

    @property
    def name(self):
        """The name that the caller gave."""
        return self._name

    def __enter__(self):
        graph = _core.current()
        if graph is None:
            self._graph = None
            return self._name + "/" if self._name else ""
        if self._values and not graph._building_function:
            other = _graph_of(self._values, graph)
            if other is not graph:
                self._default = _DefaultGraph(other)
                self._default.__enter__()
                graph = other
        self._graph = graph
        self._before = before = graph._name_stack
        name = self._name
        if not name:
            scope = ""
        elif name[-1] == "/":
            scope = name[:-1]
        else:
            pattern = _SCOPE_NAME if before else _ROOT_SCOPE_NAME
            if not pattern.match(name):
                raise ValueError("'%s' is not a valid scope name" % name)
            scope = graph.unique_name(name)
        graph._name_stack = scope
        return scope + "/" if scope else ""

    def __exit__(self, *exc):
        if self._graph is not None:
            self._graph._name_stack = self._before
        if self._default is not None:
            self._default.__exit__()


def _graph_of(values, default):
    for value in values:
        if isinstance(value, Tensor):
            return value.graph or default
        if isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, Tensor):
                    return item.graph or default
        else:
            graph = getattr(value, "graph", None)
            if isinstance(graph, Graph):
                return graph
    return default


@contextlib.contextmanager
def _eager_device(device_name):
    from runnel.eager import context as eager
    with eager.device(device_name):
        yield


def device(device_name_or_function):
    """A context manager that sets the device of new operations."""
    if _core.current() is None:
        return _eager_device(device_name_or_function)
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs):
    """A context manager that makes new operations run after `control_inputs`."""
    if _core.current() is None:
        return contextlib.nullcontext()
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op, ignore_existing=False):
    """A context manager that places new operations on the device of `op`."""
    if _core.current() is None:
        return contextlib.nullcontext()
    handle = getattr(op, "handle", None)
    if isinstance(handle, Tensor) and handle.op is None:  # an eager variable: nodes that use its handle follow it
        return contextlib.nullcontext()
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name):
    """A context manager that puts the state of new operations into a resource container."""
    return get_default_graph().container(container_name)


def init_scope():
    """A context manager for operations outside of the current conditional, loop and function."""
    graph = _core.current()
    while graph is not None and graph._building_function and (
            graph.outer_graph is not None or _eager_enabled):
        graph = graph.outer_graph
    return _init_scope(graph)


@contextlib.contextmanager
def _init_scope(graph):
    if graph is None:
        before, current = eager_scope.name, _core.current()
        if current is not None:  # variables that a function creates are named by its scopes
            eager_scope.name = current._name_stack + "/" if current._name_stack else ""
        try:
            with _DefaultGraph(None):
                yield
        finally:
            eager_scope.name = before
        return
    scope = get_default_graph().get_name_scope()
    with graph.as_default(), graph.control_dependencies(None):
        with name_scope(scope + "/" if scope else None):
            yield


def add_to_collection(name, value):
    """Appends a value to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    """Appends a value to several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key, scope=None):
    """Returns the values of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key):
    """Returns the list of a collection of the default graph itself."""
    return get_default_graph().get_collection_ref(key)


def is_tensor(value):
    """Tells whether `value` is a tensor or an object that stands for tensors."""
    return isinstance(value, (Tensor, *_tensor_like)) or hasattr(value, "_as_graph_element") or hasattr(
        value, "_is_composite") and getattr(value, "_counts_as_tensor", True)


def is_dense_tensor_like(value):
    """Tells whether `value` is a tensor or a variable."""
    return is_tensor(value) and not hasattr(value, "_is_composite")


_TensorLike = Tensor
_tensor_like: list = []  # types of libraries that count as tensors


def register_dense_tensor_like_type(tensor_type):
    """Makes a type count as a tensor; it must have the properties `name` and `dtype`."""
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError("Type %s does not define a `%s` property" % (tensor_type.__name__, attribute))
    if tensor_type not in _tensor_like:
        _tensor_like.append(tensor_type)


def prepend_name_scope(name, import_scope):
    """Returns a name with the prefix of an import scope."""
    return "%s/%s" % (import_scope.rstrip("/"), name) if import_scope else name


def strip_name_scope(name, export_scope):
    """Returns a name without the prefix of an export scope."""
    if not export_scope:
        return name
    return re.sub(r"([\^]|loc:@|^)%s[\/]+(.*)" % re.escape(export_scope), r"\1\2", name)


def op_scope(values, name, default_name=None):
    """The old spelling of name_scope."""
    return name_scope(name, default_name, values)


_core.register(operation_class=Operation, tensor_class=Tensor, default_graph=_global_graph,
               as_attr=attr_values.to_bytes)
__all__ = ["Graph", "GraphKeys", "Operation", "Tensor", "add_to_collection", "add_to_collections",
           "colocate_with", "container", "control_dependencies", "device", "executing_eagerly",
           "get_collection", "get_collection_ref", "get_default_graph", "init_scope", "is_tensor",
           "name_scope", "op_scope", "reset_default_graph"]


def _get_graph_from_inputs(op_input_list, graph=None):
    """Returns the graph of an operation's inputs, which must be `graph` if given; the default graph if they have none."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError("Input graph needs to be a Graph: %s" % (graph,))
    first = None
    for value in op_input_list:
        element = value if isinstance(value, (Operation, Tensor)) else getattr(value, "_as_graph_element", lambda: None)()
        if element is None:
            continue
        if graph is None:
            first, graph = element, element.graph
        elif element.graph is not graph:
            if first is None:
                raise ValueError("%s is not from the passed-in graph." % (element,))
            raise ValueError("%s must be from the same graph as %s (graphs are %s and %s)." % (element, first, element.graph, graph))
    return get_default_graph() if graph is None else graph
