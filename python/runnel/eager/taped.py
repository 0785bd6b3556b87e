"""Calls of functions under a tape, in eager execution, as one step.

The gradient of an ordinary call runs parts of the function again. That is wrong for a function with side effects, and for one that has
gradient functions of its own. Of such a trace two functions are made: one computes its results, and also what the gradient reads; the
other is the gradient. Conditionals and loops cannot be cut in two this way.
"""

import itertools

from runnel import _core, dtypes, errors, raw_ops
from runnel.core.composite import IndexedSlices
from runnel.core.gradients_impl import gradients
from runnel.core.graph_io import import_graph_def
from runnel.core.protobuf import message_class
from runnel.eager import backprop, tracing
from runnel.eager.error_places import with_place
from runnel.eager.func_graph import FuncGraph, describe_handle

_numbers = itertools.count()
_BRANCHING = frozenset(("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit"))


def call(concrete, tensors):
    """Calls a trace and lets the tape record it. Returns the flat results, or None if the trace cannot be cut in two."""
    tapes = backprop._active.tapes
    if len(tapes) != 1 or tapes[0]._persistent or concrete.traced.deferred:
        return None  # derivatives of derivatives need more of what the call computes
    parts = parts_of(concrete)
    return parts.call(tensors) if parts else None


def parts_of(concrete):
    """Returns the two functions of a trace, or False if it cannot be cut in two."""
    if concrete.taped is None:
        concrete.taped = _cut(concrete)
    return concrete.taped


def _cut(concrete):
    """Returns the parts of a trace, or False if there are none."""
    if _branches(concrete.traced.graph):
        return False
    try:
        with tracing.exclusive():
            return _Parts(concrete)
    except Exception:  # of a gradient function too: it matters only to a program that asks for the gradient, which then gets it op by op
        return False


def _branches(graph):
    return any(op.type in _BRANCHING for op in graph.get_operations())


class _Whole(Exception):
    """A trace cannot be cut in two."""


class _Parts:
    """A trace in two parts: `kept` are the tensors that the gradient reads."""

    def __init__(self, concrete):
        self._concrete, traced = concrete, concrete.traced
        graph = _copied(traced)
        outputs = [graph.get_tensor_by_name(x.name) for x in traced.graph.outputs]
        inputs = [graph.get_tensor_by_name(x.name) for x in traced.graph.inputs]
        before = len(graph.get_operations())
        self._places = [i for i, y in enumerate(outputs) if _is_differentiable(y)]
        with graph.as_default():
            arriving = [raw_ops.Placeholder(dtype=outputs[i].dtype, shape=outputs[i].shape, name="gradient") for i in self._places]
            sources = [x for x in inputs if _is_differentiable(x) or x.dtype == dtypes.resource]
            found = dict(zip([x.name for x in sources], gradients([outputs[i] for i in self._places], sources, grad_ys=arriving)))
        if _branches(graph) or any(isinstance(g, IndexedSlices) for g in found.values()):
            raise _Whole
        self._found = [found.get(x.name) is not None for x in inputs]
        answers = [found[x.name] for x, is_there in zip(inputs, self._found) if is_there]
        own = {op.name for op in graph.get_operations()[:before]}
        extra = graph.standing[len(traced.captured):]
        self._extra = graph.captured[len(traced.captured):]  # what only the gradient captures
        definition = graph.as_graph_def()
        forward = _needed(definition, own)
        backward = _needed(definition, {x.op.name for x in answers}, forward)
        kept = _read_across(definition, backward, forward)
        name = traced.name.removeprefix("__inference_")
        self._dtypes = [x.dtype for x in outputs] + [graph.get_tensor_by_name(x).dtype for x in kept]
        self._forward = _define("__forward_" + name, definition, forward, inputs, [], [x.name for x in outputs] + kept, graph)
        self._backward = _define("__inference___backward_" + name, definition, backward, arriving + extra, kept, [x.name for x in answers], graph)
        self._answer_dtypes = [x.dtype for x in answers]
        self.names = self._forward, self._backward

    def call(self, tensors):
        for variable in self._concrete.variables:
            backprop._accessed(variable)
        traced = self._concrete.traced
        args = list(tensors) + traced.captured
        count = len(traced.dtypes)
        with backprop.stop_recording():
            try:
                everything = list(raw_ops.StatefulPartitionedCall(args=args, Tout=self._dtypes, f=self._forward))
            except errors.OpError as error:
                raise with_place(error, traced.graph) from None
        results, kept = everything[:count], everything[count:]

        def backward(arrived):
            given = [raw_ops.ZerosLike(x=results[i]) if arrived[i] is None else arrived[i] for i in self._places]
            found = iter(raw_ops.StatefulPartitionedCall(args=given + self._extra + kept, Tout=self._answer_dtypes, f=self._backward))
            return [next(found) if is_there else None for is_there in self._found]

        if any(self._found):
            _core.tape_record(args, results, backward)
        return results


def _is_differentiable(x):
    return x.dtype.is_floating or x.dtype.is_complex


def _copied(traced):
    """Returns a copy of a trace's graph. Gradient functions that read the original's tensors find those of the copy."""
    graph = FuncGraph(traced.graph.name, collections={})
    with graph.as_default():
        import_graph_def(traced.graph.as_graph_def(), name="")
    graph.original = traced.graph
    for outside, own in zip(traced.captured, traced.graph.standing):
        standing = graph.get_tensor_by_name(own.name)
        if outside.dtype == dtypes.resource:
            describe_handle(standing, outside)
        graph.stand_for(outside, standing)
    return graph


def _needed(definition, names, known=()):
    """Returns the names of the nodes that the named ones need, without those that are known; of those, control edges do not count."""
    nodes = {node.name: node for node in definition.node}
    found, pending = set(), list(names)
    while pending:
        name = pending.pop()
        if name in found or name in known:
            continue
        found.add(name)
        pending += [_node_of(text) for text in nodes[name].input]
    return found


def _node_of(text):
    return text.lstrip("^").split(":")[0]


def _read_across(definition, readers, others):
    """Returns the names of the tensors of `others` that `readers` read."""
    found = {}
    for node in definition.node:
        if node.name in readers:
            for text in node.input:
                if not text.startswith("^") and _node_of(text) in others:
                    found[text if ":" in text else text + ":0"] = True
    return list(found)


def _define(stem, definition, names, inputs, kept, results, graph):
    """Defines a function of the named nodes. Its arguments are `inputs`, and then tensors that stand for those named `kept`."""
    part = message_class("GraphDef")()
    part.library.CopyFrom(definition.library)
    part.versions.CopyFrom(definition.versions)
    given = {x.op.name for x in inputs}
    for node in definition.node:
        if node.name in names and node.name not in given:
            copy = part.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(x for x in node.input if not x.startswith("^") or (x[1:] in names and x[1:] not in given))
    body = FuncGraph(stem, collections={})
    with body.as_default():
        arguments = {}
        for x in [*inputs, *(graph.get_tensor_by_name(name) for name in kept)]:
            arguments[x.name] = raw_ops.Placeholder(dtype=x.dtype, shape=x.shape, name=x.name.replace(":", "_"))
        read = {x if ":" in x else x + ":0" for node in part.node for x in node.input if not x.startswith("^")}
        import_graph_def(part, name="part", input_map={name: x for name, x in arguments.items() if name in read})
        outputs = [raw_ops.Identity(input=arguments[x] if x in arguments else body.get_tensor_by_name("part/" + x)) for x in results]
    library = tracing._eager_library()
    for function in _core.functions_of(body).values():
        _core.add_function_def(library, function)
    name = "%s_%d" % (stem, next(_numbers))
    _core.define_function(library, name, body, list(arguments.values()), outputs, None)
    tracing._share()
    return name
