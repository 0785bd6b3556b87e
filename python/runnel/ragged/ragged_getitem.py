"""Indices and slices of ragged tensors: ragged[i], ragged[i:j, k:l:m], ragged[..., tf.newaxis]."""

from runnel import errors, raw_ops as _ops
from runnel.core import convert
from runnel.core.framework import Tensor
from runnel.ops import array_ops, math_ops
from runnel.ragged.ragged_functions import _is_ragged, _pick_rows, expand_dims, gather
from runnel.ragged.ragged_tensor import RaggedTensor


_INDICES = "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices, got %r"


def get_item(ragged, key):
    """Returns ragged[key]; `key` is a tuple."""
    if not key:
        return ragged
    first, rest = key[0], key[1:]
    if first is Ellipsis:
        rank = ragged.shape.ndims
        if rank is None:
            raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
        missing = rank - sum(k is not None for k in rest)
        if missing < 0:
            raise IndexError("Too many indices for RaggedTensor of rank %d" % rank)
        return get_item(ragged, (slice(None),) * missing + rest) if missing or rest else ragged
    if first is None:
        wider = expand_dims(ragged, 0)
        return _inner_item(wider, rest) if rest else wider
    if not isinstance(first, slice):
        row = _row(ragged, first)
        return row[rest] if rest else row
    picked = ragged if _is_whole(first) else _some_rows(ragged, first)
    return _inner_item(picked, rest) if rest else picked


def _is_whole(key):
    return key.start is None and key.stop is None and key.step is None


def _row(ragged, number):
    splits, rows, known = ragged.row_splits, ragged.shape.dims[0].value if ragged.shape.rank else None, _known(number)
    if rows is not None and known is not None and not -rows <= known < rows:
        raise IndexError("Row key %d out of bounds" % known)  # which ends a loop over the rows
    number = math_ops.cast(number, splits.dtype)
    number = array_ops.where(number < 0, number + ragged.nrows(), number)
    return ragged.values[splits[number]:splits[number + 1]]


def _known(number):
    """Returns an index if it is known, or None. Raises TypeError if it is no integer."""
    is_tensor = isinstance(number, Tensor)
    if is_tensor and not number.dtype.is_integer or not is_tensor and not hasattr(number, "__index__"):
        raise TypeError(_INDICES % (number,))
    return convert.constant_value(number) if is_tensor else number.__index__()


def _some_rows(ragged, key):
    """Returns ragged[start:stop:step]."""
    for value in (key.start, key.stop, key.step):
        if value is not None:
            _known(value)
    numbers = math_ops.range(ragged.nrows())[key]
    numbers.set_shape([None])
    picked = gather(ragged, numbers)
    length = ragged.uniform_row_length
    return picked if length is None else RaggedTensor.from_uniform_row_length(picked.values, length, nrows=array_ops.size(numbers, out_type=length.dtype))


def _check(key):
    """Raises TypeError unless the parts of a slice are integers."""
    for name, value in (("offsets", key.start), ("offsets", key.stop), ("strides", key.step)):
        if value is None or isinstance(value, int):
            continue
        if not (isinstance(value, Tensor) and value.dtype.is_integer or hasattr(value, "__index__")):
            raise TypeError("slice %s must be integers or None" % name)


def _inner_item(ragged, key):
    """Returns ragged[:, key...]."""
    first, rest = key[0], key[1:]
    if first is Ellipsis:
        missing = ragged.shape.ndims - 1 - sum(k is not None for k in rest)
        return _inner_item(ragged, (slice(None),) * missing + rest) if missing or rest else ragged
    if first is None:
        wider = expand_dims(ragged, 1)
        return wider.with_values(_values_item(wider.values, rest)) if rest else wider
    if not isinstance(first, slice):
        if ragged.uniform_row_length is None:
            raise ValueError("Cannot index into an inner ragged dimension.")
        return _column(ragged, first, rest)
    if not _is_whole(first):
        _check(first)
        ragged = _columns(ragged, first) if ragged.uniform_row_length is not None else _parts_of_rows(ragged, first)
    return ragged.with_values(_values_item(ragged.values, rest)) if rest else ragged


def _values_item(values, key):
    """Returns values[:, key...], where the rows of the values are those of a dimension that the key has passed."""
    return _inner_item(values, key) if _is_ragged(values) else values[(slice(None),) + key]


def _at(values, places):
    return gather(values, places) if _is_ragged(values) else array_ops.gather(values, places)


def _column(ragged, number, rest):
    """Returns ragged[:, number, rest...], for rows of one length."""
    length, kind = ragged.uniform_row_length, ragged.row_splits.dtype
    size, known = convert.constant_value(length), _known(number)
    if size is not None and known is not None and not -size <= known < size:
        raise errors.InvalidArgumentError(None, None, "slice index %d of a dimension of size %d out of bounds" % (known, size))
    number = math_ops.cast(number, kind)
    picked = _at(ragged.values, ragged.row_starts() + array_ops.where(number < 0, number + length, number))
    return _values_item(picked, rest) if rest else picked


def _columns(ragged, key):
    """Returns ragged[:, start:stop:step], for rows of one length."""
    kind = ragged.row_splits.dtype
    columns = math_ops.range(ragged.uniform_row_length, dtype=kind)[key]
    columns.set_shape([None])
    places = array_ops.reshape(array_ops.expand_dims(ragged.row_starts(), 1) + columns, [-1])
    count = array_ops.size(columns, out_type=kind)
    known = convert.constant_value(ragged.uniform_row_length)
    if known is not None and all(x is None or isinstance(x, int) for x in (key.start, key.stop, key.step)):
        count = len(range(int(known))[key])
    return RaggedTensor.from_uniform_row_length(_at(ragged.values, places), count, nrows=ragged.nrows())


def _parts_of_rows(ragged, key):
    """Returns ragged[:, start:stop:step], as Python slices each row."""
    step = key.step
    if isinstance(step, Tensor):
        known = convert.constant_value(step)
        step = step if known is None else int(known)
    lengths, kind = ragged.row_lengths(), ragged.row_splits.dtype
    zeros = array_ops.zeros_like(lengths)
    if step is None or isinstance(step, int) and step == 1:
        def edge(value, default):
            if value is None:
                return default
            value = math_ops.cast(value, kind)
            return _ops.Minimum(_ops.Maximum(array_ops.where_v2(value < 0, lengths + value, value + zeros), 0), lengths)

        start, stop = edge(key.start, zeros), edge(key.stop, lengths)
        return _pick_rows(ragged, ragged.row_starts() + start, _ops.Maximum(stop - start, 0))
    if isinstance(step, int) and step == 0:
        raise errors.InvalidArgumentError(None, None, "slice step cannot be zero")
    step = math_ops.cast(step, kind)
    is_back = step < 0
    low = array_ops.where_v2(is_back, zeros - 1, zeros)
    high = array_ops.where_v2(is_back, lengths - 1, lengths)

    def limit(value, default):
        if value is None:
            return default
        value = math_ops.cast(value, kind)
        return _ops.Minimum(_ops.Maximum(array_ops.where_v2(value < 0, lengths + value, value + zeros), low), high)

    start = limit(key.start, array_ops.where_v2(is_back, high, low))
    stop = limit(key.stop, array_ops.where_v2(is_back, low, high))
    span, size = array_ops.where_v2(is_back, start - stop, stop - start), math_ops.abs(step)
    counts = _ops.Maximum(math_ops.floordiv(span + (size - 1), size), 0)
    first = ragged.row_starts() + start
    splits, places = _ops.RaggedRange(first, first + counts * step, step, Tsplits=kind)
    return RaggedTensor._of(_at(ragged.values, places), splits)
