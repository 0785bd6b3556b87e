"""An optimizer that scales the loss, for training in half precision; and the switch for mixed precision."""

import sys

from runnel import config, logging
from runnel.core import session
from runnel.core.composite import IndexedSlices
from runnel.ops import control_flow, math_ops
from runnel.train import loss_scale as loss_scales
from runnel.train.optimizer import Optimizer


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Computes gradients of a scaled loss, and applies them with another optimizer.

    With a dynamic scale, steps whose gradients are not finite change no variables.

    Args:
      opt: the optimizer that applies the gradients.
      loss_scale: a LossScale, a number, or "dynamic".
    """

    def __init__(self, opt, loss_scale):
        if not isinstance(opt, Optimizer):
            raise ValueError('"opt" must be an instance of Optimizer, but got: %s' % type(opt))
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._loss_scale = loss_scales.get(loss_scale)
        if self._loss_scale is None:
            raise ValueError("loss_scale cannot be None")
        self._track_trackable(opt, "base_optimizer")
        self._track_trackable(self._loss_scale, "loss_scale")

    def compute_gradients(self, loss, var_list=None, gate_gradients=Optimizer.GATE_OP, aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        """Returns [(gradient, variable)]. The gradients are those of the loss itself: the scale is taken out again."""
        pairs = self._optimizer.compute_gradients(
            loss=self._scale_loss(loss), var_list=var_list, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method, colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss)
        factor = 1 / self._loss_scale()
        return [(None if g is None else _times(g, factor), v) for g, v in pairs]

    def _scale_loss(self, loss):
        scale = self._loss_scale()
        if not callable(loss):
            return loss * math_ops.cast(scale, loss.dtype)

        def scaled():
            value = loss()
            return value * math_ops.cast(scale, value.dtype)

        return scaled

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Returns an operation that updates variables, and the scale if that is dynamic."""
        if not isinstance(self._loss_scale, loss_scales.DynamicLossScale):
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        pairs, name = tuple(grads_and_vars), name if name is not None else self.get_name()
        distribute = sys.modules.get("runnel.distribute.contexts")
        if distribute is None or not distribute.has_strategy():
            return self._apply_if_finite(pairs, lambda: self._optimizer.apply_gradients(pairs, global_step, name + "-wrapped"), name)
        if distribute.in_cross_replica_context():
            raise ValueError("apply_gradients() must be called in a replica context.")
        return distribute.get_replica_context().merge_call(self._distributed_apply, args=(pairs, global_step, name))

    def _distributed_apply(self, distribution, grads_and_vars, global_step=None, name=None):
        """Updates the variables of a strategy, and the scale, outside of replicas."""
        def apply():
            return distribution.group(distribution.extended.call_for_each_replica(
                self._optimizer.apply_gradients, args=(grads_and_vars, global_step, name + "-wrapped")))
        return self._apply_if_finite(grads_and_vars, apply, name)

    def _apply_if_finite(self, pairs, apply, name):
        update, is_finite = self._loss_scale.update([g for g, _ in pairs])

        return control_flow.group(control_flow.cond(is_finite, apply, control_flow.no_op), update, name=name)

    def variables(self):
        """Returns the variables of the other optimizer and of the scale."""
        return self._optimizer.variables() + list(self._loss_scale._weights.values())


def _times(gradient, factor):
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * factor


_wrappers: dict = {}  # class of optimizers -> (function that wraps one, class of what it returns)


def register_loss_scale_wrapper(optimizer_cls, wrapper_fn, wrapper_cls=None):
    """Makes enable_mixed_precision_graph_rewrite wrap optimizers of a class by `wrapper_fn(optimizer, loss_scale)`.

    `wrapper_cls` is the class of its results; by default `wrapper_fn` is that class.
    """
    _wrappers[optimizer_cls] = wrapper_fn, wrapper_cls or wrapper_fn


def enable_mixed_precision_graph_rewrite(opt, loss_scale="dynamic"):
    """Lets sessions created from now on compute in half precision on GPUs where that is safe.

    Args:
      opt: a tf.train.Optimizer.
      loss_scale: a LossScale, a number, or "dynamic".

    Returns:
      `opt` with a scaled loss. Use it instead of `opt`.
    """
    wrapper = next((row for kind, row in _wrappers.items() if isinstance(opt, kind)), None)
    if isinstance(opt, MixedPrecisionLossScaleOptimizer) or wrapper is not None and isinstance(opt, wrapper[1]):
        name = MixedPrecisionLossScaleOptimizer.__name__ if wrapper is None else wrapper[1].__name__
        raise ValueError('"opt" must not already be an instance of a %s. `enable_mixed_precision_graph_rewrite` will '
                         "automatically wrap the optimizer with a %s." % (name, name))
    if wrapper is None and not isinstance(opt, Optimizer):
        raise ValueError('"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but '
                         "got: %s" % opt)
    if session.mixed_precision.has_other_sessions:
        logging.warn("You already have existing Sessions that do not use mixed precision. "
                     "enable_mixed_precision_graph_rewrite() will not affect these Sessions.")
    opt = (MixedPrecisionLossScaleOptimizer if wrapper is None else wrapper[0])(opt, loss_scale)
    _switch(True)
    return opt


def disable_mixed_precision_graph_rewrite():
    """Lets sessions created from now on compute in float32. Optimizers go on scaling their loss."""
    if not session.mixed_precision.is_enabled:
        logging.warn("disable_mixed_precision_graph_rewrite() called when mixed precision is already disabled.")
    _switch(False)


def _switch(is_enabled):
    config.set_experimental_options({"auto_mixed_precision": is_enabled})
    session.mixed_precision.is_enabled = is_enabled
