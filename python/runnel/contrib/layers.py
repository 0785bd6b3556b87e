"""tf.contrib.layers: layers with slim's names, defaults and argument scopes."""

import functools

from runnel import nn, raw_ops
from runnel.contrib.arg_scope import add_arg_scope
from runnel.contrib.image_layers import (
    convolution2d_in_plane, images_to_sequence, pool, sequence_to_images, spatial_softmax)
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.layers import core
from runnel.ops import array_ops, init_ops, math_ops
from runnel.ops.variable_scopes import get_variable, variable_scope
from runnel.contrib.initializers import *
from runnel.contrib.layer_util import (
    add_variable, channels_of, collect_named_outputs, finish, get_variable_collections, last_dimension, layer_scope,
    two_element_tuple)
from runnel.contrib.model_variables import model_variable
from runnel.contrib.normalization import batch_norm, group_norm, instance_norm, layer_norm
from runnel.contrib.optimizers import OPTIMIZER_CLS_NAMES, OPTIMIZER_SUMMARIES, adaptive_clipping_fn, optimize_loss
from runnel.contrib.summaries import (
    summarize_activation, summarize_activations, summarize_collection, summarize_tensor, summarize_tensors)
from runnel.core.naming import named

_xavier = xavier_initializer()
_zeros = init_ops.zeros_initializer()


def _collect(layer, variables_collections):
    add_variable(layer.kernel, variables_collections, "weights")
    if layer.bias is not None:
        add_variable(layer.bias, variables_collections, "biases")


@add_arg_scope
def fully_connected(inputs, num_outputs, activation_fn=nn.relu, normalizer_fn=None, normalizer_params=None,
                    weights_initializer=_xavier, weights_regularizer=None, biases_initializer=_zeros,
                    biases_regularizer=None, reuse=None, variables_collections=None,
                    outputs_collections=None, trainable=True, scope=None):
    """Applies activation(normalize(inputs @ weights) + biases); there are biases only without a normalizer."""
    if not isinstance(num_outputs, int):
        raise ValueError("num_outputs type should be one of %s, got %s." % ((int,), type(num_outputs)))
    with layer_scope(scope, "fully_connected", inputs, reuse, kernel="weights", bias="biases") as sc:
        inputs = convert_to_tensor(inputs)
        layer = core.Dense(num_outputs, None, not normalizer_fn and bool(biases_initializer),
                           weights_initializer, biases_initializer, weights_regularizer,
                           biases_regularizer, trainable=trainable, name=sc.name,
                           dtype=inputs.dtype.base_dtype, _scope=sc, _reuse=reuse)
        outputs = layer.apply(inputs)
        _collect(layer, variables_collections)
        return finish(outputs, sc.name, normalizer_fn, normalizer_params, activation_fn,
                       outputs_collections)


@add_arg_scope
def convolution(inputs, num_outputs, kernel_size, stride=1, padding="SAME", data_format=None, rate=1,
                activation_fn=nn.relu, normalizer_fn=None, normalizer_params=None,
                weights_initializer=_xavier, weights_regularizer=None, biases_initializer=_zeros,
                biases_regularizer=None, reuse=None, variables_collections=None, outputs_collections=None,
                trainable=True, scope=None, conv_dims=None):
    """Convolves over the dimensions between batch and channels."""
    channels = channels_of(data_format, "NCHW NHWC NWC NCW NDHWC NCDHW")
    with layer_scope(scope, "Conv", inputs, reuse, kernel="weights", bias="biases") as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if conv_dims is not None and conv_dims + 2 != rank:
            raise ValueError("Convolution expects input with rank %d, got %s" % (conv_dims + 2, rank))
        if rank not in (3, 4, 5):
            raise ValueError("Convolution not supported for input with rank", rank)
        layer = (core.Conv1D, core.Conv2D, core.Conv3D)[rank - 3](
            num_outputs, kernel_size, stride, padding, channels, rate, None,
            not normalizer_fn and bool(biases_initializer), weights_initializer, biases_initializer,
            weights_regularizer, biases_regularizer, trainable=trainable, name=sc.name,
            dtype=inputs.dtype.base_dtype, _scope=sc, _reuse=reuse)
        outputs = layer.apply(inputs)
        _collect(layer, variables_collections)
        return finish(outputs, sc.name, normalizer_fn, normalizer_params, activation_fn,
                       outputs_collections)


def _convolution(dims, name):
    @functools.wraps(convolution.__wrapped__)
    def function(*args, **kwargs):
        return convolution(*args, conv_dims=dims, **kwargs)
    return add_arg_scope(named(function, name, convolution.__doc__))


convolution1d = conv1d = _convolution(1, "convolution1d")
convolution2d = conv2d = _convolution(2, "convolution2d")
convolution3d = conv3d = _convolution(3, "convolution3d")


def _transposed(layer_type, default_scope, formats, name):
    def function(inputs, num_outputs, kernel_size, stride=1, padding="SAME", data_format=None,
                 activation_fn=nn.relu, normalizer_fn=None, normalizer_params=None,
                 weights_initializer=_xavier, weights_regularizer=None, biases_initializer=_zeros,
                 biases_regularizer=None, reuse=None, variables_collections=None,
                 outputs_collections=None, trainable=True, scope=None):
        channels = channels_of(data_format, formats)
        with layer_scope(scope, default_scope, inputs, reuse, kernel="weights", bias="biases") as sc:
            inputs = convert_to_tensor(inputs)
            layer = layer_type(num_outputs, kernel_size, stride, padding, channels, None,
                               not normalizer_fn and biases_initializer is not None, weights_initializer,
                               biases_initializer, weights_regularizer, biases_regularizer,
                               trainable=trainable, name=sc.name, dtype=inputs.dtype.base_dtype,
                               _scope=sc, _reuse=reuse)
            outputs = layer.apply(inputs)
            _collect(layer, variables_collections)
            return finish(outputs, sc.name, normalizer_fn, normalizer_params, activation_fn,
                           outputs_collections)
    return add_arg_scope(named(function, name, "A transposed convolution as a layer: it enlarges images."))


convolution2d_transpose = conv2d_transpose = _transposed(
    core.Conv2DTranspose, "Conv2d_transpose", "NCHW NHWC", "convolution2d_transpose")
convolution3d_transpose = conv3d_transpose = _transposed(
    core.Conv3DTranspose, "Conv3d_transpose", "NCDHW NDHWC", "convolution3d_transpose")


@add_arg_scope
def separable_convolution2d(inputs, num_outputs, kernel_size, depth_multiplier=1, stride=1,
                            padding="SAME", data_format="NHWC", rate=1, activation_fn=nn.relu,
                            normalizer_fn=None, normalizer_params=None, weights_initializer=_xavier,
                            pointwise_initializer=None, weights_regularizer=None,
                            biases_initializer=_zeros, biases_regularizer=None, reuse=None,
                            variables_collections=None, outputs_collections=None, trainable=True,
                            scope=None):
    """Convolves each channel separately, then over the channels unless `num_outputs` is None."""
    channels = channels_of(data_format)
    with layer_scope(scope, "SeparableConv2d", inputs, reuse, depthwise_kernel="depthwise_weights",
                     pointwise_kernel="pointwise_weights", bias="biases") as sc:
        inputs = convert_to_tensor(inputs)
        if num_outputs is not None:
            layer = core.SeparableConv2D(
                num_outputs, kernel_size, stride, padding, channels, two_element_tuple(rate),
                depth_multiplier, None, not normalizer_fn and bool(biases_initializer),
                weights_initializer, pointwise_initializer or weights_initializer, biases_initializer,
                weights_regularizer, weights_regularizer, biases_regularizer, trainable=trainable,
                name=sc.name, dtype=inputs.dtype.base_dtype, _scope=sc, _reuse=reuse)
            outputs = layer.apply(inputs)
            add_variable(layer.depthwise_kernel, variables_collections, "weights")
            add_variable(layer.pointwise_kernel, variables_collections, "weights")
            if layer.bias is not None:
                add_variable(layer.bias, variables_collections, "biases")
        else:
            outputs = _depthwise(inputs, kernel_size, depth_multiplier, stride, padding, data_format, rate,
                                 normalizer_fn, weights_initializer, weights_regularizer,
                                 biases_initializer, biases_regularizer, variables_collections, trainable)
        return finish(outputs, sc.name, normalizer_fn, normalizer_params, activation_fn,
                       outputs_collections)


def _depthwise(inputs, kernel_size, depth_multiplier, stride, padding, data_format, rate, normalizer_fn,
               weights_initializer, weights_regularizer, biases_initializer, biases_regularizer,
               variables_collections, trainable):
    is_first = data_format.startswith("NC")
    dtype, count = inputs.dtype.base_dtype, inputs.shape.as_list()[1 if is_first else -1]
    strides = list(two_element_tuple(stride))
    weights = model_variable(
        "depthwise_weights", [*two_element_tuple(kernel_size), count, depth_multiplier], dtype,
        weights_initializer, weights_regularizer, trainable,
        get_variable_collections(variables_collections, "weights"))
    outputs = nn.depthwise_conv2d(inputs, weights, [1, 1] + strides if is_first else [1] + strides + [1],
                                  padding, rate=two_element_tuple(rate), data_format=data_format)
    if normalizer_fn is None and biases_initializer is not None:
        biases = model_variable("biases", [depth_multiplier * count], dtype, biases_initializer,
                                biases_regularizer, trainable,
                                get_variable_collections(variables_collections, "biases"))
        outputs = nn.bias_add(outputs, biases, data_format=data_format)
    return outputs


separable_conv2d = separable_convolution2d
conv2d_in_plane = convolution2d_in_plane


def _pool(layer_type, default_scope, formats, name):
    def function(inputs, kernel_size, stride=2, padding="VALID", data_format=None,
                 outputs_collections=None, scope=None):
        channels = channels_of(data_format, formats)
        with name_scope(scope, default_scope, [inputs]) as sc:
            inputs = convert_to_tensor(inputs)
            outputs = layer_type(kernel_size, stride, padding, channels, _scope=sc).apply(inputs)
            return collect_named_outputs(outputs_collections, sc, outputs)
    return add_arg_scope(named(function, name, layer_type.__doc__))


max_pool2d = _pool(core.MaxPooling2D, "MaxPool2D", "NCHW NHWC", "max_pool2d")
max_pool3d = _pool(core.MaxPooling3D, "MaxPool3D", "NCDHW NDHWC", "max_pool3d")
avg_pool2d = _pool(core.AveragePooling2D, "AvgPool2D", "NCHW NHWC", "avg_pool2d")
avg_pool3d = _pool(core.AveragePooling3D, "AvgPool3D", "NCDHW NDHWC", "avg_pool3d")


@add_arg_scope
def dropout(inputs, keep_prob=0.5, noise_shape=None, is_training=True, outputs_collections=None,
            scope=None, seed=None):
    """Keeps elements with a probability, and scales them by its inverse, during training."""
    with layer_scope(scope, "Dropout", inputs, None) as sc:
        inputs = convert_to_tensor(inputs)
        layer = core.Dropout(1 - keep_prob, noise_shape, seed=seed, name=sc.name, _scope=sc)
        return collect_named_outputs(outputs_collections, sc.name, layer.apply(inputs, training=is_training))


@add_arg_scope
def flatten(inputs, outputs_collections=None, scope=None):
    """Flattens each example to a row."""
    with name_scope(scope, "Flatten", [inputs]) as sc:
        return collect_named_outputs(outputs_collections, sc, core.flatten(convert_to_tensor(inputs)))


@add_arg_scope
def bias_add(inputs, activation_fn=None, initializer=_zeros, regularizer=None, reuse=None,
             variables_collections=None, outputs_collections=None, trainable=True, data_format="NHWC",
             scope=None):
    """Adds biases."""
    channels_of(data_format)
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        count = inputs.shape.as_list()[1] if data_format == "NCHW" else last_dimension(inputs.shape, 2)
        biases = model_variable("biases", [count], inputs.dtype.base_dtype, initializer, regularizer,
                                trainable, get_variable_collections(variables_collections, "biases"))
        outputs = nn.bias_add(inputs, biases, data_format=data_format)
        return finish(outputs, sc.name, None, None, activation_fn, outputs_collections)


@add_arg_scope
def one_hot_encoding(labels, num_classes, on_value=1.0, off_value=0.0, outputs_collections=None,
                     scope=None):
    """Converts labels to one-hot rows."""
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as sc:
        labels = convert_to_tensor(labels)
        if labels.dtype.base_dtype.name == "int32":
            labels = math_ops.cast(labels, "int64")
        outputs = array_ops.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, sc, outputs)


def _one_after_another(inputs, layer, every_args, default_scope, default_name, kwargs):
    """Applies a layer once per tuple of arguments: scope/scope_1, scope/scope_2 and so on."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, default_scope, [inputs]):
        inputs = convert_to_tensor(inputs)
        scope = scope or getattr(layer, "__name__", None) or getattr(
            getattr(layer, "func", None), "__name__", None) or default_name
        for number, args in enumerate(every_args):
            inputs = layer(inputs, *args, scope="%s_%d" % (scope, number + 1), **kwargs)
        return inputs


def repeat(inputs, repetitions, layer, *args, **kwargs):
    """Applies a layer several times."""
    return _one_after_another(inputs, layer, [args] * repetitions, "Repeat", "repeat", kwargs)


def stack(inputs, layer, stack_args, **kwargs):
    """Applies a layer several times, each time with other arguments."""
    if not isinstance(stack_args, (list, tuple)):
        raise ValueError("stack_args need to be a list or tuple")
    each = [args if isinstance(args, (list, tuple)) else [args] for args in stack_args]
    return _one_after_another(inputs, layer, each, "Stack", "stack", kwargs)


@add_arg_scope
def softmax(logits, scope=None):
    """Returns the softmax over the last of any number of dimensions."""
    with variable_scope(scope, "softmax", [logits]):
        count = last_dimension(logits.shape, 2)
        outputs = array_ops.reshape(nn.softmax(array_ops.reshape(logits, [-1, count])),
                                    array_ops.shape(logits))
        outputs.set_shape(logits.shape)
        return outputs


@add_arg_scope
def unit_norm(inputs, dim, epsilon=1e-7, scope=None):
    """Divides inputs by their norm along one dimension."""
    with variable_scope(scope, "UnitNorm", [inputs]):
        rank = inputs.shape.ndims
        if not rank:
            raise ValueError("The input rank must be known.")
        if dim < 0 or dim >= rank:
            raise ValueError("dim must be positive but smaller than the input rank.")
        lengths = raw_ops.Sqrt(x=epsilon + math_ops.reduce_sum(raw_ops.Square(x=inputs), dim, keepdims=True))
        return math_ops.divide(inputs, lengths)


@add_arg_scope
def maxout(inputs, num_units, axis=-1, scope=None):
    """Returns the maximum of groups of features."""
    with name_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        dims = inputs.shape.as_list()
        if dims[axis] % num_units:
            raise ValueError("number of features(%d) is not a multiple of num_units(%d)" % (
                dims[axis], num_units))
        axis = axis % len(dims)
        known = [-1 if dim is None else dim for dim in dims]
        grouped = known[:axis] + [num_units, dims[axis] // num_units] + known[axis + 1:]
        return math_ops.reduce_max(array_ops.reshape(inputs, grouped), axis + 1)


def scale_gradient(inputs, gradient_multiplier):
    """Returns the inputs; their gradient is multiplied."""
    from runnel.eager.backprop import custom_gradient

    @custom_gradient
    def scaled(x):
        return x, lambda grad: grad * gradient_multiplier
    return scaled(inputs)


def embed_sequence(ids, vocab_size=None, embed_dim=None, unique=False, initializer=None, regularizer=None,
                   trainable=True, scope=None, reuse=None):
    """Returns the embeddings of the ids of sequences."""
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError("Must specify vocab size and embedding dimension when not reusing. Got "
                         "vocab_size=%s and embed_dim=%s" % (vocab_size, embed_dim))
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if not (reuse and vocab_size is None or embed_dim is None) else None
        embeddings = get_variable("embeddings", shape=shape, initializer=initializer,
                                  regularizer=regularizer, trainable=trainable)
        if unique:
            return embedding_lookup_unique(embeddings, ids)
        return nn.embedding_lookup(embeddings, ids)


def embedding_lookup_unique(params, ids, partition_strategy="mod", name=None):
    """Like tf.nn.embedding_lookup, fetching each row once."""
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = convert_to_tensor(ids)
        distinct, places = array_ops.unique(array_ops.reshape(ids, [-1]))
        rows = array_ops.gather(nn.embedding_lookup(params, distinct, partition_strategy), places)
        return array_ops.reshape(rows, array_ops.concat(
            [array_ops.shape(ids), array_ops.shape(rows)[1:]], 0))


def bow_encoder(ids, vocab_size, embed_dim, sparse_lookup=True, initializer=None, regularizer=None,
                trainable=True, scope=None, reuse=None):
    """Returns the mean of the embeddings of each sequence's ids."""
    from runnel.core.composite import SparseTensor
    from runnel.ops import sparse_ops
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = get_variable("embeddings", [vocab_size, embed_dim], initializer=initializer,
                                  regularizer=regularizer, trainable=trainable)
        if sparse_lookup:
            ids = ids if isinstance(ids, SparseTensor) else sparse_ops.from_dense(ids)
            return nn.embedding_lookup_sparse(embeddings, ids, None, combiner="mean", name="encoding")
        return math_ops.reduce_mean(nn.embedding_lookup(embeddings, ids), 1, name="encoding")


def safe_embedding_lookup_sparse(*args, **kwargs):
    """The same as tf.nn.safe_embedding_lookup_sparse."""
    return nn.safe_embedding_lookup_sparse(*args, **kwargs)


def dense_to_sparse(tensor, eos_token=0, outputs_collections=None, scope=None):
    """Returns the elements other than `eos_token` as a SparseTensor."""
    from runnel.core.composite import SparseTensor
    with variable_scope(scope, "dense_to_sparse", [tensor]) as sc:
        tensor = convert_to_tensor(tensor)
        indices = array_ops.where(raw_ops.NotEqual(x=tensor, y=math_ops.cast(eos_token, tensor.dtype)))
        outputs = SparseTensor(indices, array_ops.gather_nd(tensor, indices),
                               array_ops.shape(tensor, out_type="int64"))
        return collect_named_outputs(outputs_collections, sc.name, outputs)


linear = functools.partial(fully_connected, activation_fn=None)
relu = functools.partial(fully_connected, activation_fn=nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=nn.relu6)
elu = functools.partial(fully_connected, activation_fn=nn.elu)
