"""tf.distributions over vectors: Dirichlet, Multinomial and DirichletMultinomial."""

import math

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.distributions import FULLY_REPARAMETERIZED, Distribution, RegisterKL
from runnel.ops import array_ops
from runnel.ops.math_ops import cast, reduce_sum


def _log_beta(x):
    """Returns the logarithm of the multivariate beta function of the last dimension."""
    return reduce_sum(_ops.Lgamma(x), axis=-1) - _ops.Lgamma(reduce_sum(x, axis=-1))


def _log_combinations(total, counts):
    """Returns the logarithm of total! / (counts[0]! counts[1]! ...)."""
    return _ops.Lgamma(total + 1.0) - reduce_sum(_ops.Lgamma(counts + 1.0), axis=-1)


def _outer(vectors):
    return array_ops.expand_dims(vectors, -1) * array_ops.expand_dims(vectors, -2)


class _Vectors(Distribution):
    """A distribution over vectors, as long as the last dimension of `_parameters[0]`."""

    @property
    def batch_shape(self):
        return self._shape[:-1]

    @property
    def event_shape(self):
        return self._parameters[0].shape[-1:]

    def event_shape_tensor(self, name="event_shape_tensor"):
        """Returns the length of the vectors, in a vector."""
        return _ops.Shape(self._parameters[0])[-1:]

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        shape = _ops.Shape(self._parameters[0])[:-1]
        for other in self._parameters[1:]:
            shape = _ops.BroadcastArgs(shape, _ops.Shape(other)[:-1])
        return shape

    def variance(self, name="variance"):
        return array_ops.matrix_diag_part(self.covariance())

    def _draw_counts(self, total, logits, count, seed):
        """Returns `count` vectors per row of logits: how often each class comes in total[i] draws."""
        from runnel.ops.random_ops import multinomial
        classes = array_ops.shape(logits)[-1]
        flat = array_ops.reshape(logits, [-1, classes])
        totals = cast(array_ops.reshape(_ops.BroadcastTo(total, array_ops.shape(logits)[:-1]), [-1]), dtypes.int32)
        most = _ops.Max(array_ops.concat([totals, [0]], 0), 0)
        drawn = array_ops.reshape(multinomial(flat, count * most, seed=seed), array_ops.concat([[-1], [count], [most]], 0))
        counted = _ops.LessEqual(_ops.Range(1, most + 1, 1), array_ops.reshape(totals, [-1, 1, 1]))
        hot = _ops.OneHot(drawn, classes, convert_to_tensor(1.0, self._dtype), convert_to_tensor(0.0, self._dtype))
        counts = reduce_sum(hot * cast(array_ops.expand_dims(counted, -1), self._dtype), axis=-2)
        counts = array_ops.transpose(counts, [1, 0, 2])
        return array_ops.reshape(counts, array_ops.concat([[count], array_ops.shape(logits)], 0))


class Dirichlet(_Vectors):
    """The Dirichlet distribution over vectors of probabilities."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(self, concentration, validate_args=False, allow_nan_stats=True, name="Dirichlet"):
        with name_scope(name, values=[concentration]) as scope:
            self._concentration = convert_to_tensor(concentration, name="concentration")
        super().__init__(self._concentration.dtype, scope or name, [self._concentration])

    concentration = property(lambda self: self._concentration)
    total_concentration = property(lambda self: reduce_sum(self._concentration, axis=-1))

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_gamma
        drawn = random_gamma([count], alpha=self._concentration, dtype=self._dtype, seed=seed)
        return drawn / reduce_sum(drawn, axis=-1, keepdims=True)

    def _log_prob(self, x):
        return reduce_sum((self._concentration - 1.0) * _ops.Log(x), axis=-1) - _log_beta(self._concentration)

    def mean(self, name="mean"):
        return self._concentration / array_ops.expand_dims(self.total_concentration, -1)

    def _spread(self):
        return array_ops.expand_dims(1.0 + self.total_concentration, -1)

    def covariance(self, name="covariance"):
        mean = self.mean()
        return (array_ops.matrix_diag(mean) - _outer(mean)) / array_ops.expand_dims(self._spread(), -1)

    def variance(self, name="variance"):
        mean = self.mean()
        return mean * (1.0 - mean) / self._spread()

    def entropy(self, name="entropy"):
        total, classes = self.total_concentration, cast(self.event_shape_tensor()[0], self._dtype)
        inner = reduce_sum((self._concentration - 1.0) * _ops.Digamma(self._concentration), axis=-1)
        return _log_beta(self._concentration) + (total - classes) * _ops.Digamma(total) - inner

    def mode(self, name="mode"):
        """Returns the mode; NaN where a concentration is not above 1."""
        classes = cast(self.event_shape_tensor()[0], self._dtype)
        at = (self._concentration - 1.0) / array_ops.expand_dims(self.total_concentration - classes, -1)
        inside = _ops.All(self._concentration > 1.0, -1, keep_dims=True)
        return _ops.SelectV2(inside, at, math.nan * _ops.OnesLike(at))


class Multinomial(_Vectors):
    """How often each class comes in a number of draws."""

    def __init__(self, total_count, logits=None, probs=None, validate_args=False, allow_nan_stats=True, name="Multinomial"):
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        with name_scope(name, values=[total_count, logits, probs]) as scope:
            if logits is not None:
                self._logits = convert_to_tensor(logits, name="logits", dtype_hint=dtypes.float32)
                self._probs = _ops.Softmax(self._logits)
            else:
                self._probs = convert_to_tensor(probs, name="probs", dtype_hint=dtypes.float32)
                self._logits = _ops.Log(self._probs)
            self._total_count = convert_to_tensor(total_count, dtype=self._logits.dtype, name="total_count")
        super().__init__(self._logits.dtype, scope or name, [self._logits, array_ops.expand_dims(self._total_count, -1)])

    total_count = property(lambda self: self._total_count)
    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _sample_n(self, count, seed):
        whole = array_ops.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return self._draw_counts(self._total_count, _ops.BroadcastTo(self._logits, whole), count, seed)

    def _log_prob(self, counts):
        return reduce_sum(counts * _ops.LogSoftmax(self._logits), axis=-1) + _log_combinations(self._total_count, counts)

    def mean(self, name="mean"):
        return self._probs * array_ops.expand_dims(self._total_count, -1)

    def covariance(self, name="covariance"):
        total = array_ops.expand_dims(array_ops.expand_dims(self._total_count, -1), -1)
        return total * (array_ops.matrix_diag(self._probs) - _outer(self._probs))

    def variance(self, name="variance"):
        return self.mean() * (1.0 - self._probs)


class DirichletMultinomial(_Vectors):
    """A multinomial distribution whose probabilities come from a Dirichlet distribution."""

    def __init__(self, total_count, concentration, validate_args=False, allow_nan_stats=True, name="DirichletMultinomial"):
        with name_scope(name, values=[total_count, concentration]) as scope:
            self._concentration = convert_to_tensor(concentration, name="concentration", dtype_hint=dtypes.float32)
            self._total_count = convert_to_tensor(total_count, dtype=self._concentration.dtype, name="total_count")
        super().__init__(self._concentration.dtype, scope or name, [self._concentration, array_ops.expand_dims(self._total_count, -1)])

    total_count = property(lambda self: self._total_count)
    concentration = property(lambda self: self._concentration)
    total_concentration = property(lambda self: reduce_sum(self._concentration, axis=-1))

    def _sample_n(self, count, seed):
        from runnel.ops.random_ops import random_gamma
        whole = array_ops.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        drawn = random_gamma([count], alpha=_ops.BroadcastTo(self._concentration, whole), dtype=self._dtype, seed=seed)
        counts = self._draw_counts(self._total_count, _ops.Log(drawn), 1, None if seed is None else seed + 1)
        return counts[0]

    def _log_prob(self, counts):
        return _log_beta(self._concentration + counts) - _log_beta(self._concentration) + _log_combinations(self._total_count, counts)

    def _mean_probs(self):
        return self._concentration / array_ops.expand_dims(self.total_concentration, -1)

    def mean(self, name="mean"):
        return array_ops.expand_dims(self._total_count, -1) * self._mean_probs()

    def _spread(self):
        """Returns by how much more counts vary than those of a multinomial distribution."""
        total = self.total_concentration
        return array_ops.expand_dims((total + self._total_count) / (total + 1.0), -1)

    def covariance(self, name="covariance"):
        probs = self._mean_probs()
        scale = array_ops.expand_dims(array_ops.expand_dims(self._total_count, -1) * self._spread(), -1)
        return scale * (array_ops.matrix_diag(probs) - _outer(probs))

    def variance(self, name="variance"):
        probs = self._mean_probs()
        return array_ops.expand_dims(self._total_count, -1) * probs * (1.0 - probs) * self._spread()


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a, b, name=None):
    """Returns the Kullback-Leibler divergence of two Dirichlet distributions."""
    difference = _ops.Digamma(a.concentration) - array_ops.expand_dims(_ops.Digamma(a.total_concentration), -1)
    inner = reduce_sum((a.concentration - b.concentration) * difference, axis=-1)
    return inner - _log_beta(a.concentration) + _log_beta(b.concentration)
