"""Convolutions and pooling (tf.nn)."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.nn.batch_shapes import with_one_batch_dimension
from runnel.ops import array_ops, math_ops
from runnel.ops.math_ops import _pick


def _attr_list(value, spatial, channel_first, name):
    """Expands one, two (three) or all numbers to a list for all dimensions."""
    if value is None:
        value = [1]
    elif not isinstance(value, (list, tuple)):
        value = [value]
    value = list(value)
    if len(value) == 1:
        value = value * spatial
    if len(value) == spatial:
        return [1, 1] + value if channel_first else [1] + value + [1]
    if len(value) == spatial + 2:
        return value
    raise ValueError("%s should be of length 1, %d or %d but was %d" % (
        name, spatial, spatial + 2, len(value)))


def _padding(padding):
    """Returns ("EXPLICIT", flat list) for lists of pairs, else (name, [])."""
    if isinstance(padding, (list, tuple)):
        return "EXPLICIT", [int(x) for pair in padding for x in pair]
    return padding, []


def _format(data_format, default):
    return default if data_format is None else data_format


def conv2d(input, filter=None, strides=None, padding=None, use_cudnn_on_gpu=True,  # noqa: A002
           data_format="NHWC", dilations=(1, 1, 1, 1), name=None, filters=None):
    """Convolves images [batch, height, width, in] with a kernel [height, width, in, out].

    Args:
      input: the images.
      filter: the kernel; `filters` is another name.
      strides: for all four dimensions, for two, or one number.
      padding: "SAME", "VALID" or a pair of numbers for each dimension.
      data_format: "NHWC" or "NCHW".
      dilations: step between the kernel's elements, given like strides.
      name: name of the operation.
    """
    filter = _pick("filters", filters, "filter", filter)  # noqa: A001
    data_format = _format(data_format, "NHWC")
    first = data_format == "NCHW"
    padding, explicit = _padding(padding)
    return with_one_batch_dimension(lambda x: raw_ops.Conv2D(
        input=x, filter=filter, strides=_attr_list(strides, 2, first, "strides"), padding=padding, use_cudnn_on_gpu=use_cudnn_on_gpu,
        explicit_paddings=explicit, data_format=data_format, dilations=_attr_list(dilations, 2, first, "dilations"), name=name), input, 3)


def conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding,  # noqa: A002
                           use_cudnn_on_gpu=True, data_format="NHWC", dilations=(1, 1, 1, 1),
                           name=None):
    """Computes the gradient of conv2d with respect to its filter."""
    padding, explicit = _padding(padding)
    return raw_ops.Conv2DBackpropFilter(
        input=input, filter_sizes=filter_sizes, out_backprop=out_backprop, strides=list(strides),
        padding=padding, use_cudnn_on_gpu=use_cudnn_on_gpu, explicit_paddings=explicit,
        data_format=data_format, dilations=list(dilations), name=name)


def conv2d_backprop_input(input_sizes, filter=None, out_backprop=None, strides=None,  # noqa: A002
                          padding=None, use_cudnn_on_gpu=True, data_format="NHWC",
                          dilations=(1, 1, 1, 1), name=None, filters=None):
    """Computes the gradient of conv2d with respect to its input."""
    padding, explicit = _padding(padding)
    return raw_ops.Conv2DBackpropInput(
        input_sizes=input_sizes, filter=_pick("filters", filters, "filter", filter),
        out_backprop=out_backprop, strides=list(strides), padding=padding,
        use_cudnn_on_gpu=use_cudnn_on_gpu, explicit_paddings=explicit, data_format=data_format,
        dilations=list(dilations), name=name)


def conv2d_transpose(value=None, filter=None, output_shape=None, strides=None,  # noqa: A002
                     padding="SAME", data_format="NHWC", name=None, input=None, filters=None,
                     dilations=None):
    """Computes the transpose of conv2d; `filter` is [height, width, out, in]."""
    value = _pick("input", input, "value", value)
    filter = _pick("filters", filters, "filter", filter)  # noqa: A001
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as name:
        data_format = _format(data_format, "NHWC")
        first = data_format == "NCHW"
        padding, explicit = _padding(padding)
        return raw_ops.Conv2DBackpropInput(
            input_sizes=_sizes(output_shape), filter=filter, out_backprop=value,
            strides=_attr_list(strides, 2, first, "strides"), padding=padding,
            explicit_paddings=explicit, data_format=data_format,
            dilations=_attr_list(dilations, 2, first, "dilations"), name=name)


def _sizes(shape):
    if isinstance(shape, (list, tuple)):
        shape = [getattr(d, "value", d) for d in shape]
    return convert_to_tensor(shape, preferred_dtype=dtypes.int32, name="input_sizes")


def conv3d(input, filter=None, strides=None, padding=None, data_format="NDHWC",  # noqa: A002
           dilations=(1, 1, 1, 1, 1), name=None, filters=None):
    """Convolves volumes [batch, depth, height, width, in] with a kernel [depth, height, width, in, out]."""
    first = data_format == "NCDHW"
    filter = _pick("filters", filters, "filter", filter)  # noqa: A001
    groups = _groups(input, filter, -4 if first else -1)

    def convolve(x, w, name=None):
        return raw_ops.Conv3D(input=x, filter=w, strides=_attr_list(strides, 3, first, "strides"), padding=padding,
                              data_format=_format(data_format, "NDHWC"),
                              dilations=_attr_list(dilations, 3, first, "dilations"), name=name)
    if groups == 1:
        return with_one_batch_dimension(lambda x: convolve(x, filter, name), input, 4)
    axis = -4 if first else -1
    with name_scope(name, "Conv3D", [input, filter]):
        parts = zip(array_ops.split(input, groups, axis), array_ops.split(filter, groups, 4))
        return array_ops.concat([with_one_batch_dimension(lambda x, w=w: convolve(x, w), x, 4) for x, w in parts], axis)


def _groups(x, w, axis):
    """Returns how many groups of channels a convolution of volumes has: the op has one group only."""
    shapes = [tensor_shape.as_shape(getattr(tensor, "shape", None)) for tensor in (x, w)]
    if shapes[1].ndims != 5 or (shapes[0].ndims or 0) < 5:
        return 1
    (*_, wanted, out), have = shapes[1].as_list(), shapes[0].as_list()[axis]
    if not have or not wanted or not out or have % wanted or out % (have // wanted):
        return 1
    return have // wanted


def conv3d_backprop_filter(input, filter_sizes, out_backprop, strides, padding,  # noqa: A002
                           data_format="NDHWC", dilations=(1, 1, 1, 1, 1), name=None):
    """Computes the gradient of conv3d with respect to its filter."""
    return raw_ops.Conv3DBackpropFilterV2(
        input=input, filter_sizes=filter_sizes, out_backprop=out_backprop, strides=list(strides),
        padding=padding, data_format=data_format, dilations=list(dilations), name=name)


conv3d_backprop_filter_v2 = conv3d_backprop_filter


def conv3d_transpose(value, filter=None, output_shape=None, strides=None, padding="SAME",  # noqa: A002
                     data_format="NDHWC", name=None, input=None, filters=None, dilations=None):
    """Computes the transpose of conv3d."""
    value = _pick("input", input, "value", value)
    filter = _pick("filters", filters, "filter", filter)  # noqa: A001
    with name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as name:
        first = data_format == "NCDHW"
        return raw_ops.Conv3DBackpropInputV2(
            input_sizes=_sizes(output_shape), filter=filter, out_backprop=value,
            strides=_attr_list(strides, 3, first, "strides"), padding=padding,
            data_format=_format(data_format, "NDHWC"),
            dilations=_attr_list(dilations, 3, first, "dilations"), name=name)


def conv1d(value=None, filters=None, stride=None, padding=None, use_cudnn_on_gpu=None,
           data_format=None, name=None, input=None, dilations=None):  # noqa: A002
    """Convolves sequences [batch, width, in] with a kernel [width, in, out]."""
    value = _pick("input", input, "value", value)
    with name_scope(name, "conv1d", [value, filters]) as name:
        first = data_format in ("NCHW", "NCW")
        axis = -2 if first else -3
        stride = stride[0] if isinstance(stride, (list, tuple)) and len(stride) == 1 else stride
        step = stride if not isinstance(stride, (list, tuple)) else stride[2 if first else 1]
        reach = dilations[-1] if isinstance(dilations, (list, tuple)) else dilations or 1
        value = array_ops.expand_dims(convert_to_tensor(value), axis)
        kernel = array_ops.expand_dims(convert_to_tensor(filters), 0)
        result = conv2d(value, kernel, [1, 1, 1, step] if first else [1, 1, step, 1], padding,
                        data_format="NCHW" if first else "NHWC",
                        dilations=[1, 1, 1, reach] if first else [1, 1, reach, 1], name=name)
        return array_ops.squeeze(result, [axis])


def conv1d_transpose(input, filters, output_shape, strides, padding="SAME",  # noqa: A002
                     data_format="NWC", dilations=None, name=None):
    """Computes the transpose of conv1d."""
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as name:
        first = data_format == "NCW"
        axis = 2 if first else 1
        step = strides if not isinstance(strides, (list, tuple)) else (
            strides[0] if len(strides) == 1 else strides[axis])
        value = array_ops.expand_dims(convert_to_tensor(input), axis)
        kernel = array_ops.expand_dims(convert_to_tensor(filters), 0)
        shape = list(output_shape) if isinstance(output_shape, (list, tuple)) else \
            array_ops.unstack(convert_to_tensor(output_shape), 3)
        shape.insert(axis, 1)
        result = conv2d_transpose(value, kernel, array_ops.stack(shape), [1, step] if not first
                                  else [1, 1, 1, step], padding, "NCHW" if first else "NHWC")
        return array_ops.squeeze(result, [axis], name=name)


def atrous_conv2d(value, filters, rate, padding, name=None):
    """Computes conv2d with a kernel that has `rate` - 1 holes between its elements."""
    return convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


def atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None):
    """Computes the transpose of atrous_conv2d."""
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]) as name:
        return raw_ops.Conv2DBackpropInput(
            input_sizes=_sizes(output_shape), filter=filters, out_backprop=value,
            strides=[1, 1, 1, 1], padding=padding, dilations=[1, rate, rate, 1], name=name)


def convolution(input, filter, padding, strides=None, dilation_rate=None, name=None,  # noqa: A002
                data_format=None, filters=None, dilations=None):
    """Convolves over 1, 2 or 3 spatial dimensions, with strides or dilation."""
    filter = _pick("filters", filters, "filter", filter)  # noqa: A001
    rates = _pick("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, "convolution", [input, filter]) as name:
        input = convert_to_tensor(input, name="input")  # noqa: A001
        filter = convert_to_tensor(filter, name="filter")  # noqa: A001
        spatial = (filter.shape.ndims or input.shape.ndims) - 2
        if spatial not in (1, 2, 3):
            raise ValueError("`filter` must have rank 3, 4 or 5. Received: %s" % filter.shape)
        strides = [1] * spatial if strides is None else _to_list(strides, spatial)
        rates = [1] * spatial if rates is None else _to_list(rates, spatial)
        if max(strides) > 1 and max(rates) > 1:
            raise ValueError("`strides > 1` not supported in conjunction with `dilation_rate > 1`")
        if spatial == 1:
            return conv1d(input, filter, strides[0], padding, data_format=data_format,
                          dilations=rates[0], name=name)
        if spatial == 2:
            return conv2d(input, filter, strides, padding, data_format=data_format,
                          dilations=rates, name=name)
        return conv3d(input, filter, strides, padding, data_format=_format(data_format, "NDHWC"),
                      dilations=rates, name=name)


def _to_list(value, count):
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)] * count


def conv_transpose(input, filters, output_shape, strides, padding="SAME",  # noqa: A002
                   data_format=None, dilations=None, name=None):
    """Computes the transpose of a convolution over 1, 2 or 3 spatial dimensions."""
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as name:
        spatial = convert_to_tensor(filters).shape.ndims - 2
        fn = (conv1d_transpose, conv2d_transpose, conv3d_transpose)[spatial - 1]
        default = ("NWC", "NHWC", "NDHWC")[spatial - 1]
        return fn(input, filters, output_shape, strides, padding=padding,
                  data_format=_format(data_format, default), dilations=dilations, name=name)


def depthwise_conv2d_native(input, filter, strides, padding, data_format="NHWC",  # noqa: A002
                            dilations=(1, 1, 1, 1), name=None):
    """Convolves each channel separately, with a kernel [height, width, in, multiplier]."""
    padding, explicit = _padding(padding)
    return raw_ops.DepthwiseConv2dNative(
        input=input, filter=filter, strides=list(strides), padding=padding,
        explicit_paddings=explicit, data_format=_format(data_format, "NHWC"),
        dilations=list(dilations), name=name)


def depthwise_conv2d(input, filter, strides, padding, rate=None, name=None,  # noqa: A002
                     data_format=None, dilations=None):
    """Convolves each channel separately; `rate`, two numbers, dilates the kernel."""
    rate = _pick("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as name:
        input = convert_to_tensor(input, name="tensor_in")  # noqa: A001
        filter = convert_to_tensor(filter, name="filter_in")  # noqa: A001
        return _dilated_depthwise(input, filter, strides, padding, rate, data_format, name)


def _dilated_depthwise(input, filter, strides, padding, rate, data_format, name):  # noqa: A002
    """Computes a dilated depthwise convolution."""
    from runnel.nn.nn_dilation import with_space_to_batch

    def op(x, _, padding):
        return depthwise_conv2d_native(x, filter, strides, padding, _format(data_format, "NHWC"), name=name)
    return with_space_to_batch(input, [1, 1] if rate is None else rate, padding, op, array_ops.shape(filter),
                               data_format=data_format)


def depthwise_conv2d_backprop_filter(input, filter_sizes, out_backprop, strides,  # noqa: A002
                                     padding, data_format="NHWC", dilations=(1, 1, 1, 1), name=None):
    """Computes the gradient of depthwise_conv2d with respect to its filter."""
    padding, explicit = _padding(padding)
    return raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=input, filter_sizes=filter_sizes, out_backprop=out_backprop, strides=list(strides),
        padding=padding, explicit_paddings=explicit, data_format=data_format,
        dilations=list(dilations), name=name)


def depthwise_conv2d_backprop_input(input_sizes, filter, out_backprop, strides,  # noqa: A002
                                    padding, data_format="NHWC", dilations=(1, 1, 1, 1), name=None):
    """Computes the gradient of depthwise_conv2d with respect to its input."""
    padding, explicit = _padding(padding)
    return raw_ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes=input_sizes, filter=filter, out_backprop=out_backprop, strides=list(strides),
        padding=padding, explicit_paddings=explicit, data_format=data_format,
        dilations=list(dilations), name=name)


depthwise_conv2d_native_backprop_filter = depthwise_conv2d_backprop_filter
depthwise_conv2d_native_backprop_input = depthwise_conv2d_backprop_input


def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding,  # noqa: A002
                     rate=None, name=None, data_format=None, dilations=None):
    """Computes a depthwise convolution followed by a 1x1 convolution over the channels."""
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as name:
        input = convert_to_tensor(input, name="tensor_in")  # noqa: A001
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        depthwise = _dilated_depthwise(input, depthwise_filter, strides, padding,
                                       _pick("dilations", dilations, "rate", rate), data_format, "depthwise")
        return conv2d(depthwise, pointwise_filter, [1, 1, 1, 1], "VALID",
                      data_format=_format(data_format, "NHWC"), name=name)


def dilation2d(input, filter=None, strides=None, rates=None, padding=None, name=None,  # noqa: A002
               filters=None, dilations=None):
    """Returns the maximum of input + filter around each pixel, per channel."""
    return raw_ops.Dilation2D(input=input, filter=_pick("filters", filters, "filter", filter),
                              strides=strides, rates=_pick("dilations", dilations, "rates", rates),
                              padding=padding, name=name)


def erosion2d(value, kernel, strides, rates, padding, name=None):
    """Returns the minimum of value - kernel around each pixel, per channel."""
    with name_scope(name, "erosion2d", [value, kernel]) as name:
        return math_ops.negative(raw_ops.Dilation2D(
            input=math_ops.negative(value), filter=array_ops.reverse(kernel, [0, 1]),
            strides=strides, rates=rates, padding=padding), name=name)


# Pooling


def avg_pool(value=None, ksize=None, strides=None, padding=None, data_format="NHWC", name=None,
             input=None):  # noqa: A002
    """Averages over windows of images.

    Args:
      value: images [batch, height, width, channels]; `input` is another name.
      ksize: the window's size for all four dimensions, for the middle two, or one number.
      strides: the steps between windows, given like ksize.
      padding: "SAME" or "VALID".
      data_format: "NHWC" or "NCHW".
      name: name of the operation.
    """
    value = _pick("input", input, "value", value)
    with name_scope(name, "AvgPool", [value]) as name:
        data_format = _format(data_format, "NHWC")
        first = data_format == "NCHW"
        return raw_ops.AvgPool(value=value, ksize=_attr_list(ksize, 2, first, "ksize"),
                               strides=_attr_list(strides, 2, first, "strides"), padding=padding,
                               data_format=data_format, name=name)


avg_pool2d = avg_pool


def max_pool(value=None, ksize=None, strides=None, padding=None, data_format="NHWC", name=None,
             input=None):  # noqa: A002
    """Takes the maximum over windows of images.

    Args:
      value: images [batch, height, width, channels]; `input` is another name.
      ksize: the window's size for all four dimensions, for the middle two, or one number.
      strides: the steps between windows, given like ksize.
      padding: "SAME" or "VALID".
      data_format: "NHWC" or "NCHW".
      name: name of the operation.
    """
    value = _pick("input", input, "value", value)
    with name_scope(name, "MaxPool", [value]) as name:
        data_format = _format(data_format, "NHWC")
        first = data_format.startswith("NC")
        padding, explicit = _padding(padding)
        return raw_ops.MaxPool(input=value, ksize=_attr_list(ksize, 2, first, "ksize"),
                               strides=_attr_list(strides, 2, first, "strides"), padding=padding,
                               explicit_paddings=explicit, data_format=data_format, name=name)


max_pool2d = max_pool


def _pool1d(fn, input, ksize, strides, padding, data_format, name):  # noqa: A002
    first = data_format == "NCW"
    axis = 2 if first else 1

    def numbers(value, what):
        full = _attr_list(value, 1, first, what)
        return full[:2] + [1] + full[2:] if first else full[:1] + [1] + full[1:]
    value = array_ops.expand_dims(convert_to_tensor(input), axis)
    result = fn(value, numbers(ksize, "ksize"), numbers(strides, "strides"), padding,
                "NCHW" if first else "NHWC")
    return array_ops.squeeze(result, [axis], name=name)


def avg_pool1d(input, ksize, strides, padding, data_format="NWC", name=None):  # noqa: A002
    """Averages over windows of sequences."""
    with name_scope(name, "AvgPool1D", [input]) as name:
        return _pool1d(avg_pool, input, ksize, strides, padding, _format(data_format, "NWC"), name)


def max_pool1d(input, ksize, strides, padding, data_format="NWC", name=None):  # noqa: A002
    """Takes the maximum over windows of sequences."""
    with name_scope(name, "MaxPool1d", [input]) as name:
        return _pool1d(max_pool, input, ksize, strides, padding, _format(data_format, "NWC"), name)


def avg_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None):  # noqa: A002
    """Averages over windows of volumes."""
    with name_scope(name, "AvgPool3D", [input]) as name:
        first = data_format == "NCDHW"
        return raw_ops.AvgPool3D(input=input, ksize=_attr_list(ksize, 3, first, "ksize"),
                                 strides=_attr_list(strides, 3, first, "strides"), padding=padding,
                                 data_format=_format(data_format, "NDHWC"), name=name)


def max_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None):  # noqa: A002
    """Takes the maximum over windows of volumes."""
    with name_scope(name, "MaxPool3D", [input]) as name:
        first = data_format == "NCDHW"
        return raw_ops.MaxPool3D(input=input, ksize=_attr_list(ksize, 3, first, "ksize"),
                                 strides=_attr_list(strides, 3, first, "strides"), padding=padding,
                                 data_format=_format(data_format, "NDHWC"), name=name)


def _pool_v2(fns, input, ksize, strides, padding, data_format, name):  # noqa: A002
    rank = convert_to_tensor(input).shape.ndims
    if rank not in (3, 4, 5):
        raise ValueError("`input` must have rank 3, 4 or 5. Received rank %s" % rank)
    default = ("NWC", "NHWC", "NDHWC")[rank - 3]
    return fns[rank - 3](input, ksize, strides, padding, _format(data_format, default), name=name)


def avg_pool_v2(input, ksize, strides, padding, data_format=None, name=None):  # noqa: A002
    """Averages over windows of 1, 2 or 3 spatial dimensions."""
    return _pool_v2((avg_pool1d, avg_pool, avg_pool3d), input, ksize, strides, padding, data_format,
                    name)


def max_pool_v2(input, ksize, strides, padding, data_format=None, name=None):  # noqa: A002
    """Takes the maximum over windows of 1, 2 or 3 spatial dimensions."""
    return _pool_v2((max_pool1d, max_pool, max_pool3d), input, ksize, strides, padding, data_format,
                    name)


def max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", Targmax=None,  # noqa: A002
                         name=None, output_dtype=None, include_batch_in_index=False):
    """Returns (max_pool, index of each maximum)."""
    if data_format != "NHWC":
        raise ValueError("`data_format` values other than 'NHWC' are not supported")
    kind = _pick("output_dtype", output_dtype, "Targmax", Targmax)
    return raw_ops.MaxPoolWithArgmax(input=input, ksize=_attr_list(ksize, 2, False, "ksize"),
                                     strides=_attr_list(strides, 2, False, "strides"),
                                     padding=padding, Targmax=kind or dtypes.int64,
                                     include_batch_in_index=include_batch_in_index, name=name)


def fractional_avg_pool(value, pooling_ratio, pseudo_random=False, overlapping=False,
                        deterministic=False, seed=0, seed2=0, name=None):
    """Averages over windows of random size."""
    return raw_ops.FractionalAvgPool(value=value, pooling_ratio=pooling_ratio,
                                     pseudo_random=pseudo_random, overlapping=overlapping,
                                     deterministic=deterministic, seed=seed, seed2=seed2, name=name)


def fractional_max_pool(value, pooling_ratio, pseudo_random=False, overlapping=False,
                        deterministic=False, seed=0, seed2=0, name=None):
    """Takes the maximum over windows of random size."""
    return raw_ops.FractionalMaxPool(value=value, pooling_ratio=pooling_ratio,
                                     pseudo_random=pseudo_random, overlapping=overlapping,
                                     deterministic=deterministic, seed=seed, seed2=seed2, name=name)

