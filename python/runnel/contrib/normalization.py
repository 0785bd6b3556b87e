"""Normalization in tf.contrib.layers: over batches, layers, instances and groups."""

from runnel import dtypes, nn, raw_ops
from runnel.contrib.arg_scope import add_arg_scope
from runnel.contrib.layer_util import add_variable, channels_of, finish, get_variable_collections, layer_scope
from runnel.contrib.model_variables import model_variable
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import GraphKeys, add_to_collections, control_dependencies
from runnel.core.tensor_util import constant_value
from runnel.layers import core
from runnel.ops import array_ops, init_ops
from runnel.ops.control_flow import smart_cond
from runnel.ops.variable_scopes import get_variable_scope, variable_scope
from runnel.train.moving_averages import assign_moving_average


class _Parameters:
    """The variables of a normalization, under their usual names."""

    def __init__(self, shape, dtype, initializers, regularizers, collections, trainable):
        self._shape, self._dtype, self._trainable = shape, dtype, trainable
        self._initializers, self._regularizers = initializers or {}, regularizers or {}
        self._collections = collections

    def make(self, name, default, trainable=True):
        initializer = self._initializers.get(name, default())
        return model_variable(name, self._shape, self._dtype, initializer, self._regularizers.get(name),
                              self._trainable and trainable,
                              get_variable_collections(self._collections, name))

    def moving(self):
        """Returns (mean, variance); they are never partitioned, because averages cannot be."""
        with variable_scope(get_variable_scope()) as local:
            local.set_partitioner(None)
            return (self.make("moving_mean", init_ops.zeros_initializer, False),
                    self.make("moving_variance", init_ops.ones_initializer, False))


def _is_true(value):
    """Returns True, False, or None if the value is known only when a step runs."""
    return constant_value(value) if hasattr(value, "op") else bool(value)


def _with_updates(outputs, moving, moments, decay, zero_debias, is_training, updates_collections):
    """Returns the outputs; the averages are updated before them, or by ops in collections."""
    if _is_true(is_training) is False:
        return outputs

    def update():
        return (assign_moving_average(moving[0], moments[0], decay, zero_debias=zero_debias),
                assign_moving_average(moving[1], moments[1], decay, zero_debias=False))

    if updates_collections is None:
        def forced():
            with control_dependencies(update()):
                return array_ops.identity(outputs)
        return smart_cond(is_training, forced, lambda: outputs)
    for one in smart_cond(is_training, update, lambda: moving):
        add_to_collections(updates_collections, one)
    return outputs


def _fused(inputs, decay, center, scale, epsilon, param_initializers, param_regularizers,
           updates_collections, is_training, variables_collections, trainable, data_format,
           zero_debias_moving_mean):
    """Normalizes with the fused op. It takes images, so rows become images of one pixel."""
    original, rank = inputs, inputs.shape.ndims
    is_first = data_format == "NCHW"
    if rank == 2:
        count = inputs.shape.as_list()[-1]
        if count is None:
            raise ValueError("`C` dimension must be known but is None")
        inputs = array_ops.reshape(inputs, [-1, count, 1, 1] if is_first else [-1, 1, 1, count])
    shape = inputs.shape[1:2] if is_first else inputs.shape[-1:]
    if not shape.is_fully_defined():
        raise ValueError("Inputs %s has undefined `C` dimension %s." % (inputs.name, shape))
    make = _Parameters(shape, dtypes.float32, param_initializers, param_regularizers,
                       variables_collections, trainable)
    beta = (make.make("beta", init_ops.zeros_initializer) if center
            else constant(0.0, dtypes.float32, shape.as_list()))
    gamma = (make.make("gamma", init_ops.ones_initializer) if scale
             else constant(1.0, dtypes.float32, shape.as_list()))
    moving = make.moving()

    def training():
        return nn.fused_batch_norm(inputs, gamma, beta, epsilon=epsilon, data_format=data_format)

    def inference():
        return nn.fused_batch_norm(inputs, gamma, beta, mean=moving[0], variance=moving[1],
                                   epsilon=epsilon, is_training=False, data_format=data_format)

    outputs, mean, variance = smart_cond(is_training, training, inference)
    outputs = _with_updates(outputs, moving, (mean, variance), decay, zero_debias_moving_mean,
                            is_training, updates_collections)
    outputs.set_shape(inputs.shape)
    return outputs if rank == 4 else array_ops.reshape(outputs, array_ops.shape(original))


def _by_layer(inputs, scope, reuse, fused, decay, center, scale, epsilon, param_initializers,
              param_regularizers, is_training, variables_collections, trainable, is_first, renorm,
              renorm_clipping, renorm_decay, adjustment):
    """Normalizes with the core layer."""
    initializers, regularizers = param_initializers or {}, param_regularizers or {}
    layer = core.BatchNormalization(
        1 if is_first else -1, decay, epsilon, center, scale, initializers.get("beta"),
        initializers.get("gamma"), initializers.get("moving_mean"), initializers.get("moving_variance"),
        regularizers.get("beta"), regularizers.get("gamma"), renorm=renorm,
        renorm_clipping=renorm_clipping, renorm_momentum=renorm_decay, fused=fused, trainable=trainable,
        adjustment=adjustment, name=scope.name, _scope=scope, _reuse=reuse)
    outputs = layer.apply(inputs, training=is_training)
    for name in ("moving_mean", "moving_variance", "beta", "gamma"):
        if getattr(layer, name) is not None:
            add_variable(getattr(layer, name), variables_collections, name)
    return outputs


def _by_moments(inputs, decay, center, scale, epsilon, param_initializers, updates_collections,
                is_training, variables_collections, trainable, batch_weights, is_first,
                zero_debias_moving_mean):
    """Normalizes with operations of its own, for weighted examples and for updates that the core layer does not have."""
    rank = inputs.shape.ndims
    axis = 1 if is_first else rank - 1
    shape = inputs.shape[axis:axis + 1]
    if not shape.is_fully_defined():
        raise ValueError("Inputs %s has undefined channels dimension %s." % (inputs.name, shape))
    make = _Parameters(shape, inputs.dtype.base_dtype, param_initializers, None, variables_collections,
                       trainable)
    beta = make.make("beta", init_ops.zeros_initializer) if center else None
    gamma = make.make("gamma", init_ops.ones_initializer) if scale else None
    moving = make.moving()
    axes = [i for i in range(rank) if i != axis]

    def batch():
        if batch_weights is None:
            return tuple(nn.moments(inputs, axes))
        weights = array_ops.reshape(convert_to_tensor(batch_weights), [-1] + [1] * (rank - 1))
        return tuple(nn.weighted_moments(inputs, axes, weights))

    mean, variance = moments = smart_cond(is_training, batch, lambda: moving)
    spread = [inputs.shape.as_list()[1] if i == axis else 1 for i in range(rank)]
    if is_first:
        mean, variance, beta, gamma = (
            None if x is None else array_ops.reshape(x, spread) for x in (mean, variance, beta, gamma))
    outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
    outputs = _with_updates(outputs, moving, moments, decay, zero_debias_moving_mean, is_training,
                            updates_collections)
    outputs.set_shape(inputs.shape)
    return outputs


@add_arg_scope
def batch_norm(inputs, decay=0.999, center=True, scale=False, epsilon=0.001, activation_fn=None,
               param_initializers=None, param_regularizers=None,
               updates_collections=GraphKeys.UPDATE_OPS, is_training=True, reuse=None,
               variables_collections=None, outputs_collections=None, trainable=True, batch_weights=None,
               fused=None, data_format="NHWC", zero_debias_moving_mean=False, scope=None, renorm=False,
               renorm_clipping=None, renorm_decay=0.99, adjustment=None):
    """Normalizes over the batch.

    The ops that update the moving averages are in `updates_collections`; if it is None, they run before the output.
    """
    is_first = channels_of(data_format) == "channels_first"
    with layer_scope(scope, "BatchNorm", inputs, reuse) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError("Inputs %s has undefined rank" % inputs.name)
        is_plain = updates_collections is GraphKeys.UPDATE_OPS and not zero_debias_moving_mean
        can_be_fused = batch_weights is None and not renorm and adjustment is None and rank in (2, 4)
        if fused is not False and can_be_fused and (rank == 2 or not is_plain):
            outputs = _fused(inputs, decay, center, scale, epsilon, param_initializers,
                             param_regularizers, updates_collections, is_training, variables_collections,
                             trainable, data_format, zero_debias_moving_mean)
        elif batch_weights is None and is_plain:
            outputs = _by_layer(inputs, sc, reuse, fused is not False and can_be_fused, decay, center, scale, epsilon, param_initializers,
                                param_regularizers, is_training, variables_collections, trainable,
                                is_first, renorm, renorm_clipping, renorm_decay, adjustment)
        elif renorm:
            raise ValueError("renorm is not supported with batch_weights, updates_collections or "
                             "zero_debias_moving_mean")
        else:
            outputs = _by_moments(inputs, decay, center, scale, epsilon, param_initializers,
                                  updates_collections, is_training, variables_collections, trainable,
                                  batch_weights, is_first, zero_debias_moving_mean)
        return finish(outputs, sc.name, None, None, activation_fn, outputs_collections)


@add_arg_scope
def layer_norm(inputs, center=True, scale=True, activation_fn=None, reuse=None,
               variables_collections=None, outputs_collections=None, trainable=True, begin_norm_axis=1,
               begin_params_axis=-1, scope=None):
    """Normalizes each example over its features."""
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        rank, dtype = inputs.shape.ndims, inputs.dtype.base_dtype
        if rank is None:
            raise ValueError("Inputs %s has undefined rank." % inputs.name)
        if begin_norm_axis < 0:
            begin_norm_axis += rank
        if begin_params_axis >= rank or begin_norm_axis >= rank:
            raise ValueError("begin_params_axis (%d) and begin_norm_axis (%d) must be < rank(inputs) (%d)" % (
                begin_params_axis, begin_norm_axis, rank))
        shape = inputs.shape[begin_params_axis:]
        if not shape.is_fully_defined():
            raise ValueError("Inputs %s: shape(inputs)[%s:] is not fully defined: %s" % (
                inputs.name, begin_params_axis, inputs.shape))
        make = _Parameters(shape, dtype, None, None, variables_collections, trainable)
        beta = make.make("beta", init_ops.zeros_initializer) if center else None
        gamma = make.make("gamma", init_ops.ones_initializer) if scale else None
        mean, variance = nn.moments(inputs, list(range(begin_norm_axis, rank)), keepdims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma,
                                         1e-3 if dtype == dtypes.float16 else 1e-12)
        outputs.set_shape(inputs.shape)
        return finish(outputs, sc.name, None, None, activation_fn, outputs_collections)


@add_arg_scope
def instance_norm(inputs, center=True, scale=True, epsilon=1e-6, activation_fn=None,
                  param_initializers=None, reuse=None, variables_collections=None,
                  outputs_collections=None, trainable=True, data_format="NHWC", scope=None):
    """Normalizes each channel of each example."""
    is_first = channels_of(data_format) == "channels_first"
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError("Inputs %s has undefined rank." % inputs.name)
        axis = 1 if is_first else rank - 1
        shape = inputs.shape[axis:axis + 1]
        if not shape.is_fully_defined():
            raise ValueError("Inputs %s has undefined channels dimension %s." % (inputs.name, shape))
        make = _Parameters(shape, inputs.dtype.base_dtype, param_initializers, None,
                           variables_collections, trainable)
        spread = [shape.as_list()[0] if i == axis else 1 for i in range(rank)]
        beta = array_ops.reshape(make.make("beta", init_ops.zeros_initializer), spread) if center else None
        gamma = array_ops.reshape(make.make("gamma", init_ops.ones_initializer), spread) if scale else None
        axes = [i for i in range(1, rank) if i != axis]
        mean, variance = nn.moments(inputs, axes, keepdims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon, name="instancenorm")
        outputs.set_shape(inputs.shape)
        return finish(outputs, sc.name, None, None, activation_fn, outputs_collections)


@add_arg_scope
def group_norm(inputs, groups=32, channels_axis=-1, reduction_axes=(-3, -2), center=True, scale=True,
               epsilon=1e-6, activation_fn=None, param_initializers=None, reuse=None,
               variables_collections=None, outputs_collections=None, trainable=True, scope=None,
               mean_close_to_zero=False):
    """Normalizes groups of channels of each example."""
    inputs = convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    if rank is None:
        raise ValueError("Inputs %s has undefined rank." % inputs.name)
    if not all(-rank <= i < rank for i in (channels_axis, *reduction_axes)):
        raise ValueError("Axis is out of bounds.")
    axis = channels_axis % rank
    reduced = [i % rank for i in reduction_axes]
    dims = inputs.shape.as_list()
    count = dims[axis]
    if count is None:
        raise ValueError("Inputs %s has undefined channel dimension: %d." % (inputs.name, axis))
    for i in reduced:
        if dims[i] is None:
            raise ValueError("Inputs %s has undefined dimensions %d." % (inputs.name, i))
    if axis in reduced:
        raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    if groups > count:
        raise ValueError("Invalid groups %d for %d channels." % (groups, count))
    if count % groups:
        raise ValueError("%d channels is not commensurate with %d groups." % (count, groups))
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as sc:
        make = _Parameters([count], inputs.dtype.base_dtype, param_initializers, None,
                           variables_collections, trainable)
        spread = [1] * (rank + 1)
        spread[axis:axis + 2] = [groups, count // groups]
        beta = array_ops.reshape(make.make("beta", init_ops.zeros_initializer), spread) if center else None
        gamma = array_ops.reshape(make.make("gamma", init_ops.ones_initializer), spread) if scale else None
        before = array_ops.shape(inputs)
        grouped = array_ops.reshape(inputs, array_ops.concat(
            [before[:axis], [groups, count // groups], before[axis + 1:]], 0))
        axes = sorted([i + (i > axis) for i in reduced] + [axis + 1])
        if mean_close_to_zero:
            counts, mean_ss, variance_ss, _ = nn.sufficient_statistics(grouped, axes, keepdims=True)
            mean, variance = nn.normalize_moments(counts, mean_ss, variance_ss, None)
        else:
            mean, variance = nn.moments(grouped, axes, keepdims=True)
        gain = raw_ops.Rsqrt(x=variance + epsilon)
        gain = gain if gamma is None else gain * gamma
        offset = -mean * gain
        offset = offset if beta is None else offset + beta
        outputs = array_ops.reshape(grouped * gain + offset, before)
        outputs.set_shape(inputs.shape)
        return finish(outputs, sc.name, None, None, activation_fn, outputs_collections)
