"""tf.distributions: probability distributions."""

import math
import operator

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops.math_ops import cast, reduce_sum

_kl_rules: dict = {}


class ReparameterizationType:
    """Whether gradients pass through samples."""

    def __init__(self, rep_type):
        self._rep_type = rep_type

    def __repr__(self):
        return "<Reparameterization Type: %s>" % self._rep_type


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """The base of distributions: sample, prob, log_prob, cdf, entropy, mean, variance, stddev, mode."""

    reparameterization_type = NOT_REPARAMETERIZED

    def __init__(self, dtype, name, parameters):
        self._dtype, self._name, self._parameters = dtype, name, parameters
        shape = parameters[0].shape
        for other in parameters[1:]:
            from runnel.ops.array_ops import broadcast_static_shape
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
        from runnel.core.tensor_shape import TensorShape
        return TensorShape([])

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        shape = _ops.Shape(self._parameters[0])
        for other in self._parameters[1:]:
            shape = _ops.BroadcastArgs(shape, _ops.Shape(other))
        return shape

    def sample(self, sample_shape=(), seed=None, name="sample"):
        """Draws samples; `sample_shape` comes before the shape of the parameters."""
        from runnel.ops.array_ops import concat, reshape
        with name_scope(self._name + "/" if not self._name.endswith("/") else self._name), name_scope(name):
            dims = convert_to_tensor(sample_shape, dtype=dtypes.int32, name="sample_shape")
            flat = reshape(dims, [-1])
            count = _ops.Prod(flat, 0)
            drawn = self._sample_n(count, seed)
            return reshape(drawn, concat([flat, _ops.Shape(drawn)[1:]], 0))

    def _shape_of(self, count):
        from runnel.ops.array_ops import concat, reshape
        return concat([reshape(count, [1]), self.batch_shape_tensor()], 0)

    def prob(self, value, name="prob"):
        return _ops.Exp(self.log_prob(value))

    def log_prob(self, value, name="log_prob"):
        """Returns the logarithm of the density or probability."""
        with name_scope(name):
            return self._log_prob(convert_to_tensor(value, dtype_hint=self._dtype, name="value"))

    def cdf(self, value, name="cdf"):
        """Returns the probability of a value not above `value`."""
        return self._cdf(convert_to_tensor(value, dtype_hint=self._dtype))

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


class _Continuous(Distribution):
    """A distribution over real numbers. `_names` are the parameters in the constructor's order: tensors of one type, and attributes."""

    _names = ()
    reparameterization_type = FULLY_REPARAMETERIZED

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for label in cls._names:
            setattr(cls, label, property(operator.attrgetter("_" + label)))

    def __init__(self, *given, name):
        tensors = []
        with name_scope(name, values=list(given)) as scope:
            for label, value in zip(self._names, given):
                tensors.append(convert_to_tensor(value, dtype=tensors[0].dtype.base_dtype if tensors else None, name=label))
                setattr(self, "_" + label, tensors[-1])
        super().__init__(tensors[0].dtype.base_dtype, scope or name, tensors)

    def _uniform(self, count, seed, low):
        """Returns uniform random numbers between `low` (or 0) and 1, in the shape of `count` samples."""
        from runnel.ops.random_ops import random_uniform
        return random_uniform(self._shape_of(count), minval=low, maxval=1.0, dtype=self._dtype, seed=seed)


class Normal(_Continuous):
    """The normal distribution."""

    _names = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=False, allow_nan_stats=True, name="Normal"):
        super().__init__(loc, scale, name=name)

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_normal
        return random_normal(self._shape_of(count), mean=0.0, stddev=1.0, dtype=self._dtype, seed=seed) * self._scale + self._loc

    def _z(self, x):
        return (x - self._loc) / self._scale

    def _log_prob(self, x):
        return -0.5 * _ops.Square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + _ops.Log(self._scale))

    def _cdf(self, x):
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


class Uniform(_Continuous):
    """The uniform distribution over [low, high)."""

    _names = ("low", "high")

    def __init__(self, low=0.0, high=1.0, validate_args=False, allow_nan_stats=True, name="Uniform"):
        super().__init__(low, high, name=name)

    def range(self, name="range"):
        return self._high - self._low

    def _sample_n(self, count, seed):
        return self._low + self.range() * self._uniform(count, seed, 0.0)

    def _log_prob(self, x):
        return _ops.Log(self.prob(x))

    def prob(self, value, name="prob"):
        x = convert_to_tensor(value, dtype_hint=self._dtype) * _ops.OnesLike(self._low)
        inside = _ops.LogicalAnd(_ops.GreaterEqual(x, self._low), _ops.Less(x, self._high))
        return _ops.SelectV2(inside, _ops.OnesLike(x) / self.range(), _ops.ZerosLike(x))

    def _cdf(self, x):
        return _ops.Minimum(_ops.Maximum((x - self._low) / self.range(), 0.0), 1.0)

    def entropy(self, name="entropy"):
        return _ops.Log(self.range())

    def mean(self, name="mean"):
        return (self._low + self._high) / 2.0

    def variance(self, name="variance"):
        return _ops.Square(self.range()) / 12.0


class Exponential(_Continuous):
    """The exponential distribution."""

    _names = ("rate",)

    def __init__(self, rate, validate_args=False, allow_nan_stats=True, name="Exponential"):
        super().__init__(rate, name=name)

    def _sample_n(self, count, seed):
        import numpy as np
        return -_ops.Log(self._uniform(count, seed, float(np.finfo(self._dtype.as_numpy_dtype).tiny))) / self._rate

    def _log_prob(self, x):
        return _ops.Log(self._rate) - self._rate * x

    def _cdf(self, x):
        return -_ops.Expm1(-self._rate * x)

    def entropy(self, name="entropy"):
        return 1.0 - _ops.Log(self._rate)

    def mean(self, name="mean"):
        return 1.0 / self._rate

    def variance(self, name="variance"):
        return 1.0 / _ops.Square(self._rate)


class Laplace(_Continuous):
    """The Laplace distribution."""

    _names = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=False, allow_nan_stats=True, name="Laplace"):
        super().__init__(loc, scale, name=name)

    def _sample_n(self, count, seed):
        import numpy as np
        kind = self._dtype.as_numpy_dtype
        uniform = self._uniform(count, seed, float(np.nextafter(kind(-1.0), kind(0.0))))
        return self._loc - self._scale * _ops.Sign(uniform) * _ops.Log1p(-_ops.Abs(uniform))

    def _log_prob(self, x):
        return -_ops.Abs((x - self._loc) / self._scale) - math.log(2.0) - _ops.Log(self._scale)

    def _cdf(self, x):
        z = (x - self._loc) / self._scale
        return 0.5 - 0.5 * _ops.Sign(z) * _ops.Expm1(-_ops.Abs(z))

    def entropy(self, name="entropy"):
        return math.log(2.0) + 1.0 + _ops.Log(self._scale + _ops.ZerosLike(self._loc))

    def mean(self, name="mean"):
        return self._loc + _ops.ZerosLike(self._scale)

    mode = mean

    def stddev(self, name="stddev"):
        return 2.0 ** 0.5 * self._scale + _ops.ZerosLike(self._loc)

    def variance(self, name="variance"):
        return _ops.Square(self.stddev())


class Gamma(_Continuous):
    """The gamma distribution."""

    _names = ("concentration", "rate")

    def __init__(self, concentration, rate, validate_args=False, allow_nan_stats=True, name="Gamma"):
        super().__init__(concentration, rate, name=name)

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_gamma
        return random_gamma([count], alpha=self._concentration, beta=self._rate, dtype=self._dtype, seed=seed)

    def _log_prob(self, x):
        a, b = self._concentration, self._rate
        return (a - 1.0) * _ops.Log(x) - b * x - (_ops.Lgamma(a) - a * _ops.Log(b))

    def _cdf(self, x):
        return _ops.Igamma(self._concentration, self._rate * x)

    def entropy(self, name="entropy"):
        a = self._concentration
        return a - _ops.Log(self._rate) + _ops.Lgamma(a) + (1.0 - a) * _ops.Digamma(a)

    def mean(self, name="mean"):
        return self._concentration / self._rate

    def variance(self, name="variance"):
        return self._concentration / _ops.Square(self._rate)

    def stddev(self, name="stddev"):
        return _ops.Sqrt(self._concentration) / self._rate

    def mode(self, name="mode"):
        """Returns the mode; NaN where it is at 0."""
        at = (self._concentration - 1.0) / self._rate
        return _ops.SelectV2(self._concentration + _ops.ZerosLike(self._rate) > 1.0, at, math.nan * _ops.OnesLike(at))


class Beta(_Continuous):
    """The beta distribution."""

    _names = ("concentration1", "concentration0")

    def __init__(self, concentration1=None, concentration0=None, validate_args=False, allow_nan_stats=True, name="Beta"):
        super().__init__(concentration1, concentration0, name=name)

    @property
    def total_concentration(self):
        return self._concentration1 + self._concentration0

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_gamma
        shape = _ops.OnesLike(self.total_concentration)
        one, other = (random_gamma([count], alpha=c * shape, dtype=self._dtype, seed=None if seed is None else seed + i)
                      for i, c in enumerate((self._concentration1, self._concentration0)))
        return one / (one + other)

    def _log_beta(self):
        return _ops.Lgamma(self._concentration1) + _ops.Lgamma(self._concentration0) - _ops.Lgamma(self.total_concentration)

    def _log_prob(self, x):
        return (self._concentration1 - 1.0) * _ops.Log(x) + (self._concentration0 - 1.0) * _ops.Log1p(-x) - self._log_beta()

    def _cdf(self, x):
        a, b = self._concentration1, self._concentration0
        zero = _ops.ZerosLike(a + b + x)
        return _ops.Betainc(a + zero, b + zero, x + zero)

    def entropy(self, name="entropy"):
        a, b, both = self._concentration1, self._concentration0, self.total_concentration
        return self._log_beta() - (a - 1.0) * _ops.Digamma(a) - (b - 1.0) * _ops.Digamma(b) + (both - 2.0) * _ops.Digamma(both)

    def mean(self, name="mean"):
        return self._concentration1 / self.total_concentration

    def variance(self, name="variance"):
        return self.mean() * (1.0 - self.mean()) / (1.0 + self.total_concentration)

    def mode(self, name="mode"):
        """Returns the mode; NaN where it is at an end."""
        at = (self._concentration1 - 1.0) / (self.total_concentration - 2.0)
        inside = _ops.LogicalAnd(self._concentration1 > 1.0, self._concentration0 > 1.0)
        return _ops.SelectV2(inside, at, math.nan * _ops.OnesLike(at))


class StudentT(_Continuous):
    """Student's t-distribution."""

    _names = ("df", "loc", "scale")

    def __init__(self, df, loc, scale, validate_args=False, allow_nan_stats=True, name="StudentT"):
        super().__init__(df, loc, scale, name=name)

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_gamma, random_normal
        normal = random_normal(self._shape_of(count), dtype=self._dtype, seed=seed)
        df = self._df * _ops.OnesLike(self._loc + self._scale)
        gamma = random_gamma([count], alpha=0.5 * df, beta=0.5, dtype=self._dtype, seed=None if seed is None else seed + 1)
        return normal * _ops.Rsqrt(gamma / df) * self._scale + self._loc

    def _log_prob(self, x):
        y = (x - self._loc) / self._scale
        norm = _ops.Log(_ops.Abs(self._scale)) + 0.5 * _ops.Log(self._df) + 0.5 * math.log(math.pi) + _ops.Lgamma(0.5 * self._df) - _ops.Lgamma(
            0.5 * (self._df + 1.0))
        return -0.5 * (self._df + 1.0) * _ops.Log1p(_ops.Square(y) / self._df) - norm

    def _cdf(self, x):
        y = (x - self._loc) / _ops.Abs(self._scale)
        df = self._df + _ops.ZerosLike(y)
        tail = 0.5 * _ops.Betainc(0.5 * df, 0.5 * _ops.OnesLike(df), df / (_ops.Square(y) + df))
        return _ops.SelectV2(y < 0.0, tail, 1.0 - tail)

    def _known_above(self, limit, value, otherwise=math.nan):
        """Returns a moment that exists only for more degrees of freedom than `limit`."""
        value = value + _ops.ZerosLike(self._df + self._loc + self._scale)
        return _ops.SelectV2(self._df + _ops.ZerosLike(value) > limit, value, otherwise * _ops.OnesLike(value))

    def mean(self, name="mean"):
        return self._known_above(1.0, self._loc)

    def mode(self, name="mode"):
        return _ops.Identity(self._loc)

    def variance(self, name="variance"):
        spread = _ops.Square(self._scale) * self._df / _ops.Maximum(self._df - 2.0, 1e-30)
        infinite = self._known_above(1.0, math.inf * _ops.OnesLike(spread))
        return _ops.SelectV2(self._df + _ops.ZerosLike(infinite) > 2.0, spread + _ops.ZerosLike(self._loc), infinite)

    def entropy(self, name="entropy"):
        half = 0.5 * (self._df + 1.0)
        log_beta = math.lgamma(0.5) + _ops.Lgamma(0.5 * self._df) - _ops.Lgamma(half)
        return (_ops.Log(_ops.Abs(self._scale)) + 0.5 * _ops.Log(self._df) + log_beta + half * (_ops.Digamma(half) - _ops.Digamma(0.5 * self._df))
                + _ops.ZerosLike(self._loc))


class _Discrete(Distribution):
    """A distribution over classes, given by probabilities or logits; `_probs_of` and `_logits_of` convert between them."""

    def __init__(self, logits, probs, dtype, name):
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        with name_scope(name, values=[logits, probs]) as scope:
            if logits is not None:
                self._logits = convert_to_tensor(logits, name="logits", dtype_hint=dtypes.float32)
                self._probs = self._probs_of(self._logits)
            else:
                self._probs = convert_to_tensor(probs, name="probs", dtype_hint=dtypes.float32)
                self._logits = self._logits_of(self._probs)
        super().__init__(dtypes.as_dtype(dtype), scope or name, [self._logits])

    logits = property(operator.attrgetter("_logits"))
    probs = property(operator.attrgetter("_probs"))


class Bernoulli(_Discrete):
    """The Bernoulli distribution over 0 and 1."""

    def __init__(self, logits=None, probs=None, dtype=dtypes.int32, validate_args=False, allow_nan_stats=True, name="Bernoulli"):
        super().__init__(logits, probs, dtype, name)

    def _probs_of(self, logits):
        return _ops.Sigmoid(logits)

    def _logits_of(self, probs):
        return _ops.Log(probs) - _ops.Log1p(-1.0 * probs)

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_uniform
        uniform = random_uniform(self._shape_of(count), seed=seed, dtype=self._probs.dtype)
        return cast(_ops.Less(uniform, self._probs), self._dtype)

    def _log_prob(self, event):
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
        return cast(self._probs > 0.5, self._dtype)


class Categorical(_Discrete):
    """The distribution over class indices."""

    def __init__(self, logits=None, probs=None, dtype=dtypes.int32, validate_args=False, allow_nan_stats=True, name="Categorical"):
        super().__init__(logits, probs, dtype, name)
        self._shape = self._logits.shape[:-1]

    def _probs_of(self, logits):
        return _ops.Softmax(logits)

    def _logits_of(self, probs):
        return _ops.Log(probs)

    @property
    def event_size(self):
        return convert_to_tensor(self._logits.shape.dims[-1].value, dtype=dtypes.int32)

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        return _ops.Shape(self._logits)[:-1]

    def _sample_n(self, count, seed):
        from runnel.ops.array_ops import concat, reshape, transpose
        from runnel.ops.random_ops import multinomial
        rows = reshape(self._logits, [-1, self._logits.shape.dims[-1].value])
        drawn = transpose(multinomial(rows, count, seed=seed))
        return cast(reshape(drawn, concat([reshape(count, [1]), self.batch_shape_tensor()], 0)), self._dtype)

    def _log_prob(self, k):
        classes = self._logits.shape.dims[-1].value
        hot = _ops.OneHot(cast(k, dtypes.int32), classes, convert_to_tensor(1, dtype=self._logits.dtype), convert_to_tensor(0, dtype=self._logits.dtype))
        return reduce_sum(hot * _ops.LogSoftmax(self._logits), axis=-1)

    def entropy(self, name="entropy"):
        logs = _ops.LogSoftmax(self._logits)
        return -reduce_sum(_ops.MulNoNan(logs, _ops.Exp(logs)), axis=-1)

    def mode(self, name="mode"):
        return cast(_ops.ArgMax(self._logits, -1), self._dtype)


class RegisterKL:
    """A decorator: @RegisterKL(A, B) registers the function that computes the KL divergence of an A from a B."""

    def __init__(self, dist_cls_a, dist_cls_b):
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn):
        if self._key in _kl_rules:
            raise ValueError("KL(%s || %s) has already been registered" % tuple(cls.__name__ for cls in self._key))
        _kl_rules[self._key] = kl_fn
        return kl_fn


def kl_divergence(distribution_a, distribution_b, allow_nan_stats=True, name=None):
    """Returns the KL divergence of `distribution_a` from `distribution_b`."""
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
    return reduce_sum(_ops.Softmax(a.logits) * (_ops.LogSoftmax(a.logits) - _ops.LogSoftmax(b.logits)), axis=-1)


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a, b, name=None):
    ratio = b.rate / a.rate
    return ((a.concentration - b.concentration) * _ops.Digamma(a.concentration) + _ops.Lgamma(b.concentration) - _ops.Lgamma(a.concentration)
            - b.concentration * _ops.Log(ratio) + a.concentration * (ratio - 1.0))


@RegisterKL(Beta, Beta)
def _kl_beta(a, b, name=None):
    one, zero = a.concentration1 - b.concentration1, a.concentration0 - b.concentration0
    return (b._log_beta() - a._log_beta() + one * _ops.Digamma(a.concentration1) + zero * _ops.Digamma(a.concentration0)
            - (one + zero) * _ops.Digamma(a.total_concentration))


def __getattr__(name):
    if name in ("Dirichlet", "DirichletMultinomial", "Multinomial"):
        from runnel import vector_distributions
        return getattr(vector_distributions, name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
