"""The context of a loop: Enter, Merge, Switch, NextIteration and Exit nodes."""

import builtins
import contextlib

from runnel import nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import get_default_graph, name_scope
from runnel.flow.flow_contexts import (
    ControlFlowContext, _flow_of, _is_array, _is_invariant, _reads_invariants, _switch_any)


class WhileContext(ControlFlowContext):
    """The context of a loop."""

    def __init__(self, maximum_iterations=None, parallel_iterations=10, back_prop=True,
                 swap_memory=False, name="while_context"):
        super().__init__()
        self.name = get_default_graph().unique_name(name)
        self._parallel_iterations = parallel_iterations
        self._back_prop = back_prop
        self._swap_memory = swap_memory
        self._maximum_iterations = maximum_iterations
        self._pivot = self._pivot_for_pred = self._pivot_for_body = None
        self._enters = []
        self._exits = []

    @property
    def back_prop(self):
        """Whether gradients pass through."""
        return self._back_prop

    @property
    def swap_memory(self):
        """Whether values kept for gradients may leave the device's memory."""
        return self._swap_memory

    @property
    def parallel_iterations(self):
        """How many iterations may run at once."""
        return self._parallel_iterations

    @property
    def maximum_iterations(self):
        """The limit on the number of iterations, or None."""
        return self._maximum_iterations

    @property
    def pivot(self):
        """The operation that runs first in each iteration."""
        return self._pivot

    @property
    def loop_enters(self):
        """The tensors that enter the loop."""
        return self._enters

    @property
    def loop_exits(self):
        """The tensors that leave the loop."""
        return self._exits

    def IsWhileContext(self):
        """Returns True."""
        return True

    def GetControlPivot(self):
        """Returns the operation that operations without inputs wait for."""
        return self._pivot_for_body if self._pivot_for_body is not None else self._pivot_for_pred

    def _await(self, op, external):
        if not external:
            return
        scope = name_scope(op.name + "/") if op.type != "Const" else contextlib.nullcontext()
        with self._outside(), self.entered(), scope:
            waits = [raw_ops.Identity(input=x.outputs[0]).op for x in external if x.outputs]
        op._add_control_inputs(waits)

    def note_results(self, rows, known):
        """Records gradients built in this loop, as rows of tensors, that may be read directly."""
        for row in rows:
            for x in row if isinstance(row, builtins.tuple) else (row,):
                if x is not None and x.op._get_control_flow_context() is None and not any(x is y for y in known):
                    self._note(x.op)

    def _is_free(self, op):
        return _reads_invariants(op)

    def _enter(self, outer, is_constant):
        op = raw_ops.RefEnter if outer.dtype._is_ref_dtype else raw_ops.Enter
        return op(data=outer, frame_name=self.name, is_constant=is_constant,
                  parallel_iterations=self._parallel_iterations, name="Enter")

    def _bring(self, outer):
        with self._outside():
            result = self._enter(outer, True)
        self._settle(result.op)
        return result

    def _settle(self, op):
        """Registers an Enter as part of this loop, and makes it wait for the iteration of the surrounding loop."""
        op._set_control_flow_context(self)
        for output in op.outputs:
            self._inside.add(output.name)
            op.graph.prevent_feeding(output)
        outer = self._outer_context
        source = op.inputs[0].op
        for controls, seen in get_default_graph()._control_stack:
            if source not in controls and source not in seen:
                op._add_control_inputs([c for c in controls if self._may_await(c)])
            seen.add(op)
        # A loop variable whose initial value is an invariant of the surrounding loop would start again
        # after that loop has ended, unless it waits for that loop's pivot.
        starts_alone = _is_invariant(op.inputs[0]) and not op.get_attr("is_constant")
        if outer is not None and (starts_alone or not outer._holds(op.inputs[0].op)):
            op._add_control_input(outer.GetControlPivot().op)

    def _may_await(self, op):
        """Tells whether the loop as a whole can wait for `op`: only if `op` is in a surrounding context, and in no other loop."""
        of, outer = op._get_control_flow_context(), self._outer_context
        loop = None if outer is None else outer.GetWhileContext()
        while outer is not of:
            if outer is None or outer is loop:
                return False
            outer = outer._outer_context
        return True

    def build(self, cond, body, loop_vars, shape_invariants, return_same_structure):
        """Builds the loop. Returns its results, nested like the loop variables."""
        flat = [_flow_of(v) for v in nest.flatten(loop_vars, expand_composites=True)]
        starts = []
        for value in flat:
            start = convert_to_tensor(value)
            starts.append(start if self._outer_context is None
                          else self._outer_context.AddValue(start))
        if not starts:
            raise ValueError("No loop variables provided")
        with self._outside():
            enters = [self._enter(x, False) for x in starts]
        for enter in enters:
            self._settle(enter.op)
        self._enters = enters
        _apply_invariants(starts, enters, shape_invariants)
        self.Enter()
        try:
            results, structure = self._turn(cond, body, loop_vars, enters,
                                            shape_invariants is not None)
        finally:
            self.Exit()
        for exit_ in results:
            context = self._outer_context
            if context is not None:
                exit_.op._set_control_flow_context(context)
            while context is not None:
                context._inside.add(exit_.name)
                context = context._outer_context
        packed = _pack_like(structure, results, loop_vars)
        if not return_same_structure and len(results) == 1 and nest.is_nested(packed) \
                and not isinstance(packed, dict):
            return packed[0]
        return packed

    def _tell_gradients(self, op):
        from runnel.core.protobuf import message_class
        for name, value, usual in (("_back_prop", self._back_prop, True), ("_swap_memory", self._swap_memory, False)):
            if bool(value) != usual:
                op._set_attr(name, message_class("AttrValue")(b=bool(value)))

    def _turn(self, cond, body, loop_vars, enters, has_invariants):
        merges = [(raw_ops.RefMerge if x.dtype._is_ref_dtype else raw_ops.Merge)(
            inputs=[x, x], name="Merge")[0] for x in enters]
        self._pivot_for_pred = merges[0]
        predicate = convert_to_tensor(cond(*_arguments(_pack_like(loop_vars, merges, loop_vars))))
        self._pivot = raw_ops.LoopCond(input=predicate, name="LoopCond")
        self._tell_gradients(self._pivot.op)
        switches = [_switch_any(x, self._pivot) for x in merges]
        values = [raw_ops.Identity(input=x[1], name="Identity") for x in switches]
        for value, merge in zip(values, merges):
            value.set_shape(merge.shape)
        self._pivot_for_body = values[0]
        result = body(*_arguments(_pack_like(loop_vars, values, loop_vars)))
        if not nest.is_nested(result) or _is_array(result):
            result = [result]
        if not nest.is_nested(loop_vars) or len(loop_vars) != 1 or not isinstance(result, (list, builtins.tuple)):
            wrapped = result
        else:
            wrapped = result if len(result) == 1 else [result]
        flat = nest.flatten(wrapped, expand_composites=True)
        if len(flat) != len(merges):
            raise ValueError("The number of inputs and outputs of body must match loop_vars: got %d "
                             "and %d" % (len(merges), len(flat)))
        for merge, value in zip(merges, flat):
            self._close(merge, _flow_of(value), has_invariants)
        exits = [(raw_ops.RefExit if x[0].dtype._is_ref_dtype else raw_ops.Exit)(
            data=x[0], name="Exit") for x in switches]
        for exit_, merge in zip(exits, merges):
            exit_.set_shape(merge.shape)
        self._exits = exits
        return exits, wrapped if nest.is_nested(loop_vars) else result[0]

    def _close(self, merge, value, has_invariants):
        value = self.AddValue(convert_to_tensor(value))
        if value.dtype.base_dtype != merge.dtype.base_dtype:
            raise TypeError("Input %s of the loop has type %s, but its next value %s has type %s" % (
                merge.name, merge.dtype.name, value.name, value.dtype.name))
        if not _is_within(merge.shape, value.shape):
            raise ValueError(
                "Input tensor '%s' enters the loop with shape %s, but has shape %s after one "
                "iteration. To allow the shape to vary across iterations, use the "
                "`shape_invariants` argument of tf.while_loop to specify a less-specific shape." % (
                    merge.op.inputs[0].op.inputs[0].name, merge.shape, value.shape))
        following = (raw_ops.RefNextIteration if value.dtype._is_ref_dtype
                     else raw_ops.NextIteration)(data=value, name="NextIteration")
        merge.op._update_input(1, following)


def _is_within(allowed, shape):
    """Tells whether every value of shape `shape` also has shape `allowed`."""
    if allowed.dims is None:
        return True
    if shape.dims is None or len(shape.dims) != len(allowed.dims):
        return False
    return all(a.value is None or a.value == s.value for a, s in zip(allowed.dims, shape.dims))


def _pack_like(structure, flat, originals):
    """Nests `flat` like `structure`; flows become TensorArrays like those of `originals`."""
    likes = nest.flatten(originals, expand_composites=True)
    values = []
    for like, value in zip(likes, flat):
        values.append(like._with_flow(value) if _is_array(like) else value)
    return nest.pack_sequence_as(structure, values, expand_composites=True)


def _arguments(packed):
    if isinstance(packed, dict) or not nest.is_nested(packed):
        return (packed,)
    return builtins.tuple(packed)


def _apply_invariants(starts, enters, invariants):
    if invariants is None:
        for start, enter in zip(starts, enters):
            enter.set_shape(start.shape)
        return
    flat = _flatten_shapes(invariants)
    if len(flat) != len(enters):
        raise ValueError("shape_invariants must have the structure of loop_vars: %d shapes for %d "
                         "tensors" % (len(flat), len(enters)))
    for start, enter, shape in zip(starts, enters, flat):
        shape = tensor_shape.as_shape(shape)
        if not _is_within(shape, start.shape):
            raise ValueError("The shape invariant specified for %s is not compatible with the initial "
                             "shape of the loop variable. It enters the loop with shape %s, but the "
                             "specified shape invariant is %s." % (start.name, start.shape, shape))
        enter.set_shape(shape)


def _flatten_shapes(invariants):
    flat = []
    if isinstance(invariants, tensor_shape.TensorShape) or invariants is None:
        return [invariants]
    if isinstance(invariants, dict):
        invariants = [invariants[key] for key in sorted(invariants)]
    if getattr(invariants, "_is_composite", False) or getattr(invariants, "_is_type_spec", False):
        return [x.shape for x in nest.flatten(invariants, expand_composites=True)]
    for one in invariants:
        flat.extend(_flatten_shapes(one))
    return flat
