"""The order of side effects in a tf.function.

While a function is traced, an `EffectOrder` sees every new operation. Operations with side effects run in program
order: reads and writes per resource, and everything that reaches beyond the graph (prints, asserts, Python functions)
in one sequence.

Control edges may not leave a branch or cross into a loop. So each branch and each loop has a level of its own, and
the conditional or loop as a whole is one unit in the surrounding level: it starts after the units that it waits for,
and is done when the side effects inside it are.
"""

import contextlib

from runnel import dtypes, raw_ops
from runnel.core import framework
from runnel.ops.control_flow import CondContext, WhileContext

READS = frozenset(("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"))
_QUIET = frozenset(("Placeholder", "VarHandleOp", "Const", "NoOp"))
# Operations that wait for their like elsewhere in the graph: in program order the first one would wait for ever.
ASYNC_STATEFUL_OPS = frozenset((
    "CollectiveAssignGroupV2", "CollectiveBcastRecv", "CollectiveBcastRecvV2", "CollectiveBcastSend", "CollectiveBcastSendV2",
    "CollectiveGather", "CollectiveInitializeCommunicator", "CollectiveReduce", "NcclAllReduce", "Recv"))
_RANDOM = frozenset(("Multinomial", "ParameterizedTruncatedNormal", "TruncatedNormal"))
_STATEFUL_CALLS = frozenset(("StatefulPartitionedCall", "If", "While", "Case", "For", "RemoteCall"))
_STATELESS_CALLS = frozenset(("PartitionedCall", "StatelessIf", "StatelessWhile", "StatelessCase"))
_FORWARDING = frozenset(("Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"))
# Operations that must run, but in no order.
MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS = frozenset((
    "DynamicEnqueueTPUEmbeddingArbitraryTensorBatch", "EnqueueTPUEmbeddingArbitraryTensorBatch", "EnqueueTPUEmbeddingIntegerBatch",
    "EnqueueTPUEmbeddingRaggedTensorBatch", "EnqueueTPUEmbeddingSparseBatch", "EnqueueTPUEmbeddingSparseTensorBatch", "InfeedEnqueue",
    "InfeedEnqueueTuple"))
_WORLD = ""  # among the names of resources: all that is outside the graph


def is_stateful(op):
    """Tells whether it matters how often or when the operation runs."""
    if op.type in _QUIET:
        return False
    function = getattr(raw_ops, op.type, None)
    return op.op_def.is_stateful if function is None else function.is_stateful


class _Level:
    """The units of one context in program order."""

    def __init__(self):
        self._numbers = {}  # unit -> its position in program order
        self._writes = {}   # resource -> the last unit that changes it
        self._reads = {}    # resource -> the units that have read it since
        self._effects = {}  # units with side effects that no later unit with side effects waits for
        self._open_reads = {}  # unit -> resources that it reads; only units that no unit with side effects waits for

    def place(self, unit, touched):
        """Adds `unit`, or what it additionally touches ({resource: whether it only reads}).

        Returns the units that it must wait for.
        """
        number = self._numbers.setdefault(unit, len(self._numbers))
        waits = {}
        for name, only_reads in touched.items():
            waits[self._writes.get(name)] = True
            if only_reads:
                self._reads.setdefault(name, []).append(unit)
                self._open_reads.setdefault(unit, set()).add(name)
            else:
                waits.update(dict.fromkeys(self._reads.pop(name, ())))
                self._writes[name] = unit
                self._effects[unit] = True
        waits = [x for x in waits if x is not None and self._numbers[x] < number]
        if unit in self._effects:
            for x in waits:
                self._effects.pop(x, None)
                self._open_reads.pop(x, None)
        return waits

    def effects(self):
        """Returns the last units with side effects: once they are done, all side effects are."""
        return list(self._effects)

    def effects_and_reads(self, only_changed=False):
        """Like effects, and also returns the last units that read.

        `only_changed` limits those to the resources that this level changes.
        """
        reads = [unit for unit, names in self._open_reads.items()
                 if unit not in self._effects and not (only_changed and names.isdisjoint(self._writes))]
        return list(self._effects) + reads


class _Single:
    """A unit that is one operation."""

    def __init__(self, op):
        self._op = op

    def delay(self, ops):
        """Makes it wait for `ops`."""
        self._op._add_control_inputs(ops)

    def done(self):
        """Returns the operations that mark its end."""
        return [self._op]


class _Cond:
    """A unit that is a conditional."""

    def __init__(self, context):
        self._pred = context.pred.op
        self._switch = context.pivot.op.inputs[0].op  # the Switch of the predicate
        self._outer_context = context.outer_context
        self._branches = {}  # number -> (context, level)
        self._done = None

    def level(self, context):
        return self._branches.setdefault(context.branch, (context, _Level()))[1]

    def note(self, unit, has_effects):
        """Called for each unit of its levels. A conditional ignores it."""

    def delay(self, ops):
        self._pred._add_control_inputs(ops)
        self._switch._add_control_inputs(ops)

    def close(self):
        """Called once everything inside is built. A conditional has nothing to connect."""

    def done(self):
        if self._done is None:
            ends = [self._end(0), self._end(1)]
            with _building_in(self._outer_context):
                self._done = raw_ops.Merge(inputs=ends, name="effects")[0].op
        return [self._done]

    def _end(self, number):
        """Returns a tensor that is available after the side effects of a branch, if that branch runs."""
        if number not in self._branches:
            return self._switch.outputs[number]
        context, level = self._branches[number]
        with _building_in(context):
            end = raw_ops.Identity(context.pivot, name="effects")
        end.op._add_control_inputs(_done(level.effects_and_reads()))
        return end


class _Loop:
    """A unit that is a loop."""

    def __init__(self, context):
        self._context = context
        self._level = _Level()
        self._test = {}  # units with side effects in the loop condition

    def level(self, context):
        return self._level

    def note(self, unit, has_effects):
        if has_effects and self._context.pivot is None:
            self._test[unit] = True

    def delay(self, ops):
        for enter in self._context.loop_enters:
            enter.op._add_control_inputs(ops)

    def done(self):
        return [x.op for x in self._context.loop_exits]

    def close(self):
        """Makes the loop's end wait for the side effects of the last condition, and each iteration for those of the previous one."""
        self._context.pivot.op._add_control_inputs(_done(self._test))
        ends = _done(self._level.effects_and_reads(only_changed=True))
        for exit_ in self._context.loop_exits:
            merge = exit_.op.inputs[0].op.inputs[0].op
            merge.inputs[1].op._add_control_inputs(ends)  # the NextIteration


class EffectOrder:
    """A context manager that orders the side effects of the operations built in a graph.

    Afterwards, `last` holds the operations that must have run when the function returns.
    """

    def __init__(self, graph):
        self._graph = graph
        self._base = graph._get_control_flow_context()
        self._top = _Level()
        self._holders = {}  # name of a conditional's predicate, or context of a loop -> its unit
        self._waits = {}    # unit -> the units that it waits for
        self._units = {}    # operation -> its unit
        self._free = []     # units that are not in the order
        self.last = []

    def __enter__(self):
        self._graph._observe(self)
        return self

    def __exit__(self, kind, value, traceback):
        self._graph._observe_no_more(self)
        if kind is None:
            for unit, waits in self._waits.items():
                unit.delay(_done(waits))
            for holder in self._holders.values():
                holder.close()
            self.last = _done(dict.fromkeys([*self._top.effects(), *self._free]))

    def run_independently(self, op):
        """Lets an operation run without waiting for others, and others without waiting for it. It still runs before `last`."""
        unit = self._units.get(op)
        if unit is None:
            raise ValueError("The operation %s has no side effects that are in order." % op.name)
        before = self._waits.pop(unit, {})
        for waits in self._waits.values():
            if waits.pop(unit, None):
                waits.update(before)
        self._free = [*self._free, unit]

    def ordered(self):
        """Returns the operations that touch something outside of their tensors."""
        return list(self._units)

    def after_all(self, tensors):
        """Returns the tensors, available after all side effects."""
        with framework.control_dependencies(self.last):
            return [raw_ops.Identity(x) for x in tensors]

    def __call__(self, op):
        touched = _touched_by(op)
        if not touched:
            return
        unit, context = _Single(op), op._get_control_flow_context()
        self._units[op] = unit
        while context is not None and context is not self._base:
            holder = self._holder(context)
            if holder is None:
                return
            self._place(unit, holder.level(context), touched)
            holder.note(unit, not all(touched.values()))
            unit, context = holder, context.outer_context
        self._place(unit, self._top, touched)

    def _place(self, unit, level, touched):
        waits = level.place(unit, touched)
        for free in self._free:
            if free in waits:
                waits.remove(free)
        if waits:
            self._waits.setdefault(unit, {}).update(dict.fromkeys(waits))

    def _holder(self, context):
        """Returns the conditional or loop that a context belongs to, or None."""
        if isinstance(context, CondContext):
            key, kind = context.pred.name, _Cond
        elif isinstance(context, WhileContext):
            key, kind = context, _Loop
        else:
            return None
        if key not in self._holders:
            self._holders[key] = kind(context)
        return self._holders[key]


def is_ordered(graph):
    """Tells whether the side effects of operations built in the graph are being ordered."""
    return any(isinstance(x, EffectOrder) for x in graph._observers)


@contextlib.contextmanager
def _building_in(context):
    graph = framework.get_default_graph()
    with graph.control_dependencies(None):
        graph._set_control_flow_context(context)
        yield


def _done(units):
    """Returns the operations that mark the ends of `units`."""
    return list({op: True for unit in units for op in unit.done()})


def _touched_by(op):
    """Returns {resource: whether the operation only reads it} for the resources that order the operation."""
    stateful = is_stateful(op)
    if op.type in ASYNC_STATEFUL_OPS or not stateful and op.type not in _STATELESS_CALLS:
        return {}
    if op.type in MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS:
        return {"operation " + op.name: False}
    roots = {}
    for x in op.inputs:
        if x.dtype == dtypes.resource:
            _find_roots(x, roots)
    inside = op._get_control_flow_context() is not None
    if inside and any(x.op.type.startswith(("TensorArray", "Stack")) for x in roots.values()):
        return {}  # their flow values order these operations
    touched = dict.fromkeys(roots, not stateful or op.type in READS)
    is_random = "random" in op.type.lower() or op.type in _RANDOM
    if stateful and (op.type in _STATEFUL_CALLS or not (roots or is_random)):
        touched[_WORLD] = False
    return touched


def _find_roots(handle, roots):
    """Adds the tensors {name: tensor} that a handle comes from, outside of loops and branches."""
    pending, seen = [handle], set()
    while pending:
        x = pending.pop()
        if x.name in seen:
            continue
        seen.add(x.name)
        if x.op.type in _FORWARDING and len(x.op.inputs):
            pending.extend(x.op.inputs if x.op.type == "Merge" else x.op.inputs[:1])
        else:
            roots[x.name] = x
