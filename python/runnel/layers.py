"""tf.layers: layers as objects that own variables, and as functions that make one and call it."""

import re

from runnel import array_ops, dtypes, math_ops, nn_conv, nn_ops, raw_ops, tensor_shape
from runnel.convert import convert_to_tensor
from runnel.framework import (GraphKeys, Tensor, add_to_collection, add_to_collections,
                              get_default_graph, name_scope)


def _snake_case(name):
    middle = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", middle).lower()


class InputSpec:
    """What a layer's input must be."""

    def __init__(self, dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None):
        self.dtype, self.ndim = dtype, len(shape) if shape is not None else ndim
        self.shape, self.max_ndim, self.min_ndim, self.axes = shape, max_ndim, min_ndim, axes or {}

    def check(self, x, layer):
        rank = x.shape.ndims
        if rank is None:
            if self.ndim is not None or self.min_ndim is not None:
                raise ValueError("Input 0 of layer %s is incompatible with the layer: its rank is "
                                 "undefined, but the layer requires a defined rank." % layer)
            return
        if self.ndim is not None and rank != self.ndim or self.min_ndim is not None \
                and rank < self.min_ndim or self.max_ndim is not None and rank > self.max_ndim:
            wanted = ("ndim=%s" % self.ndim if self.ndim is not None else
                      "min_ndim=%s" % self.min_ndim if self.min_ndim is not None
                      else "max_ndim=%s" % self.max_ndim)
            raise ValueError("Input 0 of layer %s is incompatible with the layer: expected %s, found "
                             "ndim=%s. Full shape received: %s" % (layer, wanted, rank,
                                                                   x.shape.as_list()))
        dims = x.shape.as_list()
        for axis, value in self.axes.items():
            if value is not None and dims[axis] not in (None, int(value)):
                raise ValueError("Input 0 of layer %s is incompatible with the layer: expected axis "
                                 "%s of input shape to have value %s but received input with shape "
                                 "%s" % (layer, axis, value, dims))


class Layer:
    """The base of layers: a subclass adds variables in `build` and computes in `call`."""

    def __init__(self, trainable=True, name=None, dtype=None, **kwargs):
        scope, self._reuse = kwargs.pop("_scope", None), kwargs.pop("_reuse", None)
        for ignored in ("activity_regularizer", "input_shape", "batch_input_shape"):
            setattr(self, "_" + ignored, kwargs.pop(ignored, None))
        if kwargs:
            raise TypeError("Keyword argument not understood: %s" % sorted(kwargs)[0])
        self.trainable = trainable
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self.built = False
        self.input_spec = None
        self.stateful = False
        self._variables = []
        self._trainable_variables = []
        self._updates = []
        self._losses = []
        self._graph = get_default_graph()
        self._base_name = name or _snake_case(type(self).__name__)
        self._name = name
        self._scope = None
        if scope:
            from runnel.variable_scopes import variable_scope
            with variable_scope(scope) as captured:
                self._scope = captured

    @property
    def name(self):
        return self._name or (self._scope.name if self._scope is not None else self._base_name)

    @property
    def dtype(self):
        return None if self._dtype is None else self._dtype.name

    @property
    def graph(self):
        return self._graph

    @property
    def scope_name(self):
        if self._scope is None:
            raise ValueError("No name available for layer scope because the layer \"%s\" has not been "
                             "used yet." % self._base_name)
        return self._scope.name

    @property
    def trainable_variables(self):
        return list(self._trainable_variables) if self.trainable else []

    @property
    def non_trainable_variables(self):
        if not self.trainable:
            return list(self._variables)
        return [v for v in self._variables if v not in self._trainable_variables]

    @property
    def variables(self):
        return self.trainable_variables + self.non_trainable_variables

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    @property
    def updates(self):
        return list(self._updates)

    @property
    def losses(self):
        return list(self._losses)

    def build(self, input_shape):
        """Adds the variables. Subclasses may leave it out."""
        self.built = True

    def call(self, inputs, **kwargs):
        return inputs

    def add_variable(self, name, shape, dtype=None, initializer=None, regularizer=None,
                     trainable=True, constraint=None, partitioner=None, use_resource=None, **_):
        """A variable of the layer's scope."""
        from runnel.variable_scopes import get_variable
        variable = get_variable(
            name, shape=shape, dtype=dtypes.as_dtype(dtype or self._dtype or dtypes.float32),
            initializer=initializer, constraint=constraint, partitioner=partitioner,
            use_resource=use_resource, trainable=trainable and self.trainable,
            regularizer=regularizer)
        self._variables.append(variable)
        if trainable:
            self._trainable_variables.append(variable)
        return variable

    add_weight = add_variable

    def add_update(self, updates, inputs=None):
        """Operations that are to run with training steps."""
        updates = updates if isinstance(updates, (list, tuple)) else [updates]
        self._updates.extend(updates)
        for update in updates:
            add_to_collections([GraphKeys.UPDATE_OPS], update)

    def add_loss(self, losses, inputs=None):
        """Losses that are to be added to a model's."""
        losses = losses if isinstance(losses, (list, tuple)) else [losses]
        self._losses.extend(losses)
        for loss in losses:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def _enter(self, scope):
        from runnel.variable_scopes import variable_scope
        if self._scope is None:
            if self._reuse:
                with variable_scope(scope if scope is not None else self._base_name) as captured:
                    self._scope = captured
            else:
                with variable_scope(scope, default_name=self._base_name) as captured:
                    self._scope = captured
        reuse = True if self.built else self._reuse
        return variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False)

    def __call__(self, inputs, *args, **kwargs):
        scope = kwargs.pop("scope", None)
        from runnel import nest
        with self._enter(scope) as current:
            with name_scope(current.original_name_scope):
                flat = [x if not hasattr(x, "__array__") and not isinstance(x, (int, float, list))
                        else convert_to_tensor(x) for x in nest.flatten(inputs)]
                if flat and not nest.is_nested(inputs):
                    inputs = convert_to_tensor(flat[0]) if not isinstance(flat[0], Tensor) else flat[0]
                    if self.input_spec is not None:
                        self.input_spec.check(inputs, self.name)
                first = flat[0] if flat else None
                if self._dtype is None and isinstance(first, Tensor):
                    self._dtype = first.dtype.base_dtype
                if not self.built:
                    self.build(self._shapes(inputs))
                    self.built = True
                    if self.input_spec is not None and isinstance(inputs, Tensor):
                        self.input_spec.check(inputs, self.name)
                outputs = self.call(inputs, *args, **kwargs)
        if self._activity_regularizer is not None:
            for output in nest.flatten(outputs):
                self.add_loss(self._activity_regularizer(output))
        return outputs

    def _shapes(self, inputs):
        from runnel import nest
        if not nest.is_nested(inputs):
            return inputs.shape
        return nest.map_structure(lambda x: x.shape, inputs)

    def apply(self, inputs, *args, **kwargs):
        return self(inputs, *args, **kwargs)

    def compute_output_shape(self, input_shape):
        raise NotImplementedError

    def count_params(self):
        """How many numbers the variables hold."""
        return sum(v.shape.num_elements() for v in self._variables)


def _known_last(shape, layer, axis=-1):
    shape = tensor_shape.as_shape(shape)
    if shape.dims is None or shape.as_list()[axis] is None:
        raise ValueError("The %s dimension of the inputs to `%s` should be defined. Found `None`." % (
            "last" if axis == -1 else "channel", layer))
    return shape.as_list()[axis]


def _product(inputs, kernel, units):
    """inputs kernel, along the last dimension."""
    rank = inputs.shape.ndims
    if rank is not None and rank <= 2:
        return raw_ops.MatMul(a=inputs, b=kernel)
    outputs = math_ops.tensordot(inputs, kernel, [[rank - 1], [0]])
    outputs.set_shape(inputs.shape.as_list()[:-1] + [units])
    return outputs


class Dense(Layer):
    """activation(inputs kernel + bias)."""

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


def _zeros(initializer):
    if initializer is not None:
        return initializer
    from runnel.init_ops import zeros_initializer
    return zeros_initializer()


def _ones(initializer):
    if initializer is not None:
        return initializer
    from runnel.init_ops import ones_initializer
    return ones_initializer()


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
    """A convolution of one, two or three dimensions."""

    _spatial = 2
    _transposed = False

    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format="channels_last",
                 dilation_rate=1, activation=None, use_bias=True, kernel_initializer=None,
                 bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
                 activity_regularizer=None, kernel_constraint=None, bias_constraint=None,
                 trainable=True, name=None, **kwargs):
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        count = self._spatial
        self.filters = filters
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
    """A convolution of sequences."""

    _spatial = 1


class Conv2D(_Conv):
    """A convolution of images."""

    def __init__(self, filters, kernel_size, strides=(1, 1), padding="valid",
                 data_format="channels_last", dilation_rate=(1, 1), *args, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, *args,
                         **kwargs)


class Conv3D(_Conv):
    """A convolution of volumes."""

    _spatial = 3

    def __init__(self, filters, kernel_size, strides=(1, 1, 1), padding="valid",
                 data_format="channels_last", dilation_rate=(1, 1, 1), *args, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, *args,
                         **kwargs)


class _Transpose(_Conv):
    """The transpose of a convolution."""

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
    """The transpose of a convolution of images."""


class Conv3DTranspose(_Transpose):
    """The transpose of a convolution of volumes."""

    _spatial = 3


class SeparableConv2D(_Conv):
    """A convolution of each channel by itself, then one over the channels."""

    def __init__(self, filters, kernel_size, strides=(1, 1), padding="valid",
                 data_format="channels_last", dilation_rate=(1, 1), depth_multiplier=1,
                 activation=None, use_bias=True, depthwise_initializer=None,
                 pointwise_initializer=None, bias_initializer=None, depthwise_regularizer=None,
                 pointwise_regularizer=None, bias_regularizer=None, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
                         use_bias, bias_initializer=bias_initializer,
                         bias_regularizer=bias_regularizer, **kwargs)
        self.depth_multiplier = depth_multiplier
        self._depthwise = depthwise_initializer, depthwise_regularizer
        self._pointwise = pointwise_initializer, pointwise_regularizer

    def build(self, input_shape):
        channels = _known_last(input_shape, "SeparableConv2D", 1 if self._first else -1)
        self.depthwise_kernel = self.add_variable(
            "depthwise_kernel", list(self.kernel_size) + [channels, self.depth_multiplier],
            self._dtype, *self._depthwise)
        self.pointwise_kernel = self.add_variable(
            "pointwise_kernel", [1, 1, self.depth_multiplier * channels, self.filters], self._dtype,
            *self._pointwise)
        self._build_bias()
        self.built = True

    def call(self, inputs):
        steps = list(self.strides)
        strides = [1, 1] + steps if self._first else [1] + steps + [1]
        outputs = nn_conv.separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel, strides, self.padding,
            rate=self.dilation_rate, data_format=_op_format(self._first, 2))
        return self._finish(outputs)


class _Pool(Layer):
    """Pooling."""

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
        return type(self)._fn(inputs, list(self.pool_size), list(self.strides), self.padding,
                              data_format=_op_format(self._first, self._spatial))


def _pool_class(name, spatial, fn):
    return type(name, (_Pool,), {"_spatial": spatial, "_fn": staticmethod(fn),
                                 "__doc__": "%s over windows." % name, "__module__": __name__})


MaxPooling1D = _pool_class("MaxPooling1D", 1, nn_conv.max_pool1d)
MaxPooling2D = _pool_class("MaxPooling2D", 2, nn_conv.max_pool)
MaxPooling3D = _pool_class("MaxPooling3D", 3, nn_conv.max_pool3d)
AveragePooling1D = _pool_class("AveragePooling1D", 1, nn_conv.avg_pool1d)
AveragePooling2D = _pool_class("AveragePooling2D", 2, nn_conv.avg_pool)
AveragePooling3D = _pool_class("AveragePooling3D", 3, nn_conv.avg_pool3d)


class Dropout(Layer):
    """Elements set to 0 at random, in training."""

    def __init__(self, rate=0.5, noise_shape=None, seed=None, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs, training=False):
        def dropped():
            return nn_ops.dropout(inputs, rate=self.rate, noise_shape=self.noise_shape,
                                  seed=self.seed)
        return _in_training(training, dropped, lambda: array_ops.identity(inputs))


def _in_training(training, yes, no):
    from runnel.control_flow import smart_cond
    if isinstance(training, int):
        training = bool(training)
    return smart_cond(training, yes, no)


class Flatten(Layer):
    """Examples as rows."""

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


class BatchNormalization(Layer):
    """Normalisation over the batch, with moving averages for inference.

    The updates of the averages are in tf.GraphKeys.UPDATE_OPS.
    """

    def __init__(self, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                 beta_initializer=None, gamma_initializer=None, moving_mean_initializer=None,
                 moving_variance_initializer=None, beta_regularizer=None, gamma_regularizer=None,
                 beta_constraint=None, gamma_constraint=None, renorm=False, renorm_clipping=None,
                 renorm_momentum=0.99, fused=None, trainable=True, virtual_batch_size=None,
                 adjustment=None, name=None, **kwargs):
        super().__init__(trainable, name, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise NotImplementedError("tf.layers.BatchNormalization: renorm, virtual_batch_size and "
                                      "adjustment are not supported")
        self.axis, self.momentum, self.epsilon = axis, momentum, epsilon
        self.center, self.scale, self.fused = center, scale, fused
        self._betas = beta_initializer, beta_regularizer, beta_constraint
        self._gammas = gamma_initializer, gamma_regularizer, gamma_constraint
        self._moving = moving_mean_initializer, moving_variance_initializer

    def build(self, input_shape):
        shape = tensor_shape.as_shape(input_shape)
        if shape.dims is None:
            raise ValueError("Input has undefined rank.")
        rank = len(shape.dims)
        axis = self.axis[0] if isinstance(self.axis, (list, tuple)) else self.axis
        if not -rank <= axis < rank:
            raise ValueError("Invalid axis: %s" % (self.axis,))
        self._axis = axis % rank
        size = shape.as_list()[self._axis]
        if size is None:
            raise ValueError("Input has undefined `axis` dimension. Received input with shape %s." %
                             shape)
        self.input_spec = InputSpec(ndim=rank, axes={self._axis: size})
        if self.fused is None or self.fused:
            can = rank == 4 and self._axis in (1, 3)
            if self.fused and not can:
                raise ValueError("Batch normalization layers with fused=True only support 4D inputs "
                                 "and axis 1 or 3")
            self.fused = can
        kind = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else self._dtype
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_variable("gamma", [size], kind, _ones(self._gammas[0]),
                                           self._gammas[1], constraint=self._gammas[2])
        if self.center:
            self.beta = self.add_variable("beta", [size], kind, _zeros(self._betas[0]),
                                          self._betas[1], constraint=self._betas[2])
        self.moving_mean = self.add_variable("moving_mean", [size], kind, _zeros(self._moving[0]),
                                             trainable=False)
        self.moving_variance = self.add_variable("moving_variance", [size], kind,
                                                 _ones(self._moving[1]), trainable=False)
        self._size = size
        self.built = True

    def call(self, inputs, training=False):
        if isinstance(training, int):
            training = bool(training)
        return self._fused_call(inputs, training) if self.fused else self._plain_call(inputs, training)

    def _fused_call(self, inputs, training):
        kind = self.moving_mean.dtype.base_dtype
        scale = self.gamma if self.scale else array_ops.ones([self._size], kind)
        offset = self.beta if self.center else array_ops.zeros([self._size], kind)
        data_format = "NHWC" if self._axis == 3 else "NCHW"

        def train():
            return nn_ops.fused_batch_norm(inputs, scale, offset, epsilon=self.epsilon,
                                           data_format=data_format)

        def infer():
            return nn_ops.fused_batch_norm(inputs, scale, offset, mean=self.moving_mean,
                                           variance=self.moving_variance, epsilon=self.epsilon,
                                           is_training=False, data_format=data_format)
        output, mean, variance = _in_training(training, train, infer)
        if training is not False:
            self._update(mean, variance, training)
        return output

    def _plain_call(self, inputs, training):
        rank = inputs.shape.ndims
        axes = [i for i in range(rank) if i != self._axis]
        broad = [1] * rank
        broad[self._axis] = self._size
        mean, variance = self.moving_mean, self.moving_variance
        if training is not False:
            batch = nn_ops.moments(inputs, axes)
            mean, variance = _in_training(
                training, lambda: batch,
                lambda: (convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)))
            self._update(mean, variance, training)

        def shaped(x):
            if x is None or self._axis == rank - 1:
                return x
            return array_ops.reshape(x, broad)
        return nn_ops.batch_normalization(inputs, shaped(mean), shaped(variance), shaped(self.beta),
                                          shaped(self.gamma), self.epsilon)

    def _update(self, mean, variance, training):
        """The averages move where the step trains."""
        def decay():
            return _in_training(training, lambda: convert_to_tensor(1 - self.momentum, mean.dtype),
                                lambda: convert_to_tensor(0.0, mean.dtype))
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            with name_scope(None, "AssignMovingAvg", [variable, value]) as scope:
                delta = (convert_to_tensor(variable) - math_ops.cast(value, variable.dtype.base_dtype)
                         ) * math_ops.cast(decay(), variable.dtype.base_dtype)
                self.add_update(variable.assign_sub(delta, name=scope))


# Layers as functions


def dense(inputs, units, activation=None, use_bias=True, kernel_initializer=None,
          bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
          activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True,
          name=None, reuse=None):
    """activation(inputs kernel + bias), with new variables, or those of `name` with `reuse`.

    Args:
      inputs: a tensor of at least two dimensions.
      units: how many outputs.
      activation: a function of tensors; None: none.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: of the variables.
      kernel_regularizer, bias_regularizer: functions whose values go to the regularization losses.
      trainable: whether optimizers change the variables.
      name: of the layer, and of the scope of its variables.
      reuse: whether the variables of that name are used again.
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
    function.__name__ = function.__qualname__ = name
    function.__doc__ = cls.__doc__
    return function


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
    function.__name__ = function.__qualname__ = name
    function.__doc__ = cls.__doc__
    return function


conv2d_transpose = _transpose_function(Conv2DTranspose, (1, 1), "conv2d_transpose")
conv3d_transpose = _transpose_function(Conv3DTranspose, (1, 1, 1), "conv3d_transpose")


def separable_conv2d(inputs, filters, kernel_size, strides=(1, 1), padding="valid",
                     data_format="channels_last", dilation_rate=(1, 1), depth_multiplier=1,
                     activation=None, use_bias=True, depthwise_initializer=None,
                     pointwise_initializer=None, bias_initializer=None, depthwise_regularizer=None,
                     pointwise_regularizer=None, bias_regularizer=None, trainable=True, name=None,
                     reuse=None, **kwargs):
    """A convolution of each channel by itself, then one over the channels."""
    return SeparableConv2D(filters, kernel_size, strides, padding, data_format, dilation_rate,
                           depth_multiplier, activation, use_bias, depthwise_initializer,
                           pointwise_initializer, bias_initializer, depthwise_regularizer,
                           pointwise_regularizer, bias_regularizer, trainable=trainable, name=name,
                           _scope=name, _reuse=reuse).apply(inputs)


def _pool_function(cls, name):
    def function(inputs, pool_size, strides, padding="valid", data_format="channels_last", name=None):
        return cls(pool_size, strides, padding, data_format, name).apply(inputs)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = cls.__doc__
    return function


max_pooling1d = _pool_function(MaxPooling1D, "max_pooling1d")
max_pooling2d = _pool_function(MaxPooling2D, "max_pooling2d")
max_pooling3d = _pool_function(MaxPooling3D, "max_pooling3d")
average_pooling1d = _pool_function(AveragePooling1D, "average_pooling1d")
average_pooling2d = _pool_function(AveragePooling2D, "average_pooling2d")
average_pooling3d = _pool_function(AveragePooling3D, "average_pooling3d")


def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None):
    """Elements set to 0 at random if `training`."""
    return Dropout(rate, noise_shape, seed, name).apply(inputs, training=training)


def flatten(inputs, name=None, data_format="channels_last"):
    """Examples as rows."""
    return Flatten(data_format, name).apply(inputs)


def batch_normalization(inputs, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                        beta_initializer=None, gamma_initializer=None, moving_mean_initializer=None,
                        moving_variance_initializer=None, beta_regularizer=None,
                        gamma_regularizer=None, beta_constraint=None, gamma_constraint=None,
                        training=False, trainable=True, name=None, reuse=None, renorm=False,
                        renorm_clipping=None, renorm_momentum=0.99, fused=None,
                        virtual_batch_size=None, adjustment=None):
    """Normalisation over the batch; see BatchNormalization."""
    return BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer,
        moving_mean_initializer, moving_variance_initializer, beta_regularizer, gamma_regularizer,
        beta_constraint, gamma_constraint, renorm, renorm_clipping, renorm_momentum, fused, trainable,
        virtual_batch_size, adjustment, name, _reuse=reuse, _scope=name).apply(inputs,
                                                                               training=training)

