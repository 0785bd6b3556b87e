"""Layers over images: pooling of any rank, images as sequences, positions of features."""

from runnel import nn, raw_ops
from runnel.contrib.arg_scope import add_arg_scope
from runnel.contrib.initializers import xavier_initializer
from runnel.contrib.layer_util import (
    channels_of, collect_named_outputs, finish, get_variable_collections, last_dimension, two_element_tuple)
from runnel.contrib.model_variables import model_variable
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, init_ops, math_ops
from runnel.ops.variable_scopes import variable_scope

_xavier, _zeros = xavier_initializer(), init_ops.zeros_initializer()


@add_arg_scope
def pool(inputs, kernel_size, pooling_type, padding="VALID", data_format=None, dilation_rate=1, stride=1,
         outputs_collections=None, scope=None):
    """Pools with the mean ("AVG") or maximum ("MAX") over all dimensions but batch and channels."""
    with name_scope(scope, "%s_pool" % pooling_type.lower(), [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError("Rank of inputs must be known")
        if rank < 3:
            raise ValueError("Rank of inputs must be >= 3")

        def each(value):
            return [value] * (rank - 2) if isinstance(value, int) else list(value)

        outputs = nn.pool(inputs, each(kernel_size), pooling_type, padding, each(dilation_rate),
                          each(stride), name=sc, data_format=data_format)
        return collect_named_outputs(outputs_collections, sc, outputs)


@add_arg_scope
def convolution2d_in_plane(inputs, kernel_size, stride=1, padding="SAME", activation_fn=nn.relu,
                           normalizer_fn=None, normalizer_params=None,
                           weights_initializer=_xavier, weights_regularizer=None,
                           biases_initializer=_zeros, biases_regularizer=None,
                           reuse=None, variables_collections=None, outputs_collections=None,
                           trainable=True, scope=None):
    """Applies the same convolution to every channel."""
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as sc:
        dtype, count = inputs.dtype.base_dtype, last_dimension(inputs.shape, 4)
        weights = model_variable("weights", [*two_element_tuple(kernel_size), 1, 1], dtype,
                                 weights_initializer, weights_regularizer, trainable,
                                 get_variable_collections(variables_collections, "weights"))
        outputs = nn.depthwise_conv2d(inputs, array_ops.tile(weights, [1, 1, count, 1]),
                                      [1, *two_element_tuple(stride), 1], padding)
        if normalizer_fn is None and biases_initializer is not None:
            biases = model_variable("biases", [count], dtype, biases_initializer, biases_regularizer,
                                    trainable, get_variable_collections(variables_collections, "biases"))
            outputs = nn.bias_add(outputs, biases)
        return finish(outputs, sc.name, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


@add_arg_scope
def images_to_sequence(inputs, data_format="NHWC", outputs_collections=None, scope=None):
    """Converts rows of images to sequences from left to right: [width, batch * height, channels]."""
    is_first = channels_of(data_format) == "channels_first"
    with name_scope(scope, "ImagesToSequence", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        if is_first:
            inputs = array_ops.transpose(inputs, [0, 2, 3, 1])
        _, _, width, depth = inputs.shape.as_list()
        shape = array_ops.shape(inputs)
        outputs = array_ops.reshape(array_ops.transpose(inputs, [2, 0, 1, 3]),
                                    [width, shape[0] * shape[1], depth])
        return collect_named_outputs(outputs_collections, sc, outputs)


@add_arg_scope
def sequence_to_images(inputs, height, output_data_format="channels_last", outputs_collections=None,
                       scope=None):
    """Reverts images_to_sequence."""
    with name_scope(scope, "SequenceToImages", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        width, rows, depth = inputs.shape.as_list()
        images = array_ops.reshape(inputs, [width, -1 if rows is None else rows // height, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect_named_outputs(outputs_collections, sc, array_ops.transpose(images, order))


@add_arg_scope
def spatial_softmax(features, temperature=None, name=None, variables_collections=None, trainable=True,
                    data_format="NHWC"):
    """Returns where each channel is strongest: [batch, channels * 2], coordinates from -1 to 1."""
    is_first = channels_of(data_format) == "channels_first"
    with variable_scope(name, "spatial_softmax"):
        shape, count = array_ops.shape(features), features.shape.as_list()[1 if is_first else 3]
        height, width = (shape[2], shape[3]) if is_first else (shape[1], shape[2])
        if count is None:
            raise ValueError("The num_channels dimension of the inputs to `spatial_softmax` should be "
                             "defined. Found `None`.")
        with name_scope("spatial_softmax_op", values=[features]):
            x, y = array_ops.meshgrid(raw_ops.LinSpace(start=-1.0, stop=1.0, num=height),
                                      raw_ops.LinSpace(start=-1.0, stop=1.0, num=width), indexing="ij")
            initializer = (init_ops.ones_initializer() if temperature is None
                           else init_ops.constant_initializer(temperature))
            wanted = get_variable_collections(variables_collections, "temperature") if trainable else None
            temperature = model_variable("temperature", (), initializer=initializer, collections=wanted,
                                         trainable=trainable)
            if not is_first:
                features = array_ops.transpose(features, [0, 3, 1, 2])
            attention = nn.softmax(array_ops.reshape(features, [-1, height * width]) / temperature)
            expected = [math_ops.reduce_sum(array_ops.reshape(axis, [-1]) * attention, [1], keepdims=True)
                        for axis in (x, y)]
            points = array_ops.reshape(array_ops.concat(expected, 1), [-1, count * 2])
            points.set_shape([None, count * 2])
            return points
