"""Random tensors, and the seeds that make them repeatable."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import get_default_graph, name_scope
from runnel.core.tensor_util import shape_tensor

DEFAULT_GRAPH_SEED = 87654321
_MAXINT32 = 2**31 - 1


def set_random_seed(seed):
    """Sets the graph's seed, from which the operations built afterwards derive their own seeds."""
    from runnel.core import framework
    if framework.executing_eagerly():
        from runnel.eager import context as eager
        eager.set_seed(seed)
    else:
        get_default_graph().seed = seed


def get_seed(op_seed):
    """Returns (seed, seed2) of an operation, from the graph's seed and its own. (None, None) means any seed."""
    from runnel.core import framework
    if framework.executing_eagerly():
        from runnel.eager import context as eager
        global_seed, next_seed = eager.seed_state()
    else:
        graph = get_default_graph()
        global_seed, next_seed = graph.seed, graph._next_seed
    if global_seed is not None:
        if op_seed is None:
            op_seed = next_seed()
        seeds = (_truncate(global_seed), _truncate(op_seed))
    elif op_seed is not None:
        seeds = (DEFAULT_GRAPH_SEED, _truncate(op_seed))
    else:
        return (None, None)
    # (0, 0) means "any" to the ops.
    return (0, _MAXINT32) if seeds == (0, 0) else seeds


def _truncate(seed):
    return seed % _MAXINT32


def random_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Returns random values from a normal distribution."""
    with name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        dims = shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = convert_to_tensor(stddev, dtype=dtype, name="stddev")
        seed1, seed2 = get_seed(seed)
        values = _ops.RandomStandardNormal(dims, dtype, seed=seed1, seed2=seed2)
        return _ops.AddV2(values * stddev, mean, name=scope)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Returns random values from a normal distribution, within two standard deviations of the mean."""
    with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        dims = shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = convert_to_tensor(stddev, dtype=dtype, name="stddev")
        seed1, seed2 = get_seed(seed)
        values = _ops.TruncatedNormal(dims, dtype, seed=seed1, seed2=seed2)
        return _ops.AddV2(values * stddev, mean, name=scope)


def parameterized_truncated_normal(shape, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, dtype=dtypes.float32,
                                   seed=None, name=None):
    """Returns random values from truncated normal distributions, with parameters for each row."""
    with name_scope(name, "parameterized_truncated_normal", [shape, means, stddevs, minvals, maxvals]) as scope:
        dims = shape_tensor(shape)
        means, stddevs, minvals, maxvals = (
            convert_to_tensor(value, dtype=dtype, name=label) for value, label in (
                (means, "means"), (stddevs, "stddevs"), (minvals, "minvals"), (maxvals, "maxvals")))
        seed1, seed2 = get_seed(seed)
        return _ops.ParameterizedTruncatedNormal(dims, means, stddevs, minvals, maxvals, seed=seed1, seed2=seed2,
                                                 name=scope)


def random_uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Returns random values from a uniform distribution over [minval, maxval)."""
    dtype = dtypes.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError("Must specify maxval for integer dtype %r" % dtype)
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        dims = shape_tensor(shape)
        is_zero = isinstance(minval, int) and minval == 0
        is_one = isinstance(maxval, int) and maxval == 1
        if not is_zero or dtype.is_integer or not is_one:
            minval = convert_to_tensor(minval, dtype=dtype, name="min")
            maxval = convert_to_tensor(maxval, dtype=dtype, name="max")
        seed1, seed2 = get_seed(seed)
        if dtype.is_integer:
            return _ops.RandomUniformInt(dims, minval, maxval, seed=seed1, seed2=seed2, name=scope)
        values = _ops.RandomUniform(dims, dtype, seed=seed1, seed2=seed2)
        if is_zero:
            return values if is_one else _ops.Mul(values, maxval)
        return _ops.AddV2(values * (maxval - minval), minval, name=scope)


def random_shuffle(value, seed=None, name=None):
    """Returns the rows of `value` in random order."""
    seed1, seed2 = get_seed(seed)
    return _ops.RandomShuffle(value, seed=seed1, seed2=seed2, name=name)


def random_crop(value, size, seed=None, name=None):
    """Returns a slice of shape `size` at a random place in `value`."""
    from runnel.ops.array_ops import shape as shape_op, slice as slice_op
    from runnel.ops.check_ops import Assert, with_dependencies
    from runnel.ops.math_ops import reduce_all
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtype=dtypes.int32, name="size")
        shape = shape_op(value)
        check = Assert(reduce_all(shape >= size), ["Need value.shape >= size, got ", shape, size],
                       summarize=1000)
        shape = with_dependencies([check], shape)
        limit = shape - size + 1
        offset = random_uniform(shape_op(shape), dtype=size.dtype, maxval=size.dtype.max, seed=seed) % limit
        return slice_op(value, offset, size, name=scope)


def multinomial(logits, num_samples, seed=None, name=None, output_dtype=None):
    """Draws class indices according to unnormalized log-probabilities."""
    with name_scope(name, "multinomial", [logits]):
        seed1, seed2 = get_seed(seed)
        return _ops.Multinomial(convert_to_tensor(logits, name="logits"), num_samples, seed=seed1, seed2=seed2,
                                output_dtype=output_dtype)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """Draws class indices according to unnormalized log-probabilities."""
    with name_scope(name, "categorical", [logits]):
        return multinomial(logits, num_samples, seed, None, dtype)


def random_gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    """Returns random values from gamma distributions."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        from runnel.ops.array_ops import broadcast_dynamic_shape, shape as shape_op
        shape = convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        alpha = convert_to_tensor(alpha, name="alpha", dtype=dtype)
        beta = convert_to_tensor(1 if beta is None else beta, name="beta", dtype=dtype)
        joint = broadcast_dynamic_shape(shape_op(alpha), shape_op(beta))
        alpha = _ops.BroadcastTo(alpha, joint)
        seed1, seed2 = get_seed(seed)
        tiny = {dtypes.float16: 6.104e-05, dtypes.float32: 1.1754944e-38}.get(
            alpha.dtype.base_dtype, 2.2250738585072014e-308)
        drawn = _ops.RandomGamma(shape, alpha, seed=seed1, seed2=seed2) / beta
        return _ops.Maximum(tiny, drawn)


def random_poisson(lam, shape, dtype=dtypes.float32, seed=None, name=None):
    """Returns random values from Poisson distributions."""
    with name_scope(name, "random_poisson", [lam, shape]):
        shape = convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        seed1, seed2 = get_seed(seed)
        return _ops.RandomPoissonV2(shape, lam, dtype=dtype, seed=seed1, seed2=seed2)


__all__ = ["get_seed", "multinomial", "random_crop", "random_gamma", "random_normal", "random_poisson",
           "random_shuffle", "random_uniform", "set_random_seed", "truncated_normal"]
