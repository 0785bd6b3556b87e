"""Sizes and settings of convolutions (tensorflow.python.keras.utils.conv_utils)."""


def normalize_tuple(value, n, name):
    """Returns a setting as a tuple of n numbers; a single number is repeated."""
    if isinstance(value, int):
        return (value,) * n
    try:
        out = tuple(int(single) for single in value)
    except (TypeError, ValueError):
        out = ()
    if len(out) != n:
        raise ValueError("The `%s` argument must be a tuple of %d integers. Received: %s" % (name, n, value))
    return out


def normalize_data_format(value):
    """Returns "channels_first" or "channels_last", which is the default."""
    if value is None:
        from runnel.keras import backend
        value = backend.image_data_format()
    if value.lower() not in ("channels_first", "channels_last"):
        raise ValueError('The `data_format` argument must be one of "channels_first", "channels_last". '
                         "Received: %s" % value)
    return value.lower()


def normalize_padding(value):
    """Returns "valid", "same" or "causal", in lower case."""
    padding = value.lower()
    if padding not in ("valid", "same", "causal"):
        raise ValueError('The `padding` argument must be a list/tuple or one of "valid", "same" (or '
                         '"causal", only for `Conv1D). Received: %s' % padding)
    return padding


def conv_output_length(input_length, filter_size, padding, stride, dilation=1):
    """Returns the output length of a convolution."""
    if input_length is None:
        return None
    reach = filter_size + (filter_size - 1) * (dilation - 1)
    length = {"same": input_length, "causal": input_length, "valid": input_length - reach + 1,
              "full": input_length + reach - 1}[padding]
    return (length + stride - 1) // stride


def conv_input_length(output_length, filter_size, padding, stride):
    """Returns the smallest input length of a convolution."""
    if output_length is None:
        return None
    margin = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * margin + filter_size


def deconv_output_length(input_length, filter_size, padding, output_padding=None, stride=0, dilation=1):
    """Returns the output length of a transposed convolution."""
    if input_length is None:
        return None
    reach = filter_size + (filter_size - 1) * (dilation - 1)
    if output_padding is None:
        return {"valid": input_length * stride + max(reach - stride, 0), "same": input_length * stride,
                "full": input_length * stride - (stride + reach - 2)}[padding]
    margin = {"same": reach // 2, "valid": 0, "full": reach - 1}[padding]
    return (input_length - 1) * stride + reach - 2 * margin + output_padding
