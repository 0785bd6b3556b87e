"""Random tensors that are determined by a seed given with each step."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.core.naming import named
from runnel.core.tensor_util import shape_tensor


def _keys(seed):
    key, counter = _ops.StatelessRandomGetKeyCounter(seed)
    return key, counter, _ops.StatelessRandomGetAlg()


def stateless_random_uniform(shape, seed, minval=0, maxval=None, dtype=dtypes.float32, name=None, alg="auto_select"):
    """Returns values from a uniform distribution, determined by `seed`."""
    dtype = dtypes.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer and minval is not None:
            raise ValueError("Must specify maxval for integer dtype %r" % dtype)
        maxval = None if dtype.is_integer else 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        shape = shape_tensor(shape)
        key, counter, algorithm = _keys(seed)
        if dtype.is_integer:
            if minval is None:
                return _ops.StatelessRandomUniformFullIntV2(shape, key, counter, algorithm, dtype=dtype, name=scope)
            minval = convert_to_tensor(minval, dtype=dtype, name="min")
            maxval = convert_to_tensor(maxval, dtype=dtype, name="max")
            return _ops.StatelessRandomUniformIntV2(shape, key, counter, algorithm, minval, maxval, name=scope)
        minval = convert_to_tensor(minval, dtype=dtype, name="min")
        maxval = convert_to_tensor(maxval, dtype=dtype, name="max")
        values = _ops.StatelessRandomUniformV2(shape, key, counter, algorithm, dtype=dtype)
        return _ops.AddV2(values * (maxval - minval), minval, name=scope)


def _normal(op, default_name):
    def function(shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None, alg="auto_select"):
        with name_scope(name, default_name, [shape, seed, mean, stddev]) as scope:
            shape = shape_tensor(shape)
            mean = convert_to_tensor(mean, dtype=dtype, name="mean")
            stddev = convert_to_tensor(stddev, dtype=dtype, name="stddev")
            key, counter, algorithm = _keys(seed)
            values = getattr(_ops, op)(shape, key, counter, algorithm, dtype=dtype)
            return _ops.AddV2(values * stddev, mean, name=scope)
    return named(function, default_name, "Returns values from a %snormal distribution, determined by `seed`, two integers." % (
        "truncated " if "truncated" in default_name else ""))


stateless_random_normal = _normal("StatelessRandomNormalV2", "stateless_random_normal")
stateless_truncated_normal = _normal("StatelessTruncatedNormalV2", "stateless_truncated_normal")


def stateless_multinomial(logits, num_samples, seed, output_dtype=dtypes.int64, name=None):
    """Draws class indices according to unnormalized log-probabilities, determined by `seed`."""
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        return _ops.StatelessMultinomial(convert_to_tensor(logits, name="logits"), num_samples, seed, output_dtype=output_dtype)


def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64, name=None):
    """Draws class indices according to unnormalized log-probabilities, determined by `seed`."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        return stateless_multinomial(logits, num_samples, seed, dtype)


def stateless_random_gamma(shape, seed, alpha, beta=None, dtype=dtypes.float32, name=None):
    """Returns values from gamma distributions, determined by `seed`; `shape` ends with that of `alpha` and `beta`."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]) as scope:
        import numpy as np
        dtype = dtypes.as_dtype(dtype)
        alpha = convert_to_tensor(alpha, dtype=dtype, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype=dtype, name="beta")
        both = _ops.BroadcastArgs(_ops.Shape(alpha), _ops.Shape(beta))
        key, counter, algorithm = _keys(seed)
        values = _ops.StatelessRandomGammaV3(shape_tensor(shape), key, counter, algorithm, _ops.BroadcastTo(alpha, both))
        return _ops.Maximum(convert_to_tensor(np.finfo(dtype.as_numpy_dtype).tiny, dtype=dtype), values / beta, name=scope)


def stateless_random_binomial(shape, seed, counts, probs, output_dtype=dtypes.int32, name=None):
    """Returns values from binomial distributions, determined by `seed`."""
    with name_scope(name, "stateless_random_binomial", [shape, seed, counts, probs]) as scope:
        probs = convert_to_tensor(probs, dtype_hint=dtypes.float32, name="probs")
        counts = convert_to_tensor(counts, dtype_hint=probs.dtype, name="counts")
        return _ops.StatelessRandomBinomial(shape_tensor(shape), seed, counts, probs, dtype=output_dtype, name=scope)


def split(seed, num=2, alg="auto_select"):
    """Returns `num` seeds that are derived from a seed, [num, 2]."""
    seed = convert_to_tensor(seed)
    return stateless_random_uniform([num, 2], seed, minval=None, maxval=None, dtype=seed.dtype, alg=alg)


def fold_in(seed, data, alg="auto_select"):
    """Returns a seed that is derived from a seed and an integer."""
    from runnel.ops import array_ops
    data = convert_to_tensor(data)
    other = stateless_random_uniform([], seed, minval=None, maxval=None, dtype=data.dtype, alg=alg)
    return array_ops.stack([other, data])


def stateless_random_poisson(shape, seed, lam, dtype=dtypes.int32, name=None):
    """Returns values from Poisson distributions, determined by `seed`; `shape` ends with that of `lam`."""
    with name_scope(name, "stateless_random_poisson", [shape, seed, lam]) as scope:
        return _ops.StatelessRandomPoisson(shape_tensor(shape), seed, convert_to_tensor(lam), dtype=dtypes.as_dtype(dtype), name=scope)


def stateless_parameterized_truncated_normal(shape, seed, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, name=None):
    """Returns values from normal distributions that are cut off at `minvals` and `maxvals`, determined by `seed`."""
    with name_scope(name, "stateless_parameterized_truncated_normal", [shape, seed, means, stddevs, minvals, maxvals]) as scope:
        means = convert_to_tensor(means)
        rest = [convert_to_tensor(value, means.dtype) for value in (stddevs, minvals, maxvals)]
        return _ops.StatelessParameterizedTruncatedNormal(shape_tensor(shape), seed, means, *rest, name=scope)


_FIRST_OF_THREE = 498247692  # what stock puts before the two numbers of a seed; the op takes three


def index_shuffle(index, seed, max_index):
    """Returns the place of an index in a permutation of 0 to max_index, which `seed`, two integers, determines."""
    from runnel.ops import array_ops
    seed = convert_to_tensor(seed)
    first = array_ops.fill(array_ops.shape(seed[..., :1]), convert_to_tensor(_FIRST_OF_THREE, seed.dtype))
    return _ops.RandomIndexShuffle(index, seed=array_ops.concat([first, seed], -1), max_index=max_index, rounds=4)


def stateless_shuffle(value, seed, alg="auto_select", name=None):
    """Returns the rows of a tensor in an order that `seed` determines."""
    with name_scope(name, "stateless_shuffle", [value, seed]) as scope:
        key, counter, algorithm = _keys(seed)
        return _ops.StatelessShuffle(convert_to_tensor(value, name="value"), key, counter, algorithm, name=scope)
