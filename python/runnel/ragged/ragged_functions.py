"""Functions of `tf` for ragged tensors.

`install` wraps every function that can take ragged tensors with a check for them.
"""

import functools
import importlib
import inspect
import sys

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert, fallbacks
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops


def _is_ragged(value):
    from runnel.ragged.ragged_tensor import RaggedTensor, RaggedTensorValue
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


def _as_ragged(value):
    from runnel.ragged.ragged_tensor import as_ragged_or_tensor
    return as_ragged_or_tensor(value)


# Element-wise functions.


def _aligned(value, like, rank):
    """Returns `value` in the form of the flat values of `like`: its own flat values if it is ragged, else repeated per row."""
    if _is_ragged(value):
        value = _as_ragged(value)
        if value.ragged_rank != like.ragged_rank:
            raise ValueError("Ragged tensors of different ragged ranks do not broadcast: %d and %d" % (value.ragged_rank, like.ragged_rank))
        if any(a is not b for a, b in zip(value.nested_row_splits, like.nested_row_splits)):
            from runnel.core import framework
            from runnel.ops import check_ops
            checks = [check_ops.assert_equal(a, b, message="Inputs must have identical ragged splits") for a, b in zip(
                value.nested_row_splits, like.nested_row_splits) if a is not b]
            with framework.control_dependencies([check for check in checks if check is not None]):
                return array_ops.identity(value.flat_values)
        return value.flat_values
    value = convert.convert_to_tensor(value, dtype_hint=like.dtype)
    inner = rank - like.ragged_rank
    if value._rank() is None or value._rank() < inner or value._rank() == 0:
        return value
    dims = value.shape.as_list()
    if len(dims) < rank or any(size != 1 for size in dims[1:like.ragged_rank + 1]):
        raise ValueError("A tensor of shape %s does not broadcast with a ragged tensor of shape %s" % (value.shape, like.shape))
    value = array_ops.squeeze(value, list(range(1, like.ragged_rank + 1)))
    if dims[0] == 1:
        return value
    for rows in like.nested_value_rowids():
        value = array_ops.gather(value, rows)
    return value


def _on_flat(function, *args, **kwargs):
    """Calls a function with flat values. If these are no tensors, dispatchers handle it."""
    from runnel.core.framework import Tensor
    if any(hasattr(x, "_is_composite") and not isinstance(x, Tensor) for x in (*args, *kwargs.values())):
        result = fallbacks.dispatch(function, args, kwargs)
        if result is not fallbacks.OpDispatcher.NOT_SUPPORTED:
            return result
    return function(*args, **kwargs)


def _elementwise(function, args, kwargs):
    """Applies a function to flat values. The first argument and all ragged ones are per element."""
    like = _as_ragged(next(value for value in [*args, *kwargs.values()] if _is_ragged(value)))
    rank = like.shape.ndims or like.ragged_rank + 1
    args = [_aligned(value, like, rank) if _is_ragged(value) or i == 0 else value for i, value in enumerate(args)]
    kwargs = {key: _aligned(value, like, rank) if _is_ragged(value) else value for key, value in kwargs.items()}
    return like.with_flat_values(_on_flat(function, *args, **kwargs))


def _aligned_pair(x, y):
    """Returns the flat values of two tensors, broadcast, and a function that makes a tensor of such values."""
    from runnel.ragged import ragged_broadcast
    is_first = _is_ragged(x)
    one = _as_ragged(x if is_first else y)
    other = y if is_first else x
    if not _is_ragged(other):
        other = convert.convert_to_tensor(other, dtype_hint=one.dtype)
    return ragged_broadcast.aligned(*((one, other) if is_first else (other, one)))


def _binary(function, x, y, **kwargs):
    """Applies a function of two tensors to the flat values of both, broadcast."""
    flat_x, flat_y, whole = _aligned_pair(x, y)
    return whole(_on_flat(function, flat_x, flat_y, **kwargs))


def map_flat_values(op, *args, **kwargs):
    """Applies `op` to the flat values of the ragged arguments. The result has the rows of the first of them.

        tf.ragged.map_flat_values(tf.ones_like, rt)

    Without a ragged argument, returns op(*args, **kwargs).
    """
    from runnel import nest
    found = [_as_ragged(value) for value in nest.flatten([list(args), kwargs]) if _is_ragged(value)]
    if not found:
        return op(*args, **kwargs)
    like, rank = found[0], found[0].shape.ndims or found[0].ragged_rank + 1

    def flat(value):
        if isinstance(value, (list, tuple)):
            return type(value)(flat(v) for v in value)
        return _aligned(value, like, rank) if _is_ragged(value) else value

    result = op(*flat(list(args)), **{key: flat(value) for key, value in kwargs.items()})
    return like.with_flat_values(result)


# Rows.


def gather(params, indices, axis=None, batch_dims=0, name=None, validate_indices=None):
    """Selects rows of a ragged tensor, or of a tensor by ragged indices."""
    from runnel.ragged import ragged_gather
    return ragged_gather.gather(params, indices, axis, batch_dims, name)


def _pick_rows(params, starts, lengths):
    """Returns the rows that begin at `starts` of the values and have these lengths."""
    from runnel.ragged.ragged_tensor import RaggedTensor, _spans
    places, splits = _spans(starts, lengths)
    values = gather(params.values, places) if _is_ragged(params.values) else array_ops.gather(params.values, places)
    return RaggedTensor._of(values, splits)


def get_item(ragged, key):
    """Implements ragged[key]; `key` is a tuple."""
    from runnel.ragged import ragged_getitem
    return ragged_getitem.get_item(ragged, key)


def expand_dims(input, axis=None, name=None, dim=None):  # noqa: A002
    """Inserts a dimension of size 1."""
    from runnel.ragged.ragged_tensor import RaggedTensor, _axis
    ragged = _as_ragged(input)
    if not _is_ragged(ragged):
        return array_ops.expand_dims(ragged, dim if axis is None else axis, name)
    rank = ragged.shape.ndims
    axis = _axis(dim if axis is None else axis, None if rank is None else rank + 1)
    rows = ragged.nrows()
    if axis == 0:
        return RaggedTensor.from_uniform_row_length(ragged, rows, nrows=1, validate=False)
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(ragged, 1, nrows=rows, validate=False)
    if _is_ragged(ragged.values):
        return ragged.with_values(expand_dims(ragged.values, axis - 1))
    return ragged.with_values(array_ops.expand_dims(ragged.values, axis - 1))


def concat(values, axis, name="concat"):
    """Joins ragged tensors along a dimension."""
    from runnel.ragged.ragged_tensor import RaggedTensor, _axis
    with name_scope(name, "RaggedConcat"):
        values = [_as_ragged(value) for value in (values if isinstance(values, (list, tuple)) else [values])]
        if not values:
            raise ValueError("rt_inputs may not be empty.")
        if len(values) == 1:
            return values[0]
        rank = next((v.shape.ndims for v in values if v.shape.ndims is not None), None)
        axis = _axis(axis, rank)
        if rank == 1 or not any(_is_ragged(v) for v in values) and axis == rank - 1:
            return array_ops.concat(values, axis)
        most = max((v.ragged_rank for v in values if _is_ragged(v)), default=1)
        values = [v if _is_ragged(v) else RaggedTensor.from_tensor(v, ragged_rank=min(most, rank - 1)) for v in values]
        if axis == 0:
            return _concat_rows(values)
        if axis > 1:
            return values[0].with_values(concat([v.values for v in values], axis - 1) if _is_ragged(values[0].values) else array_ops.concat(
                [v.values for v in values], axis - 1))
        rows, count = values[0].nrows(), len(values)
        # Row i of tensor j is row j * rows + i of all rows together. Ordered by i, then j, they form the new rows.
        order = array_ops.reshape(array_ops.transpose(array_ops.reshape(math_ops.range(rows * count), array_ops.stack([math_ops.cast(
            count, rows.dtype), rows]))), [-1])
        mixed = gather(_concat_rows(values), order)
        return RaggedTensor._of(mixed.values, mixed.row_splits[::count])


def _concat_rows(values):
    from runnel.ragged.ragged_tensor import RaggedTensor
    splits, offset = [values[0].row_splits], values[0].row_splits[-1]
    for value in values[1:]:
        splits.append(value.row_splits[1:] + offset)
        offset = offset + value.row_splits[-1]
    inner = [value.values for value in values]
    joined = _concat_rows(inner) if _is_ragged(inner[0]) else array_ops.concat(inner, 0)
    return RaggedTensor._of(joined, array_ops.concat(splits, 0))


def stack(values, axis=0, name="stack"):
    """Stacks tensors, ragged or not, along a new dimension. Returns a ragged tensor."""
    from runnel.ragged.ragged_tensor import RaggedTensor, _axis, _splits_of
    with name_scope(name, "RaggedConcat"):
        values = [_as_ragged(value) for value in (values if isinstance(values, (list, tuple)) else [values])]
        if not values:
            raise ValueError("rt_inputs may not be empty.")
        rank = next((v.shape.ndims for v in values if v.shape.ndims is not None), None)
        axis = _axis(axis, None if rank is None else rank + 1)
        if axis == 0:
            if all(not _is_ragged(v) and v._rank() == 0 for v in values):
                return array_ops.stack(values)
            kind = dtypes.int64 if any(_is_ragged(v) or v._rank() > 1 for v in values) else dtypes.int32
            lengths = array_ops.stack([v.nrows(kind) if _is_ragged(v) else array_ops.shape(v, out_type=kind)[0] for v in values])
            inner = concat(values, 0) if any(_is_ragged(v) for v in values) else _concat_tensors(values)
            return RaggedTensor.from_row_splits(inner, _splits_of(lengths), validate=False)
        return concat([expand_dims(v, axis) if _is_ragged(v) else array_ops.expand_dims(v, axis) for v in values], axis)


def _concat_tensors(values):
    """Joins tensors: vectors to a vector, others with ragged rows."""
    from runnel.ragged.ragged_tensor import RaggedTensor
    if values[0]._rank() == 1:
        return array_ops.concat(values, 0)
    return _concat_rows([RaggedTensor.from_tensor(value, ragged_rank=value._rank() - 1) for value in values])


def boolean_mask(data, mask, name=None):
    """Returns the elements of `data` where `mask`, a tensor or a ragged tensor, is true; rows stay rows."""
    from runnel.ragged.ragged_tensor import RaggedTensor
    with name_scope(name, "RaggedMask"):
        data, mask = _as_ragged(data), _as_ragged(mask)
        if _is_ragged(mask):
            if mask.ragged_rank > 1:
                inner = boolean_mask(data.values, mask.values)
                return RaggedTensor.from_row_splits(inner, data.row_splits, validate=False)
            kept = array_ops.where(mask.values)[:, 0]
            values = data.values if _is_ragged(data) else _as_rows(data, mask)
            lengths = _ops.UnsortedSegmentSum(math_ops.cast(mask.values, mask.row_splits.dtype), mask.value_rowids(), mask.nrows())
            return RaggedTensor.from_row_lengths(gather(values, kept) if _is_ragged(values) else array_ops.gather(values, kept), lengths, validate=False)
        if mask._rank() == 1:
            return gather(data, array_ops.where(mask)[:, 0]) if _is_ragged(data) else array_ops.boolean_mask(data, mask)
        return boolean_mask(data, RaggedTensor.from_tensor(mask, ragged_rank=mask._rank() - 1))


def _as_rows(tensor, like):
    shape = array_ops.shape(tensor)
    return array_ops.reshape(tensor, array_ops.concat([[-1], shape[2:]], 0))


def size(input, name=None, out_type=dtypes.int32):  # noqa: A002
    """Returns the number of elements."""
    value = _as_ragged(input)
    return array_ops.size(value.flat_values if _is_ragged(value) else value, name=name, out_type=out_type)


def rank(input, name=None):  # noqa: A002
    """Returns the number of dimensions."""
    ragged = _as_ragged(input)
    if not _is_ragged(ragged):
        return array_ops.rank(ragged, name)
    return array_ops.rank(ragged.flat_values) + ragged.ragged_rank


def where(condition, x=None, y=None, name=None):
    """Returns elements of x where the condition is true, and of y elsewhere; a vector of conditions chooses rows."""
    if x is None or y is None:
        return where_v2(condition, x, y, name)
    values = [_as_ragged(value) for value in (condition, x, y)]
    if not any(_is_ragged(value) for value in values):
        return array_ops.where(*values)
    if not _is_ragged(values[0]) and values[0]._rank() == 1:
        rows = array_ops.shape(values[0], out_type=dtypes.int64)[0]
        return gather(concat(values[1:], 0), array_ops.where_v2(values[0], math_ops.range(rows), math_ops.range(rows) + rows))
    if not all(_is_ragged(value) for value in values) or len({value.shape.ndims for value in values}) > 1:
        raise ValueError("Input shapes do not match.")
    return map_flat_values(array_ops.where, *values)


def where_v2(condition, x=None, y=None, name=None):
    """Returns elements of x where the condition is true, and of y elsewhere. The three are broadcast."""
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    condition = _as_ragged(condition)
    if x is None:
        if not _is_ragged(condition):
            return array_ops.where(condition)
        rows = condition.with_flat_values(array_ops.ones_like(condition.flat_values, dtypes.int32)).to_sparse().indices
        return array_ops.boolean_mask(rows, array_ops.reshape(condition.flat_values, [-1]))
    values = condition, _as_ragged(x), _as_ragged(y)
    if not any(_is_ragged(value) for value in values):
        return array_ops.where_v2(*values, name)
    from runnel.ragged import ragged_broadcast
    with name_scope(name, "RaggedWhere"):
        return ragged_broadcast.applied(array_ops.where_v2, *values)


# Reductions over rows.


def reduction(whole):
    """Returns a reduction of ragged tensors; `whole` is the reduction of tensors."""
    unsorted = _SEGMENTS.get(whole.__name__)
    if unsorted is None:
        raise TypeError("tf.%s does not support ragged tensors" % whole.__name__)

    def reduce(input_tensor, axis=None, keepdims=None, name=None):
        from runnel.ragged.ragged_tensor import _axis
        ragged, keep = _as_ragged(input_tensor), bool(keepdims)
        with name_scope(name, "RaggedReduce"):
            if axis is None:
                return whole(ragged.flat_values)
            if isinstance(axis, (list, tuple)):
                axes = sorted({_axis(a, ragged.shape.ndims) for a in axis}, reverse=True)
                result = ragged
                for a in axes:
                    result = (reduce if _is_ragged(result) else whole)(result, a, keepdims=keep)
                return result
            axis = _axis(axis, ragged.shape.ndims)
            result = _reduce_one(ragged, axis, unsorted, whole, reduce)
            if keep:
                result = (expand_dims if _is_ragged(result) else array_ops.expand_dims)(result, axis)
            return result

    return reduce


def _reduce_one(ragged, axis, unsorted, whole, again):
    values, splits = ragged.values, ragged.row_splits
    if axis > 1:
        return ragged.with_values(again(values, axis - 1) if _is_ragged(values) else whole(values, axis - 1))
    rows = ragged.value_rowids()
    if axis == 1:
        ids, count = rows, ragged.nrows()
    else:
        ids = math_ops.range(splits[-1]) - array_ops.gather(splits, rows)
        lengths = array_ops.concat([array_ops.zeros([1], splits.dtype), ragged.row_lengths()], 0)
        count = math_ops.reduce_max(lengths)
    if not _is_ragged(values):
        return unsorted(values, ids, count)
    from runnel.ragged.ragged_arrays import segments
    return segments(values, ids, count, unsorted)


def _segment_mean(values, ids, count):
    ones = array_ops.ones(array_ops.shape(values)[:1], values.dtype)
    number = _ops.UnsortedSegmentSum(ones, ids, count)
    total = _ops.UnsortedSegmentSum(values, ids, count)
    if values._rank() != 1:
        number = array_ops.reshape(number, array_ops.concat([array_ops.shape(number), array_ops.ones([array_ops.rank(values) - 1], dtypes.int32)], 0))
    return total / number


def _of_bools(op):
    return lambda values, ids, count: math_ops.cast(op(math_ops.cast(values, dtypes.int32), ids, count), dtypes.bool)


def _flat_lookup(params, ids, *args, **kwargs):
    from runnel.nn import embedding_ops
    return map_flat_values(lambda flat: embedding_ops.embedding_lookup(params, flat, *args, **kwargs), ids)


def shape(input, out_type=dtypes.int32, name=None):  # noqa: A002
    """Returns the sizes of the dimensions of a ragged tensor, of which some differ from row to row."""
    from runnel.ragged.dynamic_ragged_shape import DynamicRaggedShape
    with name_scope(name, "RaggedShape", [input]):
        return DynamicRaggedShape.from_tensor(input, out_type)


# Functions that work element by element and are not in dispatch's lists, which have those of stock.
_UNARY = """digamma erf expm1 is_finite is_nan lgamma log log1p log_sigmoid reciprocal rsqrt stop_gradient ceil identity check_numerics regex_replace
    string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong string_to_number string_strip substr decode_base64
    encode_base64 nn.dropout nn.nn_v2.gelu nn.nn_v2.stateless_dropout to_bfloat16 to_complex64 to_complex128 to_double to_float to_int32
    to_int64""".split()
_BINARY = "floordiv floormod mod squared_difference div_no_nan".split()
_ASSERTIONS = "assert_greater_equal assert_less_equal assert_near assert_none_equal assert_type".split()
_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "truediv", "div": "divide", "floordiv": "floordiv", "mod": "floormod",
              "pow": "pow", "and": "logical_and", "or": "logical_or", "xor": "logical_xor", "lt": "less", "le": "less_equal", "gt": "greater",
              "ge": "greater_equal", "neg": "negative", "abs": "abs", "invert": "logical_not"}


# Reduction -> the op over segments.
_SEGMENTS = {
    "reduce_sum": _ops.UnsortedSegmentSum, "reduce_prod": _ops.UnsortedSegmentProd, "reduce_max": _ops.UnsortedSegmentMax,
    "reduce_min": _ops.UnsortedSegmentMin, "reduce_mean": _segment_mean, "reduce_any": _of_bools(_ops.UnsortedSegmentSum),
    "reduce_all": _of_bools(_ops.UnsortedSegmentProd)}


def _later(module, name):
    """Returns a function of another module of this package, which is imported when it is called."""
    def call(*args, **kwargs):
        return getattr(importlib.import_module("runnel.ragged." + module), name)(*args, **kwargs)
    return call


_SPECIAL = {"gather": gather, "concat": concat, "stack": stack, "expand_dims": expand_dims, "size": size, "rank": rank, "where": where,
            "where_v2": where_v2, "nn.embedding_lookup": _flat_lookup, "shape": shape}
_SPECIAL.update({name: _later(module, function) for module, names in (
    ("ragged_arrays", "nn.softmax=softmax bitcast cumsum dynamic_partition one_hot reverse split squeeze tile "
     "math.reduce_std=reduce_std math.reduce_variance=reduce_variance "
     "unsorted_segment_max=segment_max unsorted_segment_mean=segment_mean unsorted_segment_min=segment_min unsorted_segment_prod=segment_prod "
     "unsorted_segment_sqrt_n=segment_sqrt_n unsorted_segment_sum=segment_sum"),
    ("ragged_gather", "batch_gather gather_nd"), ("ragged_matmul", "matmul"), ("ragged_strings", "strings.join=join strings.format=string_format"),
    ("dynamic_ragged_shape", "reshape=ragged_reshape"),
) for row in names.split() for name, _, other in [row.partition("=")] for function in [other or name]})


def _before(original, handle, takes):
    """Returns `original` with calls that have an argument for which `takes` is true passed to `handle`."""

    @functools.wraps(original)
    def function(*args, **kwargs):
        for value in args:
            if takes(value) or (isinstance(value, (list, tuple)) and any(takes(v) for v in value)):
                return handle(*args, **kwargs)
        for value in kwargs.values():
            if takes(value) or (isinstance(value, (list, tuple)) and any(takes(v) for v in value)):
                return handle(*args, **kwargs)
        return original(*args, **kwargs)

    return function


_PLACES = ("", "math", "strings", "nn", "dtypes", "debugging", "bitwise", "io")
_taught: dict = {}  # a function of tf -> the function that takes its place


def taught(function):
    """Returns the form of a function that accepts ragged tensors too, if there is one."""
    return _taught.get(function, function) if callable(function) and function.__hash__ else function


def teach(handles, takes):
    """Makes functions of `tf` pass calls with certain arguments on: {name: a function that takes the original and returns the handler}."""
    places = [importlib.import_module("runnel." + place if place else "runnel") for place in _PLACES]
    done = set()
    for name, make in handles.items():
        module_name, _, last = name.rpartition(".")
        module = importlib.import_module("runnel." + module_name) if module_name else places[0]
        original = getattr(module, last, None)
        if original is None or id(original) in done:  # a name of TensorFlow 2 alone, or another name of a function
            continue
        made = _before(original, make(original), takes)
        done.add(id(made))
        _taught.update({known: made for known, now in _taught.items() if now is original})
        _taught[original] = made
        for place in {module, *places}:
            if getattr(place, last, None) is original:
                setattr(place, last, made)
    face = sys.modules.get("runnel.compat.v2.places")
    if face is not None:  # it has found functions before they were taught
        face.forget_found()
    inner_paths = sys.modules.get("runnel.alias.inner_paths")
    if inner_paths is not None:
        inner_paths.forget_named({name.rpartition(".")[2] for name in handles})


def install():
    """Makes functions of `tf`, and operators, accept ragged tensors."""
    import runnel
    from runnel.core import dispatch
    from runnel.ragged.ragged_tensor import RaggedTensor
    handles = {}
    for names, call in ((_UNARY + dispatch.UNARY, _call_elementwise), (_BINARY + dispatch.BINARY, _call_binary),
                        (dispatch.ASSERTIONS + _ASSERTIONS, _call_assertion)):
        handles.update({name: lambda original, call=call: functools.partial(call, original) for name in names})
    handles.update({name: lambda _, handle=handle: handle for name, handle in _SPECIAL.items()})
    handles["add_n"] = lambda original: functools.partial(map_flat_values, original)
    teach(handles, _is_ragged)
    for operator, name in _OPERATORS.items():
        function = _or_dispatched(getattr(runnel, name), "math." + name)
        setattr(RaggedTensor, "__%s__" % operator, function)
        if operator not in ("lt", "le", "gt", "ge", "neg", "abs", "invert"):
            setattr(RaggedTensor, "__r%s__" % operator, lambda a, b, function=function: function(b, a))


def _or_dispatched(function, public):
    """Returns an operator that asks dispatchers for values that `function` refuses; `public` is the function's name."""
    def operator(*args):
        try:
            return function(*args)
        except (TypeError, ValueError):
            return fallbacks.operator(public, *args)
    return operator


def _call_elementwise(original, /, *args, **kwargs):
    kwargs.pop("name", None)
    return _elementwise(original, args, kwargs)


def _call_binary(original, /, *args, **kwargs):
    if len(args) == 2 and not kwargs:
        return _binary(original, *args)
    given = inspect.signature(original).bind(*args, **kwargs).arguments
    (first, x), (second, y), *_ = given.items()
    rest = {key: value for key, value in given.items() if key not in (first, second, "name")}
    with name_scope(given.get("name")):
        return _binary(lambda a, b: original(**{first: a, second: b}, **rest), x, y)


def _call_assertion(original, /, *args, **kwargs):
    given = dict(inspect.signature(original).bind(*args, **kwargs).arguments)
    first, second = (list(given) + [None])[:2]
    if original.__name__ == "assert_type":
        given[first] = _as_ragged(given[first]).flat_values
    else:
        given[first], given[second], _ = _aligned_pair(given[first], given[second])
    return original(**given)
