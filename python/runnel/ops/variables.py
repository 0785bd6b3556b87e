"""Variables: the state that a session keeps from step to step.

tf.Variable creates one of two kinds: a reference (the default) or a resource. Both are Variables.
"""

import enum
import sys

from runnel import _core, dtypes, raw_ops
from runnel.core import convert, framework, tensor_shape
from runnel.core.composite import IndexedSlices
from runnel.core.deprecation import warn_once
from runnel.core.framework import GraphKeys, RecognizedTensor, Tensor
from runnel.core.identity import Reference
from runnel.core.naming import named
from runnel.core.trackable import VARIABLE_VALUE_KEY, CheckpointInitialValue, Trackable

_use_resource = False


class _Numbered(enum.Enum):
    """Values of an enumeration of messages, which equal their numbers."""

    def __eq__(self, other):
        return self.value == getattr(other, "value", other)

    def __hash__(self):
        return hash(self.value)

    def __int__(self):
        return self.value

    __index__ = __int__


class VariableSynchronization(_Numbered):
    """When copies of a variable are synchronized."""

    AUTO, NONE, ON_WRITE, ON_READ = 0, 1, 2, 3


class VariableAggregation(_Numbered):
    """How copies of a variable are aggregated."""

    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = 0, 1, 2, 3
    ONLY_FIRST_TOWER = 3


def enable_resource_variables():
    """Makes tf.Variable and tf.get_variable create resource variables from now on."""
    global _use_resource
    _use_resource = True


def disable_resource_variables():
    """Makes tf.Variable and tf.get_variable create reference variables from now on."""
    global _use_resource
    _use_resource = False


def resource_variables_enabled():
    """Tells whether tf.Variable and tf.get_variable create resource variables."""
    return _use_resource


# --- Creation

def _wants_resource(use_resource):
    with framework.init_scope():
        if _core.current() is None:
            return True
    if use_resource is None:
        from runnel.ops import variable_scopes
        use_resource = variable_scopes.get_variable_scope().use_resource
    return _use_resource if use_resource is None else use_resource


def default_variable_creator(next_creator=None, **kwargs):
    """Creates a variable when no creator scope does."""
    resource = _wants_resource(kwargs.pop("use_resource", None))
    if resource:
        from runnel.ops.resource_variable import ResourceVariable
        kwargs.pop("expected_shape", None)
        return ResourceVariable(**kwargs)
    return RefVariable(**kwargs)


class _VariableMeta(type):
    def __call__(cls, *args, **kwargs):
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        kwargs = _named(args, kwargs)
        variable_def = kwargs.pop("variable_def", None)
        if variable_def is not None:
            return Variable.from_proto(variable_def, kwargs.get("import_scope"))
        kwargs.pop("import_scope", None)
        make = default_variable_creator
        distribute = sys.modules.get("runnel.distribute.contexts")
        if distribute is not None and distribute.contexts.stack:
            make = _in_strategy(distribute.get_strategy(), make)
        return created(make, kwargs)


def created(make, kwargs):
    """Returns the variable that the creator scopes make, of which the innermost is called first and `make` last."""
    for creator in framework.get_default_graph()._scopes.get("variable_creators", ()):
        make = _chain(creator, make)
    tracing = sys.modules.get("runnel.eager.tracing")
    if tracing is None:
        return make(**kwargs)
    with tracing.lifted_creation():
        return make(**kwargs)


def _in_strategy(strategy, make):
    return lambda **kwargs: strategy.extended.create_variable(make, kwargs)


def _chain(creator, following):
    return lambda **kwargs: creator(following, **kwargs)


_ARGUMENTS = ("initial_value", "trainable", "collections", "validate_shape", "caching_device", "name",
              "variable_def", "dtype", "expected_shape", "import_scope", "constraint",
              "use_resource", "synchronization", "aggregation", "shape")
_DEFAULTS = {"validate_shape": True, "synchronization": VariableSynchronization.AUTO,
             "aggregation": VariableAggregation.NONE}


def _named(args, kwargs):
    if len(args) > len(_ARGUMENTS):
        raise TypeError("Variable takes at most %d arguments" % len(_ARGUMENTS))
    out = {name: _DEFAULTS.get(name) for name in _ARGUMENTS}
    given = dict(zip(_ARGUMENTS, args))
    for name, value in kwargs.items():
        if name == "experimental_enable_variable_lifting":  # initial values are always lifted out of functions
            continue
        if name not in out:
            raise TypeError("Variable has no argument %r" % name)
        if name in given:
            raise TypeError("Variable got two values for %r" % name)
        given[name] = value
    out.update(given)
    return out


def _location(name):
    """Returns the bytes of an AttrValue: a list of the string "loc:@name"."""
    text = b"loc:@" + name.encode()
    row = b"\x12" + _size(len(text)) + text
    return b"\x0a" + _size(len(row)) + row


def _size(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


class _Located:
    """A context manager that colocates new nodes with the node `name`, which need not exist yet."""

    __slots__ = ("_graph", "_name", "_before")

    def __init__(self, graph, name):
        self._graph, self._name = graph, name

    def __enter__(self):
        self._before = self._graph._attributes
        after = dict(self._before)
        after["_class"] = _location(self._name)
        self._graph._attributes = after

    def __exit__(self, *exc):
        self._graph._attributes = self._before


def _checked_collections(collections, trainable):
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, (list, tuple, set)):
        raise ValueError("collections argument to Variable constructor must be a list, tuple, or set. "
                         "Got %s of type %s" % (collections, type(collections)))
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
        collections = list(collections) + [GraphKeys.TRAINABLE_VARIABLES]
    return collections


def _checked_trainable(synchronization, trainable, name):
    on_read = synchronization == VariableSynchronization.ON_READ
    if trainable is None:
        return not on_read
    return bool(trainable)


class SaveSliceInfo:
    """Which part of a larger variable a variable is, for checkpoints."""

    def __init__(self, full_name=None, full_shape=None, var_offset=None, var_shape=None,
                 save_slice_info_def=None, import_scope=None):
        if save_slice_info_def is not None:
            full_name = framework.prepend_name_scope(save_slice_info_def.full_name, import_scope)
            full_shape = list(save_slice_info_def.full_shape)
            var_offset = list(save_slice_info_def.var_offset)
            var_shape = list(save_slice_info_def.var_shape)
        self.full_name = full_name
        self.full_shape = full_shape
        self.var_offset = var_offset
        self.var_shape = var_shape

    @classmethod
    def from_spec(cls, spec):
        """Returns what a description such as "4 2 0,2:0,2" says, without a name."""
        words = spec.split()
        parts = [part.split(",") for part in words[-1].split(":")] if words else []
        return cls("", [int(word) for word in words[:-1]], [int(part[0]) for part in parts], [int(part[1]) for part in parts])

    @property
    def spec(self):
        """The description in checkpoints, such as "4 2 0,2:0,2"."""
        shape = " ".join("%d" % d for d in self.full_shape) + " "
        return shape + ":".join("%d,%d" % row for row in zip(self.var_offset, self.var_shape))

    def to_proto(self, export_scope=None):
        """Returns its SaveSliceInfoDef."""
        from runnel.core.protobuf import message_class
        if export_scope and not self.full_name.startswith(export_scope):
            return None
        return message_class("SaveSliceInfoDef")(
            full_name=framework.strip_name_scope(self.full_name, export_scope),
            full_shape=self.full_shape, var_offset=self.var_offset, var_shape=self.var_shape)


class Variable(Trackable, RecognizedTensor, metaclass=_VariableMeta):  # type: ignore[misc, valid-type]
    """State of a graph, with an initial value.

        w = tf.Variable(tf.zeros([784, 10]), name="w")

    Args:
      initial_value: a tensor, a value that converts to one, or a function that returns it.
      trainable: whether optimizers update it by default.
      collections: names of the collections to add it to; by default that of the global variables.
      validate_shape: the initial value's shape must be known, and becomes the variable's.
      caching_device: where reads are cached.
      name: name of the variable, made unique.
      dtype: type of the value; by default the initial value's.
      constraint: a function that optimizers apply to the value after each update.
      use_resource: creates a resource instead of a reference; None inherits from the scopes.

    A variable has no value in a session before its `initializer` has run;
    tf.global_variables_initializer() runs those of all variables.
    """

    __array_priority__ = 100
    SaveSliceInfo = SaveSliceInfo
    _in_graph_mode = True

    # Methods that each kind defines: _as_graph_element, value, read_value and these.

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Sets the value."""
        raise NotImplementedError

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        """Adds `delta` to the value."""
        raise NotImplementedError

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        """Subtracts `delta` from the value."""
        raise NotImplementedError

    def _AsTensor(self):
        return self.value()

    def _TensorConversionFunction(self, dtype=None, name=None, as_ref=False):
        return self._dense_var_to_tensor(dtype, name, as_ref)

    @property
    def name(self):
        """The name of the variable's tensor, such as "w:0"."""
        return self._name

    @property
    def _shared_name(self):
        return self._name[:self._name.index(":")] if ":" in self._name else self._name

    @property
    def trainable(self):
        """Whether optimizers update it by default."""
        return self._trainable

    @property
    def synchronization(self):
        """When copies of it are synchronized."""
        return self._synchronization

    @property
    def aggregation(self):
        """How copies of it are aggregated."""
        return self._aggregation

    @property
    def constraint(self):
        """The function that optimizers apply to the value after each update, or None."""
        return self._constraint

    @property
    def initializer(self):
        """The operation that sets the initial value."""
        return self._initializer_op

    @property
    def initial_value(self):
        """The tensor of the initial value. It depends on nothing that must be initialized first."""
        return self._initial_value

    def get_shape(self):
        """Returns the static shape."""
        return self.shape

    def initialized_value(self):
        """Returns the value, or the initial value if the variable has none yet."""
        if _core.current() is None:
            return self.value()
        from runnel.ops import control_flow
        return control_flow.cond(is_variable_initialized(self), self.read_value,
                                 lambda: self.initial_value)

    def load(self, value, session=None):
        """Sets the value in a session."""
        if session is None:
            from runnel.core import session as session_lib
            session = session_lib.get_default_session()
            if session is None:
                raise ValueError("Either session argument should be provided or default session "
                                 "should be established")
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    def count_up_to(self, limit):
        """Increments the variable and returns its previous value. Fails with OutOfRangeError at the limit."""
        from runnel.ops import state_ops
        return state_ops.count_up_to(self, limit)

    def batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
        """Updates rows in each batch: self[b, indices[b, i]] = values[b, i]."""
        from runnel.ops import state_ops
        return state_ops.batch_scatter_update(self, sparse_delta.indices, sparse_delta.values,
                                              use_locking=use_locking, name=name)

    def _set_save_slice_info(self, save_slice_info):
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self):
        return self._save_slice_info

    # For checkpoints.

    def _gather_saveables_for_checkpoint(self):
        return {VARIABLE_VALUE_KEY: self}

    def _restored(self, value):
        """Returns an initial value; one from a checkpoint counts as restored."""
        if not isinstance(value, CheckpointInitialValue):
            return value
        self._update_uid = value.checkpoint_position.restore_uid
        return value.wrapped_value

    def ref(self):
        """Returns a hashable reference, for use as a key."""
        return Reference(self)

    experimental_ref = ref

    def experimental_deref(self):
        """Returns the variable."""
        return self

    @staticmethod
    def from_proto(variable_def, import_scope=None):
        """Returns the variable of the default graph that a VariableDef describes."""
        if variable_def.is_resource:
            from runnel.ops.resource_variable import ResourceVariable
            return ResourceVariable(variable_def=variable_def, import_scope=import_scope)
        return RefVariable(variable_def=variable_def, import_scope=import_scope)

    def _proto_base(self, export_scope):
        """Returns a VariableDef with the fields of both kinds, or None if it is outside the scope."""
        from runnel.core.protobuf import message_class
        if export_scope is not None and not self._name.startswith(export_scope):
            return None
        out = message_class("VariableDef")(
            trainable=self.trainable, synchronization=int(self._synchronization),
            aggregation=int(self._aggregation))
        if self._initial_value is not None:
            out.initial_value_name = framework.strip_name_scope(self._initial_value.name, export_scope)
        out.initializer_name = framework.strip_name_scope(self._initializer_op.name, export_scope)
        if self._save_slice_info:
            out.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return out

    def __iter__(self):
        raise TypeError("'Variable' object is not iterable.")

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other

    def __repr__(self):
        return "<tf.Variable '%s' shape=%s dtype=%s>" % (self.name, self.shape, self.dtype.name)

    def __getitem__(self, item):
        # Slices can be assigned to: w[1:3].assign(x).
        tensor = self.value()[item]
        tensor._variable = self
        tensor.assign = lambda value, name=None: self._assign_slice(tensor, value, name)
        return tensor

    def _slice_inputs(self, tensor):
        op = tensor.op
        if op.type != "StridedSlice":
            raise ValueError("Only slices of variables can be assigned to")
        masks = {key: op.get_attr(key) for key in (
            "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")}
        return op.inputs[1], op.inputs[2], op.inputs[3], masks

    @classmethod
    def _OverloadAllOperators(cls):
        """Makes the operators of a class of variables work on what its `value` returns."""
        for operator in Tensor.OVERLOADABLE_OPERATORS:
            cls._OverloadOperator(operator)

    @classmethod
    def _OverloadOperator(cls, operator):
        if operator not in ("__eq__", "__ne__", "__getitem__"):
            setattr(cls, operator, _operator(operator))


def _operator(name):
    def method(self, *args, **kwargs):
        return getattr(self._AsTensor(), name)(*args, **kwargs)
    method.__name__ = name
    return method


for _name in ("abs neg invert add radd sub rsub mul rmul div rdiv truediv rtruediv floordiv rfloordiv "
              "mod rmod pow rpow matmul rmatmul and rand or ror xor rxor lt le gt ge").split():
    setattr(Variable, "__%s__" % _name, _operator("__%s__" % _name))
VariableV1 = Variable


# --- Reference variables

class RefVariable(Variable):
    """A variable whose tensor is a reference, a VariableV2 node."""

    def __init__(self, initial_value=None, trainable=None, collections=None, validate_shape=True,
                 caching_device=None, name=None, variable_def=None, dtype=None, expected_shape=None,
                 import_scope=None, constraint=None, synchronization=None, aggregation=None,
                 shape=None):
        if variable_def is not None:
            self._init_from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self._synchronization = synchronization or VariableSynchronization.AUTO
        self._aggregation = aggregation or VariableAggregation.NONE
        self._trainable = _checked_trainable(self._synchronization, trainable, name)
        collections = _checked_collections(collections, self._trainable)
        self._caching_device = caching_device
        self._save_slice_info = None
        self._constraint = constraint
        dtype = None if dtype is None else dtypes.as_dtype(dtype)
        with framework.init_scope():
            if _core.current() is None:
                raise RuntimeError("Reference variables are not supported when eager execution is "
                                   "enabled; tf.enable_resource_variables() makes resource variables")
            self._build(initial_value, validate_shape, caching_device, name, dtype, shape)
            framework.add_to_collections(collections, self)

    def _build(self, initial_value, validate_shape, caching_device, name, dtype, shape):
        from_function = callable(initial_value)
        with framework.name_scope(name, "Variable",
                                  [] if from_function else [initial_value]) as scope:
            graph = framework.get_default_graph()
            if from_function:
                with _Located(graph, scope[:-1]):
                    with framework.name_scope("Initializer"), framework.device(None):
                        self._initial_value = convert.convert_to_tensor(
                            self._restored(initial_value()), dtype, name="initial_value")
                    self._make_node(shape, validate_shape, scope)
            else:
                self._initial_value = convert.convert_to_tensor(
                    self._restored(initial_value), dtype, name="initial_value")
                _check_not_inside(self._initial_value, name)
                self._make_node(shape, validate_shape, scope)
            if validate_shape and not self._initial_value.shape.is_fully_defined():
                raise ValueError("initial_value must have a shape specified: %s" % self._initial_value)
            self._initializer_op = raw_ops.Assign(
                ref=self._variable, value=guarded(scope, self._initial_value),
                validate_shape=validate_shape).op
            where = (framework.colocate_with(self._variable.op) if caching_device is None
                     else framework.device(caching_device))
            with where:
                self._snapshot = raw_ops.Identity(input=self._variable, name="read")

    def _make_node(self, shape, validate_shape, scope):
        if shape is None:
            shape = self._initial_value.shape if validate_shape else tensor_shape.unknown_shape()
        self._variable = raw_ops.VariableV2(shape=shape, dtype=self._initial_value.dtype.base_dtype,
                                            name=scope)
        self._name = self._variable.name

    def _init_from_proto(self, proto, import_scope):
        graph = framework.get_default_graph()

        def element(name):
            return graph.as_graph_element(framework.prepend_name_scope(name, import_scope))

        self._variable = element(proto.variable_name)
        self._name = self._variable.name
        self._initializer_op = element(proto.initializer_name)
        self._initial_value = element(proto.initial_value_name) if proto.initial_value_name else None
        self._snapshot = element(proto.snapshot_name)
        self._trainable = proto.trainable
        self._synchronization = VariableSynchronization(proto.synchronization)
        self._aggregation = VariableAggregation(proto.aggregation)
        self._save_slice_info = None
        if proto.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo(save_slice_info_def=proto.save_slice_info_def,
                                                  import_scope=import_scope)
        self._caching_device = None
        self._constraint = None

    def to_proto(self, export_scope=None):
        """Returns its VariableDef, or None if it is outside `export_scope`."""
        out = self._proto_base(export_scope)
        if out is not None:
            out.variable_name = framework.strip_name_scope(self._variable.name, export_scope)
            out.snapshot_name = framework.strip_name_scope(self._snapshot.name, export_scope)
        return out

    def _serialize_to_tensors(self):
        return {VARIABLE_VALUE_KEY: self._variable}

    def _restore_from_tensors(self, restored_tensors):
        return raw_ops.Assign(ref=self._variable, value=restored_tensors[VARIABLE_VALUE_KEY],
                              validate_shape=self.get_shape().is_fully_defined())

    def _as_graph_element(self):
        return self._variable

    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        if dtype is not None and not dtype.is_compatible_with(self.dtype):
            raise ValueError("Incompatible type conversion requested to type '%s' for variable of "
                             "type '%s'" % (dtype.name, self.dtype.name))
        return self._variable if as_ref else self._snapshot

    def _ref(self):
        return self._variable

    def value(self):
        """Returns the snapshot that the graph already has."""
        return self._snapshot

    def read_value(self):
        """Reads the current value."""
        return raw_ops.Identity(input=self._variable, name="read")

    def eval(self, session=None):
        """Returns the value in a session."""
        return self._variable.eval(session=session)

    def is_initialized(self, name=None):
        """Returns a bool tensor: whether the variable has a value."""
        return raw_ops.IsVariableInitialized(ref=self._variable, name=name)

    def set_shape(self, shape):
        """Refines the static shape."""
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    @property
    def op(self):
        """The VariableV2 operation."""
        return self._variable.op

    @property
    def dtype(self):
        """The type of the value, a reference type."""
        return self._variable.dtype

    @property
    def device(self):
        """The device of the variable."""
        return self._variable.device

    @property
    def graph(self):
        """The graph of the variable."""
        return self._variable.graph

    @property
    def _distribute_strategy(self):
        return None

    @property
    def shape(self):
        """The static shape of the value."""
        return self._variable.shape

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Sets the value. Returns the variable after the assignment."""
        out = raw_ops.Assign(ref=self._variable, value=value, use_locking=use_locking, name=name)
        return out if read_value else out.op

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        """Adds `delta` to the value."""
        out = raw_ops.AssignAdd(ref=self._variable, value=delta, use_locking=use_locking, name=name)
        return out if read_value else out.op

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        """Subtracts `delta` from the value."""
        out = raw_ops.AssignSub(ref=self._variable, value=delta, use_locking=use_locking, name=name)
        return out if read_value else out.op

    def _scatter(self, op, sparse_delta, use_locking, name):
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError("sparse_delta is not IndexedSlices: %s" % (sparse_delta,))
        return getattr(raw_ops, op)(ref=self._variable, indices=sparse_delta.indices,
                                    updates=sparse_delta.values, use_locking=use_locking, name=name)

    def _scatter_nd(self, op, indices, updates, name):
        return getattr(raw_ops, op)(ref=self._variable, indices=indices, updates=updates,
                                    use_locking=True, name=name)

    def _assign_slice(self, tensor, value, name):
        begin, end, strides, masks = self._slice_inputs(tensor)
        return raw_ops.StridedSliceAssign(ref=self._variable, begin=begin, end=end, strides=strides,
                                          value=value, name=name, **masks)


def _add_scatters(cls):
    """Adds the methods scatter_add(slices), scatter_nd_add(indices, updates) and the like to a class of variables."""
    def rows(op):
        def method(self, sparse_delta, use_locking=False, name=None):
            return self._scatter(op, sparse_delta, use_locking, name)
        return method

    def elements(op):
        def method(self, indices, updates, name=None):
            return self._scatter_nd(op, indices, updates, name)
        return method

    for op in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
        setattr(cls, "scatter_" + op.lower(), rows("Scatter" + op))
    for op in ("Add", "Sub", "Update", "Max", "Min"):
        setattr(cls, "scatter_nd_" + op.lower(), elements("ScatterNd" + op))


_add_scatters(RefVariable)


def _check_not_inside(initial_value, name):
    if initial_value.op is not None and initial_value.op._get_control_flow_context() is not None:
        raise ValueError("Initializer for variable %s is from inside a control-flow construct, such as "
                         "a loop or conditional. When creating a variable inside a loop or "
                         "conditional, use a lambda as the initializer." % name)


def _to_tensor(value, dtype=None, name=None, as_ref=False):
    return value._dense_var_to_tensor(dtype, name, as_ref)


convert.register_tensor_conversion_function(Variable, _to_tensor)


# --- Initial values that read other variables

_VARIABLE_OPS = frozenset(("Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp",
                           "ReadVariableOp"))


def guarded(scope, initial_value):
    """Returns `initial_value` with reads of other variables replaced by their initial values where they have none yet.

    Loops are left alone.
    """
    op = initial_value.op
    if op is None or not op.inputs:
        return initial_value
    if not _reads_variables(op):
        return initial_value
    return _safe_copy(initial_value, scope, {})


def _reads_variables(op):
    """Tells whether `op` depends on a variable. Operations in loops are not followed."""
    found, seen, path = False, set(), set()
    stack = [(op, iter([t.op for t in op.inputs] + list(op.control_inputs)))]
    path.add(op)
    while stack:
        node, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            stack.pop()
            path.discard(node)
            seen.add(node)
            continue
        if following in path:
            return False
        if following in seen:
            continue
        found = found or following.type in _VARIABLE_OPS
        path.add(following)
        stack.append((following, iter([t.op for t in following.inputs] +
                                      list(following.control_inputs))))
    return found or op.type in _VARIABLE_OPS


def _safe_copy(tensor, scope, done):
    op = tensor.op
    if op.type in ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp"):
        return tensor
    if op.type in ("Variable", "VariableV2", "VarHandleOp"):
        return _initialized_or_first(tensor)
    copy = done.get(op)
    if copy is None:
        inputs = [_safe_copy(item, scope, done) for item in op.inputs]
        if all(a is b for a, b in zip(inputs, op.inputs)):
            copy = op
        else:
            copy = _copy_with(op, inputs, scope)
        done[op] = copy
    return copy.outputs[tensor.value_index]


def _initialized_or_first(tensor):
    """Returns the value of a variable's node, or its initial value if it has none yet."""
    op = tensor.op
    for variable in (op.graph.get_collection(GraphKeys.GLOBAL_VARIABLES) +
                     op.graph.get_collection(GraphKeys.LOCAL_VARIABLES)):
        if getattr(variable, "op", None) is op:
            return tensor if op.type == "VarHandleOp" else variable.initialized_value()
    return tensor


def _copy_with(op, inputs, scope):
    attrs = {}
    for name, value in op.node_def.attr.items():
        attrs[name] = value
    name = op.name + "_" + scope
    graph = op.graph
    with graph.name_scope(None), graph.control_dependencies(None):
        # In the copy, inputs are values instead of references.
        kind = "Switch" if op.type == "RefSwitch" else op.type
        return graph.create_op(kind, inputs, name=name, attrs=attrs)


# --- Lists of variables, and their initialization

def _listing(key, name, doc):
    def function(scope=None):
        return framework.get_collection(key, scope)
    return named(function, name, doc)


global_variables = _listing(GraphKeys.GLOBAL_VARIABLES, "global_variables", "Returns the variables that all tasks of a cluster share.")
local_variables = _listing(GraphKeys.LOCAL_VARIABLES, "local_variables", "Returns the variables of this process, which are not saved.")
model_variables = _listing(GraphKeys.MODEL_VARIABLES, "model_variables", "Returns the variables that inference reads.")
moving_average_variables = _listing(
    GraphKeys.MOVING_AVERAGE_VARIABLES, "moving_average_variables", "Returns the variables that have moving averages.")
trainable_variables = _listing(
    GraphKeys.TRAINABLE_VARIABLES, "trainable_variables", "Returns the variables that optimizers update by default.")


def _all_saveable_objects(scope=None):
    return (framework.get_collection(GraphKeys.GLOBAL_VARIABLES, scope) +
            framework.get_collection(GraphKeys.SAVEABLE_OBJECTS, scope))


def all_variables():
    """The old name of global_variables."""
    warn_once("all_variables", "global_variables")
    return global_variables()


def variables_initializer(var_list, name="init"):
    """Returns an operation that initializes the variables of a list."""
    from runnel.ops.control_flow import group
    if var_list and _core.current() is not None:
        return group(*[v.initializer for v in var_list], name=name)
    return group(name=name)


def global_variables_initializer():
    """Returns an operation that initializes the global variables."""
    from runnel.ops.control_flow import group
    if _core.current() is None:
        return group(name="global_variables_initializer")
    return variables_initializer(global_variables())


def local_variables_initializer():
    """Returns an operation that initializes the local variables."""
    from runnel.ops.control_flow import group
    if _core.current() is None:
        return group(name="local_variables_initializer")
    return variables_initializer(local_variables())


def initialize_variables(var_list, name="init"):
    """The old name of variables_initializer."""
    warn_once("initialize_variables", "variables_initializer")
    return variables_initializer(var_list, name=name)


def initialize_all_variables():
    """The old name of global_variables_initializer."""
    warn_once("initialize_all_variables", "global_variables_initializer")
    return global_variables_initializer()


def initialize_local_variables():
    """The old name of local_variables_initializer."""
    warn_once("initialize_local_variables", "local_variables_initializer")
    return local_variables_initializer()


def is_variable_initialized(variable):
    """Returns a bool tensor: whether a variable has a value."""
    from runnel.ops import state_ops
    return state_ops.is_variable_initialized(variable)


def assert_variables_initialized(var_list=None):
    """Returns an operation that fails if a variable has no value."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        var_list = [op.outputs[0] for op in framework.get_default_graph().get_operations()
                    if op.type in ("Variable", "VariableV2", "AutoReloadVariable")]
    if not var_list:
        return None
    ranks = []
    for variable in var_list:
        with framework.colocate_with(variable.op):
            ranks.append(raw_ops.Rank(input=variable))
    return ranks[0] if len(ranks) == 1 else raw_ops.Pack(values=ranks)


def report_uninitialized_variables(var_list=None, name="report_uninitialized_variables"):
    """Returns the names of the variables without a value, as a vector of strings."""
    from runnel.ops import array_ops
    if var_list is None:
        var_list = global_variables() + local_variables()
        if not var_list:
            var_list = [op.outputs[0] for op in framework.get_default_graph().get_operations()
                        if op.type in ("Variable", "VariableV2", "AutoReloadVariable")]
    with framework.name_scope(name):
        ready = [is_variable_initialized(v) for v in var_list]
        with framework.device("/cpu:0"):
            if not var_list:
                return convert.constant([], dtype=dtypes.string)
            missing = raw_ops.LogicalNot(x=raw_ops.Pack(values=ready, name="stack"))
            names = convert.constant([v.op.name if isinstance(v, Tensor) else v._shared_name
                                      for v in var_list])
            return array_ops.boolean_mask(names, missing)
