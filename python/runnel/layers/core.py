"""The layers of tf.layers, as objects that own variables and as functions that create and call one."""

from runnel import raw_ops
from runnel.core import tensor_shape
from runnel.core.naming import named
from runnel.layers.base import InputSpec, Layer, _in_training, _zeros
from runnel.layers.normalization import BatchNormalization
from runnel.nn import nn_conv, nn_ops
from runnel.ops import array_ops, math_ops


def _known_last(shape, layer, axis=-1):
    shape = tensor_shape.as_shape(shape)
    if shape.dims is None or shape.as_list()[axis] is None:
        raise ValueError("The %s dimension of the inputs to `%s` should be defined. Found `None`." % (
            "last" if axis == -1 else "channel", layer))
    return shape.as_list()[axis]


def _product(inputs, kernel, units):
    """Returns inputs @ kernel along the last dimension."""
    rank = inputs.shape.ndims
    if rank is not None and rank <= 2:
        return raw_ops.MatMul(a=inputs, b=kernel)
    outputs = math_ops.tensordot(inputs, kernel, [[rank - 1], [0]])
    outputs.set_shape(inputs.shape.as_list()[:-1] + [units])
    return outputs


class Dense(Layer):
    """A fully connected layer: activation(inputs @ kernel + bias)."""

    def __init__(self, units, activation=None, use_bias=True, kernel_initializer=None,
                 bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
                 activity_regularizer=None, kernel_constraint=None, bias_constraint=None,
                 trainable=True, name=None, **kwargs):
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation, self.use_bias = activation, use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape):
        last = _known_last(input_shape, "Dense")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: last})
        self.kernel = self.add_variable("kernel", [last, self.units], self._dtype,
                                        self.kernel_initializer, self.kernel_regularizer,
                                        constraint=self.kernel_constraint)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_variable("bias", [self.units], self._dtype, _zeros(
                self.bias_initializer), self.bias_regularizer, constraint=self.bias_constraint)
        self.built = True

    def call(self, inputs):
        outputs = _product(inputs, self.kernel, self.units)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape):
        return tensor_shape.as_shape(input_shape)[:-1].concatenate(self.units)


def _numbers(value, count, name):
    if isinstance(value, int):
        return (value,) * count
    value = tuple(int(v) for v in value)
    if len(value) != count:
        raise ValueError("The `%s` argument must be a tuple of %d integers. Received: %s" % (
            name, count, value))
    return value


def _channels_first(data_format):
    data_format = data_format.lower()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError("The `data_format` argument must be one of \"channels_first\", "
                         "\"channels_last\". Received: %s" % data_format)
    return data_format == "channels_first"


def _op_format(first, spatial):
    space = ("", "W", "HW", "DHW")[spatial]
    return "NC" + space if first else "N" + space + "C"


class _Conv(Layer):
    """A convolution over one, two or three dimensions."""

    _spatial = 2
    _transposed = False

    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format="channels_last",
                 dilation_rate=1, activation=None, use_bias=True, kernel_initializer=None,
                 bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
                 activity_regularizer=None, kernel_constraint=None, bias_constraint=None,
                 trainable=True, name=None, **kwargs):
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        count = self._spatial
        self.filters = int(filters) if isinstance(filters, float) else filters
        self.kernel_size = _numbers(kernel_size, count, "kernel_size")
        self.strides = _numbers(strides, count, "strides")
        self.dilation_rate = _numbers(dilation_rate, count, "dilation_rate")
        self.padding = padding.upper()
        if self.padding not in ("SAME", "VALID"):
            raise ValueError("The `padding` argument must be one of \"valid\", \"same\". Received: %s"
                             % padding)
        self.data_format = data_format
        self._first = _channels_first(data_format)
        self.activation, self.use_bias = activation, use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(ndim=count + 2)

    def _kernel_shape(self, channels):
        return list(self.kernel_size) + [channels, self.filters]

    def build(self, input_shape):
        axis = 1 if self._first else -1
        channels = _known_last(input_shape, type(self).__name__, axis)
        self.input_spec = InputSpec(ndim=self._spatial + 2, axes={axis: channels})
        self.kernel = self.add_variable("kernel", self._kernel_shape(channels), self._dtype,
                                        self.kernel_initializer, self.kernel_regularizer,
                                        constraint=self.kernel_constraint)
        self._build_bias()
        self.built = True

    def _build_bias(self):
        self.bias = None
        if self.use_bias:
            self.bias = self.add_variable("bias", [self.filters], self._dtype, _zeros(
                self.bias_initializer), self.bias_regularizer, constraint=self.bias_constraint)

    def call(self, inputs):
        fn = (nn_conv.conv1d, nn_conv.conv2d, nn_conv.conv3d)[self._spatial - 1]
        strides = self.strides[0] if self._spatial == 1 else list(self.strides)
        dilations = self.dilation_rate[0] if self._spatial == 1 else list(self.dilation_rate)
        outputs = fn(inputs, self.kernel, strides, self.padding,
                     data_format=_op_format(self._first, self._spatial), dilations=dilations,
                     **({} if self._spatial == 1 else {"name": "Conv%dD" % self._spatial}))
        return self._finish(outputs)

    def _finish(self, outputs):
        if self.use_bias:
            if self._spatial == 3 and self._first:
                shape = [1, self.filters, 1, 1, 1]
                outputs += array_ops.reshape(self.bias, shape)
            elif self._spatial == 1 and self._first:
                outputs += array_ops.reshape(self.bias, [1, self.filters, 1])
            else:
                outputs = nn_ops.bias_add(outputs, self.bias,
                                          data_format="NCHW" if self._first else "NHWC")
        return outputs if self.activation is None else self.activation(outputs)


class Conv1D(_Conv):
    """A convolution over sequences."""

    _spatial = 1


class Conv2D(_Conv):
    """A convolution over images."""

    def __init__(self, filters, kernel_size, strides=(1, 1), padding="valid",
                 data_format="channels_last", dilation_rate=(1, 1), *args, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, *args,
                         **kwargs)


class Conv3D(_Conv):
    """A convolution over volumes."""

    _spatial = 3

    def __init__(self, filters, kernel_size, strides=(1, 1, 1), padding="valid",
                 data_format="channels_last", dilation_rate=(1, 1, 1), *args, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, *args,
                         **kwargs)


class _Transpose(_Conv):
    """A transposed convolution."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid",
                 data_format="channels_last", *args, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, 1, *args, **kwargs)

    def _kernel_shape(self, channels):
        return list(self.kernel_size) + [self.filters, channels]

    def call(self, inputs):
        dims = inputs.shape.as_list()
        shape = array_ops.shape(inputs)
        start = 2 if self._first else 1
        sizes, known = [], []
        for i in range(self._spatial):
            size = shape[start + i] if dims[start + i] is None else dims[start + i]
            sizes.append(_deconv_length(size, self.kernel_size[i], self.padding, self.strides[i]))
            known.append(None if dims[start + i] is None else sizes[-1])
        output = ([shape[0], self.filters] + sizes) if self._first else (
            [shape[0]] + sizes + [self.filters])
        fn = nn_conv.conv2d_transpose if self._spatial == 2 else nn_conv.conv3d_transpose
        outputs = fn(inputs, self.kernel, array_ops.stack(output), list(self.strides), self.padding,
                     data_format=_op_format(self._first, self._spatial))
        outputs.set_shape([dims[0], self.filters] + known if self._first
                          else [dims[0]] + known + [self.filters])
        return self._finish(outputs)


def _deconv_length(size, kernel, padding, stride):
    size = size * stride
    return size + max(kernel - stride, 0) if padding == "VALID" else size


class Conv2DTranspose(_Transpose):
    """A transposed convolution over images."""


class Conv3DTranspose(_Transpose):
    """A transposed convolution over volumes."""

    _spatial = 3


class _SeparableConv(_Conv):
    """A convolution of each channel separately, followed by one over the channels."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid",
                 data_format="channels_last", dilation_rate=1, depth_multiplier=1,
                 activation=None, use_bias=True, depthwise_initializer=None,
                 pointwise_initializer=None, bias_initializer=None, depthwise_regularizer=None,
                 pointwise_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 depthwise_constraint=None, pointwise_constraint=None, bias_constraint=None, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
                         use_bias, bias_initializer=bias_initializer, bias_regularizer=bias_regularizer,
                         activity_regularizer=activity_regularizer, bias_constraint=bias_constraint, **kwargs)
        self.depth_multiplier = depth_multiplier
        self._depthwise = depthwise_initializer, depthwise_regularizer, True, depthwise_constraint
        self._pointwise = pointwise_initializer, pointwise_regularizer, True, pointwise_constraint

    def build(self, input_shape):
        channels = _known_last(input_shape, type(self).__name__, 1 if self._first else -1)
        self.depthwise_kernel = self.add_variable(
            "depthwise_kernel", list(self.kernel_size) + [channels, self.depth_multiplier],
            self._dtype, *self._depthwise)
        self.pointwise_kernel = self.add_variable(
            "pointwise_kernel", [1] * self._spatial + [self.depth_multiplier * channels, self.filters],
            self._dtype, *self._pointwise)
        self._build_bias()
        self.built = True


class SeparableConv1D(_SeparableConv):
    """A convolution of each channel of sequences separately, followed by one over the channels."""

    _spatial = 1

    def call(self, inputs):
        at = 2 if self._first else 1
        steps = list(self.strides) * 2
        strides = [1, 1] + steps if self._first else [1] + steps + [1]
        data_format = _op_format(self._first, 2)
        inputs = array_ops.expand_dims(inputs, at)
        depthwise = array_ops.expand_dims(self.depthwise_kernel, 0)
        pointwise = array_ops.expand_dims(self.pointwise_kernel, 0)
        outputs = nn_conv.separable_conv2d(inputs, depthwise, pointwise, strides, self.padding,
                                           rate=(1,) + self.dilation_rate, data_format=data_format)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, data_format=data_format)
        outputs = array_ops.squeeze(outputs, [at])
        return outputs if self.activation is None else self.activation(outputs)


class SeparableConv2D(_SeparableConv):
    """A convolution of each channel of images separately, followed by one over the channels."""

    def call(self, inputs):
        steps = list(self.strides)
        strides = [1, 1] + steps if self._first else [1] + steps + [1]
        outputs = nn_conv.separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel, strides, self.padding,
            rate=self.dilation_rate, data_format=_op_format(self._first, 2))
        return self._finish(outputs)


# Other names, used in tensorflow.python.layers.convolutional.
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution2DTranspose = Deconvolution2D = Deconv2D = Conv2DTranspose
Convolution3DTranspose = Deconvolution3D = Deconv3D = Conv3DTranspose
SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D


class _Pool(Layer):
    """The base of pooling layers."""

    _spatial = 2
    _fn = None

    def __init__(self, pool_size, strides, padding="valid", data_format="channels_last", name=None,
                 **kwargs):
        super().__init__(name=name, **kwargs)
        self.pool_size = _numbers(pool_size, self._spatial, "pool_size")
        self.strides = _numbers(pool_size if strides is None else strides, self._spatial, "strides")
        self.padding = padding.upper()
        self._first = _channels_first(data_format)
        self.input_spec = InputSpec(ndim=self._spatial + 2)

    def call(self, inputs):
        if self._spatial == 3 and self._first:  # the same nodes as stock
            inputs = array_ops.transpose(inputs, (0, 2, 3, 4, 1))
            outputs = type(self)._fn(inputs, list(self.pool_size), list(self.strides), self.padding)
            return array_ops.transpose(outputs, (0, 4, 1, 2, 3))
        return type(self)._fn(inputs, list(self.pool_size), list(self.strides), self.padding,
                              data_format=_op_format(self._first, self._spatial))


def _pool_class(name, spatial, fn):
    return type(name, (_Pool,), {"_spatial": spatial, "_fn": staticmethod(fn),
                                 "__doc__": "A layer that pools over windows: %s." % name, "__module__": __name__})


MaxPooling1D = _pool_class("MaxPooling1D", 1, nn_conv.max_pool1d)
MaxPooling2D = _pool_class("MaxPooling2D", 2, nn_conv.max_pool)
MaxPooling3D = _pool_class("MaxPooling3D", 3, nn_conv.max_pool3d)
AveragePooling1D = _pool_class("AveragePooling1D", 1, nn_conv.avg_pool1d)
AveragePooling2D = _pool_class("AveragePooling2D", 2, nn_conv.avg_pool)
AveragePooling3D = _pool_class("AveragePooling3D", 3, nn_conv.avg_pool3d)
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D


class Dropout(Layer):
    """Sets random elements to 0 during training."""

    def __init__(self, rate=0.5, noise_shape=None, seed=None, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs, training=False):
        def dropped():
            return nn_ops.dropout(inputs, rate=self.rate, noise_shape=self.noise_shape,
                                  seed=self.seed)
        return _in_training(training, dropped, lambda: array_ops.identity(inputs))


class Flatten(Layer):
    """Flattens each example to a row."""

    def __init__(self, data_format="channels_last", name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self._first = _channels_first(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs):
        rank = inputs.shape.ndims
        if self._first and rank is not None and rank > 1:
            inputs = array_ops.transpose(inputs, [0] + list(range(2, rank)) + [1])
        dims = inputs.shape.as_list()
        count = 1
        for d in dims[1:]:
            count = None if count is None or d is None else count * d
        if count is not None:
            outputs = array_ops.reshape(inputs, [-1 if dims[0] is None else dims[0], count])
        else:
            outputs = array_ops.reshape(inputs, [array_ops.shape(inputs)[0], -1])
        outputs.set_shape([dims[0], count])
        return outputs


# Layers as functions


def dense(inputs, units, activation=None, use_bias=True, kernel_initializer=None,
          bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
          activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True,
          name=None, reuse=None):
    """Applies a fully connected layer: activation(inputs @ kernel + bias).

    Args:
      inputs: a tensor of at least two dimensions.
      units: the number of outputs.
      activation: a function of tensors, or None.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: initializers of the variables.
      kernel_regularizer, bias_regularizer: functions whose values are added to the regularization losses.
      trainable: whether optimizers update the variables.
      name: name of the layer and of the scope of its variables.
      reuse: whether to reuse the variables of that name.
    """
    return Dense(units, activation, use_bias, kernel_initializer, bias_initializer,
                 kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
                 bias_constraint, trainable, name, _scope=name, _reuse=reuse).apply(inputs)


def _conv_function(cls, steps, name):
    def function(inputs, filters, kernel_size, strides=steps, padding="valid",
                 data_format="channels_last", dilation_rate=steps, activation=None, use_bias=True,
                 kernel_initializer=None, bias_initializer=None, kernel_regularizer=None,
                 bias_regularizer=None, activity_regularizer=None, kernel_constraint=None,
                 bias_constraint=None, trainable=True, name=None, reuse=None):
        return cls(filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
                   use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
                   bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint,
                   trainable, name, _scope=name, _reuse=reuse).apply(inputs)
    return named(function, name, cls.__doc__)


conv1d = _conv_function(Conv1D, 1, "conv1d")
conv2d = _conv_function(Conv2D, (1, 1), "conv2d")
conv3d = _conv_function(Conv3D, (1, 1, 1), "conv3d")


def _transpose_function(cls, steps, name):
    def function(inputs, filters, kernel_size, strides=steps, padding="valid",
                 data_format="channels_last", activation=None, use_bias=True,
                 kernel_initializer=None, bias_initializer=None, kernel_regularizer=None,
                 bias_regularizer=None, activity_regularizer=None, kernel_constraint=None,
                 bias_constraint=None, trainable=True, name=None, reuse=None):
        return cls(filters, kernel_size, strides, padding, data_format, activation, use_bias,
                   kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
                   activity_regularizer, kernel_constraint, bias_constraint, trainable, name,
                   _scope=name, _reuse=reuse).apply(inputs)
    return named(function, name, cls.__doc__)


conv2d_transpose = _transpose_function(Conv2DTranspose, (1, 1), "conv2d_transpose")
conv3d_transpose = _transpose_function(Conv3DTranspose, (1, 1, 1), "conv3d_transpose")


def _separable_function(cls, name):
    def function(inputs, filters, kernel_size, strides=1, padding="valid",
                 data_format="channels_last", dilation_rate=1, depth_multiplier=1,
                 activation=None, use_bias=True, depthwise_initializer=None,
                 pointwise_initializer=None, bias_initializer=None, depthwise_regularizer=None,
                 pointwise_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 depthwise_constraint=None, pointwise_constraint=None, bias_constraint=None,
                 trainable=True, name=None, reuse=None):
        return cls(filters, kernel_size, strides, padding, data_format, dilation_rate,
                   depth_multiplier, activation, use_bias, depthwise_initializer,
                   pointwise_initializer, bias_initializer, depthwise_regularizer,
                   pointwise_regularizer, bias_regularizer, activity_regularizer,
                   depthwise_constraint, pointwise_constraint, bias_constraint,
                   trainable=trainable, name=name, _scope=name, _reuse=reuse).apply(inputs)
    return named(function, name, cls.__doc__)


separable_conv1d = _separable_function(SeparableConv1D, "separable_conv1d")
separable_conv2d = _separable_function(SeparableConv2D, "separable_conv2d")


def _pool_function(cls, name):
    def function(inputs, pool_size, strides, padding="valid", data_format="channels_last", name=None):
        return cls(pool_size, strides, padding, data_format, name).apply(inputs)
    return named(function, name, cls.__doc__)


max_pooling1d = _pool_function(MaxPooling1D, "max_pooling1d")
max_pooling2d = _pool_function(MaxPooling2D, "max_pooling2d")
max_pooling3d = _pool_function(MaxPooling3D, "max_pooling3d")
average_pooling1d = _pool_function(AveragePooling1D, "average_pooling1d")
average_pooling2d = _pool_function(AveragePooling2D, "average_pooling2d")
average_pooling3d = _pool_function(AveragePooling3D, "average_pooling3d")


def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None):
    """Sets random elements to 0 if `training`."""
    return Dropout(rate, noise_shape, seed, name).apply(inputs, training=training)


def flatten(inputs, name=None, data_format="channels_last"):
    """Flattens each example to a row."""
    return Flatten(data_format, name).apply(inputs)


def batch_normalization(inputs, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                        beta_initializer=None, gamma_initializer=None, moving_mean_initializer=None,
                        moving_variance_initializer=None, beta_regularizer=None,
                        gamma_regularizer=None, beta_constraint=None, gamma_constraint=None,
                        training=False, trainable=True, name=None, reuse=None, renorm=False,
                        renorm_clipping=None, renorm_momentum=0.99, fused=None,
                        virtual_batch_size=None, adjustment=None):
    """Normalizes over the batch; see BatchNormalization."""
    return BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer,
        moving_mean_initializer, moving_variance_initializer, beta_regularizer, gamma_regularizer,
        beta_constraint, gamma_constraint, renorm, renorm_clipping, renorm_momentum, fused, trainable,
        virtual_batch_size, adjustment, name, _reuse=reuse, _scope=name).apply(inputs,
                                                                               training=training)

