"""tf.contrib.opt: optimizers with decoupled weight decay, and lazy Adam."""

from runnel import raw_ops
from runnel.core.composite import IndexedSlices
from runnel.core.framework import control_dependencies
from runnel.ops import array_ops
from runnel.ops.control_flow import group
from runnel.train.optimizers import AdamOptimizer, MomentumOptimizer


class DecoupledWeightDecayExtension:
    """A mixin for optimizers: multiplies variables by 1 - `weight_decay` before each update."""

    def __init__(self, weight_decay, **kwargs):
        self._weight_decay, self._decayed = weight_decay, None
        super().__init__(**kwargs)

    def minimize(self, *args, decay_var_list=None, **kwargs):
        """Like Optimizer.minimize; `decay_var_list` has the variables to decay, by default all."""
        self._decayed = None if decay_var_list is None else {v.name for v in decay_var_list}
        return super().minimize(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, *args, decay_var_list=None, **kwargs):
        """Like Optimizer.apply_gradients; `decay_var_list` has the variables to decay, by default all."""
        if decay_var_list is not None:
            self._decayed = {v.name for v in decay_var_list}
        grads_and_vars = list(grads_and_vars)
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        shrunk = [v.assign_sub(decay * v.read_value() if hasattr(v, "read_value") else decay * v).op
                  for g, v in grads_and_vars
                  if g is not None and (self._decayed is None or v.name in self._decayed)]
        with control_dependencies(shrunk):
            return super().apply_gradients(grads_and_vars, *args, **kwargs)


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with decoupled weight decay."""

    def __init__(self, weight_decay, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8,
                 use_locking=False, name="AdamW"):
        super().__init__(weight_decay, learning_rate=learning_rate, beta1=beta1, beta2=beta2,
                         epsilon=epsilon, use_locking=use_locking, name=name)


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with decoupled weight decay."""

    def __init__(self, weight_decay, learning_rate, momentum, use_locking=False, name="MomentumW",
                 use_nesterov=False):
        super().__init__(weight_decay, learning_rate=learning_rate, momentum=momentum,
                         use_locking=use_locking, name=name, use_nesterov=use_nesterov)


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that updates only the rows in a sparse gradient."""

    def _apply_sparse_shared(self, grad, var, indices, scatter_add):
        dtype = var.dtype.base_dtype
        first, second = (raw_ops.Cast(x=power, DstT=dtype) for power in self._get_beta_accumulators())
        lr, beta1, beta2, epsilon = (
            self._parameter(name, dtype) for name in ("lr", "beta1", "beta2", "epsilon"))
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = beta1 * array_ops.gather(m, indices) + (1 - beta1) * grad
        new_v = beta2 * array_ops.gather(v, indices) + (1 - beta2) * raw_ops.Square(x=grad)
        rate = lr * raw_ops.Sqrt(x=1 - second) / (1 - first)
        step = rate * new_m / (raw_ops.Sqrt(x=new_v) + epsilon)
        return group(m.scatter_update(IndexedSlices(new_m, indices)),
                     v.scatter_update(IndexedSlices(new_v, indices)),
                     var.scatter_sub(IndexedSlices(step, indices)))
