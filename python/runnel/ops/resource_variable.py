"""Resource variables: a handle, with reads and writes at defined points."""

import contextlib
import itertools
import weakref

from runnel import _core, dtypes, raw_ops
from runnel.core import convert, framework, tensor_shape
from runnel.core.composite import IndexedSlices
from runnel.core.trackable import VARIABLE_VALUE_KEY
from runnel.ops.variables import (
    SaveSliceInfo, Variable, VariableAggregation, VariableSynchronization, _add_scatters, _check_not_inside,
    _checked_collections, _checked_trainable, _Located, guarded)

_uid = itertools.count()
_made = itertools.count()
_on_read: list = []  # functions that are called with a trainable variable before it is read; tapes add them


_of_handles: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # id of a handle -> variable of eager execution


def variable_of(handle):
    """Returns the variable whose handle this is, or None."""
    found = _of_handles.get(id(handle))
    return found if found is not None and found._handle is handle else None


def _destroy(handle):
    from runnel import errors
    with framework._DefaultGraph(None), contextlib.suppress(errors.UnavailableError):  # its task is gone, and the variable with it
        raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)


class ResourceVariable(Variable):
    """A variable behind a handle, a VarHandleOp node."""

    _validate_shape = True
    _distribute_strategy = None

    def __tf_tracing_type__(self, context):
        from runnel.core.composite_specs import VariableSpec
        number = context.alias_global_id(id(self.handle))
        context.add_placeholder(number, self)
        return VariableSpec(self.shape, self.dtype, self.trainable, number)

    def __init__(self, initial_value=None, trainable=None, collections=None, validate_shape=True,
                 caching_device=None, name=None, dtype=None, variable_def=None, import_scope=None,
                 constraint=None, distribute_strategy=None, synchronization=None, aggregation=None,
                 shape=None, handle=None):
        self._number = next(_made)  # in the order of construction
        if distribute_strategy is not None:
            self._distribute_strategy = distribute_strategy
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("`variable_def` and `initial_value` are mutually exclusive.")
            self._init_from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified except when "
                             "you are not providing a `variable_def`. You provided neither.")
        if constraint is not None and not callable(constraint):
            raise ValueError("Argument `constraint` must be None or a callable.")
        self._synchronization = synchronization or VariableSynchronization.AUTO
        self._aggregation = aggregation or VariableAggregation.NONE
        self._trainable = _checked_trainable(self._synchronization, trainable, name)
        collections = _checked_collections(collections, self._trainable)
        self._save_slice_info = None
        self._constraint = constraint
        self._validate_shape = validate_shape
        self._caching_device = caching_device
        self._cached_value = None
        dtype = None if dtype is None else dtypes.as_dtype(dtype)
        with framework.init_scope():
            self._in_graph_mode = _core.current() is not None
            if self._in_graph_mode:
                self._build(initial_value, name, dtype, shape, validate_shape, caching_device)
                framework.add_to_collections(collections, self)
            else:
                self._build_eager(initial_value, name, dtype, shape)

    def _init_from_args(self, initial_value=None, **kwargs):
        """For subclasses whose own __init__ does not call this class's."""
        ResourceVariable.__init__(self, initial_value, **kwargs)

    def _build(self, initial_value, name, dtype, shape, validate_shape, caching_device):
        from_function = callable(initial_value)
        if isinstance(initial_value, framework.Tensor) and not from_function:
            _check_not_inside(initial_value, name)
        with framework.name_scope(name, "Variable",
                                  [] if from_function else [initial_value]) as scope:
            graph = framework.get_default_graph()
            with _Located(graph, scope[:-1]):
                with framework.name_scope("Initializer"), framework.device(None):
                    value = convert.convert_to_tensor(
                        self._restored(initial_value() if from_function else initial_value), dtype,
                        name="initial_value")
                self._initial_value = value
                self._dtype = value.dtype.base_dtype
                if shape is None:
                    shape = value.shape
                self._shape = tensor_shape.as_shape(shape)
                self._handle = raw_ops.VarHandleOp(
                    shape=self._shape, dtype=self._dtype, shared_name=scope[:-1],
                    container=graph._container, debug_name=scope, name=scope)
            self._handle_name = self._unique_id = scope[:-1]
            self._name = self._handle.name
            with framework.name_scope("IsInitialized"):
                self._is_initialized_op = raw_ops.VarIsInitializedOp(resource=self._handle)
            with framework.name_scope("Assign") as assign_name:
                with framework.colocate_with(None, ignore_existing=True):
                    with framework.device(self._handle.device):
                        self._initializer_op = raw_ops.AssignVariableOp(
                            resource=self._handle, value=guarded(scope, value), name=assign_name)
            with framework.name_scope("Read"):
                with framework.device(self._handle.device):
                    read = self._read()
                if caching_device is not None:
                    with framework.device(caching_device):
                        self._cached_value = raw_ops.Identity(input=read)
            self._graph_element = read

    def _build_eager(self, initial_value, name, dtype, shape):
        from runnel.eager import tracing
        tracing.note_created(self)
        value = self._restored(initial_value() if callable(initial_value) else initial_value)
        if isinstance(value, framework.Tensor) and value.op is not None:
            if not callable(initial_value) and not tracing.lifts_variables():
                raise ValueError("Argument `initial_value` (%s) could not be lifted out of a `tf.function`. (Tried to create variable with "
                                 "name='%s'). When a variable is made in a `tf.function`, give a callable that makes its initial value." % (value, name))
            shape = value.shape if shape is None else shape  # that of every call, not only of the first
            value = tracing.lifted(value)
        value = convert.convert_to_tensor(value, dtype)
        self._name_storage(name, value.dtype.base_dtype, tensor_shape.as_shape(value.shape if shape is None else shape))
        raw_ops.AssignVariableOp(resource=self._handle, value=value)

    def _name_storage(self, name, dtype, shape):
        """Makes the handle of a variable of eager execution; there is no value yet."""
        self._initial_value, self._dtype, self._shape = None, dtype, shape
        # A name that ends with "/" is a whole one, as in tf.name_scope.
        self._handle_name = name[:-1] if name and name.endswith("/") else framework.eager_scope.name + (name or "Variable")
        self._unique_id = "%s_%d" % (self._handle_name, next(_uid))
        self._name = self._handle_name + ":0"
        self._handle = raw_ops.VarHandleOp(shape=self._shape, dtype=self._dtype,
                                           shared_name=self._unique_id)
        _of_handles[id(self._handle)] = self
        self._initializer_op = self._graph_element = self._is_initialized_op = None
        # The value is freed with the handle, which functions that captured it also hold. Tapes hold the values that they read before.
        self._destroyer = weakref.finalize(self._handle, _destroy, raw_ops.Identity(input=self._handle))
        self._destroyer.atexit = False

    def _name_storage_in_graph(self, name, dtype, shape):
        """Makes the nodes of a variable that has no initializer yet."""
        self._initial_value, self._dtype, self._shape = None, dtype, shape
        with framework.name_scope(name, "Variable") as scope:
            self._handle_name = self._unique_id = scope[:-1]
            self._handle = raw_ops.VarHandleOp(shape=shape, dtype=dtype, shared_name=scope[:-1],
                                               container=framework.get_default_graph()._container, debug_name=scope, name=scope)
            self._name = self._handle.name
            with framework.name_scope("Read"), framework.device(self._handle.device):
                self._graph_element = self._read()
        self._initializer_op = None
        self._is_initialized_op = raw_ops.VarIsInitializedOp(resource=self._handle)
        framework.add_to_collection(framework.GraphKeys.GLOBAL_VARIABLES, self)

    def _init_from_proto(self, proto, import_scope):
        graph = framework.get_default_graph()

        def element(name):
            return graph.as_graph_element(framework.prepend_name_scope(name, import_scope))

        if not proto.is_resource:
            raise ValueError("The `variable_def` you passed is not of a resource variable.")
        self._in_graph_mode = True
        self._handle = element(proto.variable_name)
        op = self._handle.op
        self._shape = tensor_shape.TensorShape(op.get_attr("shape"))
        self._dtype = dtypes.as_dtype(op.get_attr("dtype"))
        self._handle_name = self._unique_id = self._handle.op.name
        self._name = self._handle.name
        self._initializer_op = element(proto.initializer_name)
        self._initial_value = element(proto.initial_value_name) if proto.initial_value_name else None
        self._trainable = proto.trainable
        self._synchronization = VariableSynchronization(proto.synchronization)
        self._aggregation = VariableAggregation(proto.aggregation)
        self._save_slice_info = None
        if proto.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo(save_slice_info_def=proto.save_slice_info_def,
                                                  import_scope=import_scope)
        self._constraint = self._caching_device = self._cached_value = None
        self._is_initialized_op = graph._find(self._handle_name + "/IsInitialized/VarIsInitializedOp")
        if self._is_initialized_op is not None:
            self._is_initialized_op = self._is_initialized_op.outputs[0]
        if proto.snapshot_name:
            snapshot = element(proto.snapshot_name)
            if snapshot.op.type != "ReadVariableOp":
                self._cached_value = snapshot
                snapshot = snapshot.op.inputs[0]
            self._graph_element = snapshot
        else:
            self._graph_element = element(self._handle_name + "/Read/ReadVariableOp:0")

    def to_proto(self, export_scope=None):
        """Returns its VariableDef, or None if it is outside `export_scope`."""
        out = self._proto_base(export_scope)
        if out is not None:
            out.variable_name = framework.strip_name_scope(self._handle.name, export_scope)
            read = self._graph_element if self._cached_value is None else self._cached_value
            out.snapshot_name = framework.strip_name_scope(read.name, export_scope)
            out.is_resource = True
        return out

    # Reading

    def _read(self):
        """Reads the value in the current scopes; the result has the variable's static shape."""
        self._tell_tapes()
        value = raw_ops.ReadVariableOp(resource=self._handle, dtype=self._dtype)
        if value.op is not None and self._shape.ndims is not None:
            value.set_shape(self._shape)
        return value

    def _tell_tapes(self):
        if _on_read and self._trainable:
            for tell in _on_read:
                tell(self)

    def value(self):
        """Reads the value at this point."""
        if self._cached_value is not None:
            return self._cached_value
        if self._in_graph_mode:
            with framework.colocate_with(None, ignore_existing=True):
                return self._read()
        return self._read()

    def read_value(self):
        """Reads the value at this point, for use on any device."""
        return raw_ops.Identity(input=self.read_value_no_copy())

    def read_value_no_copy(self):
        """Reads the value at this point."""
        with framework.name_scope("Read"):
            return self._read()

    # For checkpoints.

    def _serialize_to_tensors(self):
        from runnel.checkpoint.saveable import Callable

        def read():
            if framework.executing_eagerly() and not self.is_initialized():
                return None
            return self.read_value_no_copy()
        return {VARIABLE_VALUE_KEY: Callable(read, self._dtype, self.device)}

    def _restore_from_tensors(self, restored_tensors):
        value = raw_ops.Identity(input=restored_tensors[VARIABLE_VALUE_KEY])
        if not self._shape.is_compatible_with(value.shape):
            raise ValueError("Received incompatible tensor with shape %s when attempting to restore variable with shape %s and name %s." % (
                value.shape, self._shape, self.name))
        return self.assign(value, read_value=False)

    def __deepcopy__(self, memo):
        if self._in_graph_mode:
            raise NotImplementedError("__deepcopy__() is only available when eager execution is enabled.")
        memo[id(self)] = made = ResourceVariable(self.read_value(), trainable=self._trainable, constraint=self._constraint, dtype=self._dtype,
                                                 name=self._shared_name)
        return made

    def _copy_trackable_to_cpu(self, object_map):
        if self not in object_map:
            with framework.device("/cpu:0"):
                object_map[self] = ResourceVariable(self.read_value(), trainable=self._trainable, name=self._shared_name, dtype=self._dtype)
        else:
            object_map[self].assign(self.read_value())

    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        if dtype is not None and not dtype.is_compatible_with(self._dtype):
            raise ValueError("Incompatible type conversion requested to type %s for `tf.Variable of "
                             "type %s. (Variable: %s)" % (dtype.name, self._dtype.name, self))
        if as_ref:
            return self.read_value().op.inputs[0]
        return self.value()

    def _as_graph_element(self):
        return self._graph_element

    def numpy(self):
        """Returns the value as an array; for eager execution only."""
        if self._in_graph_mode:
            raise NotImplementedError("numpy() is only available when eager execution is enabled. %s" % framework._how_to_get_values(self._handle.graph))
        return self.value().numpy()

    def eval(self, session=None):
        """Returns the value in a session."""
        return self._graph_element.eval(session=session)

    def sparse_read(self, indices, name=None):
        """Reads only the rows at `indices`."""
        self._tell_tapes()
        with framework.name_scope("Gather" if name is None else name) as scope:
            indices = convert.convert_to_tensor(indices, name="indices")
            value = raw_ops.ResourceGather(resource=self._handle, indices=indices, dtype=self._dtype,
                                           name=scope)
        if value.op is not None and self._shape.ndims is not None:  # the handle's own shape is unknown if it is captured
            value.set_shape(indices.shape.concatenate(self._shape[1:]))
        return value

    def gather_nd(self, indices, name=None):
        """Reads only the elements or slices at `indices`."""
        self._tell_tapes()
        with framework.name_scope("GatherNd" if name is None else name) as scope:
            return raw_ops.ResourceGatherNd(resource=self._handle, indices=indices,
                                            dtype=self._dtype, name=scope)

    def is_initialized(self, name=None):
        """Returns a bool tensor: whether the variable has a value."""
        return raw_ops.VarIsInitializedOp(resource=self._handle, name=name)

    # Properties

    @property
    def handle(self):
        """The handle, a tensor of type resource."""
        return self._handle

    @property
    def op(self):
        """The operation that made the handle."""
        return self._handle.op

    @property
    def dtype(self):
        """The type of the value."""
        return self._dtype

    @property
    def device(self):
        """The device of the handle."""
        return self._handle.device

    @property
    def graph(self):
        """The graph of the handle."""
        return self._handle.graph

    @property
    def shape(self):
        """The static shape of the value."""
        return self._shape

    @property
    def create(self):
        """The operation that gives the variable its initial value."""
        return self._initializer_op

    @property
    def _shared_name(self):
        return self._handle_name

    def set_shape(self, shape):
        """Refines the static shape."""
        self._shape = self._shape.merge_with(shape)

    def __repr__(self):
        if self._in_graph_mode or not framework.executing_eagerly():
            return super().__repr__()
        return "<tf.Variable '%s' shape=%s dtype=%s, numpy=%r>" % (
            self.name, self.shape, self.dtype.name, self.numpy())

    # Updates

    def _lazy_read(self, op):
        """Returns the variable as it is after `op`. To tapes that is a use of it."""
        self._tell_tapes()
        return self if op is None else _UnreadVariable(self, op)

    def _changed(self, op, read_value):
        return self._lazy_read(op) if read_value else op

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Sets the value. Returns the variable after the assignment, or the operation if not `read_value`."""
        value = convert.convert_to_tensor(value, self._dtype)
        if not self._shape.is_compatible_with(value.shape):
            raise ValueError("Cannot assign value to variable '%s': Shape mismatch.The variable shape "
                             "%s, and the assigned value shape %s are incompatible." % (
                                 self.name, self._shape, value.shape))
        validate = {"validate_shape": True} if self._validate_shape and self._shape.is_fully_defined() else {}
        op = raw_ops.AssignVariableOp(resource=self._handle, value=value, name=name, **validate)
        return self._changed(op, read_value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds `delta` to the value."""
        delta = convert.convert_to_tensor(delta, self._dtype)
        op = raw_ops.AssignAddVariableOp(resource=self._handle, value=delta, name=name)
        return self._changed(op, read_value)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Subtracts `delta` from the value."""
        delta = convert.convert_to_tensor(delta, self._dtype)
        op = raw_ops.AssignSubVariableOp(resource=self._handle, value=delta, name=name)
        return self._changed(op, read_value)

    def _scatter(self, op, sparse_delta, use_locking, name):
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError("Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: %s" % (
                sparse_delta,))
        return self._lazy_read(getattr(raw_ops, "Resource" + op)(
            resource=self._handle, indices=sparse_delta.indices,
            updates=convert.convert_to_tensor(sparse_delta.values, self._dtype), name=name))

    def _scatter_nd(self, op, indices, updates, name):
        return self._lazy_read(getattr(raw_ops, "Resource" + op)(
            ref=self._handle, indices=indices,
            updates=convert.convert_to_tensor(updates, self._dtype), name=name))

    def _assign_slice(self, tensor, value, name):
        begin, end, strides, masks = self._slice_inputs(tensor)
        return self._lazy_read(raw_ops.ResourceStridedSliceAssign(
            ref=self._handle, begin=begin, end=end, strides=strides,
            value=convert.convert_to_tensor(value, self._dtype), name=name, **masks))

    def __getitem__(self, item):
        if not self._in_graph_mode:
            part = self.value()[item]
            part.assign = _PartAssignment(self, item)
            return part
        return super().__getitem__(item)

    def __iter__(self):
        return iter(self.value()) if not self._in_graph_mode else super().__iter__()

    def __bool__(self):
        return bool(self.value())

    __nonzero__ = __bool__

    def __int__(self):
        return int(self.value().numpy())

    def __float__(self):
        return float(self.value().numpy())

    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return np.asarray(self.numpy(), dtype=dtype)

    # x += y makes a new tensor in a graph, and changes the variable in eager execution.

    def __iadd__(self, other):
        return self + other if self._in_graph_mode else self.assign_add(other)

    def __isub__(self, other):
        return self - other if self._in_graph_mode else self.assign_sub(other)


_add_scatters(ResourceVariable)


class _UnreadVariable(ResourceVariable):
    """A variable after an update: every read waits for the update."""

    _is_update = True

    def __init__(self, variable, parent_op):
        self.__dict__.update(variable.__dict__)
        self._variable_before = variable
        self._parent_op = parent_op
        self._cached_value = None
        with framework.control_dependencies([parent_op]):
            self._graph_element = self._read()

    def value(self):
        with framework.control_dependencies([self._parent_op]):
            return super().value()

    def read_value(self):
        with framework.control_dependencies([self._parent_op]):
            return super().read_value()

    def assign(self, value, use_locking=None, name=None, read_value=True):
        with framework.control_dependencies([self._parent_op]):
            return super().assign(value, use_locking, name, read_value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        with framework.control_dependencies([self._parent_op]):
            return super().assign_add(delta, use_locking, name, read_value)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        with framework.control_dependencies([self._parent_op]):
            return super().assign_sub(delta, use_locking, name, read_value)

    @property
    def op(self):
        """The operation that updated the variable."""
        return self._parent_op


class _PartAssignment:
    """`v[1:3].assign`: assigns to a part of a variable."""

    __slots__ = ("_variable", "_item")

    def __init__(self, variable, item):
        self._variable, self._item = variable, item

    def __call__(self, value, use_locking=False, name=None, read_value=True):
        from runnel.ops.array_ops import slice_arguments
        begin, end, strides, masks = slice_arguments(self._item)
        variable = self._variable
        raw_ops.ResourceStridedSliceAssign(ref=variable.handle, begin=begin, end=end, strides=strides,
                                           value=convert.convert_to_tensor(value, variable.dtype), name=name, **masks)
        return variable


def uninitialized_variable(shape, dtype, name=None, trainable=True, synchronization=None, aggregation=None):
    """Returns a variable without a value; in a graph, without an initializer."""
    from runnel.eager import tracing
    made = ResourceVariable.__new__(ResourceVariable)
    made._number = next(_made)
    made._synchronization = synchronization or VariableSynchronization.AUTO
    made._aggregation = aggregation or VariableAggregation.NONE
    made._trainable = bool(trainable)
    made._save_slice_info = made._constraint = made._caching_device = made._cached_value = None
    with framework.init_scope():
        made._in_graph_mode = _core.current() is not None
        if made._in_graph_mode:
            made._name_storage_in_graph(name, dtype, tensor_shape.as_shape(shape))
        else:
            tracing.note_created(made)
            made._name_storage(name, dtype, tensor_shape.as_shape(shape))
    return made


def UninitializedVariable(trainable=None, caching_device=None, name=None, shape=None, dtype=None, constraint=None,  # noqa: N802
                          synchronization=None, aggregation=None, **kwargs):
    """Returns a variable without a value."""
    return uninitialized_variable(shape, dtypes.as_dtype(dtype), name, trainable is None or trainable, synchronization, aggregation)


def is_resource_variable(variable):
    """Tells whether `variable` is a resource variable."""
    return isinstance(variable, ResourceVariable)
