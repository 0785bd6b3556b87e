"""Functions of tf.nn with the parameters of 2.x."""

import runnel as _v1
from runnel import raw_ops


def dilation2d(input, filters, strides, padding, data_format, dilations, name=None):  # noqa: A002
    """Computes a grayscale dilation."""
    _check_format(data_format)
    return _v1.nn.dilation2d(input, filters, strides, dilations, padding, name)


def erosion2d(value, filters, strides, padding, data_format, dilations, name=None):
    """Computes a grayscale erosion."""
    _check_format(data_format)
    return _v1.nn.erosion2d(value, filters, strides, dilations, padding, name)


def _check_format(data_format):
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported. Received: data_format=%s" % data_format)


def fractional_avg_pool(value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None):
    """Averages regions of varying size."""
    return _fractional(raw_ops.FractionalAvgPool, value, pooling_ratio, pseudo_random, overlapping, seed, name)


def fractional_max_pool(value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None):
    """Takes the largest values of regions of varying size."""
    return _fractional(raw_ops.FractionalMaxPool, value, pooling_ratio, pseudo_random, overlapping, seed, name)


def _fractional(op, value, ratio, pseudo_random, overlapping, seed, name):
    ratio = list(ratio) if isinstance(ratio, (list, tuple)) else [1.0, ratio, ratio, 1.0]
    if len(ratio) == 2:
        ratio = [1.0, *ratio, 1.0]
    if len(ratio) == 1:
        ratio = [1.0, ratio[0], ratio[0], 1.0]
    seeds = {"deterministic": False, "seed": 0, "seed2": 0}
    if seed != 0:
        first, second = _v1.get_seed(seed)
        seeds = {"deterministic": True, "seed": first, "seed2": second}
    return op(value, pooling_ratio=ratio, pseudo_random=pseudo_random, overlapping=overlapping, name=name, **seeds)
