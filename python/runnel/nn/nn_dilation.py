"""Dilated windows, computed on blocks that space_to_batch makes (tf.nn.with_space_to_batch, tf.nn.pool)."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.framework import name_scope
from runnel.nn import nn_conv
from runnel.ops import array_ops


def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    """Returns (paddings, crops) that make sizes multiples of the blocks, and undo it.

    Args:
      input_shape: the sizes, int32.
      block_shape: the sizes of the blocks.
      base_paddings: [n, 2], padding that is added in any case and not cropped.
      name: name of the scope.
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, name="block_shape")
        blocks.shape.assert_is_fully_defined()
        blocks.shape.assert_has_rank(1)
        count = blocks.shape.as_list()[0]
        if count == 0:
            return array_ops.zeros([0, 2], dtypes.int32), array_ops.zeros([0, 2], dtypes.int32)
        sizes.shape.assert_is_compatible_with([count])
        if base_paddings is not None:
            base = convert_to_tensor(base_paddings, dtypes.int32, name="base_paddings")
            base.shape.assert_is_compatible_with([count, 2])
        else:
            base = array_ops.zeros([count, 2], dtypes.int32)
        known = [constant_value(x) for x in (blocks, sizes, base)]
        if all(x is not None for x in known):
            blocks, sizes, base = known
        start, end = base[:, 0], base[:, 1]
        extra = (blocks - (sizes + start + end) % blocks) % blocks
        total = end + extra
        return (array_ops.stack([[start[i], total[i]] for i in range(count)], name="paddings"),
                array_ops.stack([[0, extra[i]] for i in range(count)], name="crops"))


def _base_paddings(filter_shape, count, rate):
    """Returns the padding of SAME for a dilated window; an odd element goes to the end."""
    extra = (filter_shape[:count] - 1) * rate
    start = extra // 2
    end = extra - start
    return array_ops.stack([[start[i], end[i]] for i in range(count)])


def _spread(value, fill, dims):
    """Returns one row per dimension from the second to the last of `dims`: those of `value`, and `fill` for the others."""
    import numpy as np
    known = constant_value(value)
    rows, done, i = [], 0, 0
    while i < len(dims):
        first = i
        if dims[i] > 1:
            rows.append(np.full([dims[i] - 1 - done] + value.shape.as_list()[1:], fill, value.dtype.as_numpy_dtype))
        while i + 1 < len(dims) and dims[i + 1] == dims[i] + 1:
            i += 1
        rows.append((value if known is None else known)[first:i + 1])
        done = dims[i]
        i += 1
    return array_ops.concat(rows, 0) if known is None else np.concatenate(rows)


def _spatial(spatial_dims, count, first, shape):
    wanted = list(range(2 if first else 1, count + (2 if first else 1)) if spatial_dims is None else spatial_dims)
    dims = sorted({int(d) for d in wanted})
    if dims != wanted or any(d < 1 for d in dims):
        raise ValueError("`spatial_dims` must be a monotonically increasing sequence of positive integers. Received: "
                         "spatial_dims=%s" % wanted)
    least = dims[-1] + (0 if first else 1)
    if shape.ndims is not None and shape.ndims < least:
        raise ValueError("`input.shape.rank` must be at least %d. Received: input.shape=%s with rank %d" %
                         (least, shape, shape.ndims))
    return dims


def _fixed_paddings(padding, filter_shape, count, rate, first):
    import numpy as np
    if not isinstance(padding, str):  # given for all dimensions
        rows = np.array(padding).reshape([count + 2, 2])
        return rows[2:] if first else rows[1:-1]
    if padding == "VALID":
        return np.zeros([count, 2], np.int32)
    if padding != "SAME":
        raise ValueError("`padding` must be one of 'SAME' or 'VALID'. Received: padding=%s" % padding)
    if filter_shape is None:
        raise ValueError("`filter_shape` must be specified for `padding='SAME'`. Received: filter_shape=None and padding=SAME")
    filter_shape = convert_to_tensor(filter_shape, name="filter_shape")
    known = constant_value(filter_shape)
    return _base_paddings(filter_shape if known is None else known, count, rate)


def with_space_to_batch(input, dilation_rate, padding, op, filter_shape=None,  # noqa: A002
                        spatial_dims=None, data_format=None):
    """Calls op(input, number of spatial dimensions, padding) with dilated windows.

    Args:
      input: a tensor.
      dilation_rate: int32, one per spatial dimension; if all are 1, `op` is called directly.
      padding: "SAME", which needs `filter_shape`, or "VALID".
      op: takes a tensor, the number of spatial dimensions, and the padding ("VALID" if the rate is not 1).
      filter_shape: the sizes of the window.
      spatial_dims: the spatial dimensions; by default all but the batch and the channels.
      data_format: begins with "NC" if the channels come first.
    """
    import numpy as np
    input = convert_to_tensor(input, name="input")  # noqa: A001
    shape = input.shape
    rate = convert_to_tensor(dilation_rate, dtypes.int32, name="dilation_rate")
    if rate.shape.ndims not in (None, 1):
        raise ValueError("`dilation_rate.shape.rank` must be 1. Received: dilation_rate=%s of rank %d" %
                         (rate, rate.shape.ndims))
    if not rate.shape.is_fully_defined():
        raise ValueError("`dilation_rate.shape` must be fully defined. Received: dilation_rate=%s with shape %s" %
                         (rate, rate.shape))
    count = rate.shape.as_list()[0]
    first = bool(data_format) and data_format.startswith("NC")
    dims = _spatial(spatial_dims, count, first, shape)
    known = constant_value(rate)
    if known is not None:
        if np.any(known < 1):
            raise ValueError("`dilation_rate` must be positive. Received: dilation_rate=%s" % known)
        if np.all(known == 1):
            return op(input, count, padding)
    base = _fixed_paddings(padding, filter_shape, count, rate if known is None else known, first)
    sizes = None if shape.ndims is None else [shape.as_list()[d] for d in dims]
    if sizes is None or None in sizes:
        actual = array_ops.shape(input)
        sizes = array_ops.stack([actual[d] for d in dims])
    paddings, crops = required_space_to_batch_paddings(sizes, rate, base)
    blocks = _spread(rate, 1, dims)
    paddings, crops = _spread(paddings, 0, dims), _spread(crops, 0, dims)
    inner = raw_ops.SpaceToBatchND(input=input, block_shape=blocks, paddings=paddings)
    return raw_ops.BatchToSpaceND(input=op(inner, count, "VALID"), block_shape=blocks, crops=crops)


def _numbers(value, count, name):
    """Returns strides or rates as an array."""
    import numpy as np
    value = [1] * count if value is None else value
    if len(value) != count:
        raise ValueError("`len(%s)` should be %d. Received: %s=%s of length %d" % (name, count, name, value, len(value)))
    value = np.array(value, np.int32)
    if np.any(value < 1):
        raise ValueError("all values of `%s` must be positive. Received: %s=%s" % (name, name, value))
    return value


def _checked(window_shape, padding, strides, rates):
    import numpy as np
    count = len(window_shape)
    if not 1 <= count <= 3:
        raise ValueError("`len(window_shape)` must be 1, 2, or 3. Received: window_shape=%s of length %d" %
                         (window_shape, count))
    rates, strides = _numbers(rates, count, "dilation_rate"), _numbers(strides, count, "strides")
    if np.any(strides > 1) and np.any(rates > 1):
        raise ValueError("`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: strides=%s and "
                         "dilation_rate=%s" % (strides, rates))
    if padding == "SAME" and np.any(rates > 1):
        raise ValueError("pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. Received: padding=%s and "
                         "dilation_rate=%s" % (padding, rates))
    if np.any(strides > np.array(window_shape)):
        raise ValueError("`strides` > `window_shape` not supported due to inconsistency between CPU and GPU "
                         "implementations. Received: strides=%s and window_shape=%s" % (strides, window_shape))
    return strides, rates


_POOLS = {("MAX", 1): nn_conv.max_pool, ("MAX", 2): nn_conv.max_pool, ("MAX", 3): nn_conv.max_pool3d,
          ("AVG", 1): nn_conv.avg_pool, ("AVG", 2): nn_conv.avg_pool, ("AVG", 3): nn_conv.avg_pool3d}


def pool(input, window_shape, pooling_type, padding, dilation_rate=None, strides=None,  # noqa: A002
         name=None, data_format=None, dilations=None):
    """Pools over 1, 2 or 3 spatial dimensions with "AVG" or "MAX"; windows may be dilated."""
    rates = nn_conv._pick("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, "%s_pool" % pooling_type.lower(), [input]) as scope:
        input = convert_to_tensor(input, name="input")  # noqa: A001
        count = len(window_shape)
        strides, rates = _checked(window_shape, padding, strides, rates)
        tensor_shape.as_shape(input.shape).with_rank(count + 2)
        fn = _POOLS.get((pooling_type, count))
        if fn is None:
            raise ValueError("%d-D %s pooling is not supported." % (count, pooling_type))
        first = data_format is not None and data_format.startswith("NC")
        full = [([1, 1] + list(x) if first else [1] + list(x) + [1]) for x in (window_shape, strides)]
        dims = range(2, count + 2) if first else range(1, count + 1)
        if count == 1:
            if data_format not in (None, "NWC", "NCW"):
                raise ValueError("data_format must be either 'NWC' or 'NCW'. Received: data_format=%s" % data_format)
            full = [[1] + x for x in full]
            data_format = "NCHW" if first else "NHWC"
        elif data_format is None:
            data_format = "NHWC" if count == 2 else "NDHWC"

        def op(x, _, how):
            x = array_ops.expand_dims(x, dims[0]) if count == 1 else x
            result = fn(x, [int(n) for n in full[0]], [int(n) for n in full[1]], how, data_format, name=scope)
            return array_ops.squeeze(result, [dims[0]]) if count == 1 else result
        return with_space_to_batch(input, rates, padding, op, window_shape, dims)
