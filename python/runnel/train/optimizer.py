"""The base of optimizers: computes gradients of a loss and updates variables.

A subclass defines one update: `_apply_dense` and `_apply_sparse` for reference variables, `_resource_apply_dense` and
`_resource_apply_sparse` for resource variables. `_create_slots` creates the state per variable, `_prepare` the
tensors of its parameters, `_finish` the final operation.
"""

import sys

import runnel
from runnel import _core, dtypes, raw_ops
from runnel.core import convert, framework
from runnel.core.composite import IndexedSlices
from runnel.core.framework import GraphKeys, Tensor
from runnel.core.trackable import CheckpointInitialValueCallable, Trackable
from runnel.ops import variables
from runnel.train import slot_creator


def _deduplicate_indexed_slices(values, indices):
    """Adds rows with the same index. Returns (values, indices)."""
    unique, positions = raw_ops.Unique(x=indices)
    count = raw_ops.Shape(input=unique)[0]
    return raw_ops.UnsortedSegmentSum(data=values, segment_ids=positions, num_segments=count), unique


def _var_key(variable):
    """Returns what tells variables apart; the copies of a distributed variable are one."""
    reference = getattr(variable, "_distributed_container", None)
    container = None if reference is None else reference()
    variable = getattr(variable if container is None else container, "_primary", variable)
    if not variable._in_graph_mode:
        return variable._unique_id
    return (variable.graph, variable.op.name)


def _is_resource(variable):
    return hasattr(variable, "handle")


class Optimizer(Trackable):
    """The base of optimizers.

        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking, name, use_own_namescope_for_non_slot_vars=False):
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots = {}
        self._non_slot_dict = {}
        self._deferred_slot_restorations = {}  # slot -> {key of a variable: positions in checkpoints}
        self._non_slot_variable_scope = None
        if use_own_namescope_for_non_slot_vars:
            from runnel.ops import variable_scopes
            with variable_scopes.variable_scope(None, default_name=name) as scope:
                self._non_slot_variable_scope = scope

    def get_name(self):
        return self._name

    # Public methods

    def minimize(self, loss, global_step=None, var_list=None, gate_gradients=GATE_OP,
                 aggregation_method=None, colocate_gradients_with_ops=False, name=None,
                 grad_loss=None):
        """Returns an operation that updates variables to reduce the loss.

        Args:
          loss: a tensor; in eager execution, a function that returns one.
          global_step: a variable to increment.
          var_list: the variables to update; by default all trainable ones.
          gate_gradients: GATE_NONE, GATE_OP or GATE_GRAPH: how much is computed before the updates.
          aggregation_method: how gradients are summed.
          colocate_gradients_with_ops: places gradients with their operations.
          name: name of the operation.
          grad_loss: the incoming gradient of the loss; by default ones.
        """
        pairs = self.compute_gradients(
            loss, var_list=var_list, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError("No gradients provided for any variable, check your graph for ops that do "
                             "not support gradients, between variables %s and loss %s." % (
                                 [str(v) for _, v in pairs], loss))
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(self, loss, var_list=None, gate_gradients=GATE_OP, aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        """Returns [(gradient, variable)]; the gradient is None if the loss does not depend on the variable."""
        if callable(loss):
            return self._eager_gradients(loss, var_list, grad_loss)
        if _core.current() is None:
            raise RuntimeError("`loss` passed to Optimizer.compute_gradients should be a function when "
                               "eager execution is enabled.")
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError("gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                             "Optimizer.GATE_GRAPH.  Not %s" % (gate_gradients,))
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        if var_list is None:
            var_list = variables.trainable_variables() + framework.get_collection(
                "trainable_resource_variables")
        else:
            from runnel import nest
            var_list = nest.flatten(var_list)
        if not var_list:
            raise ValueError("No variables to optimize.")
        for variable in var_list:
            if not isinstance(variable, (variables.Variable, Tensor)):
                raise NotImplementedError("Trying to optimize unsupported type ", variable)
        targets = [v if isinstance(v, Tensor) or _is_resource(v) else v._ref() for v in var_list]
        found = runnel.gradients(
            loss, targets, grad_ys=grad_loss, gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gate_gradients == self.GATE_GRAPH:
            from runnel.ops import control_flow
            found = control_flow.tuple(found)
        pairs = list(zip(found, var_list))
        self._assert_valid_dtypes([v for g, v in pairs if g is not None and
                                   v.dtype != dtypes.resource])
        return pairs

    def _eager_gradients(self, loss, var_list, grad_loss):
        with runnel.GradientTape() as tape:
            if var_list is not None:
                tape.watch(var_list)
            value = loss()
        if var_list is None:
            var_list = tape.watched_variables()
        return list(zip(tape.gradient(value, var_list, grad_loss), var_list))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Returns an operation that updates variables with the gradients of compute_gradients, processed or not."""
        pairs = [(_checked_gradient(g), v) for g, v in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        var_list = [v for g, v in pairs if g is not None]
        if not var_list:
            raise ValueError("No gradients provided for any variable: %s." % ([str(v) for _, v in pairs],))
        distribute = sys.modules.get("runnel.distribute.contexts")
        if distribute is not None and distribute.has_strategy():
            if distribute.in_cross_replica_context():
                raise RuntimeError("Use `_distributed_apply()` instead of `apply_gradients()` in a cross-replica context.")
            return distribute.get_replica_context().merge_call(
                self._distributed_apply, args=([(g, v) for g, v in pairs if g is not None], global_step, name))
        with framework.init_scope():
            self._create_slots(var_list)
        with framework.name_scope(name, self._name) as scope:
            self._prepare()
            updates = []
            for gradient, variable in pairs:
                if gradient is None:
                    continue
                if isinstance(variable, Tensor):
                    raise NotImplementedError("Trying to update a Tensor ", variable)
                own = variable.op.name if variable._in_graph_mode else ""
                with framework.name_scope("update_" + own):
                    with framework.colocate_with(variable.op if variable._in_graph_mode else None,
                                                 not variable._in_graph_mode):
                        updates.append(self._update(gradient, variable))
            if global_step is None:
                done = self._finish(updates, scope)
            else:
                done = self._count(self._finish(updates, "update"), global_step, scope)
            if _core.current() is not None:
                if isinstance(done, Tensor):
                    done = done.op
                train_ops = framework.get_collection_ref(GraphKeys.TRAIN_OP)
                if done not in train_ops:
                    train_ops.append(done)
            return done

    def _distributed_apply(self, distribution, grads_and_vars, global_step=None, name=None):
        """Updates the variables of a strategy with the sums of the replicas' gradients, outside of replicas."""
        var_list = [variable for _, variable in grads_and_vars]
        sums = distribution.extended.batch_reduce_to("SUM", grads_and_vars)
        with framework.init_scope():
            self._create_slots(var_list)

        def update(variable, gradient):
            own = variable.op.name if variable._in_graph_mode else variable.name.split(":")[0]
            with framework.name_scope("update_" + own):
                return self._update(_checked_gradient(gradient), variable)
        with framework.name_scope(name, self._name) as scope:
            self._prepare()
            updates = [op for gradient, variable in zip(sums, var_list)
                       for op in distribution.extended.update(variable, update, args=(gradient,), group=False)]
            finished = distribution.extended.update_non_slot(
                distribution.extended.non_slot_devices(var_list), lambda: self._finish([op for op in updates if op is not None], "update"), group=False)
            if global_step is None:
                return None if _core.current() is None else distribution.group([op for op in finished if op is not None], name=scope)
            with framework.control_dependencies([op for op in finished if op is not None]):
                return distribution.extended.update(global_step, lambda step: step.assign_add(1))

    def _update(self, gradient, variable):
        is_sparse = isinstance(gradient, IndexedSlices)
        if is_sparse and variable.constraint is not None:
            raise RuntimeError("Cannot use a constraint function on a sparse variable.")
        if _is_resource(variable):
            if is_sparse:
                return self._resource_apply_sparse_duplicate_indices(
                    gradient.values, variable, gradient.indices)
            update = self._resource_apply_dense(gradient, variable)
        elif is_sparse:
            return self._apply_sparse_duplicate_indices(gradient, variable)
        else:
            update = self._apply_dense(gradient, variable)
        if variable.constraint is None:
            return update
        with framework.control_dependencies([update] if update is not None else []):
            return variable.assign(variable.constraint(variable))

    def _count(self, after, global_step, scope):
        with framework.control_dependencies([after] if after is not None else []):
            if not _is_resource(global_step):
                from runnel.ops.state_ops import assign_add
                with framework.colocate_with(global_step):
                    return assign_add(global_step, 1, name=scope)
            in_graph = global_step._in_graph_mode
            with framework.colocate_with(global_step.op if in_graph else None, not in_graph):
                return raw_ops.AssignAddVariableOp(
                    resource=global_step.handle,
                    value=convert.convert_to_tensor(1, global_step.dtype), name=scope)

    # Slots

    def get_slot(self, var, name):
        """Returns the slot of that name of a variable, or None."""
        return self._slots.get(name, {}).get(_var_key(var))

    def get_slot_names(self):
        """Returns the names of the slots."""
        return sorted(self._slots)

    def variables(self):
        """Returns the optimizer's own variables, sorted by name."""
        graph = framework.get_default_graph()
        found = list(self._non_slot_variables())
        for slots in self._slots.values():
            found += slots.values()
        found = [v for v in found if not v._in_graph_mode or v.graph is graph]
        return sorted(found, key=lambda v: v.name)

    def _create_non_slot_variable(self, initial_value, name, colocate_with):
        in_graph = colocate_with._in_graph_mode
        key = (name, colocate_with.graph if in_graph else None)
        variable = self._non_slot_dict.get(key)
        if variable is not None:
            return variable
        restored = None if in_graph else self._preload_simple_restoration(name)
        if restored is not None:
            initial_value = restored
        with framework.colocate_with(colocate_with.op if in_graph else None, not in_graph):
            if self._non_slot_variable_scope is None:
                variable = variables.Variable(initial_value, name=name, trainable=False,
                                              use_resource=_is_resource(colocate_with))
            else:
                from runnel.ops import variable_scopes
                with framework.name_scope(""):
                    with variable_scopes.variable_scope(self._non_slot_variable_scope):
                        variable = variable_scopes.get_variable(
                            name, initializer=initial_value, trainable=False,
                            use_resource=_is_resource(colocate_with))
        # Not tracked for good: the children are those of the current graph.
        self._handle_deferred_dependencies(name, variable)
        self._non_slot_dict[key] = variable
        return variable

    # For checkpoints.

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        graph = None if framework.executing_eagerly() else framework.get_default_graph()
        own = {name: variable for (name, where), variable in sorted(self._non_slot_dict.items(), key=lambda row: row[0][0]) if where is graph}
        return {**own, **super()._trackable_children(save_type, **kwargs)}

    def _lookup_dependency(self, name, cached_dependencies=None):
        found = super()._lookup_dependency(name, cached_dependencies)
        if found is not None:
            return found
        return self._get_non_slot_variable(name, None if framework.executing_eagerly() else framework.get_default_graph())

    def _restore_slot(self, slot_name, variable, slot):
        """Restores a slot that was just made, if a checkpoint with it was restored before."""
        for position in sorted(self._deferred_slot_restorations.get(slot_name, {}).pop(_var_key(variable), ()),
                               key=lambda position: position.restore_uid, reverse=True):
            position.restore(slot)
        return slot

    def _create_or_restore_slot_variable(self, slot_variable_position, slot_name, variable):
        """Returns the slot, which may be made from the checkpoint; None if it has to wait until the optimizer makes it."""
        slot = self._slot_dict(slot_name).get(_var_key(variable))
        if slot is None and framework.executing_eagerly() and slot_variable_position.is_simple_variable() and not (
                framework.get_default_graph()._scopes.get("variable_creators")):
            slot = self._get_or_make_slot_with_initializer(variable, CheckpointInitialValueCallable(slot_variable_position), variable.shape,
                                                           variable.dtype, slot_name, self._name)
        if slot is None:
            self._deferred_slot_restorations.setdefault(slot_name, {}).setdefault(_var_key(variable), []).append(slot_variable_position)
        return slot

    def _get_non_slot_variable(self, name, graph=None):
        return self._non_slot_dict.get((name, graph))

    def _non_slot_variables(self):
        return self._non_slot_dict.values()

    def _slot_dict(self, slot_name):
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var, val, slot_name, op_name):
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = self._restore_slot(slot_name, var, slot_creator.create_slot(var, val, op_name))
        return slots[_var_key(var)]

    def _get_or_make_slot_with_initializer(self, var, initializer, shape, dtype, slot_name, op_name):
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = self._restore_slot(slot_name, var, slot_creator.create_slot_with_initializer(
                var, initializer, shape, dtype, op_name))
        return slots[_var_key(var)]

    def _zeros_slot(self, var, slot_name, op_name):
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = self._restore_slot(slot_name, var, slot_creator.create_zeros_slot(var, op_name))
        return slots[_var_key(var)]

    # Methods that subclasses define

    def _valid_dtypes(self):
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors):
        valid = self._valid_dtypes()
        for tensor in tensors:
            if tensor.dtype.base_dtype not in valid:
                raise ValueError("Invalid type %r for %s, expected: %s." % (
                    tensor.dtype.base_dtype, tensor.name, list(valid)))

    def _create_slots(self, var_list):
        pass

    def _prepare(self):
        pass

    def _apply_dense(self, grad, var):
        raise NotImplementedError()

    def _resource_apply_dense(self, grad, handle):
        raise NotImplementedError()

    def _apply_sparse(self, grad, var):
        raise NotImplementedError()

    def _resource_apply_sparse(self, grad, handle, indices):
        raise NotImplementedError()

    def _apply_sparse_duplicate_indices(self, grad, var):
        values, indices = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        values, unique = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(values, handle, unique)

    def _finish(self, update_ops, name_scope):
        from runnel.ops.control_flow import group
        return group(*update_ops, name=name_scope)

    def _call_if_callable(self, param):
        return param() if callable(param) else param


def _checked_gradient(gradient):
    if gradient is None:
        return None
    try:
        return convert.convert_to_tensor_or_indexed_slices(gradient)
    except TypeError:
        raise TypeError("Gradient must be convertible to a Tensor or IndexedSlices, or None: %s" % (
            gradient,)) from None
