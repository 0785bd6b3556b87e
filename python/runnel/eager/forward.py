"""tf.autodiff.ForwardAccumulator: derivatives of everything that is computed, in one direction of the inputs."""

from runnel import nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.eager import backprop


class ForwardAccumulator:
    """Computes products of Jacobians with vectors.

        with tf.autodiff.ForwardAccumulator(x, direction) as acc:
            y = f(x)
        dy = acc.jvp(y)

    The gradient of y by x is linear in the gradient that arrives at y; its own gradient by that is the product.
    """

    def __init__(self, primals, tangents):
        nest.assert_same_structure(primals, tangents)
        self._primals, self._tangents = nest.flatten(primals), [convert_to_tensor(t) for t in nest.flatten(tangents)]
        self._tape = backprop.GradientTape(persistent=True, watch_accessed_variables=False)
        self._is_recording = self._is_used = False

    def __enter__(self):
        if self._is_used:
            raise ValueError("ForwardAccumulator is not reusable: accumulation is over once its context has ended.")
        self._tape.__enter__()
        self._is_recording = self._is_used = True
        for primal in self._primals:
            self._tape.watch(primal)
        return self

    def __exit__(self, *exc):
        if self._is_recording:
            self._tape.__exit__(*exc)
            self._is_recording = False

    def jvp(self, primals, unconnected_gradients=backprop.UnconnectedGradients.NONE):
        """Returns the derivatives of tensors in the direction of the tangents, in their structure."""
        unconnected = backprop.unconnected(unconnected_gradients)
        return nest.map_structure(lambda target: self._derivative(target, unconnected), primals)

    def _derivative(self, target, unconnected):
        for primal, tangent in zip(self._primals, self._tangents):
            if target is primal:
                return tangent
        target = convert_to_tensor(target)
        arriving = raw_ops.ZerosLike(x=target)
        with backprop.GradientTape() as outer:
            outer.watch(arriving)
            found = self._tape.gradient(target, self._primals, output_gradients=arriving)
            products = [raw_ops.Sum(input=convert_to_tensor(g) * t, axis=raw_ops.Range(start=0, limit=raw_ops.Rank(input=t), delta=1))
                        for g, t in zip(found, self._tangents) if g is not None]
            product = raw_ops.AddN(inputs=products) if products else None
        if product is None:
            return raw_ops.ZerosLike(x=target) if unconnected == backprop.UnconnectedGradients.ZERO else None
        return outer.gradient(product, arriving, unconnected_gradients="zero")
