"""Activations, normalization and cross entropies (tf.nn)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.deprecation import warn_once
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.math_ops import _pick


# Activations


def relu(features, name=None):
    """Returns max(features, 0).

    Args:
      features: a tensor of numbers.
      name: name of the operation.

    Returns:
      A tensor like `features`.
    """
    return raw_ops.Relu(features=features, name=name)


def relu6(features, name=None):
    """Returns min(max(features, 0), 6).

    Args:
      features: a tensor of numbers.
      name: name of the operation.
    """
    with name_scope(name, "Relu6", [features]) as name:
        return raw_ops.Relu6(features=features, name=name)


def elu(features, name=None):
    """Returns x where x > 0, and exp(x) - 1 elsewhere.

    Args:
      features: a tensor.
      name: name of the operation.
    """
    return raw_ops.Elu(features=features, name=name)


def selu(features, name=None):
    """Returns the scaled exponential linear unit, which keeps mean 0 and variance 1."""
    return raw_ops.Selu(features=features, name=name)


def softsign(features, name=None):
    """Returns x / (|x| + 1)."""
    return raw_ops.Softsign(features=features, name=name)


def softplus(features, name=None):
    """Returns log(exp(x) + 1)."""
    return raw_ops.Softplus(features=features, name=name)


def leaky_relu(features, alpha=0.2, name=None):
    """Returns x where x > 0, and alpha * x elsewhere.

    Args:
      features: a tensor.
      alpha: the slope below 0.
      name: name of the operation.
    """
    with name_scope(name, "LeakyRelu", [features, alpha]) as name:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = math_ops.cast(features, dtypes.float32)
        return raw_ops.LeakyRelu(features=features, alpha=alpha, name=name)


def crelu(features, name=None, axis=-1):
    """Concatenates relu(x) and relu(-x)."""
    with name_scope(name, "CRelu", [features]) as name:
        features = convert_to_tensor(features, name="features")
        both = array_ops.concat([features, -features], axis, name=name)
        return relu(both)


def silu(features, beta=1.0):
    """Returns x * sigmoid(beta * x)."""
    with name_scope(None, "swish", [features]):
        features = convert_to_tensor(features, name="features")
        return features * math_ops.sigmoid(convert_to_tensor(beta, features.dtype) * features)


swish = silu


def relu_layer(x, weights, biases, name=None):
    """Returns relu(x @ weights + biases)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as name:
        return relu(bias_add(math_ops.matmul(x, weights), biases), name=name)


def xw_plus_b(x, weights, biases, name=None):
    """Returns x @ weights + biases."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as name:
        return bias_add(math_ops.matmul(x, weights), biases, name=name)


def bias_add(value, bias, data_format=None, name=None):
    """Adds a bias per channel; channels are the last dimension, or the second with a format "NC..."."""
    with name_scope(name, "BiasAdd", [value, bias]) as name:
        if data_format is not None:
            data_format = "NCHW" if data_format.startswith("NC") else "NHWC"
        else:
            data_format = "NHWC"
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, dtype=value.dtype, name="bias")
        return raw_ops.BiasAdd(value=value, bias=bias, data_format=data_format, name=name)


def dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None):
    """Sets random elements to 0 and scales the others, so that the expected sum stays the same.

    Args:
      x: a tensor of floats.
      keep_prob: the probability to keep an element; or
      rate: the probability to drop it, a number or a scalar tensor.
      noise_shape: where it is 1, the elements along that dimension are kept or dropped together.
      seed: seed of the random numbers.
      name: name of the scope.
    """
    if keep_prob is not None:
        if rate is not None and not _is_complement(rate, keep_prob):
            raise ValueError("Give only one of rate and keep_prob")
        rate = 1 - keep_prob
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with name_scope(name, "dropout", [x]):
        is_number = isinstance(rate, (int, float))
        if is_number and not 0 <= rate < 1:
            raise ValueError("rate must be a scalar tensor or a float in the range [0, 1), got %g" % rate)
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError("x has to be a floating point tensor since it's going to be scaled. Got "
                             "a %s tensor instead." % x.dtype)
        if is_number and rate == 0:
            from runnel.ops import random_ops
            random_ops.get_seed(seed)  # uses up a seed, so that the seeds of later ops do not depend on the rate
            return x
        if is_number:
            scaled = raw_ops.Mul(x=x, y=convert_to_tensor(1 / (1 - rate), x.dtype))
        else:
            rate = convert_to_tensor(rate, x.dtype, name="rate")
            scaled = x * (1 / (1 - rate))
        from runnel.ops import random_ops
        shape = _noise_shape(x, noise_shape)
        kept = random_ops.random_uniform(shape, seed=seed, dtype=x.dtype) >= rate
        zero = convert_to_tensor(0, x.dtype)
        result = raw_ops.SelectV2(condition=kept, t=scaled, e=zero)
        result.set_shape(x.shape)
        return result


def _is_complement(rate, keep_prob):
    return isinstance(rate, (int, float)) and isinstance(keep_prob, (int, float)) \
        and rate == 1 - keep_prob


def _noise_shape(x, noise_shape):
    if noise_shape is None:
        return array_ops.shape(x)
    try:
        dims = [getattr(d, "value", d) for d in noise_shape]
    except TypeError:
        return noise_shape
    if x.shape.dims is not None and len(dims) == len(x.shape.dims) and not any(
            hasattr(d, "op") for d in dims):
        sizes = x.shape.as_list()
        return [sizes[i] if d is None else d for i, d in enumerate(dims)]
    return noise_shape


# Softmax and cross entropies


def _along(op, logits, axis, name):
    """Applies `op`, which works along the last dimension, along another."""
    logits = convert_to_tensor(logits)
    rank = logits.shape.ndims
    axis = -1 if axis is None else axis
    is_last = axis == -1 or (rank is not None and axis == rank - 1)
    if is_last:
        return op(logits=logits, name=name)
    if rank is not None and not -rank <= axis < rank:
        from runnel.errors import InvalidArgumentError
        raise InvalidArgumentError(None, None, "Dimension (%d) must be in the range [%d, %d) where %d "
                                   "is the number of dimensions in the input." % (axis, -rank, rank, rank))
    axis = axis if rank is None else axis % rank
    count = array_ops.rank(logits)
    array_ops.rank(logits)  # unused; as many nodes as in stock, because the seeds of later ops depend on the count
    result = op(logits=_swap_last(logits, axis, math_ops.subtract(count, 1)))
    result = _swap_last(result, axis, math_ops.subtract(count, 1), name)
    result.set_shape(logits.shape)
    return result


def _swap_last(x, axis, last, name=None):
    order = array_ops.concat([math_ops.range(axis), [last], math_ops.range(axis + 1, last), [axis]], 0)
    return array_ops.transpose(x, order, name=name)


def softmax(logits, axis=None, name=None, dim=None):
    """Returns exp(logits) / sum(exp(logits)) along an axis, by default the last.

    Args:
      logits: a tensor; the result along the axis sums to 1.
      axis: the dimension, counted from the end if negative.
      name: name of the operation.
      dim: the old name of axis.
    """
    return _along(raw_ops.Softmax, logits, _pick("axis", axis, "dim", dim), name)


def log_softmax(logits, axis=None, name=None, dim=None):
    """Returns the logarithm of softmax.

    Args:
      logits: a tensor.
      axis: the dimension; by default the last.
      name: name of the operation.
      dim: the old name of axis.
    """
    return _along(raw_ops.LogSoftmax, logits, _pick("axis", axis, "dim", dim), name)


def _named(name, sentinel, labels, logits):
    if sentinel is not None or labels is None or logits is None:
        raise ValueError("Only call `%s` with named arguments (labels=..., logits=..., ...)" % name)


def softmax_cross_entropy_with_logits(_sentinel=None, labels=None, logits=None, dim=-1, name=None,
                                      axis=None):
    """Returns the cross entropy of `labels` and softmax(`logits`). Gradients do not reach the labels.

    Args:
      labels: class probabilities, shaped like logits.
      logits: one number per class, before softmax.
      dim: the dimension of the classes.
      name: name of the operation.
      axis: another name of dim.

    Returns:
      One loss per row.
    """
    warn_once("softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2")
    _named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as name:
        labels = raw_ops.StopGradient(input=convert_to_tensor(labels), name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels, logits, axis=axis if axis is not None else dim,
                                                name=name)


def softmax_cross_entropy_with_logits_v2(labels, logits, axis=None, name=None, dim=None):
    """Returns the cross entropy of `labels`, distributions along `axis`, and softmax(`logits`).

    Args:
      labels: class probabilities, shaped like logits.
      logits: one number per class, before softmax.
      axis: the dimension of the classes; by default the last.
      name: name of the operation.
      dim: the old name of axis.

    Returns:
      One loss per row.
    """
    axis = _pick("axis", axis, "dim", dim)
    axis = -1 if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as name:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        narrow = logits.dtype in (dtypes.float16, dtypes.bfloat16)
        precise = math_ops.cast(logits, dtypes.float32) if narrow else logits
        labels = math_ops.cast(labels, precise.dtype)
        rank = array_ops.rank(precise)
        shape = logits.shape
        if axis != -1:
            def to_last(tensor):
                order = array_ops.concat([math_ops.range(axis), math_ops.range(axis + 1, rank), [axis]],
                                         0) if axis >= 0 else None
                if order is None:
                    at = rank + axis
                    order = array_ops.concat([math_ops.range(at), math_ops.range(at + 1, rank), [at]], 0)
                return array_ops.transpose(tensor, order)
            precise, labels = to_last(precise), to_last(labels)
        input_shape = array_ops.shape(precise)
        cost, _ = raw_ops.SoftmaxCrossEntropyWithLogits(features=_flat(precise), labels=_flat(labels),
                                                        name=name)
        outer = raw_ops.Slice(input=input_shape, begin=[0],
                              size=[math_ops.subtract(rank, 1)])
        cost = array_ops.reshape(cost, outer)
        if shape.dims is not None:
            dims = shape.as_list()
            del dims[axis]
            cost.set_shape(dims)
        return math_ops.cast(cost, logits.dtype) if narrow else cost


def _flat(tensor):
    """Reshapes to rows along the last dimension."""
    rank = array_ops.rank(tensor)
    last = raw_ops.Slice(input=array_ops.shape(tensor), begin=[math_ops.subtract(rank, 1)], size=[1])
    result = array_ops.reshape(tensor, array_ops.concat([[-1], last], 0))
    if tensor.shape.dims is not None:
        dims = tensor.shape.as_list()
        count = 1
        for d in dims[:-1]:
            count = None if count is None or d is None else count * d
        result.set_shape([count, dims[-1]])
    return result


def sparse_softmax_cross_entropy_with_logits(_sentinel=None, labels=None, logits=None, name=None):
    """Returns the cross entropy of class indices and softmax(`logits`).

    Args:
      labels: the index of the right class of each row.
      logits: one number per class, before softmax, along the last dimension.
      name: name of the operation.

    Returns:
      One loss per row.
    """
    _named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        narrow = logits.dtype in (dtypes.float16, dtypes.bfloat16)
        precise = math_ops.cast(logits, dtypes.float32) if narrow else logits
        array_ops.shape(labels)  # unused; as many nodes as in stock, because the seeds of later ops depend on the count
        shape = labels.shape
        if logits.shape.ndims == 0:
            raise ValueError("Logits cannot be scalars - received shape %s." % logits.shape)
        if logits.shape.ndims is not None and shape.ndims is not None \
                and shape.ndims != logits.shape.ndims - 1:
            raise ValueError("Rank mismatch: Rank of labels (received %s) should equal rank of logits "
                             "minus 1 (received %s)." % (shape.ndims, logits.shape.ndims))
        if logits.shape.ndims == 2:
            cost, _ = raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=precise, labels=labels,
                                                                  name=name)
            return math_ops.cast(cost, logits.dtype) if narrow else cost
        classes = array_ops.shape(logits)[array_ops.rank(logits) - 1]
        cost, _ = raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            features=array_ops.reshape(precise, [-1, classes]), labels=array_ops.reshape(labels, [-1]),
            name=name)
        cost = array_ops.reshape(cost, array_ops.shape(labels))
        cost.set_shape(shape)
        return math_ops.cast(cost, logits.dtype) if narrow else cost


def sigmoid_cross_entropy_with_logits(_sentinel=None, labels=None, logits=None, name=None):
    """Returns max(x, 0) - x * z + log(1 + exp(-|x|)) for logits x and labels z.

    Args:
      labels: numbers in [0, 1], shaped like logits.
      logits: numbers before the sigmoid.
      name: name of the operation.

    Returns:
      One loss per element.
    """
    _named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as name:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, dtype=logits.dtype, name="labels")
        if not labels.shape.is_compatible_with(logits.shape):
            raise ValueError("`logits` and `labels` must have the same shape (%s vs %s)." % (
                logits.shape, labels.shape))
        zeros = array_ops.zeros_like(logits, dtype=logits.dtype)
        positive = logits >= zeros
        top = array_ops.where(positive, logits, zeros)
        minus_abs = array_ops.where(positive, -logits, logits)
        return math_ops.add(top - logits * labels, raw_ops.Log1p(raw_ops.Exp(minus_abs)), name=name)


def weighted_cross_entropy_with_logits(labels=None, logits=None, pos_weight=None, name=None,
                                       targets=None):
    """Like sigmoid_cross_entropy_with_logits, with positive labels weighted by `pos_weight`."""
    labels = _pick("labels", labels, "targets", targets)
    with name_scope(name, "logistic_loss", [logits, labels]) as name:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, dtype=logits.dtype, name="labels")
        if not labels.shape.is_compatible_with(logits.shape):
            raise ValueError("`logits` and `labels` must have the same shape (%s vs %s)." % (
                logits.shape, labels.shape))
        weight = 1 + (pos_weight - 1) * labels
        return math_ops.add((1 - labels) * logits,
                            weight * (raw_ops.Log1p(raw_ops.Exp(-math_ops.abs(logits))) + relu(-logits)),
                            name=name)


def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None):
    """Returns exp(c) - z * c for log inputs c and targets z, plus Stirling's term with `compute_full_loss`."""
    with name_scope(name, "log_poisson_loss", [log_input, targets]) as name:
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, dtype=log_input.dtype, name="targets")
        result = raw_ops.Exp(log_input) - log_input * targets
        if compute_full_loss:
            half = convert_to_tensor(0.5, targets.dtype)
            two_pi = convert_to_tensor(6.283185307179586, targets.dtype)
            stirling = targets * raw_ops.Log(targets) - targets + half * raw_ops.Log(two_pi * targets)
            ones = array_ops.ones_like(targets, dtype=targets.dtype)
            zeros = array_ops.zeros_like(targets, dtype=targets.dtype)
            applies = math_ops.logical_and(targets >= zeros, targets <= ones)
            result += array_ops.where(applies, zeros, stirling)
        return result


def l2_loss(t, name=None):
    """Returns sum(t ** 2) / 2."""
    return raw_ops.L2Loss(t=t, name=name)


def zero_fraction(value, name=None):
    """Returns the fraction of elements that are 0."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        zero = convert_to_tensor(0, value.dtype)
        is_zero = math_ops.cast(math_ops.equal(value, zero), dtypes.float32)
        return math_ops.reduce_mean(is_zero, name="fraction")


def in_top_k(predictions, targets, k, name=None):
    """Tells whether the target of each row is among its k largest predictions."""
    with name_scope(name, "in_top_k"):
        return raw_ops.InTopKV2(predictions=predictions, targets=targets, k=k)


def top_k(input, k=1, sorted=True, index_type=dtypes.int32, name=None):  # noqa: A002
    """Returns (values, indices) of the k largest elements along the last dimension.

    Args:
      input: a tensor.
      k: how many.
      sorted: whether the largest comes first.
      name: name of the operation.

    Returns:
      Values and indices, two tensors.
    """
    return raw_ops.TopKV2(input=input, k=k, sorted=sorted, index_type=index_type, name=name)


def _approx_k(operand, k, is_max_k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk, name):
    return raw_ops.ApproxTopK(
        input=operand, k=k, reduction_dimension=reduction_dimension, recall_target=recall_target, is_max_k=is_max_k,
        reduction_input_size_override=reduction_input_size_override, aggregate_to_topk=aggregate_to_topk, name=name,
    )


def approx_max_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True, name=None
):
    """Returns (values, indices) of the k largest elements along an axis. Exact; the targets matter to TPUs only."""
    return _approx_k(operand, k, True, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk, name)


def approx_min_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True, name=None
):
    """Returns (values, indices) of the k smallest elements along an axis. Exact; the targets matter to TPUs only."""
    return _approx_k(operand, k, False, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk, name)


# Normalisation


def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    """Divides x by its Euclidean norm along axes.

    Args:
      x: a tensor.
      axis: the dimensions of the norm.
      epsilon: a lower bound for the squared norm.
      name: name of the operation.
      dim: the old name of axis.
    """
    axis = _pick("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as name:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            total = math_ops.reduce_sum(raw_ops.Square(math_ops.real(x))
                                        + raw_ops.Square(math_ops.imag(x)), axis, keepdims=True)
            inverse = raw_ops.Rsqrt(raw_ops.Maximum(total, epsilon))
            return math_ops.complex(math_ops.real(x) * inverse, math_ops.imag(x) * inverse, name=name)
        total = math_ops.reduce_sum(raw_ops.Square(x), axis, keepdims=True)
        return math_ops.multiply(x, raw_ops.Rsqrt(raw_ops.Maximum(total, epsilon)), name=name)


def local_response_normalization(input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None):  # noqa: A002
    """Returns x / (bias + alpha * sum(x ** 2 over nearby channels)) ** beta."""
    return raw_ops.LRN(input=input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta,
                       name=name)


lrn = local_response_normalization


def moments(x, axes, shift=None, name=None, keep_dims=None, keepdims=None):
    """Returns (mean, variance) over axes.

    Args:
      x: a tensor.
      axes: the dimensions to reduce.
      shift: not used.
      name: name of the operations.
      keepdims: keeps reduced dimensions with size 1; keep_dims is the old name.

    Returns:
      Two tensors.
    """
    keepdims = _pick("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x)
        narrow = x.dtype == dtypes.float16
        y = math_ops.cast(x, dtypes.float32) if narrow else x
        mean = math_ops.reduce_mean(y, axes, keepdims=True, name="mean")
        variance = math_ops.reduce_mean(
            raw_ops.SquaredDifference(y, raw_ops.StopGradient(input=mean)), axes, keepdims=True,
            name="variance")
        if not keepdims:
            mean = array_ops.squeeze(mean, axes)
            variance = array_ops.squeeze(variance, axes)
        if narrow:
            return math_ops.cast(mean, dtypes.float16), math_ops.cast(variance, dtypes.float16)
        return mean, variance


def sufficient_statistics(x, axes, shift=None, keep_dims=None, name=None, keepdims=None):
    """Returns (count, sum, sum of squares, shift) of x - shift over axes."""
    keepdims = bool(_pick("keepdims", keepdims, "keep_dims", keep_dims))
    axes = list(axes)
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        dims = x.shape.dims
        if dims is not None and all(dims[d].value is not None for d in axes):
            count = 1
            for d in axes:
                count *= dims[d].value
            count = convert_to_tensor(count, x.dtype, name="count")
        else:
            count = math_ops.cast(math_ops.reduce_prod(array_ops.gather(array_ops.shape(x), axes)),
                                  x.dtype, name="count")
        if shift is not None:
            shift = convert_to_tensor(shift, name="shift")
            mean_ss = math_ops.subtract(x, shift)
            var_ss = raw_ops.SquaredDifference(x, shift)
        else:
            mean_ss, var_ss = x, raw_ops.Square(x)
        return (count, math_ops.reduce_sum(mean_ss, axes, keepdims=keepdims, name="mean_ss"),
                math_ops.reduce_sum(var_ss, axes, keepdims=keepdims, name="var_ss"), shift)


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    """Returns (mean, variance) from the results of sufficient_statistics."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = raw_ops.Reciprocal(counts, name="divisor")
        if shift is not None:
            shifted = math_ops.multiply(mean_ss, divisor, name="shifted_mean")
            mean = math_ops.add(shifted, shift, name="mean")
        else:
            shifted = mean = math_ops.multiply(mean_ss, divisor, name="mean")
        variance = math_ops.subtract(math_ops.multiply(variance_ss, divisor), raw_ops.Square(shifted),
                                     name="variance")
        return mean, variance


def weighted_moments(x, axes, frequency_weights, name=None, keep_dims=None, keepdims=None):
    """Returns (mean, variance) over axes, with weights that broadcast to x."""
    keepdims = _pick("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        if weights.dtype != x.dtype:
            weights = math_ops.cast(weights, x.dtype)
        weighted = math_ops.reduce_sum(weights * x, axes, keepdims=True)
        total = math_ops.reduce_sum(weights + array_ops.zeros_like(x), axes, keepdims=True)
        mean = weighted / total
        squares = math_ops.reduce_sum(weights * raw_ops.SquaredDifference(x, mean), axes,
                                      keepdims=True)
        variance = squares / total
        if not keepdims:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        return mean, variance


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """Returns (x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be None."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        x = convert_to_tensor(x)
        mean, variance = convert_to_tensor(mean), convert_to_tensor(variance)
        inverse = raw_ops.Rsqrt(variance + variance_epsilon)
        if scale is not None:
            inverse *= scale
        scaled = x * math_ops.cast(inverse, x.dtype)
        shift = -mean * inverse if offset is None else offset - mean * inverse
        return scaled + math_ops.cast(shift, x.dtype)


def batch_norm_with_global_normalization(t=None, m=None, v=None, beta=None, gamma=None,
                                         variance_epsilon=None, scale_after_normalization=None,
                                         name=None, input=None, mean=None, variance=None):  # noqa: A002
    """Computes batch_normalization; `gamma` is used only with `scale_after_normalization`."""
    return batch_normalization(_pick("t", t, "input", input), _pick("m", m, "mean", mean),
                               _pick("v", v, "variance", variance), beta,
                               gamma if scale_after_normalization else None, variance_epsilon, name)


def fused_batch_norm(x, scale, offset, mean=None, variance=None, epsilon=0.001, data_format="NHWC",
                     is_training=True, name=None, exponential_avg_factor=1.0):
    """Returns (y, mean, variance) of a batch normalization over all dimensions but the channels."""
    if is_training and exponential_avg_factor == 1.0 and (mean is not None or variance is not None):
        raise ValueError("Both `mean` and `variance` must be None when `is_training` is True and "
                         "`exponential_avg_factor` is 1.0. Received `mean` %s and `variance` %s" % (
                             mean, variance))
    if not is_training and (mean is None or variance is None):
        raise ValueError("Both `mean` and `variance` must be given when `is_training` is False")
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, name="offset")
    mean = convert_to_tensor([], dtypes.float32) if mean is None else mean
    variance = convert_to_tensor([], dtypes.float32) if variance is None else variance
    y, batch_mean, batch_variance, *_ = raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=mean, variance=variance,
        epsilon=max(epsilon, 1.001e-5), exponential_avg_factor=exponential_avg_factor,
        data_format=data_format, is_training=is_training, name=name)
    return y, batch_mean, batch_variance


# Sequences


def ctc_loss(labels, inputs=None, sequence_length=None, preprocess_collapse_repeated=False,
             ctc_merge_repeated=True, ignore_longer_outputs_than_inputs=False, time_major=True,
             logits=None):
    """Returns the loss of connectionist temporal classification; `labels` is a SparseTensor."""
    from runnel.core.composite import SparseTensor
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected argument `labels` to be a SparseTensor. Received: %s" % (labels,))
    inputs = convert_to_tensor(_pick("logits", logits, "inputs", inputs))
    if not time_major:
        inputs = array_ops.transpose(inputs, [1, 0, 2])
    loss, _ = raw_ops.CTCLoss(
        inputs=inputs, labels_indices=labels.indices, labels_values=labels.values,
        sequence_length=sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs)
    return loss


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """Returns ([SparseTensor of the best classes], their negative log-probability)."""
    from runnel.core.composite import SparseTensor
    attrs = {} if blank_index is None else {"blank_index": blank_index}
    indices, values, shape, log_probability = raw_ops.CTCGreedyDecoder(
        inputs=inputs, sequence_length=sequence_length, merge_repeated=merge_repeated, **attrs)
    return [SparseTensor(indices, values, shape)], log_probability


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1,
                            merge_repeated=True):
    """Returns ([one SparseTensor per path], log-probabilities) of the best paths."""
    from runnel.core.composite import SparseTensor
    indices, values, shapes, log_probability = raw_ops.CTCBeamSearchDecoder(
        inputs=inputs, sequence_length=sequence_length, beam_width=beam_width, top_paths=top_paths,
        merge_repeated=merge_repeated)
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes)], log_probability


def ctc_beam_search_decoder_v2(inputs, sequence_length, beam_width=100, top_paths=1):
    """Like ctc_beam_search_decoder, without merging repeated classes."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths,
                                   merge_repeated=False)


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """Returns the weighted sum of losses divided by the number of examples."""
    loss = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        loss = loss * math_ops.cast(convert_to_tensor(sample_weight), loss.dtype)
    count = array_ops.shape(loss)[0] if global_batch_size is None else global_batch_size
    return math_ops.reduce_sum(loss) / math_ops.cast(count, loss.dtype)


def scale_regularization_loss(regularization_loss):
    """Returns the sum of regularization losses."""
    return math_ops.reduce_sum(regularization_loss)

