"""tf.distributions: the ones that models of 1.x use."""

import math

from runnel import dtypes
from runnel import raw_ops as _ops
from runnel.convert import convert_to_tensor
from runnel.framework import name_scope

_kl_rules: dict = {}


class ReparameterizationType:
    """Whether gradients go through samples."""

    def __init__(self, rep_type):
        self._rep_type = rep_type

    def __repr__(self):
        return "<Reparameterization Type: %s>" % self._rep_type


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """What distributions can do: sample, prob, log_prob, cdf, entropy, mean, variance, stddev, mode."""

    reparameterization_type = NOT_REPARAMETERIZED

    def __init__(self, dtype, name, parameters):
        self._dtype, self._name, self._parameters = dtype, name, parameters
        shape = parameters[0].shape
        for other in parameters[1:]:
            from runnel.array_ops import broadcast_static_shape
            shape = broadcast_static_shape(shape, other.shape)
        self._shape = shape

    @property
    def dtype(self):
        return self._dtype

    @property
    def name(self):
        return self._name

    @property
    def batch_shape(self):
        return self._shape

    @property
    def event_shape(self):
        from runnel.tensor_shape import TensorShape
        return TensorShape([])

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        shape = _ops.Shape(self._parameters[0])
        for other in self._parameters[1:]:
            shape = _ops.BroadcastArgs(shape, _ops.Shape(other))
        return shape

    def sample(self, sample_shape=(), seed=None, name="sample"):
        """Samples of a shape, in front of that of the parameters."""
        from runnel.array_ops import concat, reshape
        with name_scope(self._name + "/" if not self._name.endswith("/") else self._name), name_scope(name):
            dims = convert_to_tensor(sample_shape, dtype=dtypes.int32, name="sample_shape")
            flat = reshape(dims, [-1])
            count = _ops.Prod(flat, 0)
            drawn = self._sample_n(count, seed)
            return reshape(drawn, concat([flat, _ops.Shape(drawn)[1:]], 0))

    def _shape_of(self, count):
        from runnel.array_ops import concat, reshape
        return concat([reshape(count, [1]), self.batch_shape_tensor()], 0)

    def prob(self, value, name="prob"):
        return _ops.Exp(self.log_prob(value))

    def log_prob(self, value, name="log_prob"):
        """The logarithm of the density."""
        with name_scope(name):
            return self._log_prob(convert_to_tensor(value, dtype_hint=self._dtype, name="value"))

    def stddev(self, name="stddev"):
        return _ops.Sqrt(self.variance())

    def log_cdf(self, value, name="log_cdf"):
        return _ops.Log(self.cdf(value))

    def kl_divergence(self, other, name="kl_divergence"):
        return kl_divergence(self, other)

    def cross_entropy(self, other, name="cross_entropy"):
        return self.entropy() + kl_divergence(self, other)

    def __repr__(self):
        return "<tf.distributions.%s '%s' batch_shape=%s dtype=%s>" % (type(self).__name__, self._name, self._shape, self._dtype.name)


class Normal(Distribution):
    """The normal distribution."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(self, loc, scale, validate_args=False, allow_nan_stats=True, name="Normal"):
        with name_scope(name, values=[loc, scale]) as scope:
            self._loc = convert_to_tensor(loc, name="loc")
            self._scale = convert_to_tensor(scale, dtype=self._loc.dtype.base_dtype, name="scale")
        super().__init__(self._loc.dtype.base_dtype, scope or name, [self._loc, self._scale])

    @property
    def loc(self):
        return self._loc

    @property
    def scale(self):
        return self._scale

    def _sample_n(self, count, seed):
        from runnel.random_ops import random_normal
        return random_normal(self._shape_of(count), mean=0.0, stddev=1.0, dtype=self._dtype, seed=seed) * self._scale + self._loc

    def _z(self, x):
        return (x - self._loc) / self._scale

    def _log_prob(self, x):
        return -0.5 * _ops.Square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + _ops.Log(self._scale))

    def cdf(self, value, name="cdf"):
        x = convert_to_tensor(value, dtype_hint=self._dtype)
        return 0.5 * _ops.Erfc(-self._z(x) * 0.5 ** 0.5)

    def quantile(self, value, name="quantile"):
        return _ops.Ndtri(convert_to_tensor(value, dtype_hint=self._dtype)) * self._scale + self._loc

    def entropy(self, name="entropy"):
        scale = self._scale * _ops.OnesLike(self._loc)
        return 0.5 * math.log(2.0 * math.pi) + 0.5 + _ops.Log(scale)

    def mean(self, name="mean"):
        return self._loc * _ops.OnesLike(self._scale)

    mode = mean

    def stddev(self, name="stddev"):
        return self._scale * _ops.OnesLike(self._loc)

    def variance(self, name="variance"):
        return _ops.Square(self.stddev())


class Uniform(Distribution):
    """Numbers between two limits."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(self, low=0.0, high=1.0, validate_args=False, allow_nan_stats=True, name="Uniform"):
        with name_scope(name, values=[low, high]) as scope:
            self._low = convert_to_tensor(low, name="low")
            self._high = convert_to_tensor(high, dtype=self._low.dtype.base_dtype, name="high")
        super().__init__(self._low.dtype.base_dtype, scope or name, [self._low, self._high])

    @property
    def low(self):
        return self._low

    @property
    def high(self):
        return self._high

    def range(self, name="range"):
        return self._high - self._low

    def _sample_n(self, count, seed):
        from runnel.random_ops import random_uniform
        return self._low + self.range() * random_uniform(self._shape_of(count), dtype=self._dtype, seed=seed)

    def _log_prob(self, x):
        return _ops.Log(self.prob(x))

    def prob(self, value, name="prob"):
        x = convert_to_tensor(value, dtype_hint=self._dtype) * _ops.OnesLike(self._low)
        inside = _ops.LogicalAnd(_ops.GreaterEqual(x, self._low), _ops.Less(x, self._high))
        return _ops.SelectV2(inside, _ops.OnesLike(x) / self.range(), _ops.ZerosLike(x))

    def cdf(self, value, name="cdf"):
        x = convert_to_tensor(value, dtype_hint=self._dtype)
        return _ops.Minimum(_ops.Maximum((x - self._low) / self.range(), 0.0), 1.0)

    def entropy(self, name="entropy"):
        return _ops.Log(self.range())

    def mean(self, name="mean"):
        return (self._low + self._high) / 2.0

    def variance(self, name="variance"):
        return _ops.Square(self.range()) / 12.0


class Bernoulli(Distribution):
    """0 or 1."""

    def __init__(self, logits=None, probs=None, dtype=dtypes.int32, validate_args=False, allow_nan_stats=True, name="Bernoulli"):
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        with name_scope(name, values=[logits, probs]) as scope:
            if logits is not None:
                self._logits = convert_to_tensor(logits, name="logits", dtype_hint=dtypes.float32)
                self._probs = _ops.Sigmoid(self._logits)
            else:
                self._probs = convert_to_tensor(probs, name="probs", dtype_hint=dtypes.float32)
                self._logits = _ops.Log(self._probs) - _ops.Log1p(-1.0 * self._probs)
        super().__init__(dtypes.as_dtype(dtype), scope or name, [self._logits])

    @property
    def logits(self):
        return self._logits

    @property
    def probs(self):
        return self._probs

    def _sample_n(self, count, seed):
        from runnel.math_ops import cast
        from runnel.random_ops import random_uniform
        uniform = random_uniform(self._shape_of(count), seed=seed, dtype=self._probs.dtype)
        return cast(_ops.Less(uniform, self._probs), self._dtype)

    def _log_prob(self, event):
        from runnel.math_ops import cast
        event = cast(event, self._logits.dtype)
        # log(p) of 1 is -softplus(-x), of 0 -softplus(x).
        return -(event * _ops.Softplus(-self._logits) + (1.0 - event) * _ops.Softplus(self._logits))

    def entropy(self, name="entropy"):
        return -self._logits * (_ops.Sigmoid(self._logits) - 1.0) + _ops.Softplus(-self._logits)

    def mean(self, name="mean"):
        return _ops.Identity(self._probs)

    def variance(self, name="variance"):
        return self.mean() * (1.0 - self._probs)

    def mode(self, name="mode"):
        from runnel.math_ops import cast
        return cast(self._probs > 0.5, self._dtype)


class Categorical(Distribution):
    """One of some classes."""

    def __init__(self, logits=None, probs=None, dtype=dtypes.int32, validate_args=False, allow_nan_stats=True, name="Categorical"):
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        with name_scope(name, values=[logits, probs]) as scope:
            if logits is not None:
                self._logits = convert_to_tensor(logits, name="logits", dtype_hint=dtypes.float32)
                self._probs = _ops.Softmax(self._logits)
            else:
                self._probs = convert_to_tensor(probs, name="probs", dtype_hint=dtypes.float32)
                self._logits = _ops.Log(self._probs)
        super().__init__(dtypes.as_dtype(dtype), scope or name, [self._logits])
        self._shape = self._logits.shape[:-1]

    @property
    def logits(self):
        return self._logits

    @property
    def probs(self):
        return self._probs

    @property
    def event_size(self):
        return convert_to_tensor(self._logits.shape[-1].value, dtype=dtypes.int32)

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        return _ops.Shape(self._logits)[:-1]

    def _sample_n(self, count, seed):
        from runnel.array_ops import concat, reshape, transpose
        from runnel.math_ops import cast
        from runnel.random_ops import multinomial
        rows = reshape(self._logits, [-1, self._logits.shape[-1].value])
        drawn = transpose(multinomial(rows, count, seed=seed))
        return cast(reshape(drawn, concat([reshape(count, [1]), self.batch_shape_tensor()], 0)), self._dtype)

    def _log_prob(self, k):
        from runnel.math_ops import cast, reduce_sum
        classes = self._logits.shape[-1].value
        hot = _ops.OneHot(cast(k, dtypes.int32), classes, convert_to_tensor(1, dtype=self._logits.dtype), convert_to_tensor(0, dtype=self._logits.dtype))
        return reduce_sum(hot * _ops.LogSoftmax(self._logits), axis=-1)

    def entropy(self, name="entropy"):
        from runnel.math_ops import reduce_sum
        logs = _ops.LogSoftmax(self._logits)
        return -reduce_sum(_ops.MulNoNan(logs, _ops.Exp(logs)), axis=-1)

    def mode(self, name="mode"):
        from runnel.math_ops import cast
        return cast(_ops.ArgMax(self._logits, -1), self._dtype)


class Exponential(Distribution):
    """Waiting times."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(self, rate, validate_args=False, allow_nan_stats=True, name="Exponential"):
        with name_scope(name, values=[rate]) as scope:
            self._rate = convert_to_tensor(rate, name="rate")
        super().__init__(self._rate.dtype.base_dtype, scope or name, [self._rate])

    @property
    def rate(self):
        return self._rate

    def _sample_n(self, count, seed):
        import numpy as np
        from runnel.random_ops import random_uniform
        tiny = float(np.finfo(self._dtype.as_numpy_dtype).tiny)
        return -_ops.Log(random_uniform(self._shape_of(count), minval=tiny, maxval=1.0, seed=seed, dtype=self._dtype)) / self._rate

    def _log_prob(self, x):
        return _ops.Log(self._rate) - self._rate * x

    def cdf(self, value, name="cdf"):
        return -_ops.Expm1(-self._rate * convert_to_tensor(value, dtype_hint=self._dtype))

    def entropy(self, name="entropy"):
        return 1.0 - _ops.Log(self._rate)

    def mean(self, name="mean"):
        return 1.0 / self._rate

    def variance(self, name="variance"):
        return 1.0 / _ops.Square(self._rate)


class Laplace(Distribution):
    """Differences of waiting times."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(self, loc, scale, validate_args=False, allow_nan_stats=True, name="Laplace"):
        with name_scope(name, values=[loc, scale]) as scope:
            self._loc = convert_to_tensor(loc, name="loc")
            self._scale = convert_to_tensor(scale, dtype=self._loc.dtype.base_dtype, name="scale")
        super().__init__(self._loc.dtype.base_dtype, scope or name, [self._loc, self._scale])

    @property
    def loc(self):
        return self._loc

    @property
    def scale(self):
        return self._scale

    def _sample_n(self, count, seed):
        import numpy as np
        from runnel.random_ops import random_uniform
        low = float(np.nextafter(self._dtype.as_numpy_dtype(-1.0), self._dtype.as_numpy_dtype(0.0)))
        uniform = random_uniform(self._shape_of(count), minval=low, maxval=1.0, dtype=self._dtype, seed=seed)
        return self._loc - self._scale * _ops.Sign(uniform) * _ops.Log1p(-_ops.Abs(uniform))

    def _log_prob(self, x):
        return -_ops.Abs((x - self._loc) / self._scale) - math.log(2.0) - _ops.Log(self._scale)

    def entropy(self, name="entropy"):
        return math.log(2.0) + 1.0 + _ops.Log(self._scale + _ops.ZerosLike(self._loc))

    def mean(self, name="mean"):
        return self._loc + _ops.ZerosLike(self._scale)

    mode = mean

    def stddev(self, name="stddev"):
        return 2.0 ** 0.5 * self._scale + _ops.ZerosLike(self._loc)

    def variance(self, name="variance"):
        return _ops.Square(self.stddev())


class RegisterKL:
    """@RegisterKL(A, B): the function that gives the divergence of an A from a B."""

    def __init__(self, dist_cls_a, dist_cls_b):
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn):
        if self._key in _kl_rules:
            raise ValueError("KL(%s || %s) has already been registered" % tuple(cls.__name__ for cls in self._key))
        _kl_rules[self._key] = kl_fn
        return kl_fn


def kl_divergence(distribution_a, distribution_b, allow_nan_stats=True, name=None):
    """The divergence of a from b."""
    for first in type(distribution_a).__mro__:
        for second in type(distribution_b).__mro__:
            rule = _kl_rules.get((first, second))
            if rule is not None:
                with name_scope(name, "KullbackLeibler"):
                    return rule(distribution_a, distribution_b, name=name)
    raise NotImplementedError("No KL(distribution_a || distribution_b) registered for distribution_a type %s and distribution_b type %s" % (
        type(distribution_a).__name__, type(distribution_b).__name__))


@RegisterKL(Normal, Normal)
def _kl_normal(a, b, name=None):
    ratio = _ops.Square(a.scale) / _ops.Square(b.scale)
    return _ops.Square(a.loc - b.loc) / (2.0 * _ops.Square(b.scale)) + 0.5 * (ratio - 1.0 - _ops.Log(ratio))


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a, b, name=None):
    one = _ops.Sigmoid(a.logits) * (_ops.Softplus(-b.logits) - _ops.Softplus(-a.logits))
    zero = _ops.Sigmoid(-a.logits) * (_ops.Softplus(b.logits) - _ops.Softplus(a.logits))
    return one + zero


@RegisterKL(Categorical, Categorical)
def _kl_categorical(a, b, name=None):
    from runnel.math_ops import reduce_sum
    return reduce_sum(_ops.Softmax(a.logits) * (_ops.LogSoftmax(a.logits) - _ops.LogSoftmax(b.logits)), axis=-1)
