"""Special functions, sorting, histograms, hashes, printing and numeric checks."""

from runnel import dtypes, nest, raw_ops as _ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor, colocate_with, name_scope


def xdivy(x, y, name=None):
    """Returns x / y, and 0 where x is 0."""
    with name_scope(name, "xdivy", [x]):
        return _ops.Xdivy(x, y)


def xlogy(x, y, name=None):
    """Returns x * log(y), and 0 where x is 0."""
    with name_scope(name, "xlogy", [x]):
        return _ops.Xlogy(x, y)


def xlog1py(x, y, name=None):
    """Returns x * log(1 + y), and 0 where x is 0."""
    with name_scope(name, "xlog1py", [x]):
        return _ops.Xlog1py(x, y)


def multiply_no_nan(x, y, name=None):
    """Returns x * y, and 0 where y is 0 even if x is not finite."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        return _ops.MulNoNan(x, convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype), name=scope)


def reciprocal_no_nan(x, name=None):
    """Returns 1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        one = convert_to_tensor(1.0, dtype=x.dtype.base_dtype, name="one")
        return _ops.DivNoNan(one, x, name=scope)


def ndtri(x, name=None):
    """Returns the inverse of the cumulative normal distribution."""
    with name_scope(name, "ndtri", [x]):
        return _ops.Ndtri(x)


def erfcinv(x, name=None):
    """Returns the inverse of the complementary error function."""
    with name_scope(name, "erfcinv", [x]):
        x = convert_to_tensor(x, name="start")
        return -ndtri(0.5 * x) * (0.5 ** 0.5)


def polyval(coeffs, x, name=None):
    """Evaluates a polynomial by Horner's rule; the first coefficient belongs to the highest power."""
    if not isinstance(coeffs, list):
        raise ValueError("Argument coeffs must be list type. Received type %s." % type(coeffs))
    with name_scope(name, "polyval", coeffs + [x]):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            from runnel.ops.array_ops import zeros_like
            return zeros_like(x, name="polyval")
        coeffs = [convert_to_tensor(c, name="coeff_%d" % i) for i, c in enumerate(coeffs)]
        value = coeffs[0]
        for c in coeffs[1:]:
            value = c + value * x
        return value


def sort(values, axis=-1, direction="ASCENDING", name=None):
    """Sorts values along a dimension."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, want_values=True)


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """Returns the indices that sort values along a dimension."""
    del stable  # the sort is always stable
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, want_values=False)


def _sorted(values, axis, direction, want_values):
    from runnel.ops.array_ops import shape, transpose
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError("Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: direction=%s" % direction)
    values = convert_to_tensor(values, name="values")
    rank = values._rank()
    if rank is None and axis != -1:
        raise ValueError("Sorting along a dimension other than the last needs a tensor of known rank")
    perm = None
    if axis != -1 and axis % rank != rank - 1:
        axis = axis % rank
        perm = list(range(rank))
        perm[axis], perm[-1] = perm[-1], perm[axis]
        values = transpose(values, perm)
    flipped = direction == "ASCENDING"
    data = values
    if flipped:
        data = _reflected(values)
    top, places = _ops.TopKV2(data, shape(values)[-1], sorted=True)
    if want_values:
        result = _reflected(top) if flipped else top
    else:
        result = places
    return transpose(result, perm) if perm else result


def _reflected(values):
    """Maps numbers so that their order is reversed; applying it twice restores them."""
    kind = values.dtype.base_dtype
    if kind.is_unsigned:
        return kind.max - values
    if kind.is_integer:  # -x - 1 does not overflow
        return -1 - values
    return -values


def histogram_fixed_width_bins(values, value_range, nbins=100, dtype=dtypes.int32, name=None):
    """Returns the bin of each value, for `nbins` bins of equal width over `value_range`."""
    from runnel.ops.array_ops import reshape, shape
    from runnel.ops.math_ops import cast, clip_by_value, truediv
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        dims = shape(values)
        values = reshape(values, [-1])
        value_range = convert_to_tensor(value_range, name="value_range")
        nbins = convert_to_tensor(nbins, dtype=dtypes.int32, name="nbins")
        scaled = truediv(values - value_range[0], value_range[1] - value_range[0], name="scaled_values")
        indices = _ops.Floor(cast(nbins, values.dtype) * scaled, name="indices")
        return cast(reshape(clip_by_value(indices, 0, cast(nbins - 1, values.dtype)), dims), dtype)


def histogram_fixed_width(values, value_range, nbins=100, dtype=dtypes.int32, name=None):
    """Counts the values in each of `nbins` bins of equal width over `value_range`."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        return _ops.HistogramFixedWidth(values, value_range, nbins, dtype=dtype, name=scope)


def confusion_matrix(labels, predictions, num_classes=None, dtype=dtypes.int32, name=None, weights=None):
    """Counts how often class i (label) was predicted as class j."""
    from runnel.ops import check_ops
    from runnel.ops.array_ops import ones_like, stack
    from runnel.ops.check_ops import with_dependencies
    from runnel.ops.math_ops import cast, reduce_max
    from runnel.ops.weights_broadcast_ops import remove_squeezable_dimensions
    with name_scope(name, "confusion_matrix", (predictions, labels, num_classes, weights)):
        labels, predictions = remove_squeezable_dimensions(
            convert_to_tensor(labels, name="labels"), convert_to_tensor(predictions, name="predictions"))
        predictions, labels = cast(predictions, dtypes.int64), cast(labels, dtypes.int64)
        labels = with_dependencies([check_ops.assert_non_negative(
            labels, message="`labels` contains negative values")], labels)
        predictions = with_dependencies([check_ops.assert_non_negative(
            predictions, message="`predictions` contains negative values")], predictions)
        if num_classes is None:
            num_classes = _ops.Maximum(reduce_max(predictions), reduce_max(labels)) + 1
        else:
            limit = cast(num_classes, dtypes.int64)
            labels = with_dependencies([check_ops.assert_less(labels, limit, message="`labels` out of bound")], labels)
            predictions = with_dependencies([check_ops.assert_less(
                predictions, limit, message="`predictions` out of bound")], predictions)
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            predictions.shape.assert_is_compatible_with(weights.shape)
            weights = cast(weights, dtype)
        shape = stack([num_classes, num_classes])
        indices = stack([labels, predictions], axis=1)
        values = ones_like(predictions, dtype) if weights is None else weights
        return _ops.ScatterNd(indices=indices, updates=values, shape=cast(shape, dtypes.int64))


def lbeta(x, name=None):
    """Returns the logarithm of the beta function over the last dimension."""
    from runnel.ops.math_ops import reduce_sum
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        return reduce_sum(_ops.Lgamma(x), axis=[-1]) - _ops.Lgamma(reduce_sum(x, axis=[-1]))


def unravel_index(indices, dims, name=None):
    """Converts flat indices into index vectors for a tensor of shape `dims`."""
    return _ops.UnravelIndex(indices, dims, name=name)


def fingerprint(data, method="farmhash64", name=None):
    """Returns a hash of each row of `data`, as eight bytes."""
    return _ops.Fingerprint(data, method, name=name)


def random_index_shuffle(index, seed, max_index, rounds=4, name=None):
    """Returns the place of `index` in a random permutation of [0, max_index]."""
    return _ops.RandomIndexShuffle(index, seed, max_index, rounds=rounds, name=name)


def ragged_fill_empty_rows(value_rowids, values, nrows, default_value, name=None):
    """Gives every empty row of a ragged tensor a default value."""
    return _ops.RaggedFillEmptyRows(value_rowids, values, nrows, default_value, name=name)


def ragged_fill_empty_rows_grad(reverse_index_map, grad_values, name=None):
    """Returns the gradients of ragged_fill_empty_rows."""
    return _ops.RaggedFillEmptyRowsGrad(reverse_index_map, grad_values, name=name)


def _largest_singular(tensor, axis, keepdims):
    from runnel.linalg.linalg_ops import svd
    from runnel.ops.array_ops import concat, expand_dims, rank as rank_of, transpose
    from runnel.ops.math_ops import abs, range as range_, reduce_max
    rank = tensor.shape.ndims
    if rank is not None:
        axes = [a % rank for a in axis]
        order = [a for a in range(rank) if a not in axes] + axes
    else:
        rank = rank_of(tensor)
        axes = [a if a >= 0 else rank + a for a in axis]
        order = concat([_ops.ListDiff(range_(rank), axes)[0], axes], 0)
    largest = reduce_max(abs(svd(transpose(tensor, order), compute_uv=False)), axis=-1, keepdims=keepdims)
    if not keepdims:
        return largest
    # The singular values were the last axis; the other one was dropped before.
    return transpose(expand_dims(largest, -1), _ops.InvertPermutation(convert_to_tensor(order)))


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None, keep_dims=None):  # noqa: A002
    """Returns the norm of vectors or matrices."""
    from runnel.ops.math_ops import abs, conj, reduce_max, reduce_sum
    keepdims = bool(keepdims or keep_dims)
    if ord not in ("euclidean", "fro") and isinstance(ord, str):
        raise ValueError("'ord' must be a supported norm, got %s" % ord)
    is_matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    if not is_matrix and ord == "fro":
        raise ValueError("'ord' must be a supported vector norm, got fro")
    with name_scope(name, "norm", [tensor]):
        tensor = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean", 2, 2.0):
            if is_matrix and ord in (2, 2.0):
                return _largest_singular(tensor, axis, keepdims)
            return _ops.Sqrt(reduce_sum(tensor * conj(tensor), axis, keepdims=keepdims))
        magnitude = abs(tensor)
        if ord == 1:
            total = reduce_sum(magnitude, axis[0] if is_matrix else axis, keepdims=True)
            total = reduce_max(total, axis[1], keepdims=True) if is_matrix else total
        elif ord == float("inf"):
            total = reduce_sum(magnitude, axis[1], keepdims=True) if is_matrix else magnitude
            total = reduce_max(total, axis[0] if is_matrix else axis, keepdims=True)
        else:
            total = _ops.Pow(reduce_sum(_ops.Pow(magnitude, ord), axis, keepdims=True), 1.0 / ord)
        if keepdims:
            return total
        from runnel.ops.array_ops import reshape, squeeze
        if axis is None:
            return reshape(total, [])
        return squeeze(total, list(axis) if isinstance(axis, (list, tuple)) else [axis])


def verify_tensor_all_finite(t=None, msg=None, name=None, x=None, message=None):
    """Returns the tensor; the step fails if an element is not finite."""
    x = t if x is None else x
    message = msg if message is None else message
    with name_scope(name, "VerifyFinite", [x]):
        x = convert_to_tensor(x, name="x")
        from runnel.ops.check_ops import with_dependencies
        with colocate_with(x):
            checked = _ops.CheckNumerics(x, message=message)
        return with_dependencies([checked], x)


def add_check_numerics_ops():
    """Returns an operation that fails if any floating-point tensor of the graph is not finite."""
    from runnel.core.framework import control_dependencies, get_default_graph
    from runnel.ops.control_flow import group
    checks = []
    for op in get_default_graph().get_operations():
        for output in op.outputs:
            if output.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
                if op._get_control_flow_context() is not None:
                    raise ValueError("`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations "
                                     "such as `tf.cond()` or `tf.while_loop()`.")
                with control_dependencies(checks[-1:]):
                    checks.append(_ops.CheckNumerics(output, message=output.name).op)
    return group(*checks)


def Print(input_, data, message=None, first_n=None, summarize=None, name=None):
    """Returns `input_`, and prints `data` to standard error when it is computed."""
    return _ops.Print(input_, data, message=message, first_n=first_n, summarize=summarize, name=name)


def print_v2(*inputs, **kwargs):
    """Returns an operation that prints tensors and strings."""
    stream = kwargs.pop("output_stream", "stderr")
    summarize = kwargs.pop("summarize", 3)
    separator = kwargs.pop("sep", " ")
    end = kwargs.pop("end", "\n")
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unrecognized keyword arguments for tf.print: %s" % kwargs)
    import sys
    if stream is sys.stdout:
        stream = "stdout"
    elif stream is sys.stderr:
        stream = "stderr"
    if len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].dtype == dtypes.string and inputs[0]._rank() == 0:
        return _ops.PrintV2(inputs[0], output_stream=stream, end=end, name=name)
    mark = "{}"
    while any(mark in str(x) for value in inputs for x in nest.flatten(value) if not _is_printed(x)):
        mark = "{%s}" % ("_" + mark[1:-1])
    tensors = []
    template = separator.join(_template(value, mark, tensors) for value in inputs).replace("'%s'" % mark, mark)
    summarize = -1 if summarize is None else summarize
    if any(hasattr(x, "ragged_rank") for x in tensors):
        from runnel.ragged.ragged_strings import string_format
        text = string_format(template, tensors, mark, summarize)
    else:
        text = _ops.StringFormat(tensors, template=template, placeholder=mark, summarize=summarize)
    return _ops.PrintV2(text, output_stream=stream, end=end, name=name)


def _is_printed(value):
    return isinstance(value, (Tensor, SparseTensor)) or hasattr(value, "_as_graph_element") or hasattr(value, "ragged_rank")


def _template(value, mark, tensors):
    """Returns the printed form of a structure, with `mark` for each tensor, which is appended to `tensors`."""
    if isinstance(value, str):
        return value

    def leaf(x):
        if isinstance(x, SparseTensor):
            tensors.extend((x.indices, x.values, x.dense_shape))
            return "SparseTensor(indices=%s, values=%s, shape=%s)" % (mark, mark, mark)
        if hasattr(x, "ragged_rank"):
            tensors.append(x)
            return mark
        if _is_printed(x):
            tensors.append(convert_to_tensor(x))
            return mark
        return x
    import pprint
    return pprint.pformat(nest.map_structure(leaf, value))


def timestamp(name=None):
    """Returns the seconds since 1970."""
    return _ops.Timestamp(name=name)


def tensor_scatter_max(tensor, indices, updates, name=None):
    """Returns a copy of `tensor` with the element-wise maximum of it and `updates` at `indices`."""
    return _ops.TensorScatterMax(tensor, indices, updates, name=name)


def tensor_scatter_min(tensor, indices, updates, name=None):
    """Returns a copy of `tensor` with the element-wise minimum of it and `updates` at `indices`."""
    return _ops.TensorScatterMin(tensor, indices, updates, name=name)


tensor_scatter_nd_max, tensor_scatter_nd_min = tensor_scatter_max, tensor_scatter_min


def sobol_sample(dim, num_results, skip=0, dtype=None, name=None):
    """Returns points of Sobol's sequence, of shape [num_results, dim]."""
    from runnel import dtypes
    with name_scope(name, "sobol", [dim, num_results, skip]):
        return _ops.SobolSample(dim=dim, num_results=num_results, skip=skip, dtype=dtype or dtypes.float32)
