"""tf.contrib.layers.optimize_loss: from a loss to a training op in one call."""

from runnel import raw_ops, summary
from runnel.core.composite import IndexedSlices
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, Tensor, get_collection
from runnel.ops import array_ops, clip_ops, math_ops, random_ops
from runnel.ops.control_flow import with_dependencies
from runnel.ops.init_ops import constant_initializer, zeros_initializer
from runnel.ops.variable_scopes import get_variable, variable_scope
from runnel.ops.variables import trainable_variables
from runnel.train import optimizers
from runnel.train.moving_averages import assign_moving_average
from runnel.train.optimizer import Optimizer
from runnel.train.training_util import assert_global_step, get_global_step

OPTIMIZER_CLS_NAMES = {
    "Adagrad": optimizers.AdagradOptimizer,
    "Adam": optimizers.AdamOptimizer,
    "Ftrl": optimizers.FtrlOptimizer,
    "Momentum": lambda learning_rate: optimizers.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": optimizers.RMSPropOptimizer,
    "SGD": optimizers.GradientDescentOptimizer,
}

OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]


def _rate(learning_rate):
    if learning_rate is None:
        return None
    if isinstance(learning_rate, Tensor) and learning_rate.shape.ndims == 0:
        return learning_rate
    if isinstance(learning_rate, float):
        if learning_rate < 0.0:
            raise ValueError("Invalid learning_rate %s.", learning_rate)
        return get_variable("learning_rate", [], trainable=False,
                            initializer=constant_initializer(learning_rate))
    raise ValueError("Learning rate should be 0d Tensor or float. Got %s of type %s" % (
        learning_rate, type(learning_rate)))


def _made(optimizer, rate):
    """Returns an optimizer, given its name, its class, a function or itself."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    is_class = isinstance(optimizer, type) and issubclass(optimizer, Optimizer)
    if rate is None and (is_class or isinstance(optimizer, str)):
        raise ValueError("Learning rate is None, but should be specified if optimizer is %s (%s)." % (
            "class" if is_class else "string", optimizer))
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_CLS_NAMES:
            raise ValueError("Optimizer name should be one of [%s], you provided %s." % (
                ", ".join(OPTIMIZER_CLS_NAMES), optimizer))
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=rate)
    if is_class:
        return optimizer(learning_rate=rate)
    if not callable(optimizer):
        raise ValueError("Unrecognized optimizer: should be string, subclass of Optimizer, instance of "
                         "subclass of Optimizer or function with one argument. Got %s." % (optimizer,))
    made = optimizer() if rate is None else optimizer(rate)
    if not isinstance(made, Optimizer):
        raise ValueError("Unrecognized optimizer: function should return subclass of Optimizer. Got %s." % made)
    return made


def _mapped(gradient, change):
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(change(gradient.values), gradient.indices, gradient.dense_shape)
    return change(gradient)


def _noisy(gradients, scale):
    def change(values):
        return values + random_ops.truncated_normal(array_ops.shape(values)) * scale
    return [(None if g is None else _mapped(g, change), v) for g, v in gradients]


def _multiplied(gradients, multipliers):
    result = []
    for gradient, variable in gradients:
        factor = multipliers.get(variable, multipliers.get(variable.name))
        if gradient is not None and factor is not None:
            gradient = _mapped(gradient, lambda values, f=factor: values * math_ops.cast(f, values.dtype))
        result.append((gradient, variable))
    return result


def _norm(gradients):
    return clip_ops.global_norm([g for g, _ in gradients])


def _clipped(gradients, how):
    if how is None:
        return gradients
    if callable(how):
        return how(gradients)
    if not isinstance(how, float):
        raise ValueError("Unknown type %s for clip_gradients" % type(how))
    clipped, _ = clip_ops.clip_by_global_norm([g for g, _ in gradients], how)
    return list(zip(clipped, [v for _, v in gradients]))


def _typical_norm(norm, std_factor, decay, global_step, epsilon, name):
    """Returns (largest usual norm, mean of the logarithms of the norms)."""
    with variable_scope(name, "AdaptiveMaxNorm", [norm]):
        log_norm = raw_ops.Log(x=norm + epsilon)
        if global_step is not None:  # the average moves faster in the first steps
            n = math_ops.cast(global_step, "float32")
            decay = raw_ops.Minimum(x=decay, y=n / (n + 1.0))

        def average(name, value):
            variable = get_variable(name, shape=value.shape, dtype=value.dtype,
                                    initializer=zeros_initializer(), trainable=False)
            return assign_moving_average(variable, value, decay, zero_debias=False)

        mean = average("mean", log_norm)
        squares = average("sq_mean", raw_ops.Square(x=log_norm))
        std = raw_ops.Sqrt(x=raw_ops.Maximum(x=epsilon, y=squares - raw_ops.Square(x=mean)))
        return raw_ops.Exp(x=mean + std_factor * std), mean


def adaptive_clipping_fn(std_factor=2.0, decay=0.95, static_max_norm=None, global_step=None,
                         report_summary=False, epsilon=1e-8, name=None):
    """Returns a function that clips gradients with an unusually large norm."""
    def clip(grads_and_vars):
        norm = _norm(grads_and_vars)
        most, log_mean = _typical_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            summary.scalar("global_norm/adaptive_max_gradient_norm", most)
        factor = array_ops.where(norm < most, array_ops.ones_like(norm), raw_ops.Exp(x=log_mean) / norm)
        if static_max_norm is not None:
            factor = raw_ops.Minimum(x=static_max_norm / norm, y=factor)
        return [(None if g is None else _mapped(g, lambda values: values * factor), v)
                for g, v in grads_and_vars]
    return clip


def _summarize(gradients, summaries):
    for gradient, variable in gradients:
        values = getattr(gradient, "values", gradient)
        name = variable.name.replace(":", "_")
        if values is not None and "gradients" in summaries:
            summary.histogram("gradients/%s" % name, values)
        if values is not None and "gradient_norm" in summaries:
            summary.scalar("gradient_norm/%s" % name, clip_ops.global_norm([values]))


def optimize_loss(loss, global_step, learning_rate, optimizer, gradient_noise_scale=None,
                  gradient_multipliers=None, clip_gradients=None, learning_rate_decay_fn=None,
                  update_ops=None, variables=None, name=None, summaries=None,
                  colocate_gradients_with_ops=False, increment_global_step=True):
    """Returns the loss, after a step of an optimizer.

    Args:
      loss: a scalar.
      global_step: incremented by each step; by default the graph's.
      learning_rate: a number or a scalar; None if the optimizer has its own.
      optimizer: a name ("SGD", "Adam"), a class, an object, or a function of the learning rate.
      gradient_noise_scale: scale of the noise added to gradients.
      gradient_multipliers: {variable or its name: factor}.
      clip_gradients: a limit for the global norm, or a function of [(gradient, variable)].
      learning_rate_decay_fn: a function of learning rate and step.
      update_ops: run before the loss; by default those of UPDATE_OPS.
      variables: the variables to train; by default all trainable ones.
      summaries: some of OPTIMIZER_SUMMARIES.
    """
    loss = convert_to_tensor(loss)
    if loss.shape.ndims not in (None, 0):
        raise ValueError("Expected scalar, got shape %s for %s" % (loss.shape, loss.name))
    if global_step is None:
        global_step = get_global_step()
    else:
        assert_global_step(global_step)
    for one in summaries or ():
        if one not in OPTIMIZER_SUMMARIES:
            raise ValueError("Summaries should be one of [%s], you provided %s." % (
                ", ".join(OPTIMIZER_SUMMARIES), one))
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        if update_ops is None:
            update_ops = list(dict.fromkeys(get_collection(GraphKeys.UPDATE_OPS)))
        if update_ops:
            loss = with_dependencies(list(update_ops), loss)
        rate = _rate(learning_rate)
        if summaries is None:
            summaries = ["loss", "learning_rate", "global_gradient_norm"]
        if learning_rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise ValueError("global_step is required for learning_rate_decay_fn.")
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in summaries:
                summary.scalar("learning_rate", rate)
        opt = _made(optimizer, rate)
        gradients = opt.compute_gradients(loss, trainable_variables() if variables is None else variables,
                                          colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_noise_scale is not None:
            gradients = _noisy(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
        shows_norm = "global_gradient_norm" in summaries or "gradient_norm" in summaries
        if shows_norm:
            summary.scalar("global_norm/gradient_norm", _norm(gradients))
        gradients = _clipped(gradients, clip_gradients)
        if "loss" in summaries:
            summary.scalar("loss", loss)
        _summarize(gradients, summaries)
        if clip_gradients is not None and shows_norm:
            summary.scalar("global_norm/clipped_gradient_norm", _norm(gradients))
        updates = opt.apply_gradients(gradients, global_step if increment_global_step else None, name="train")
        return with_dependencies([updates], loss)
