"""tf.autodiff.ForwardAccumulator: derivatives of everything that is computed, in one direction of the inputs."""

import contextlib
import threading

from runnel import nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.eager import backprop


class _Recording(threading.local):
    """The accumulators of a thread that record, the outermost first."""

    def __init__(self):
        self.accumulators = []


_recording = _Recording()


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
        with contextlib.ExitStack() as recording:
            for other in self._around:
                if not other._is_recording:
                    recording.enter_context(other._tape)
            return nest.map_structure(lambda target: self._derivative(target, unconnected), primals)

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
