"""tf.autodiff.ForwardAccumulator: derivatives of everything that is computed, in one direction of the inputs."""

import collections
import contextlib
import threading

from runnel import _core, errors, nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.eager import backprop


class _Recording(threading.local):
    """The accumulators of a thread that record, the outermost first."""

    def __init__(self):
        self.accumulators = []


_recording = _Recording()


@contextlib.contextmanager
def _paused(tapes):
    """A context manager in which tapes record nothing."""
    tapes = list(tapes)
    for tape in tapes:
        tape._pop()
    try:
        yield
    finally:
        for tape in tapes:
            tape._push()


def _tapes_of_accumulators():
    return [accumulator._tape for accumulator in _recording.accumulators]


class ForwardAccumulator:
    """Computes products of Jacobians with vectors.

        with tf.autodiff.ForwardAccumulator(x, direction) as acc:
            y = f(x)
        dy = acc.jvp(y)

    The gradient of y by x is linear in the gradient that arrives at y; its own gradient by that is the product. Accumulators around this one
    have derivatives of its products, too, also of those that are computed after their contexts have ended.
    """

    def __init__(self, primals, tangents):
        nest.assert_same_structure(primals, tangents)
        self._primals, self._tangents = nest.flatten(primals), [convert_to_tensor(t) for t in nest.flatten(tangents)]
        self._tape = backprop.GradientTape(persistent=True, watch_accessed_variables=False)
        self._is_recording = False
        self._is_batch = False  # whether the tangents have a first dimension more than the primals, and the products then, too
        self._around = ()  # the accumulators that recorded when this one began
        if len({id(primal) for primal in self._primals}) < len(self._primals):
            raise ValueError("A tensor among the primals is watched multiple times")

    def __enter__(self):
        if self._is_recording:
            raise ValueError("Accumulator is already recording.")
        self._tape.__enter__()
        self._is_recording = True
        self._around = tuple(_recording.accumulators)
        _recording.accumulators.append(self)
        for primal in self._primals:
            self._tape.watch(primal)
        return self

    @classmethod
    def _batch_accumulator(cls, primals, tangents):
        """Returns an accumulator of several directions: those along the first dimension of the tangents."""
        made = cls(primals, tangents)
        made._is_batch = True
        return made

    def _watch(self, primal, tangent):
        """Adds a tangent to that of a tensor."""
        for i, known in enumerate(self._primals):
            if known is primal:
                self._tangents[i] = self._tangents[i] + tangent
                return
        self._primals.append(primal)
        self._tangents.append(convert_to_tensor(tangent))
        self._tape.watch(primal)

    def __exit__(self, *exc):
        if self._is_recording:
            self._tape.__exit__(*exc)
            self._is_recording = False
            _recording.accumulators.remove(self)

    def jvp(self, primals, unconnected_gradients=backprop.UnconnectedGradients.NONE):
        """Returns the derivatives of tensors in the direction of the tangents, in their structure."""
        unconnected = backprop.unconnected(unconnected_gradients)
        with contextlib.ExitStack() as recording, _paused(self._tapes_inside()):
            for other in self._around:
                if not other._is_recording:
                    recording.enter_context(other._tape)
            return nest.map_structure(lambda target: self._derivative(target, unconnected), primals)

    def _tapes_inside(self):
        """Returns the tapes that began to record inside this accumulator: its products are constants to them."""
        active = backprop._active.tapes
        return active[active.index(self._tape) + 1:] if self._tape in active else []

    def _derivative(self, target, unconnected):
        if not self._is_batch:
            return self._directed(target, self._tangents, unconnected)
        count = self._tangents[0].shape.dims[0].value
        rows = [self._directed(target, [tangent[i] for tangent in self._tangents], unconnected) for i in range(count)]
        return None if rows[0] is None else raw_ops.Pack(values=rows)

    def _directed(self, target, tangents, unconnected):
        for primal, tangent in zip(self._primals, tangents):
            if target is primal:
                return tangent
        target = convert_to_tensor(target)
        arriving = raw_ops.ZerosLike(x=target)
        with backprop.GradientTape() as outer:
            outer.watch(arriving)
            found = self._tape.gradient(target, self._primals, output_gradients=arriving)
            products = [raw_ops.Sum(input=convert_to_tensor(g) * t, axis=raw_ops.Range(start=0, limit=raw_ops.Rank(input=t), delta=1))
                        for g, t in zip(found, tangents) if g is not None]
            product = raw_ops.AddN(inputs=products) if products else None
        if product is None:
            return raw_ops.ZerosLike(x=target) if unconnected == backprop.UnconnectedGradients.ZERO else None
        return outer.gradient(product, arriving, unconnected_gradients="zero")


# --- Rules, and tangents as tensors of their own

TangentInfo = collections.namedtuple("TangentInfo", "indices tangents")


def pack_tangents(tensors):
    """Returns the tangents that the accumulators of this thread have of tensors, the innermost accumulator's first.

    `indices` has for each accumulator pairs (number of a tensor, number of its tangent); the tangents follow the tensors in the numbering,
    and those of inner accumulators have tangents in outer ones.
    """
    everything, indices = list(tensors), []
    for accumulator in reversed(_recording.accumulators):
        pairs = []
        for i, tensor in enumerate(list(everything)):
            tangent = accumulator.jvp(tensor)
            if tangent is not None:
                pairs.append((i, len(everything)))
                everything.append(tangent)
        indices.append(tuple(pairs))
    return TangentInfo(tuple(indices), everything[len(tensors):])


def jvp_of_op(op_name, attr_tuple, inputs, outputs, tangents, use_batch=False):
    """Returns the tangents of an operation's outputs, computed from those of its inputs, of which some may be None.

    With `use_batch`, the tangents have a first dimension more, along which several directions are.
    """
    from runnel.alias.eager_names import execute
    inputs = [raw_ops.Identity(input=x) for x in inputs]  # copies, because a tensor may be given twice
    given = [(x, tangent) for x, tangent in zip(inputs, tangents) if tangent is not None]
    for x, tangent in given:
        found = tangent.shape[1:] if use_batch else tangent.shape
        if not found.is_compatible_with(x.shape):
            raise ValueError("Tangent %s was expected to be of shape %s but is instead of shape %s" % (tangent, x.shape, found))
    primals, directions = [x for x, _ in given], [tangent for _, tangent in given]
    kind = ForwardAccumulator._batch_accumulator if use_batch else ForwardAccumulator
    with kind(primals, directions) as accumulator:
        results = execute(op_name, len(outputs), inputs, attr_tuple)
    return [accumulator.jvp(x) for x in results]


def record_operation(op_type, output_tensors, input_tensors, backward_function, forward_function=None):
    """Tells tapes and accumulators that the outputs come from the inputs.

    `backward_function` takes the gradients of the outputs and returns those of the inputs; `forward_function` takes the tangents of the
    inputs and returns those of the outputs. Without it, accumulators use the other one.
    """
    if forward_function is None:
        _recorded(op_type, output_tensors, input_tensors, backward_function)
        return
    if backward_function is not None:
        record_operation_backprop_only(op_type, output_tensors, input_tensors, backward_function)
    transposed = _transposed(forward_function, input_tensors)
    record_operation_forwardprop_only(op_type, output_tensors, input_tensors, transposed, None)


def record_operation_backprop_only(op_type, output_tensors, input_tensors, backward_function):
    """Like record_operation; accumulators are not told."""
    with _paused(_tapes_of_accumulators()):
        _recorded(op_type, output_tensors, input_tensors, backward_function)


def record_operation_forwardprop_only(op_type, output_tensors, input_tensors, backward_function, forwardprop_output_indices=None):
    """Like record_operation, for accumulators only.

    With `forwardprop_output_indices`, tangents are among the outputs, and the pairs say which, in the form of `pack_tangents`.
    """
    if forwardprop_output_indices:
        for accumulator, pairs in zip(reversed(_recording.accumulators), forwardprop_output_indices):
            for i, tangent in pairs:
                accumulator._watch(output_tensors[i], output_tensors[tangent])
        return
    own = _tapes_of_accumulators()
    with _paused([tape for tape in backprop._active.tapes if tape not in own]):
        _recorded(op_type, output_tensors, input_tensors, backward_function)


def _transposed(forward_function, inputs):
    """Returns the function from the gradients of outputs to those of inputs that a linear function of tangents implies."""
    def backward(*arrived):
        tangents = [raw_ops.ZerosLike(x=x) for x in inputs]
        with backprop.GradientTape() as tape:
            tape.watch(tangents)
            found = forward_function(*tangents)
        return tape.gradient(list(found), tangents, output_gradients=list(arrived)) if found else []
    return backward


def _recorded(op_type, outputs, inputs, backward_function):
    def backward(arrived):
        grads = [raw_ops.ZerosLike(x=output) if grad is None else grad for output, grad in zip(outputs, arrived)]
        found = backward_function(*grads)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(found) != len(inputs):
            raise errors.InternalError(None, None, "Recorded operation '%s' returned too %s gradients. Expected %d but received %d" % (
                op_type, "few" if len(found) < len(inputs) else "many", len(inputs), len(found)))
        return found
    _core.tape_record(list(inputs), list(outputs), backward)


def should_record_backprop(tensors):
    """Tells whether a gradient tape of this thread records what is computed from one of the tensors."""
    own = _tapes_of_accumulators()
    return any(tape._tracks(x) for tape in backprop._active.tapes if tape not in own for x in tensors)


def possible_gradient_types(tensors):
    """Returns how many tapes and accumulators of this thread record what is computed from the tensors: 0, 1, or 2 for more."""
    return min(2, sum(any(tape._tracks(x) for x in tensors) for tape in backprop._active.tapes))
