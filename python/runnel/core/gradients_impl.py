"""Gradients: tf.gradients, tf.hessians, tf.RegisterGradient."""

import contextlib
import enum
import re
import sys
import threading

from runnel import _core
from runnel.core import composite_gradients, framework
from runnel.core.composite import IndexedSlices
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor, name_scope


class UnconnectedGradients(enum.Enum):
    """The gradient of a tensor that the result does not depend on: None or zeros."""

    NONE = "none"
    ZERO = "zero"


def unconnected(value):
    """Converts an UnconnectedGradients or its name, and checks it."""
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError("Unknown value for unconnected_gradients: '%s'" % (value,)) from None


class AggregationMethod:
    """How gradients are summed; all methods give the same numbers here."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


_failures = threading.local()  # .error: the exception of a Python gradient function


def _as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _x_edge(x):
    """Returns where the gradient computation ends: a variable's handle, or a tensor."""
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor) and not isinstance(x, Tensor):
        return handle
    if isinstance(x, IndexedSlices):
        return x.values
    ref = getattr(x, "_ref", None)
    if callable(ref) and not isinstance(x, Tensor):
        return ref()
    return x if isinstance(x, Tensor) else convert_to_tensor(x, name="x")


def gradients(ys, xs, grad_ys=None, name="gradients", colocate_gradients_with_ops=False,
              gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients=UnconnectedGradients.NONE):
    """Computes the derivatives of the sum of `ys` with respect to each of `xs`.

    Args:
      ys: a tensor or a list of tensors.
      xs: a tensor, a variable, or a list of them.
      grad_ys: the incoming gradient of each y; by default ones.
      name: name of the scope of the new operations.
      colocate_gradients_with_ops: places the gradient of an operation with the operation.
      gate_gradients: computes all gradients of an operation before one is used.
      aggregation_method: see AggregationMethod.
      stop_gradients: tensors to treat as constants.
      unconnected_gradients: the gradient of an x that no y depends on.

    Returns:
      A tensor, an IndexedSlices or None for each x.
    """
    ys, values = composite_gradients.flatten(_as_list(ys)), _as_list(xs)
    xs = composite_gradients.flatten(values)
    if not framework.executing_eagerly():
        graph = framework._graph_of(ys + xs, framework.get_default_graph())
    else:
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use "
                           "tf.GradientTape instead.")
    zeros = unconnected(unconnected_gradients) is UnconnectedGradients.ZERO
    registry = sys.modules.get("runnel.graph.gradient_registry")
    if registry is not None:
        registry.note(graph)
    with graph.as_default(), name_scope(name, "gradients", ys + xs) as scope:
        y_edges = [y.values if isinstance(y, IndexedSlices) else convert_to_tensor(y, name="y") for y in ys]
        for i, y in enumerate(y_edges):
            if y.dtype.is_complex and (grad_ys is None or [dy is None for dy in _as_list(grad_ys)[i:i + 1]] == [True]):
                raise TypeError("Gradients of complex tensors (%s) must set grad_ys (y.dtype = %s)" % (
                    y, y.dtype.name))
            if not (y.dtype.is_floating or y.dtype.is_complex or y.dtype.base_dtype.name in ("resource", "variant")):
                if grad_ys is None and (y.dtype.is_integer or y.dtype.is_bool):
                    import logging
                    logging.getLogger("tensorflow").warning(
                        "The dtype of the target tensor must be floating (e.g. tf.float32) when calling "
                        "GradientTape.gradient, got %r", y.dtype)
        x_edges = [_x_edge(x) for x in xs]
        dys = None
        if grad_ys is not None:
            dys = _grad_ys(y_edges, composite_gradients.flatten(_as_list(grad_ys)))
        stops = [_x_edge(x) for x in composite_gradients.flatten(_as_list(stop_gradients or []))]
        _failures.error = None
        try:
            rows = _core.gradients(graph, y_edges, x_edges, dys, stops, scope.rstrip("/"),
                                   bool(colocate_gradients_with_ops), 1 if gate_gradients else 0, zeros)
        except (ValueError, LookupError) as other:
            error, _failures.error = _failures.error, None
            if error is not None:
                raise error from None
            _say_why(graph, str(other))
            raise
        loop = _loop_of(graph._get_control_flow_context(), y_edges)
        if loop is not None:  # a branch needs no note: it captures them itself
            loop.note_results(rows, x_edges)
    return composite_gradients.pack(values, [IndexedSlices(*row) if isinstance(row, tuple) else row for row in rows])


def _say_why(graph, message):
    """If a PreventGradient node stopped the gradient, raises an error with that node's message."""
    found = re.match(r"No gradient defined for op: PreventGradient\b.*\n\t node '([^']*)'", message)
    if found:
        op = graph.get_operation_by_name(found.group(1))
        raise LookupError("Gradient explicitly disabled. Reason: %s" % op.get_attr("message")) from None


def _loop_of(context, ys):
    """Returns the loop in which gradients are built: the innermost around `context` that contains one of `ys`."""
    while context is not None:
        loop = context.GetWhileContext()
        if loop is None or any(loop._holds(y.op) for y in ys):
            return loop
        context = loop._outer_context
    return None


def _grad_ys(ys, grad_ys):
    if len(grad_ys) != len(ys):
        raise ValueError("Length mismatch. Must specify a gradient for each of ys.")
    out = []
    for i, (y, grad) in enumerate(zip(ys, grad_ys)):
        if grad is None:
            out.append(None)
            continue
        if isinstance(grad, IndexedSlices):
            grad = convert_to_tensor(grad)
        if not isinstance(grad, Tensor):
            grad = convert_to_tensor(grad, dtype=y.dtype.base_dtype, name="grad_y_%d" % i)
        if grad.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError("Gradient type %s generated for tensor %s with dtype %s" % (
                grad.dtype.name, y.name, y.dtype.name))
        out.append(grad)
    if any(grad is None for grad in out):
        from runnel.ops.array_ops import ones_like
        out = [ones_like(y) if grad is None else grad for y, grad in zip(ys, out)]
    return out


def hessians(ys, xs, name="hessians", colocate_gradients_with_ops=False, gate_gradients=False,
             aggregation_method=None):
    """Computes the second derivatives of the sum of `ys` with respect to each x: a tensor of twice its rank."""
    from runnel.ops.array_ops import concat, reshape, shape
    xs = _as_list(xs)
    out = []
    first = gradients(ys, xs, None, name, colocate_gradients_with_ops, gate_gradients)
    for gradient, x in zip(first, xs):
        x = convert_to_tensor(x)
        flat = reshape(gradient, [-1])
        count = x.shape.num_elements()
        if count is None:
            rows = _rows_dynamic(flat, x)
        else:
            from runnel.ops.array_ops import stack
            rows = stack([gradients(flat[i], x, unconnected_gradients="zero")[0] for i in range(count)])
        dims = shape(x)
        out.append(reshape(rows, concat([dims, dims], 0)))
    return out


def _rows_dynamic(flat, x):
    """Builds the rows in a loop, for when their number is only known in the step."""
    from runnel.ops import control_flow, tensor_array
    from runnel.ops.array_ops import size
    count = size(x)
    loop = [0, tensor_array.TensorArray(x.dtype, count)]
    _, result = control_flow.while_loop(
        lambda j, _: j < count,
        lambda j, rows: (j + 1, rows.write(j, gradients(flat[j], x)[0])), loop)
    return result.stack()


registered: dict = {}  # name -> function


class RegisterGradient:
    """A decorator: @tf.RegisterGradient("MyOp") registers `f(op, *grads)`, which returns the gradients of an op's inputs.

    It applies to ops without a gradient, and to the ops that gradient_override_map gives that name.
    """

    def __init__(self, op_type):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, function):
        def rule(op, grads, walk):
            try:
                return _apply(function, op, grads, walk)
            except Exception as error:
                _failures.error = error
                raise
        _core.register_gradient(self._op_type, rule)
        registered[self._op_type] = function
        return function


def _apply(function, op, grads, walk):
    """Calls a gradient function. Returns None, a tensor, or the parts of an IndexedSlices for each input.

    If `op` is in a loop, the function builds its operations in the backward loop.
    """
    parts = [part for grad in grads for part in (grad if isinstance(grad, tuple) else (grad,))]
    grads = [IndexedSlices(*grad) if isinstance(grad, tuple) else grad for grad in grads]
    for output, grad in zip(op.outputs, grads):
        if isinstance(grad, Tensor) and grad.dtype.base_dtype == output.dtype.base_dtype:
            grad.set_shape(output.shape)
    anchor = _core.rule_anchor(walk)
    inside: contextlib.AbstractContextManager = contextlib.nullcontext()
    if anchor is not None:
        from runnel.ops.control_flow import GradientContext
        inside = GradientContext(walk, anchor, parts).entered()
    with inside as context:
        answer = function(op, *grads)
        answer = answer if isinstance(answer, (list, tuple)) else [answer]
        rows = []
        for g in answer:
            row = (g.values, g.indices, g.dense_shape) if isinstance(g, IndexedSlices) else (g,)
            if context is not None:
                row = tuple(context.result(x) if isinstance(x, Tensor) else x for x in row)
            rows.append(row if len(row) > 1 else row[0])
        return rows


def no_gradient(op_type):
    """Declares that an op has no gradient."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    try:
        _core.register_gradient(op_type, lambda op, grads, walk: [None] * len(op.inputs))
    except KeyError:
        pass


NoGradient = NotDifferentiable = no_gradient
