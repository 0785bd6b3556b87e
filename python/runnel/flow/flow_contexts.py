"""Contexts of conditionals and loops: which operations are inside, and how values come in.

A branch or a loop body is built while its context is the graph's current one. The graph tells the context
about every new operation (`AddOp`), and the context brings in the outside values it reads (`AddValue`).
"""

import contextlib

from runnel import _core, nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Operation, colocate_with, control_dependencies, get_default_graph, name_scope
from runnel.flow.groups import with_dependencies


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
        from runnel.flow.control_flow_io import to_proto
        return to_proto(self, export_scope)

    @staticmethod
    def from_proto(context_def, import_scope=None):
        """Rebuilds a context from its message."""
        from runnel.flow.control_flow_io import from_proto
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
