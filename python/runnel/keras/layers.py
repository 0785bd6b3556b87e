"""tf.keras.layers: callable objects that compute tensors from tensors and own variables."""

import contextlib

from runnel import dtypes, nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor, executing_eagerly, get_default_graph
from runnel.keras import activations, backend as K, constraints, initializers, regularizers  # noqa: N812
from runnel.layers import core as _base
from runnel.nn import nn_conv, nn_ops
from runnel.ops import array_ops, math_ops

InputSpec = _base.InputSpec


class Layer(_base.Layer):
    """The base of layers: a subclass creates weights in `build` and computes in `call`."""

    _is_keras = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        inner = cls.__init__

        def __init__(self, *args, **kwargs):
            if not hasattr(self, "_config"):
                self._config = _arguments_of(inner, self, args, kwargs)
            inner(self, *args, **kwargs)
        if "__init__" in cls.__dict__:
            __init__.__wrapped__ = inner
            __init__.__doc__ = inner.__doc__
            cls.__init__ = __init__

    def __init__(self, name=None, trainable=True, dtype=None, input_shape=None, input_dim=None,
                 batch_input_shape=None, **kwargs):
        if not hasattr(self, "_config"):
            self._config = {"name": name}
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        if input_dim is not None and input_shape is None:
            input_shape = (input_dim,)
        if batch_input_shape is not None:
            input_shape = tuple(batch_input_shape)[1:]
        self._first_shape = None if input_shape is None else tuple(input_shape)
        self._nodes = []

    def __call__(self, inputs, *args, **kwargs):
        if "training" in kwargs and kwargs["training"] is None:
            del kwargs["training"]
        with _graph_for(inputs):
            outputs = super().__call__(inputs, *args, **kwargs)
        for output in nest.flatten(outputs):
            if isinstance(output, Tensor):
                output._keras_history = (self, inputs, kwargs)
        self._nodes.append((inputs, outputs))
        return outputs

    @property
    def input(self):
        return self._nodes[0][0]

    @property
    def output(self):
        return self._nodes[0][1]

    @property
    def output_shape(self):
        return nest.map_structure(K.int_shape, self.output)

    def add_weight(self, name=None, shape=None, dtype=None, initializer=None, regularizer=None,
                   trainable=True, constraint=None, **kwargs):
        """Creates a variable of the layer."""
        return self.add_variable(name or "weight", shape, dtype, initializers.get(initializer),
                                 regularizers.get(regularizer), trainable, constraints.get(constraint))

    def get_weights(self):
        """Returns the values of the variables."""
        if executing_eagerly():
            return [v.numpy() for v in self.weights]
        return K.get_session().run(self.weights)

    def set_weights(self, weights):
        """Sets the values of the variables."""
        if len(weights) != len(self.weights):
            raise ValueError("You called `set_weights(weights)` on layer \"%s\" with a weight list of "
                             "length %d, but the layer was expecting %d weights." % (
                                 self.name, len(weights), len(self.weights)))
        if executing_eagerly():
            for variable, value in zip(self.weights, weights):
                variable.assign(value)
            return
        session = K.get_session()
        for variable, value in zip(self.weights, weights):
            variable.load(value, session)

    def get_config(self):
        """Returns the arguments that make an equal layer."""
        return {key: _plain(value) for key, value in self._config.items()}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def _graph_for(inputs):
    """A context manager that, in eager execution, enters the graph of symbolic inputs; otherwise it does nothing."""
    if executing_eagerly():
        for x in nest.flatten(inputs):
            if isinstance(x, Tensor) and x.op is not None:
                return x.graph.as_default()
    return contextlib.nullcontext()


def _arguments_of(inner, self, args, kwargs):
    import inspect
    try:
        bound = inspect.signature(inner).bind(self, *args, **kwargs)
    except TypeError:
        return {}
    found = dict(bound.arguments)
    found.pop("self", None)
    for name, parameter in inspect.signature(inner).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            found.update(found.pop(name, {}))
    return found


def _plain(value):
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    if isinstance(value, regularizers.L1L2):
        return {"l1": value.l1, "l2": value.l2}
    return value if isinstance(value, (int, float, str, bool, list, tuple, dict, type(None))) \
        else type(value).__name__


def Input(shape=None, batch_size=None, name=None, dtype=None, batch_shape=None, tensor=None):  # noqa: N802
    """Creates an input of a model, a tensor that is fed."""
    return InputLayer(input_shape=shape, batch_size=batch_size, name=name, dtype=dtype,
                      batch_shape=batch_shape, input_tensor=tensor).output


class InputLayer(Layer):
    """The layer of an Input."""

    def __init__(self, input_shape=None, batch_size=None, dtype=None, input_tensor=None, name=None,
                 batch_shape=None, **kwargs):
        super().__init__(name=name, **kwargs)
        if batch_shape is not None:
            batch_size, input_shape = batch_shape[0], batch_shape[1:]
        self._name = name or get_default_graph().unique_name("input", mark_as_used=False)
        if input_tensor is None:
            from runnel.eager import tracing
            with tracing.symbolic_graph().as_default() if executing_eagerly() else contextlib.nullcontext():
                input_tensor = array_ops.placeholder(dtypes.as_dtype(dtype or K.floatx()),
                                                     (batch_size,) + tuple(input_shape), name=self._name)
        input_tensor._keras_history = (self, None, {})
        self.built = True
        self._nodes.append((input_tensor, input_tensor))


class Dense(Layer):
    """A fully connected layer: activation(inputs @ kernel + bias)."""

    def __init__(self, units, activation=None, use_bias=True, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None,
                 activity_regularizer=None, kernel_constraint=None, bias_constraint=None, **kwargs):
        super().__init__(activity_regularizer=regularizers.get(activity_regularizer), **kwargs)
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self._kernel = kernel_initializer, kernel_regularizer, kernel_constraint
        self._bias = bias_initializer, bias_regularizer, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape):
        last = _base._known_last(input_shape, "Dense")
        self.kernel = self.add_weight("kernel", [last, self.units], initializer=self._kernel[0],
                                      regularizer=self._kernel[1], constraint=self._kernel[2])
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight("bias", [self.units], initializer=self._bias[0],
                                        regularizer=self._bias[1], constraint=self._bias[2])
        self.built = True

    def call(self, inputs):
        outputs = _base._product(inputs, self.kernel, self.units)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return self.activation(outputs)


class Activation(Layer):
    """Applies an activation function."""

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs):
        return self.activation(inputs)


class Lambda(Layer):
    """Applies a function."""

    def __init__(self, function, output_shape=None, arguments=None, **kwargs):
        super().__init__(**kwargs)
        self.function, self.arguments = function, arguments or {}

    def call(self, inputs):
        return self.function(inputs, **self.arguments)


class Flatten(Layer):
    """Flattens each example to a row."""

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self._inner = _base.Flatten(data_format or "channels_last")

    def call(self, inputs):
        return self._inner.call(inputs)


class Reshape(Layer):
    """Reshapes each example; one dimension may be -1."""

    def __init__(self, target_shape, **kwargs):
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs):
        shape = array_ops.stack([array_ops.shape(inputs)[0]] + list(self.target_shape))
        outputs = array_ops.reshape(inputs, shape)
        dims = list(self.target_shape)
        if -1 in dims and None not in inputs.shape.as_list()[1:]:
            total, known = 1, 1
            for d in inputs.shape.as_list()[1:]:
                total *= d
            for d in dims:
                known *= d if d != -1 else 1
            dims[dims.index(-1)] = total // known
        outputs.set_shape([inputs.shape.as_list()[0]] + [None if d == -1 else d for d in dims])
        return outputs


class Permute(Layer):
    """Permutes dimensions, which are counted from 1 after the batch."""

    def __init__(self, dims, **kwargs):
        super().__init__(**kwargs)
        self.dims = tuple(dims)

    def call(self, inputs):
        return array_ops.transpose(inputs, [0] + list(self.dims))


class RepeatVector(Layer):
    """Repeats rows n times."""

    def __init__(self, n, **kwargs):
        super().__init__(**kwargs)
        self.n = n

    def call(self, inputs):
        outputs = array_ops.tile(array_ops.expand_dims(inputs, 1), [1, self.n, 1])
        outputs.set_shape([inputs.shape.as_list()[0], self.n, inputs.shape.as_list()[1]])
        return outputs


class Dropout(Layer):
    """Sets random elements to 0 during training."""

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs, training=None):
        training = K.learning_phase() if training is None else training
        return _base._in_training(
            training, lambda: nn_ops.dropout(inputs, rate=self.rate, noise_shape=self.noise_shape,
                                             seed=self.seed), lambda: array_ops.identity(inputs))


class SpatialDropout1D(Dropout):
    """Sets random channels of sequences to 0 during training."""

    def call(self, inputs, training=None):
        shape = array_ops.shape(inputs)
        self.noise_shape = array_ops.stack([shape[0], 1, shape[2]])
        return super().call(inputs, training)


class SpatialDropout2D(Dropout):
    """Sets random channels of images to 0 during training."""

    def call(self, inputs, training=None):
        shape = array_ops.shape(inputs)
        self.noise_shape = array_ops.stack([shape[0], 1, 1, shape[3]])
        return super().call(inputs, training)


class GaussianDropout(Layer):
    """Multiplies elements by noise around 1 during training."""

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, inputs, training=None):
        training = K.learning_phase() if training is None else training
        spread = (self.rate / (1.0 - self.rate)) ** 0.5
        return _base._in_training(training, lambda: inputs * K.random_normal(
            array_ops.shape(inputs), mean=1.0, stddev=spread), lambda: array_ops.identity(inputs))


class GaussianNoise(Layer):
    """Adds noise during training."""

    def __init__(self, stddev, **kwargs):
        super().__init__(**kwargs)
        self.stddev = stddev

    def call(self, inputs, training=None):
        training = K.learning_phase() if training is None else training
        return _base._in_training(training, lambda: inputs + K.random_normal(
            array_ops.shape(inputs), stddev=self.stddev), lambda: array_ops.identity(inputs))


class BatchNormalization(Layer):
    """Normalizes over the batch, with moving averages for inference."""

    def __init__(self, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                 beta_initializer="zeros", gamma_initializer="ones",
                 moving_mean_initializer="zeros", moving_variance_initializer="ones",
                 beta_regularizer=None, gamma_regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self._inner = _base.BatchNormalization(
            axis, momentum, epsilon, center, scale, initializers.get(beta_initializer),
            initializers.get(gamma_initializer), initializers.get(moving_mean_initializer),
            initializers.get(moving_variance_initializer), regularizers.get(beta_regularizer),
            regularizers.get(gamma_regularizer))

    def build(self, input_shape):
        inner = self._inner
        inner._dtype = self._dtype
        inner.add_variable = self.add_variable
        inner.add_update = self.add_update
        inner.build(input_shape)
        self.gamma, self.beta = inner.gamma, inner.beta
        self.moving_mean, self.moving_variance = inner.moving_mean, inner.moving_variance
        self.built = True

    def call(self, inputs, training=None):
        training = K.learning_phase() if training is None else training
        return self._inner.call(inputs, training if self.trainable else False)


class LayerNormalization(Layer):
    """Normalizes over the last dimension of each example."""

    def __init__(self, axis=-1, epsilon=1e-3, center=True, scale=True, beta_initializer="zeros",
                 gamma_initializer="ones", **kwargs):
        super().__init__(**kwargs)
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self._beta, self._gamma = beta_initializer, gamma_initializer

    def build(self, input_shape):
        last = _base._known_last(input_shape, "LayerNormalization")
        self.gamma = self.add_weight("gamma", [last], initializer=self._gamma) if self.scale else None
        self.beta = self.add_weight("beta", [last], initializer=self._beta) if self.center else None
        self.built = True

    def call(self, inputs):
        mean, variance = nn_ops.moments(inputs, [-1], keepdims=True)
        return nn_ops.batch_normalization(inputs, mean, variance, self.beta, self.gamma, self.epsilon)


class _Conv(Layer):
    """A convolution, based on the class of tf.layers."""

    _class = None
    _fixed = ()

    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format=None,
                 dilation_rate=1, activation=None, use_bias=True,
                 kernel_initializer="glorot_uniform", bias_initializer="zeros",
                 kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 kernel_constraint=None, bias_constraint=None, **kwargs):
        extra = {key: kwargs.pop(key) for key in self._fixed if key in kwargs}
        super().__init__(activity_regularizer=regularizers.get(activity_regularizer), **kwargs)
        arguments = dict(activation=activations.get(activation), use_bias=use_bias,
                         bias_initializer=initializers.get(bias_initializer),
                         bias_regularizer=regularizers.get(bias_regularizer))
        if type(self)._class is _base.SeparableConv2D:
            arguments.update(extra, depthwise_initializer=initializers.get(kernel_initializer),
                             pointwise_initializer=initializers.get(kernel_initializer))
        else:
            arguments.update(kernel_initializer=initializers.get(kernel_initializer),
                             kernel_regularizer=regularizers.get(kernel_regularizer),
                             kernel_constraint=constraints.get(kernel_constraint),
                             bias_constraint=constraints.get(bias_constraint))
        if not issubclass(type(self)._class, _base._Transpose):
            arguments["dilation_rate"] = dilation_rate
        self._inner = type(self)._class(filters, kernel_size, strides, padding,
                                        data_format or "channels_last", **arguments)

    def build(self, input_shape):
        self._inner._dtype = self._dtype
        self._inner.add_variable = self.add_variable
        self._inner.build(input_shape)
        self.built = True

    def call(self, inputs):
        return self._inner.call(inputs)


def _conv_class(name, cls, fixed=()):
    return type(name, (_Conv,), {"_class": cls, "_fixed": fixed, "__doc__": cls.__doc__})


Conv1D = Convolution1D = _conv_class("Conv1D", _base.Conv1D)
Conv2D = Convolution2D = _conv_class("Conv2D", _base.Conv2D)
Conv3D = Convolution3D = _conv_class("Conv3D", _base.Conv3D)
Conv2DTranspose = Deconvolution2D = _conv_class("Conv2DTranspose", _base.Conv2DTranspose)
Conv3DTranspose = _conv_class("Conv3DTranspose", _base.Conv3DTranspose)
SeparableConv2D = _conv_class("SeparableConv2D", _base.SeparableConv2D, ("depth_multiplier",))


class DepthwiseConv2D(Layer):
    """Convolves each channel separately."""

    def __init__(self, kernel_size, strides=1, padding="valid", depth_multiplier=1, data_format=None,
                 activation=None, use_bias=True, depthwise_initializer="glorot_uniform",
                 bias_initializer="zeros", **kwargs):
        super().__init__(**kwargs)
        self.kernel_size = _base._numbers(kernel_size, 2, "kernel_size")
        self.strides = _base._numbers(strides, 2, "strides")
        self.padding, self.depth_multiplier = padding.upper(), depth_multiplier
        self.activation, self.use_bias = activations.get(activation), use_bias
        self._initializers = depthwise_initializer, bias_initializer

    def build(self, input_shape):
        channels = _base._known_last(input_shape, "DepthwiseConv2D")
        self.kernel = self.add_weight("depthwise_kernel", list(self.kernel_size) + [
            channels, self.depth_multiplier], initializer=self._initializers[0])
        self.bias = self.add_weight("bias", [channels * self.depth_multiplier],
                                    initializer=self._initializers[1]) if self.use_bias else None
        self.built = True

    def call(self, inputs):
        outputs = nn_conv.depthwise_conv2d_native(inputs, self.kernel, [1, *self.strides, 1],
                                                  self.padding)
        return self.activation(outputs if self.bias is None else nn_ops.bias_add(outputs, self.bias))


class _Pooling(Layer):
    """Pooling, based on the class of tf.layers."""

    _class = None
    _size = 2

    def __init__(self, pool_size=2, strides=None, padding="valid", data_format=None, **kwargs):
        super().__init__(**kwargs)
        self._inner = type(self)._class(pool_size, strides, padding, data_format or "channels_last")

    def call(self, inputs):
        return self._inner.call(inputs)


def _pool_class(name, cls):
    return type(name, (_Pooling,), {"_class": cls, "__doc__": cls.__doc__})


MaxPooling1D = MaxPool1D = _pool_class("MaxPooling1D", _base.MaxPooling1D)
MaxPooling2D = MaxPool2D = _pool_class("MaxPooling2D", _base.MaxPooling2D)
MaxPooling3D = MaxPool3D = _pool_class("MaxPooling3D", _base.MaxPooling3D)
AveragePooling1D = AvgPool1D = _pool_class("AveragePooling1D", _base.AveragePooling1D)
AveragePooling2D = AvgPool2D = _pool_class("AveragePooling2D", _base.AveragePooling2D)
AveragePooling3D = AvgPool3D = _pool_class("AveragePooling3D", _base.AveragePooling3D)


def _global_class(name, reduce, axes):
    def call(self, inputs):
        return reduce(inputs, axes)
    return type(name, (Layer,), {"call": call, "__doc__": "%s over all places." % name})


GlobalAveragePooling1D = GlobalAvgPool1D = _global_class(
    "GlobalAveragePooling1D", math_ops.reduce_mean, [1])
GlobalAveragePooling2D = GlobalAvgPool2D = _global_class(
    "GlobalAveragePooling2D", math_ops.reduce_mean, [1, 2])
GlobalMaxPooling1D = GlobalMaxPool1D = _global_class("GlobalMaxPooling1D", math_ops.reduce_max, [1])
GlobalMaxPooling2D = GlobalMaxPool2D = _global_class("GlobalMaxPooling2D", math_ops.reduce_max, [1, 2])


class ZeroPadding2D(Layer):
    """Pads images with zeros."""

    def __init__(self, padding=(1, 1), data_format=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(padding, int):
            padding = (padding, padding)
        self.padding = [[p, p] if isinstance(p, int) else list(p) for p in padding]

    def call(self, inputs):
        return array_ops.pad(inputs, [[0, 0]] + self.padding + [[0, 0]])


class ZeroPadding1D(Layer):
    """Pads sequences with zeros."""

    def __init__(self, padding=1, **kwargs):
        super().__init__(**kwargs)
        self.padding = [padding, padding] if isinstance(padding, int) else list(padding)

    def call(self, inputs):
        return array_ops.pad(inputs, [[0, 0], self.padding, [0, 0]])


class Cropping2D(Layer):
    """Crops the edges of images."""

    def __init__(self, cropping=((0, 0), (0, 0)), data_format=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(cropping, int):
            cropping = (cropping, cropping)
        self.cropping = [[c, c] if isinstance(c, int) else list(c) for c in cropping]

    def call(self, inputs):
        (top, bottom), (left, right) = self.cropping
        return inputs[:, top:-bottom or None, left:-right or None]


class Cropping1D(Layer):
    """Crops the ends of sequences."""

    def __init__(self, cropping=(1, 1), **kwargs):
        super().__init__(**kwargs)
        self.cropping = (cropping, cropping) if isinstance(cropping, int) else tuple(cropping)

    def call(self, inputs):
        first, last = self.cropping
        return inputs[:, first:-last or None]


class UpSampling1D(Layer):
    """Repeats each time step of sequences."""

    def __init__(self, size=2, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def call(self, inputs):
        return array_ops.repeat(inputs, self.size, axis=1)


class UpSampling2D(Layer):
    """Enlarges images."""

    def __init__(self, size=(2, 2), data_format=None, interpolation="nearest", **kwargs):
        super().__init__(**kwargs)
        self.size = _base._numbers(size, 2, "size")
        self.interpolation = interpolation

    def call(self, inputs):
        op = raw_ops.ResizeBilinear if self.interpolation == "bilinear" else \
            raw_ops.ResizeNearestNeighbor
        dims = inputs.shape.as_list()
        sizes = array_ops.shape(inputs)[1:3] * convert_to_tensor(list(self.size))
        outputs = op(images=inputs, size=sizes)
        outputs.set_shape([dims[0]] + [None if d is None else d * s
                                       for d, s in zip(dims[1:3], self.size)] + [dims[3]])
        return outputs


class Embedding(Layer):
    """Looks up rows of a table by index."""

    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform",
                 embeddings_regularizer=None, mask_zero=False, input_length=None, **kwargs):
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = tuple(input_length) if isinstance(input_length, (list, tuple)) else (input_length,)
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = input_dim, output_dim
        self._made = embeddings_initializer, embeddings_regularizer
        self._dtype = dtypes.as_dtype(K.floatx())

    def build(self, input_shape):
        self.embeddings = self.add_weight("embeddings", [self.input_dim, self.output_dim],
                                          initializer=self._made[0], regularizer=self._made[1])
        self.built = True

    def call(self, inputs):
        from runnel.nn.embedding_ops import embedding_lookup
        if inputs.dtype not in (dtypes.int32, dtypes.int64):
            inputs = math_ops.cast(inputs, dtypes.int32)
        return embedding_lookup(self.embeddings, inputs)


# Several inputs


class _Merge(Layer):
    """A function of a list of tensors."""

    def call(self, inputs):
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError("A merge layer should be called on a list of at least 2 inputs.")
        return self._merge(list(inputs))


def _folded(name, fn):
    def _merge(self, inputs):
        result = inputs[0]
        for x in inputs[1:]:
            result = fn(result, x)
        return result
    return type(name, (_Merge,), {"_merge": _merge, "__doc__": "%s of tensors." % name})


Add = _folded("Add", lambda a, b: a + b)
Subtract = _folded("Subtract", lambda a, b: a - b)
Multiply = _folded("Multiply", lambda a, b: a * b)
Maximum = _folded("Maximum", lambda a, b: raw_ops.Maximum(x=a, y=b))
Minimum = _folded("Minimum", lambda a, b: raw_ops.Minimum(x=a, y=b))


class Average(_Merge):
    """Averages tensors."""

    def _merge(self, inputs):
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return total / len(inputs)


class Concatenate(_Merge):
    """Concatenates tensors."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def _merge(self, inputs):
        return array_ops.concat(inputs, self.axis)


class Dot(_Merge):
    """Multiplies two tensors along axes."""

    def __init__(self, axes, normalize=False, **kwargs):
        super().__init__(**kwargs)
        self.axes, self.normalize = axes, normalize

    def _merge(self, inputs):
        a, b = inputs
        axes = [self.axes, self.axes] if isinstance(self.axes, int) else list(self.axes)
        if self.normalize:
            a, b = nn_ops.l2_normalize(a, axes[0]), nn_ops.l2_normalize(b, axes[1])
        if a.shape.ndims == 2 and b.shape.ndims == 2:
            return math_ops.reduce_sum(a * b, 1, keepdims=True)
        last = a.shape.ndims - 1
        return math_ops.matmul(a, b, transpose_a=axes[0] % a.shape.ndims != last,
                               transpose_b=axes[1] % b.shape.ndims == b.shape.ndims - 1)


def add(inputs, **kwargs):
    """Returns the sum of tensors."""
    return Add(**kwargs)(inputs)


def minimum(inputs, **kwargs):
    """Returns the element-wise minimum of tensors."""
    return Minimum(**kwargs)(inputs)


def subtract(inputs, **kwargs):
    """Returns the difference of two tensors."""
    return Subtract(**kwargs)(inputs)


def multiply(inputs, **kwargs):
    """Returns the product of tensors."""
    return Multiply(**kwargs)(inputs)


def average(inputs, **kwargs):
    """Returns the average of tensors."""
    return Average(**kwargs)(inputs)


def maximum(inputs, **kwargs):
    """Returns the element-wise maximum of tensors."""
    return Maximum(**kwargs)(inputs)


def concatenate(inputs, axis=-1, **kwargs):
    """Concatenates tensors along an axis."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs, axes, normalize=False, **kwargs):
    """Multiplies two tensors along axes."""
    return Dot(axes, normalize, **kwargs)(inputs)


# Activations as layers


class ReLU(Layer):
    """Computes max(x, 0), limited to max_value."""

    def __init__(self, max_value=None, negative_slope=0, threshold=0, **kwargs):
        super().__init__(**kwargs)
        self.max_value, self.negative_slope = max_value, negative_slope

    def call(self, inputs):
        return activations.relu(inputs, self.negative_slope, self.max_value)


class LeakyReLU(Layer):
    """Computes x, and alpha * x where x is negative."""

    def __init__(self, alpha=0.3, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs):
        return nn_ops.leaky_relu(inputs, self.alpha)


class PReLU(Layer):
    """Like LeakyReLU, with alphas that are trained."""

    def __init__(self, alpha_initializer="zeros", shared_axes=None, **kwargs):
        super().__init__(**kwargs)
        self.shared_axes, self._made = shared_axes or [], alpha_initializer

    def build(self, input_shape):
        dims = list(input_shape.as_list()[1:])
        for axis in self.shared_axes:
            dims[axis - 1] = 1
        self.alpha = self.add_weight("alpha", dims, initializer=self._made)
        self.built = True

    def call(self, inputs):
        return nn_ops.relu(inputs) - self.alpha * nn_ops.relu(-inputs)


class ELU(Layer):
    """Computes x, and alpha * (exp(x) - 1) where x is negative."""

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs):
        return activations.elu(inputs, self.alpha)


class ThresholdedReLU(Layer):
    """Computes x above a threshold, and 0 below."""

    def __init__(self, theta=1.0, **kwargs):
        super().__init__(**kwargs)
        self.theta = theta

    def call(self, inputs):
        return inputs * math_ops.cast(inputs > self.theta, inputs.dtype)


class Softmax(Layer):
    """Computes the softmax along an axis."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        return nn_ops.softmax(inputs, self.axis)


class DenseFeatures(Layer):
    """Concatenates dense feature columns of a dict of features."""

    def __init__(self, feature_columns, **kwargs):
        super().__init__(**kwargs)
        from runnel.feature_column import feature_columns as feature_column
        self._columns, self._tables = feature_column.dense_columns(feature_columns), {}

    def call(self, features):
        from runnel.feature_column import feature_columns as feature_column
        outputs, made = feature_column.dense_features(features, self._columns, self._tables)
        self._adopt(made)
        return outputs


def __getattr__(name):
    if name in ("SimpleRNN", "GRU", "LSTM", "Bidirectional", "TimeDistributed"):
        from runnel.keras import recurrent
        return getattr(recurrent, name)
    if name == "Wrapper":
        from runnel.keras.wrappers import Wrapper
        return Wrapper
    raise AttributeError("tf.keras.layers has no %r: see doc/python_names.md" % name)


def deserialize(config, custom_objects=None):
    """Returns the layer of a config {"class_name": ..., "config": {...}}."""
    from runnel.keras import custom_objects as known
    name = config["class_name"]
    cls = known.get_registered_object(name, custom_objects, globals()) or __getattr__(name)
    with known.custom_object_scope(custom_objects):
        return cls.from_config(config["config"])


def serialize(layer):
    """Returns the config {"class_name": ..., "config": {...}} of a layer."""
    from runnel.keras.custom_objects import serialize_keras_object
    return serialize_keras_object(layer)

