"""Initializers of variables: tf.initializers and tf.*_initializer.

An initializer is a function (shape, dtype, partition_info) that returns a tensor.
"""

import math

from runnel import dtypes
from runnel.core import convert


class Initializer:
    """The base of initializers: subclasses define __call__(shape, dtype=None, partition_info=None)."""

    _fields = ()
    dtype = dtypes.float32

    def __call__(self, shape, dtype=None, partition_info=None):
        raise NotImplementedError

    def get_config(self):
        """Returns the arguments of __init__ that make an equal initializer."""
        out = {name: getattr(self, name) for name in self._fields}
        if self._fields:
            out["dtype"] = self.dtype.name
        return out

    @classmethod
    def from_config(cls, config):
        """Makes an initializer from the result of get_config."""
        return cls(**config)


def _float(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError("Argument `dtype` is expected to be floating point. Received: %s." % dtype)
    return dtype


class Zeros(Initializer):
    """Initializes with zeros."""

    def __init__(self, dtype=dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel.ops import array_ops
        return array_ops.zeros(shape, self.dtype if dtype is None else dtype)

    def get_config(self):
        """Returns the arguments of __init__ that make an equal initializer."""
        return {"dtype": self.dtype.name}


class Ones(Zeros):
    """Initializes with ones."""

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel.ops import array_ops
        return array_ops.ones(shape, self.dtype if dtype is None else dtype)


class Constant(Initializer):
    """Initializes with one value, or with the given values."""

    _fields = ("value",)

    def __init__(self, value=0, dtype=dtypes.float32, verify_shape=False):
        import numpy as np
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError("Invalid type for initial value=%s of type: %s. Expected Python scalar, "
                            "list or tuple of values, or numpy.ndarray." % (
                                value, type(value).__name__))
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(self, shape, dtype=None, partition_info=None, verify_shape=None):
        if verify_shape is None:
            verify_shape = self._verify_shape
        return convert.constant(self.value, self.dtype if dtype is None else dtype, shape,
                                verify_shape=verify_shape)


class RandomUniform(Initializer):
    """Initializes with a uniform distribution over [minval, maxval)."""

    _fields = ("minval", "maxval", "seed")

    def __init__(self, minval=0.0, maxval=None, seed=None, dtype=dtypes.float32):
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel.ops import random_ops
        return random_ops.random_uniform(shape, self.minval, self.maxval,
                                         self.dtype if dtype is None else dtype, seed=self.seed)


class RandomNormal(Initializer):
    """Initializes with a normal distribution."""

    _fields = ("mean", "stddev", "seed")
    _function = "random_normal"

    def __init__(self, mean=0.0, stddev=1.0, seed=None, dtype=dtypes.float32):
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self.dtype = _float(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel.ops import random_ops
        return getattr(random_ops, self._function)(
            shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, seed=self.seed)


class TruncatedNormal(RandomNormal):
    """Initializes with a normal distribution without values beyond two standard deviations."""

    _function = "truncated_normal"


class UniformUnitScaling(Initializer):
    """Initializes with a uniform distribution that keeps the scale of a layer's input."""

    _fields = ("factor", "seed")

    def __init__(self, factor=1.0, seed=None, dtype=dtypes.float32):
        self.factor, self.seed = factor, seed
        self.dtype = _float(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel.ops import random_ops
        whole = shape if partition_info is None else partition_info.full_shape
        limit = math.sqrt(3 / max(float(math.prod(whole[:-1])), 1.0)) * self.factor
        return random_ops.random_uniform(shape, -limit, limit,
                                         self.dtype if dtype is None else dtype, seed=self.seed)


def _fans(shape):
    """Returns (fan in, fan out) of a weight's shape."""
    if len(shape) == 0:
        return 1, 1
    if len(shape) == 1:
        return int(shape[0]), int(shape[0])
    field = math.prod(int(d) for d in shape[:-2])
    return int(shape[-2]) * field, int(shape[-1]) * field


# The standard deviation of a standard normal distribution that is truncated to [-2, 2].
_TRUNCATED_STDDEV = 0.87962566103423978


class VarianceScaling(Initializer):
    """Initializes with a normal or uniform distribution of variance scale / fan."""

    _fields = ("scale", "mode", "distribution", "seed")

    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal", seed=None,
                 dtype=dtypes.float32):
        if scale <= 0.0:
            raise ValueError("Argument `scale` must be a positive float. Received: %s" % scale)
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError("Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). "
                             "Received: %s" % mode)
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError("Argument `distribution` should be one of ('normal', uniform', "
                             "'truncated_normal', 'untruncated_normal'). Received: %s" % distribution)
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed
        self.dtype = _float(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel.ops import random_ops
        dtype = self.dtype if dtype is None else dtype
        fan_in, fan_out = _fans(shape if partition_info is None else partition_info.full_shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        scale = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return random_ops.random_uniform(shape, -limit, limit, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self.seed)
        stddev = math.sqrt(scale) / _TRUNCATED_STDDEV
        return random_ops.truncated_normal(shape, 0.0, stddev, dtype, seed=self.seed)


class _Scaled(VarianceScaling):
    _how = (1.0, "fan_avg", "uniform")

    def __init__(self, seed=None, dtype=dtypes.float32):
        super().__init__(*self._how, seed=seed, dtype=dtype)

    def get_config(self):
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotUniform(_Scaled):
    """Glorot's uniform initializer: variance 2 / (fan in + fan out)."""


class GlorotNormal(_Scaled):
    """Glorot's normal initializer: variance 2 / (fan in + fan out)."""

    _how = (1.0, "fan_avg", "truncated_normal")


class Orthogonal(Initializer):
    """Initializes with a matrix whose rows or columns are orthonormal, times a gain."""

    _fields = ("gain", "seed")

    def __init__(self, gain=1.0, seed=None, dtype=dtypes.float32):
        self.gain, self.seed = gain, seed
        self.dtype = _float(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel import raw_ops
        from runnel.ops import array_ops, random_ops
        dtype = self.dtype if dtype is None else dtype
        if len(shape) < 2:
            raise ValueError("The tensor to initialize, specified by argument `shape` must be at least "
                             "two-dimensional. Received shape=%s" % (shape,))
        rows, columns = math.prod(int(d) for d in shape[:-1]), int(shape[-1])
        flat = (max(rows, columns), min(rows, columns))
        noise = random_ops.random_normal(flat, dtype=dtype, seed=self.seed)
        q, r = raw_ops.Qr(input=noise)
        # Make the diagonal of R positive: then Q is unique.
        q = q * raw_ops.Sign(x=array_ops.diag_part(r))
        if rows < columns:
            q = array_ops.matrix_transpose(q)
        return self.gain * array_ops.reshape(q, shape)


class Identity(Initializer):
    """Initializes with the identity matrix, times a gain."""

    _fields = ("gain",)

    def __init__(self, gain=1.0, dtype=dtypes.float32):
        self.gain = gain
        self.dtype = _float(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from runnel import linalg
        whole = shape if partition_info is None else partition_info.full_shape
        if len(whole) != 2:
            raise ValueError("The tensor to initialize, specified by argument `shape` must be at least "
                             "two-dimensional. Received shape=%s" % (shape,))
        dtype = dtypes.as_dtype(self.dtype if dtype is None else dtype)
        eye = linalg.eye(whole[0], whole[1], dtype=dtype)
        if partition_info is not None:
            from runnel import raw_ops
            eye = raw_ops.Slice(input=eye, begin=partition_info.var_offset, size=shape)
        return self.gain * eye


def lecun_normal(seed=None):
    """LeCun's normal initializer: variance 1 / fan in."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed=seed)


def lecun_uniform(seed=None):
    """LeCun's uniform initializer: variance 1 / fan in."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed=seed)


def he_normal(seed=None):
    """He's normal initializer: variance 2 / fan in."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed=seed)


def he_uniform(seed=None):
    """He's uniform initializer: variance 2 / fan in."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed=seed)


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
orthogonal_initializer = Orthogonal
identity_initializer = Identity


def get(identifier):
    """Returns the initializer for a name, a configuration or a function."""
    if identifier is None or callable(identifier):
        return identifier
    from runnel import initializers
    if isinstance(identifier, dict):
        return _by_name(initializers, identifier["class_name"]).from_config(identifier["config"])
    return _by_name(initializers, identifier)()


def _by_name(initializers, name):
    found = globals().get(name) or getattr(initializers, name, None)
    if found is None:
        raise ValueError("Unknown initializer: %s" % name)
    return found
