"""Batch normalization as a layer: fused, plain, with renormalization, over virtual batches."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import colocate_with, control_dependencies, name_scope
from runnel.layers.base import InputSpec, Layer, _in_training, _ones, _zeros
from runnel.nn import nn_ops
from runnel.ops import array_ops, math_ops

_HALF = (dtypes.float16, dtypes.bfloat16)


class BatchNormalization(Layer):
    """Normalizes over the batch, with moving averages for inference.

    The operations that update the averages are in tf.GraphKeys.UPDATE_OPS.
    """

    def __init__(self, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                 beta_initializer=None, gamma_initializer=None, moving_mean_initializer=None,
                 moving_variance_initializer=None, beta_regularizer=None, gamma_regularizer=None,
                 beta_constraint=None, gamma_constraint=None, renorm=False, renorm_clipping=None,
                 renorm_momentum=0.99, fused=None, trainable=True, virtual_batch_size=None,
                 adjustment=None, name=None, **kwargs):
        super().__init__(trainable, name, **kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError("Expected an int or a list/tuple of ints for the argument 'axis', but received: %r" % (axis,))
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale, self.fused = center, scale, fused
        self._betas = beta_initializer, beta_regularizer, beta_constraint
        self._gammas = gamma_initializer, gamma_regularizer, gamma_constraint
        self._moving = _zeros(moving_mean_initializer), _ones(moving_variance_initializer)
        self.renorm, self.renorm_momentum = renorm, renorm_momentum
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self.renorm_clipping = renorm_clipping or {}
        if renorm and set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}:
            raise ValueError("Received invalid keys for `renorm_clipping` argument: %s. Supported values: %s." %
                             (renorm_clipping, ["rmax", "rmin", "dmax"]))

    def _can_be_fused(self, rank):
        return (rank in (4, 5) and not self.renorm and self.virtual_batch_size is None and self.adjustment is None and
                self.axis in ([0], [1], [3], [4]) and self._dtype in _HALF + (dtypes.float32,))

    def _find_axes(self, shape):
        rank = len(shape.dims)
        axes = [a + rank if a < 0 else a for a in (self.axis if isinstance(self.axis, list) else [self.axis])]
        if any(not 0 <= a < rank for a in axes):
            raise ValueError("Invalid value for `axis` argument. Expected 0 <= axis < inputs.rank (with inputs.rank=%d). "
                             "Received: axis=%s" % (rank, tuple(axes)))
        if len(axes) != len(set(axes)):
            raise ValueError("Duplicate axis: %s" % (tuple(axes),))
        size = self.virtual_batch_size
        if size is not None:
            if size <= 0:
                raise ValueError("`virtual_batch_size` must be a positive integer that divides the true batch size of the "
                                 "input tensor. Received: virtual_batch_size=%s" % size)
            if 0 in axes:
                raise ValueError("When using `virtual_batch_size`, the batch dimension must be 0 and thus axis cannot include "
                                 "0. Received axis=%s" % axes)
            if self.adjustment is not None:
                raise ValueError("When using `virtual_batch_size`, adjustment cannot be specified")
        return axes

    def _choose_fused(self, rank):
        self.fused = self.fused is not False and self._can_be_fused(rank)
        if self.fused and self.axis not in ([1], [rank - 1]):
            if rank == 4:
                raise ValueError("Unsupported axis. The use of `fused=True` is only possible with `axis=1` or `axis=3` for 4D "
                                 "input tensors. Received: axis=%s" % (tuple(self.axis),))
            self.fused = False
        if self.fused:
            space = "HW" if rank == 4 else "DHW"
            self._data_format = "NC" + space if self.axis == [1] else "N" + space + "C"

    def build(self, input_shape):
        shape = tensor_shape.as_shape(input_shape)
        if shape.dims is None:
            raise ValueError("Input has undefined rank.")
        rank = len(shape.dims)
        self.axis = self._find_axes(shape)
        self._choose_fused(rank)
        sizes = {a: shape.as_list()[a] for a in self.axis}
        if None in sizes.values():
            raise ValueError("Input has undefined `axis` dimension. Received input with shape %s and axis=%s" %
                             (tuple(shape.as_list()), tuple(self.axis)))
        self.input_spec = InputSpec(ndim=rank, axes=sizes)
        if len(sizes) == 1 and self.virtual_batch_size is None:
            self._shape = list(sizes.values())
        else:
            self._shape = [sizes.get(i, 1) for i in range(rank)]
            if self.virtual_batch_size is not None:
                self._shape.insert(1, 1)
                self.axis = [a + 1 for a in self.axis]
        self._build_variables()
        self.built = True

    def _build_variables(self):
        kind = dtypes.float32 if self._dtype in _HALF else self._dtype
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_variable("gamma", self._shape, kind, _ones(self._gammas[0]),
                                           self._gammas[1], constraint=self._gammas[2])
        if self.center:
            self.beta = self.add_variable("beta", self._shape, kind, _zeros(self._betas[0]),
                                          self._betas[1], constraint=self._betas[2])
        from runnel.ops.variable_scopes import get_variable_scope
        scope = get_variable_scope()
        partitioner = scope.partitioner
        scope.set_partitioner(None)  # averages are never partitioned
        try:
            def average(name, initializer):
                return self.add_variable(name, self._shape, kind, initializer, trainable=False)

            def deviation(*args, **kwargs):
                return raw_ops.Sqrt(x=self._moving[1](*args, **kwargs))
            self.moving_mean = average("moving_mean", self._moving[0])
            self.moving_variance = average("moving_variance", self._moving[1])
            if self.renorm:
                self.moving_stddev = average("moving_stddev", deviation)
                self.renorm_mean = average("renorm_mean", self._moving[0])
                self.renorm_stddev = average("renorm_stddev", deviation)
        finally:
            scope.set_partitioner(partitioner)

    def call(self, inputs, training=False):
        if isinstance(training, int):
            training = bool(training)
        if self.virtual_batch_size is None:
            return self._fused_call(inputs, training) if self.fused else self._plain_call(inputs, training)
        shape = array_ops.concat([[-1], array_ops.shape(inputs)[1:]], 0)
        cut = array_ops.concat([[self.virtual_batch_size, -1], shape[1:]], 0)
        return array_ops.reshape(self._plain_call(array_ops.reshape(inputs, cut), training), shape)

    def _fused_call(self, inputs, training):
        kind = self.moving_mean.dtype.base_dtype
        scale = self.gamma if self.scale else array_ops.ones(self._shape, kind)
        offset = self.beta if self.center else array_ops.zeros(self._shape, kind)

        def train():
            return nn_ops.fused_batch_norm(inputs, scale, offset, epsilon=self.epsilon,
                                           data_format=self._data_format)

        def infer():
            return nn_ops.fused_batch_norm(inputs, scale, offset, mean=self.moving_mean,
                                           variance=self.moving_variance, epsilon=self.epsilon,
                                           is_training=False, data_format=self._data_format)
        output, mean, variance = _in_training(training, train, infer)
        if training is not False:
            self._update(mean, variance, training)
        return output

    def _plain_call(self, inputs, training):
        kind = inputs.dtype.base_dtype
        x = math_ops.cast(inputs, dtypes.float32) if kind in _HALF else inputs
        rank = x.shape.ndims
        axes = [i for i in range(rank) if i not in self.axis]
        if self.virtual_batch_size is not None:
            del axes[1]
        broad = [1] * rank
        broad[self.axis[0]] = x.shape.as_list()[self.axis[0]]

        def shaped(v):
            if v is None or len(v.shape) == rank or axes == list(range(rank - 1)):
                return v
            return array_ops.reshape(v, broad)
        scale, offset = shaped(self.gamma), shaped(self.beta)
        mean, variance = self.moving_mean, self.moving_variance
        if training is not False:
            if self.adjustment is not None:
                scale, offset = _then(*self._adjusted(x, training), scale, offset)
            mean, variance, factor, shift = self._train(x, axes, training)
            if self.renorm:
                scale, offset = _then(shaped(factor), shaped(shift), scale, offset)
        outputs = nn_ops.batch_normalization(x, shaped(mean), shaped(variance), offset, scale, self.epsilon)
        outputs.set_shape(x.shape)
        return math_ops.cast(outputs, kind) if kind in _HALF else outputs

    def _adjusted(self, x, training):
        scale, bias = self.adjustment(array_ops.shape(x))
        return (_in_training(training, lambda: scale, lambda: array_ops.ones_like(scale)),
                _in_training(training, lambda: bias, lambda: array_ops.zeros_like(bias)))

    def _train(self, x, axes, training):
        """Returns the moments of the batch, or the averages if the step does not train, and updates the averages.

        With renorm, also returns r and d.
        """
        keep = self.virtual_batch_size is not None or len(self.axis) > 1
        batch = nn_ops.moments(x, axes, keepdims=keep)
        mean, variance = _in_training(
            training, lambda: batch,
            lambda: (convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)))
        new_mean, new_variance = mean, variance
        if self.virtual_batch_size is not None:
            new_mean = math_ops.reduce_mean(mean, axis=1, keepdims=True)
            new_variance = math_ops.reduce_mean(variance, axis=1, keepdims=True)
        if not self.renorm:
            self._update(new_mean, new_variance, training)
            return mean, variance, None, None
        factor, shift, new_mean, new_variance = self._renormalized(new_mean, new_variance, training)
        self._update_renormalized(new_mean, new_variance, training)
        return mean, variance, factor, shift

    def _renormalized(self, mean, variance, training):
        """Returns (r, d, mean, variance); r and d correct the batch's moments to the averages. Updates the averages afterwards."""
        stddev = raw_ops.Sqrt(x=variance + self.epsilon)
        known = raw_ops.Maximum(x=self.renorm_stddev, y=raw_ops.Sqrt(x=self.epsilon))
        r, d = stddev / known, (mean - self.renorm_mean) / known
        with control_dependencies([r, d]):
            mean, stddev = array_ops.identity(mean), array_ops.identity(stddev)
        low, high, far = [self.renorm_clipping.get(key) for key in ("rmin", "rmax", "dmax")]
        r = r if low is None else raw_ops.Maximum(x=r, y=low)
        r = r if high is None else raw_ops.Minimum(x=r, y=high)
        d = d if far is None else raw_ops.Minimum(x=raw_ops.Maximum(x=d, y=-far), y=far)
        r = _in_training(training, lambda: r, lambda: array_ops.ones_like(r))
        d = _in_training(training, lambda: d, lambda: array_ops.zeros_like(d))

        def moved(variable, value):
            value = array_ops.identity(value)
            return _in_training(training, lambda: self._move(variable, value, self.renorm_momentum),
                                lambda: array_ops.identity(variable))
        with control_dependencies([moved(self.renorm_mean, mean), moved(self.renorm_stddev, stddev)]):
            mean, variance = array_ops.identity(mean), array_ops.identity(variance)
        return (raw_ops.StopGradient(input=r, name="renorm_r"), raw_ops.StopGradient(input=d, name="renorm_d"),
                mean, variance)

    def _update_renormalized(self, mean, variance, training):
        """Updates the averages with the standard deviation; the variance is its square."""
        def change():
            stddev = convert_to_tensor(self._move(self.moving_stddev, raw_ops.Sqrt(x=variance + self.epsilon), self.momentum))
            with name_scope("AssignNewValue") as scope:
                return self.moving_variance.assign(nn_ops.relu(stddev * stddev - self.epsilon), name=scope)
        self.add_update(_in_training(training, lambda: self._move(self.moving_mean, mean, self.momentum),
                                     lambda: convert_to_tensor(self.moving_mean)))
        self.add_update(_in_training(training, change, lambda: convert_to_tensor(self.moving_variance)))

    @staticmethod
    def _move(variable, value, momentum):
        with name_scope("AssignMovingAvg") as scope, colocate_with(variable):
            decay = convert_to_tensor(1.0 - momentum, variable.dtype.base_dtype, name="decay")
            return variable.assign_sub((variable - math_ops.cast(value, variable.dtype.base_dtype)) * decay, name=scope)

    def _update(self, mean, variance, training):
        """Updates the averages if the step trains."""
        def decay():
            return _in_training(training, lambda: convert_to_tensor(1 - self.momentum, mean.dtype),
                                lambda: convert_to_tensor(0.0, mean.dtype))
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            with name_scope(None, "AssignMovingAvg", [variable, value]) as scope:
                delta = (convert_to_tensor(variable) - math_ops.cast(value, variable.dtype.base_dtype)
                         ) * math_ops.cast(decay(), variable.dtype.base_dtype)
                self.add_update(variable.assign_sub(delta, name=scope))


def _then(scale, offset, then_scale, then_offset):
    """Returns the scale and offset of x * scale + offset followed by * then_scale + then_offset."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    return scale, offset if then_offset is None else offset + then_offset
