"""Conditionals and loops as Switch, Merge, Enter, Exit and NextIteration nodes.

A branch or a loop body is built while its context is the graph's current one. The graph tells the context
about every new operation (`AddOp`), and the context brings in the outside values it reads (`AddValue`).
"""

import builtins
import contextlib

from runnel import _core, dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.composite import IndexedSlices, SparseTensor
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import (
    GraphKeys, Operation, Tensor, colocate_with, control_dependencies, executing_eagerly, get_default_graph, name_scope)


class ControlFlowContext:
    """The context of the operations inside a branch or a loop."""

    def __init__(self):
        self._outer_context = get_default_graph()._get_control_flow_context()
        self._inside = set()      # names of tensors that may be read as they are
        self._brought = {}        # name of a tensor outside -> tensor inside
        self._passed = set()      # names of tensors that a surrounding context brought in for this one
        self._nested_contexts = []
        if self._outer_context is not None:
            self._outer_context._nested_contexts.append(self)

    @property
    def outer_context(self):
        """The context around this one, or None."""
        return self._outer_context

    @property
    def back_prop(self):
        """Whether gradients pass through."""
        return True

    def Enter(self):
        """Makes this the graph's context: operations built from now on are inside."""
        get_default_graph()._set_control_flow_context(self)

    def Exit(self):
        """Restores the context that was current before Enter."""
        get_default_graph()._set_control_flow_context(self._outer_context)

    @contextlib.contextmanager
    def entered(self):
        """A context manager that enters and exits this context."""
        self.Enter()
        try:
            yield self
        finally:
            self.Exit()

    def to_proto(self, export_scope=None):
        """Returns the context's message for a MetaGraphDef."""
        from runnel.ops.control_flow_io import to_proto
        return to_proto(self, export_scope)

    @staticmethod
    def from_proto(context_def, import_scope=None):
        """Rebuilds a context from its message."""
        from runnel.ops.control_flow_io import from_proto
        return from_proto(context_def, import_scope)

    def AddName(self, name):
        """Does nothing; it exists for callers written for TensorFlow."""
        self._inside.add(name)

    def IsWhileContext(self):
        """Tells whether this is the context of a loop."""
        return False

    def IsCondContext(self):
        """Tells whether this is the context of a branch."""
        return False

    def GetWhileContext(self):
        """Returns the innermost loop's context, or None."""
        context = self
        while context is not None and not context.IsWhileContext():
            context = context._outer_context
        return context

    def _holds(self, op):
        """Tells whether an operation was built in this context or in one inside it."""
        context = op._get_control_flow_context()
        while context is not None and context is not self:
            context = context._outer_context
        return context is self

    def keeps_control_input(self, op):
        """Tells whether operations in this context may wait for `op`."""
        return True

    def _drop_external_controls(self, op):
        """Removes control inputs from outside the loop and returns them. Operations of a loop wait only for those of the same loop."""
        loop = self.GetWhileContext()
        controls = op.control_inputs
        if loop is None or not controls:
            return []
        own = [c for c in controls if _loop_of(c) is loop]
        if len(own) < len(controls):
            op._remove_all_control_inputs()
            op._add_control_inputs(own)
        return [c for c in controls if _loop_of(c) is not loop]

    def AddOp(self, op):
        """Brings in what a new operation reads. The graph calls this for every new operation."""
        inputs = op.inputs
        if any(x.name not in self._inside for x in inputs):
            with name_scope(op.name + "/"):
                for index in range(len(inputs)):
                    real = self.AddValue(inputs[index])
                    if real is not inputs[index]:
                        op._update_input(index, real)
        external = self._drop_external_controls(op)
        if self._is_free(op):
            op._add_control_input(self.GetControlPivot().op)
        self._note(op)
        self._await(op, external)

    def _await(self, op, external):
        """Makes `op` wait for operations outside."""

    def _is_free(self, op):
        """Tells whether nothing that `op` reads or waits for ties it to this context."""
        return not len(op.inputs) and not any(self._holds(c) for c in op.control_inputs)

    def _seal(self, op):
        """Marks the operation as neither fetchable nor feedable: it has no single value per step."""
        op.graph.prevent_fetching(op)
        if self.GetWhileContext() is not None:
            for output in op.outputs:
                op.graph.prevent_feeding(output)

    def _note(self, op):
        op._set_control_flow_context(self)
        if self._outer_context is not None or op.type not in ("Exit", "RefExit"):
            self._seal(op)
        context = self
        while context is not None:
            for output in op.outputs:
                context._inside.add(output.name)
            context = context._outer_context

    def AddValue(self, value):
        """Returns the tensor that stands for an outside tensor inside."""
        if value.name in self._inside:
            return value
        found = self._brought.get(value.name)
        if found is None:
            outer = value if self._outer_context is None else self._outer_context.AddValue(value)
            found = self._bring(outer)
            self._inside.add(found.name)
            self._brought[value.name] = found
            if outer is not value and self.IsCondContext():
                self._brought[outer.name] = found
                self._passed.add(outer.name)
        return found

    def _outside(self):
        """A context manager for building the nodes that connect the inside: no control inputs, no context."""
        return control_dependencies(None)


class CondContext(ControlFlowContext):
    """One branch of a conditional: branch 1 runs if the predicate is true."""

    def __init__(self, pred, pivot, branch, name="cond_text"):
        super().__init__()
        self.name = get_default_graph().unique_name(name)
        self._pred = pred
        self._pivot = pivot
        self._branch = branch
        self._inside.update((pred.name, pivot.name))
        self._brought[pred.name] = pred

    @property
    def pred(self):
        """The predicate."""
        return self._pred

    @property
    def pivot(self):
        """The operation that runs first in this branch."""
        return self._pivot

    @property
    def branch(self):
        """1 for the true branch, 0 for the false one."""
        return self._branch

    def IsCondContext(self):
        """Returns True."""
        return True

    def GetControlPivot(self):
        """Returns the operation that operations without inputs wait for."""
        return self._pivot

    def _bring(self, outer):
        with self._outside():
            result = _switch_any(outer, self._pred)[self._branch]
        result.op._set_control_flow_context(self)
        self._seal(result.op)
        if self._outer_context is not None:
            for output in result.op.outputs:
                context = self._outer_context
                while context is not None:
                    context._inside.add(output.name)
                    context = context._outer_context
        return result

    def build(self, fn):
        """Builds the branch. Returns (result of `fn`, its leaves as tensors of the branch)."""
        original = fn()
        if original is None:
            return None, None
        flat = [self._result(leaf) for leaf in nest.flatten(original, expand_composites=True)]
        return original, flat

    def _result(self, value):
        if value is None:
            return self._pivot
        if isinstance(value, Operation):
            return with_dependencies([value], self._pivot)
        if _is_array(value):
            value = value.flow
        tensor = convert_to_tensor(value)
        return self.AddValue(tensor)


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


class GradientContext(ControlFlowContext):
    """The context in which a Python gradient function builds if its operation is in a loop.

    That is the backward loop, or the body in which gradients were requested. Forward values are read from the
    copies that were kept.
    """

    def __init__(self, rule, anchor, grads):
        super().__init__()
        self._rule = rule
        self._anchor = anchor
        self._walk = {x.op for x in grads if x is not None} | {anchor}
        self._control_stack = None

    def IsWhileContext(self):
        """Tells whether it stands for a loop."""
        return True

    def GetControlPivot(self):
        """Returns the operation that operations without inputs wait for."""
        return self._anchor.outputs[0]

    def Enter(self):
        """Makes this the graph's context."""
        graph = get_default_graph()
        self._control_stack = graph._control_stack
        graph._control_stack = []
        super().Enter()

    def Exit(self):
        """Restores the context that was current before Enter."""
        super().Exit()
        get_default_graph()._control_stack = self._control_stack

    def keeps_control_input(self, op):
        """Tells whether operations in this context may wait for `op`."""
        return op in self._walk or self._holds(op)

    def _drop_external_controls(self, op):
        return []

    def _is_free(self, op):
        return _reads_invariants(op)

    def result(self, value):
        """Returns a result of the gradient function as a tensor that has a value in each iteration."""
        if value.op in self._walk or self._holds(value.op):
            return value
        return raw_ops.Identity(input=value)

    def AddValue(self, value):
        """Returns the tensor that stands for an outside tensor inside."""
        if value.name in self._inside:
            return value
        found = self._brought.get(value.name)
        if found is None:
            around, outer = value, self._outer_context
            if outer is not None and value.op not in self._walk:
                around = outer.AddValue(value)
            found = _core.rule_read(self._rule, around, around is not value)
            self._inside.add(found.name)
            self._brought[value.name] = found
        return found


def _loop_of(op):
    context = op._get_control_flow_context()
    return None if context is None else context.GetWhileContext()


def _reads_invariants(op):
    """Tells whether nothing that `op` reads or waits for belongs to an iteration."""
    return not op.control_inputs and all(_is_invariant(x) for x in op.inputs)


def _is_invariant(x):
    return x.op.type in ("Enter", "RefEnter") and x.op.get_attr("is_constant")


def _is_within(allowed, shape):
    """Tells whether every value of shape `shape` also has shape `allowed`."""
    if allowed.dims is None:
        return True
    if shape.dims is None or len(shape.dims) != len(allowed.dims):
        return False
    return all(a.value is None or a.value == s.value for a, s in zip(allowed.dims, shape.dims))


def switch(data, pred, dtype=None, name=None):
    """Returns (output_false, output_true): `data` goes to the one that `pred` selects, the other is dead."""
    with name_scope(name, "Switch", [data, pred]) as name:
        data = convert_to_tensor(data, dtype, name="data")
        return raw_ops.Switch(data=data, pred=convert_to_tensor(pred, name="pred"), name=name)


def merge(inputs, name=None):
    """Returns (output, value_index): the first available input, and its index."""
    if any(x is None for x in inputs):
        raise ValueError("At least one of the merge inputs is None: %s" % inputs)
    with name_scope(name, "Merge", inputs) as name:
        values = [convert_to_tensor(x) for x in inputs]
        op = raw_ops.RefMerge if all(x.dtype._is_ref_dtype for x in values) else raw_ops.Merge
        return op(inputs=values, name=name)


def _switch_any(value, pred):
    """Returns (output_false, output_true) of a Switch on the device of its value."""
    with colocate_with(value, ignore_existing=True):
        if value.dtype._is_ref_dtype:
            return raw_ops.RefSwitch(data=value, pred=pred, name="Switch")
        return raw_ops.Switch(data=value, pred=pred, name="Switch")


def _is_array(value):
    from runnel.ops.tensor_array import TensorArray
    return isinstance(value, TensorArray)


def _flow_of(value):
    return value.flow if _is_array(value) else value


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


def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None):
    """Returns `true_fn()` if `pred` is true, else `false_fn()`. Only the operations of that branch run.

    Args:
      pred: a scalar bool tensor.
      true_fn, false_fn: functions without arguments that return tensors of the same structure and types.
      strict: keeps a result of one element as a list of one.
      name: name of the scope of the new operations.
    """
    true_fn, false_fn = true_fn or fn1, false_fn or fn2
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if executing_eagerly():
        return true_fn() if bool(pred) else false_fn()
    return build_cond(pred, true_fn, false_fn, strict, name)


def build_cond(pred, true_fn, false_fn, strict, name=None, settle=None):
    """Builds a conditional in a graph. `settle`, if given, gets the results of both branches and returns those to merge."""
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("pred must not be a Python bool")
        pred = convert_to_tensor(pred)
        no, yes = raw_ops.Switch(data=pred, pred=pred, name="Switch")
        pivot_yes = raw_ops.Identity(input=yes, name="switch_t")
        pivot_no = raw_ops.Identity(input=no, name="switch_f")
        pred = raw_ops.Identity(input=pred, name="pred_id")
        for x in (yes, pivot_yes, pivot_no, pred):
            x.graph.prevent_fetching(x.op)
        results, contexts = [], []
        for pivot, branch, fn in ((pivot_yes, 1, true_fn), (pivot_no, 0, false_fn)):
            with CondContext(pred, pivot, branch).entered() as context:
                results.append(context.build(fn) if settle is None else fn())
            contexts.append(context)
        if settle is not None:
            settled = settle(contexts, results)
            results = []
            for context, values in zip(contexts, settled):
                with context.entered():
                    results.append(context.build(lambda values=values: values))
        results = _with_same_indices(contexts, results)
        if contexts[0].outer_context is None:
            for context in contexts:
                get_default_graph().add_to_collection(GraphKeys.COND_CONTEXT, context)
        return _merge_branches(results, pivot_yes, pivot_no, strict)


def _with_same_indices(contexts, results):
    """Casts indices of IndexedSlices to int64 where the other branch has that type."""
    flat = [[] if original is None else nest.flatten(original) for original, _ in results]
    if len(flat[0]) != len(flat[1]):
        return results
    pairs = [(one, two) for one, two in zip(*flat) if isinstance(one, IndexedSlices) and isinstance(two, IndexedSlices)]
    if all(one.indices.dtype == two.indices.dtype for one, two in pairs):
        return results

    def cast(value):
        if not isinstance(value, IndexedSlices) or value.indices.dtype != dtypes.int32:
            return value
        return IndexedSlices(value.values, raw_ops.Cast(x=value.indices, DstT=dtypes.int64), value.dense_shape)
    made = []
    for context, (original, _) in zip(contexts, results):
        with context.entered():
            made.append(context.build(lambda original=original: nest.map_structure(cast, original)))
    return made


def cond_v2(pred, true_fn, false_fn, name="cond"):
    """The same as cond; it is tensorflow.python.ops.cond_v2.cond_v2."""
    return cond(pred, true_fn, false_fn, strict=True, name=name)


def _merge_branches(results, pivot_yes, pivot_no, strict):
    (original, yes), (other, no) = results
    if not strict:
        original, other = _only_one(original), _only_one(other)
    if original is None or other is None:
        if original is not other:
            raise ValueError("true_fn and false_fn must return the same structure: %s and %s" % (
                original, other))
        return raw_ops.Merge(inputs=[pivot_no, pivot_yes], name="Merge")[0]
    try:
        nest.assert_same_structure(original, other, expand_composites=True)
    except (TypeError, ValueError) as error:
        raise type(error)("Incompatible return types of true_fn and false_fn: %s" % error) from None
    for one, two in zip(yes, no):
        if one.dtype.base_dtype != two.dtype.base_dtype:
            raise ValueError("Outputs of true_fn and false_fn must have the same type: %s, %s" % (
                one.dtype.name, two.dtype.name))
    merges = []
    for one, two in zip(yes, no):
        op = raw_ops.RefMerge if one.dtype._is_ref_dtype and two.dtype._is_ref_dtype else raw_ops.Merge
        merges.append(op(inputs=[two, one], name="Merge")[0])
    likes = nest.flatten(original, expand_composites=True)
    values = []
    for like, value in zip(likes, merges):
        values.append(like._with_flow(value) if _is_array(like) else value)
    packed = nest.pack_sequence_as(original, values, expand_composites=True)
    _set_common_shapes(packed, original, other)
    return packed if strict else _only_one(packed)


def _set_common_shapes(merged, original, other):
    """Sets the static shapes of sparse results, as far as both branches agree on them."""
    for made, one, two in zip(nest.flatten(merged), nest.flatten(original), nest.flatten(other)):
        if isinstance(made, SparseTensor) and isinstance(two, SparseTensor):
            made.set_shape(one.shape.most_specific_compatible_shape(two.shape))


def _only_one(result):
    """Unpacks a list of one element."""
    is_one = isinstance(result, (list, builtins.tuple)) and len(result) == 1
    return result[0] if is_one else result


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """Like cond, but if `pred` is known only that branch is built."""
    if isinstance(pred, Tensor):
        from runnel.core.convert import evaluated_value
        known = evaluated_value(pred)
    elif hasattr(pred, "_as_graph_element"):
        known = None
    else:
        known = pred
    if known is not None:
        return true_fn() if known else false_fn()
    return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True,
               swap_memory=False, name=None, maximum_iterations=None, return_same_structure=False):
    """Repeats `body` while `cond` is true. Returns the final loop variables.

    Args:
      cond: a function of the loop variables that returns a scalar bool.
      body: a function of the loop variables that returns the next ones, with the same types and structure.
      loop_vars: a nest of tensors, TensorArrays, SparseTensors, or values that convert to tensors.
      shape_invariants: the shapes that the variables keep, in the same structure; by default their initial shapes.
      parallel_iterations: how many iterations may run at once.
      back_prop: if False, gradients do not pass through.
      swap_memory: values kept for gradients may leave the device's memory.
      name: name of the scope of the new operations.
      maximum_iterations: a scalar limit on the number of iterations.
      return_same_structure: keeps a single variable as a list of one.
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if isinstance(loop_vars, (list, builtins.tuple)) and not len(loop_vars):
        raise ValueError("No loop variables provided")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if executing_eagerly():
        return _eager_loop(cond, body, loop_vars, maximum_iterations, return_same_structure)
    with name_scope(name, "while", nest.flatten(loop_vars)):
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(maximum_iterations, name="maximum_iterations")
            if maximum_iterations.shape.ndims not in (None, 0):
                raise ValueError("maximum_iterations must be a scalar, saw shape: %s" %
                                 maximum_iterations.shape)
            counter = constant(0, dtype=maximum_iterations.dtype, name="iteration_counter")
            inner_cond, inner_body = cond, body
            unwrap = nest.is_nested(loop_vars) and not isinstance(loop_vars, dict)

            def cond(i, values):  # noqa: F811
                is_early = raw_ops.Less(x=i, y=maximum_iterations)
                return raw_ops.LogicalAnd(x=is_early, y=inner_cond(*values) if unwrap else inner_cond(values))

            def body(i, values):  # noqa: F811
                after = i + 1
                result = inner_body(*values) if unwrap else inner_body(values)
                if unwrap and not (nest.is_nested(result) and len(result) == len(values)
                                   and not _is_array(result)):
                    result = type(values)([result]) if not hasattr(values, "_fields") else result
                return after, result

            loop_vars = (counter, loop_vars)
            if shape_invariants is not None:
                shape_invariants = (tensor_shape.TensorShape([]), shape_invariants)
        context = WhileContext(maximum_iterations, parallel_iterations, back_prop, swap_memory)
        loop_vars = _as_loop_vars(loop_vars)
        keep = return_same_structure or maximum_iterations is not None
        if context.outer_context is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = context.build(cond, body, loop_vars, shape_invariants, keep)
        if maximum_iterations is None:
            return result
        result = result[1]
        if not return_same_structure and isinstance(result, (list, builtins.tuple)) and len(result) == 1:
            return result[0]
        return result


def _as_loop_vars(loop_vars):
    """Converts the leaves to tensors, TensorArrays or composite tensors."""
    def one(value):
        if _is_array(value) or getattr(value, "_is_composite", False):
            return value
        return convert_to_tensor(value)
    return nest.map_structure(one, loop_vars)


def _eager_loop(cond, body, loop_vars, maximum_iterations, return_same_structure):
    packs = nest.is_nested(loop_vars) and not isinstance(loop_vars, dict)
    turns = 0
    limit = None if maximum_iterations is None else int(maximum_iterations)
    while (limit is None or turns < limit) and bool(
            cond(*loop_vars) if packs else cond(loop_vars)):
        result = body(*loop_vars) if packs else body(loop_vars)
        if packs and not (nest.is_nested(result) and len(result) == len(loop_vars)):
            result = [result]
        loop_vars = result
        turns += 1
    if packs and not return_same_structure and len(loop_vars) == 1:
        return loop_vars[0]
    return loop_vars


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """Calls the function of the first pair whose predicate is true; if none is, calls `default`.

    Args:
      pred_fn_pairs: a list of (scalar bool tensor, function), or a dict of them.
      default: a function; if None, one of the predicates must be true.
      exclusive: makes it an error if more than one predicate is true.
      strict: keeps a result of one element as a list of one.
      name: name of the scope of the new operations.
    """
    pairs = _checked_pairs(pred_fn_pairs)
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        preds = [convert_to_tensor(pred) for pred, _ in pairs]
        actions = [fn for _, fn in pairs]
        if default is None:
            default = _last_choice(preds, actions[-1])
            preds, actions = preds[:-1], actions[:-1]
        chosen = default
        for pred, action in reversed(list(zip(preds, actions))):
            chosen = _choice(pred, action, chosen, strict)
        if not exclusive:
            return chosen()
        with control_dependencies([_at_most(preds, 1, "Input error: exclusive=True")]):
            return chosen()


def _at_most(preds, count, message):
    """Asserts that at most `count` of the predicates are true."""
    together = raw_ops.Pack(values=preds, name="preds_c")
    numbers = raw_ops.Cast(x=together, DstT=dtypes.int32, name="Cast")
    from runnel.ops.math_ops import reduce_sum
    total = reduce_sum(numbers, name="num_true_conds")
    fits = raw_ops.LessEqual(x=total, y=constant(count, name="n_true_conds"), name="LessEqual")
    names = ", ".join(pred.name for pred in preds)
    return Assert(fits, ["%s: more than %d conditions (%s) evaluated as True:" % (message, count, names), together],
                  summarize=len(preds))


def _last_choice(preds, action):
    """Returns the last action, guarded by an assertion that its predicate is true."""
    def run():
        together = raw_ops.Pack(values=preds, name="preds_c")
        others = _at_most(preds[:-1], 0, "Implementation error: selected default action #%d was called, but some "
                          "of other predicates are True: " % (len(preds) - 1)) if len(preds) > 1 else None
        last = Assert(preds[-1], ["Input error: None of conditions evaluated as True:", together])
        with control_dependencies([check for check in (others, last) if check is not None]):
            return action()
    return run


def _choice(pred, action, otherwise, strict):
    return lambda: cond(pred, true_fn=action, false_fn=otherwise, strict=strict)


def _checked_pairs(pairs):
    if isinstance(pairs, dict):
        if hasattr(pairs, "move_to_end") or all(isinstance(p, Tensor) for p in pairs):
            items = list(pairs.items())
            if not hasattr(pairs, "move_to_end"):
                items.sort(key=lambda item: item[0].name)
        else:
            items = list(pairs.items())
    elif isinstance(pairs, (list, builtins.tuple)):
        items = list(pairs)
    else:
        raise TypeError("pred_fn_pairs must be a list, tuple, or dict")
    if not items:
        raise ValueError("pred_fn_pairs must not be empty")
    for item in items:
        if not isinstance(item, builtins.tuple):
            raise TypeError("Each entry in pred_fn_pairs must be a tuple: %s" % (item,))
        if len(item) != 2:
            raise ValueError("Each tuple in pred_fn_pairs must have length 2, got: %s" % (item,))
        if isinstance(item[0], Tensor) and item[0].dtype.base_dtype != dtypes.bool:
            raise TypeError("pred must be Tensor of type bool: %s" % item[0].name)
        if not callable(item[1]):
            raise TypeError("fn for pred %s must be callable." % (item[0],))
    return items


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """Calls function number `branch_index`; out of range, calls `default` or else the last function."""
    if isinstance(branch_fns, dict):
        rows = sorted(branch_fns.items())
    elif branch_fns and isinstance(branch_fns[0], builtins.tuple):
        rows = sorted(branch_fns)
    else:
        rows = list(enumerate(branch_fns))
    if default is None:
        default = rows[-1][1]
    with name_scope(name, "switch_case", [branch_index]):
        index = convert_to_tensor(branch_index)
        pairs = [(raw_ops.Equal(x=index, y=constant(i, dtype=index.dtype)), fn) for i, fn in rows]
        return case(pairs, default=default)


def Assert(condition, data, summarize=None, name=None):
    """Returns an operation that fails with `data`, a list of tensors, unless `condition` is true."""
    if executing_eagerly():
        if not bool(condition):
            from runnel.errors import InvalidArgumentError
            raise InvalidArgumentError(None, None, "Expected %r to be true. Summarized data: %s" % (
                condition, "\n".join(str(x) for x in data)))
        return None
    with name_scope(name, "Assert", [condition, data]):
        kinds = [convert_to_tensor(x).dtype for x in data]

        def fail():
            return raw_ops.Assert(condition=condition, data=data, summarize=3 if summarize is None else summarize,
                                  name="Assert")
        if all(kind in (dtypes.string, dtypes.int32) for kind in kinds):
            return fail()
        condition = convert_to_tensor(condition, name="Condition")
        return cond(condition, no_op, fail, name="AssertGuard").op


def no_op(name=None):
    """Returns an operation that does nothing."""
    return raw_ops.NoOp(name=name)


def group(*inputs, name=None):
    """Returns an operation that finishes when all `inputs` have."""
    if executing_eagerly():
        return None
    if not inputs:
        return no_op(name=name)
    with name_scope(name, "group_deps", list(inputs)) as scope:
        by_device = {}
        for item in nest.flatten(list(inputs), expand_composites=True):
            if item is None:
                continue
            op = item if isinstance(item, Operation) else getattr(item, "op", None)
            if op is None:
                raise TypeError("'%s' is neither an operation nor a tensor and cannot be grouped" % (item,))
            by_device.setdefault(op.device, []).append(op)
        graph = get_default_graph()
        if len(by_device) == 1:
            (device, ops), = by_device.items()
            return _grouped(graph, ops, device, scope)
        nodes = [_grouped(graph, by_device[device], device, None) for device in sorted(by_device)]
        with control_dependencies(nodes):
            return no_op(name=scope)


def _grouped(graph, ops, device, name):
    with control_dependencies(ops):
        if device:
            with graph.device(device):
                return no_op(name=name)
        return no_op(name=name)


def with_dependencies(dependencies, output_tensor, name=None):
    """Returns `output_tensor`, available only after `dependencies` have run."""
    with name_scope(name, "control_dependency", list(dependencies) + [output_tensor]) as scope:
        with colocate_with(output_tensor), control_dependencies(dependencies):
            if isinstance(output_tensor, IndexedSlices):
                return IndexedSlices(raw_ops.Identity(input=output_tensor.values, name=scope),
                                     output_tensor.indices, output_tensor.dense_shape)
            return raw_ops.Identity(input=convert_to_tensor(output_tensor), name=scope)


def tuple(tensors, name=None, control_inputs=None):  # noqa: A001
    """Returns `tensors`, none of which is available before all are computed."""
    if executing_eagerly():
        return tensors
    with name_scope(name, "tuple", tensors):
        waits = [x.op for x in tensors if x is not None and not isinstance(x, Operation)]
        waits += [x for x in tensors if isinstance(x, Operation)]
        for item in control_inputs or ():
            waits.append(item if isinstance(item, Operation) else item.op)
        if not waits:
            raise ValueError("Must have at least one Tensor: %s" % (tensors,))
        gate = group(*waits)
        return [None if x is None else gate if isinstance(x, Operation)
                else with_dependencies([gate], x) for x in tensors]


