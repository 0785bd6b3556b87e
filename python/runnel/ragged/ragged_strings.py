"""Functions of tf.strings that return or take ragged tensors."""

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from runnel.ragged.row_partition import RowPartition


def _by_rows(value, apart):
    """Extends `apart`, a function of a vector of strings, to strings of any rank.

    `apart` returns one or several ragged tensors with one row per string.
    """
    value = as_ragged_or_tensor(value)
    if isinstance(value, RaggedTensor):
        return _each(apart, value.flat_values, value.with_flat_values)
    rank = value._rank()
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank == 0:
        return _each(apart, array_ops.expand_dims(value, 0), lambda rows: rows.values)
    if rank == 1:
        return apart(value)
    return _by_rows(RaggedTensor.from_tensor(value, ragged_rank=rank - 1), apart)


def _each(apart, vector, back):
    result = apart(vector)
    return tuple(back(part) for part in result) if isinstance(result, tuple) else back(result)


def _of_sparse(indices, values, shape):
    return RaggedTensor.from_value_rowids(values, indices[:, 0], nrows=shape[0], validate=False)


def split(input, sep=None, maxsplit=-1, name=None):  # noqa: A002
    """Splits strings like Python's str.split into the rows of a ragged tensor."""
    with name_scope(name, "StringSplit", [input]):
        return _by_rows(input, lambda texts: _of_sparse(*_ops.StringSplitV2(texts, "" if sep is None else sep, maxsplit=maxsplit)))


def bytes_split(input, name=None):  # noqa: A002
    """Splits strings into bytes."""
    with name_scope(name, "StringsByteSplit", [input]):
        return _by_rows(input, lambda texts: _of_sparse(*_ops.StringSplit(texts, "", skip_empty=False)))


def unicode_decode(input, input_encoding, errors="replace", replacement_char=0xFFFD, replace_control_characters=False, name=None):  # noqa: A002
    """Decodes strings to code points.

    Args:
      input: the strings.
      input_encoding: their encoding, such as "UTF-8".
      errors: what to do with invalid bytes: "strict", "replace" or "ignore".
      replacement_char: the code point for "replace".
      replace_control_characters: whether it also replaces control characters.
      name: name of the operations.
    """

    def apart(texts):
        splits, points = _ops.UnicodeDecode(texts, input_encoding=input_encoding, errors=errors, replacement_char=replacement_char,
                                            replace_control_characters=replace_control_characters)
        return RaggedTensor.from_row_splits(points, splits, validate=False)

    with name_scope(name, "UnicodeDecode", [input]):
        return _by_rows(input, apart)


def unicode_decode_with_offsets(input, input_encoding, errors="replace", replacement_char=0xFFFD, replace_control_characters=False,  # noqa: A002
                                name=None):
    """Returns (code points, byte offset of each)."""

    def apart(texts):
        splits, points, starts = _ops.UnicodeDecodeWithOffsets(
            texts, input_encoding=input_encoding, errors=errors, replacement_char=replacement_char,
            replace_control_characters=replace_control_characters)
        rows = RaggedTensor.from_row_splits(points, splits, validate=False)
        return rows, rows.with_values(starts)

    with name_scope(name, "UnicodeDecodeWithOffsets", [input]):
        return _by_rows(input, apart)


def _characters(points, encoding):
    """Returns code points as strings of one character each."""
    flat = points.flat_values if isinstance(points, RaggedTensor) else points
    one = math_ops.range(array_ops.shape(flat, out_type=dtypes.int64)[0] + 1)
    texts = _ops.UnicodeEncode(flat, one, output_encoding=encoding)
    return points.with_flat_values(texts) if isinstance(points, RaggedTensor) else texts


def unicode_split(input, input_encoding, errors="replace", replacement_char=0xFFFD, name=None):  # noqa: A002
    """Splits strings into characters."""
    with name_scope(name, "UnicodeSplit", [input]):
        return _characters(unicode_decode(input, input_encoding, errors, replacement_char), input_encoding)


def unicode_split_with_offsets(input, input_encoding, errors="replace", replacement_char=0xFFFD, name=None):  # noqa: A002
    """Returns (characters, byte offset of each)."""
    with name_scope(name, "UnicodeSplitWithOffsets", [input]):
        points, starts = unicode_decode_with_offsets(input, input_encoding, errors, replacement_char)
        return _characters(points, input_encoding), starts


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):  # noqa: A002
    """Encodes code points to strings, one per innermost row."""
    with name_scope(name, "UnicodeEncode", [input]):
        points = as_ragged_or_tensor(input)
        if not isinstance(points, RaggedTensor):
            rank = points._rank()
            if rank == 1:
                one = RaggedTensor.from_row_lengths(points, array_ops.shape(points, out_type=dtypes.int64), validate=False)
                return unicode_encode(one, output_encoding, errors, replacement_char)[0]
            shape = array_ops.shape(points)
            flat = RaggedTensor.from_tensor(array_ops.reshape(points, array_ops.stack([-1, shape[-1]])))
            return array_ops.reshape(unicode_encode(flat, output_encoding, errors, replacement_char), shape[:-1])
        if points.ragged_rank > 1:
            return points.with_values(unicode_encode(points.values, output_encoding, errors, replacement_char))
        return _ops.UnicodeEncode(points.values, points.row_splits, errors=errors, replacement_char=replacement_char,
                                  output_encoding=output_encoding)


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """Joins every `ngram_width` neighbouring strings of each innermost row.

    Args:
      data: rows of strings, a tensor or a ragged tensor.
      ngram_width: how many strings; or a list of such numbers.
      separator: the string between them.
      pad_values: a string, or a pair, that pads rows before and after.
      padding_width: how many of them; by default as many as useful.
      preserve_short_sequences: whether a row that is too short is returned as one n-gram.
      name: name of the operations.
    """
    pads = pad_values if isinstance(pad_values, (list, tuple)) else ("" if pad_values is None else pad_values,) * 2
    if not all(isinstance(pad, (str, bytes)) for pad in pads):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    widths = list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
    if any(width < 1 for width in widths):
        raise ValueError("All ngram_widths must be greater than 0. Got %s" % (ngram_width,))
    if pad_values is None:
        padding_width = 0

    def runs(rows):
        if rows.ragged_rank > 1:
            return rows.with_values(runs(rows.values))
        texts, splits = _ops.StringNGrams(rows.values, rows.row_splits, separator=separator, ngram_widths=widths, left_pad=pads[0],
                                          right_pad=pads[1], pad_width=-1 if padding_width is None else padding_width,
                                          preserve_short_sequences=preserve_short_sequences)
        return RaggedTensor.from_row_splits(texts, splits, validate=False)

    with name_scope(name, "StringNGrams", [data]):
        if isinstance(data, RaggedTensor):
            return runs(data)
        data = convert.convert_to_tensor(data, dtypes.string)
        if data._rank() is None:
            raise ValueError("Rank of data must be known.")
        if data._rank() == 0:
            raise ValueError("Data must have rank>0")
        if data._rank() == 1:
            return runs(RaggedTensor.from_row_lengths(data, array_ops.shape(data, out_type=dtypes.int64), validate=False)).values
        shape = array_ops.concat([array_ops.shape(data)[:-1], [-1]], 0)
        return array_ops.reshape(runs(RaggedTensor.from_tensor(data, ragged_rank=data._rank() - 1)).flat_values, shape)


def join(inputs, separator="", name=None):
    """Joins strings of the same place; some are ragged."""
    from runnel.ragged.ragged_functions import map_flat_values
    from runnel.ops import string_ops
    with name_scope(name, "RaggedStringJoin"):
        return map_flat_values(string_ops.string_join, inputs, separator)


def ragged_tensor_to_string(rt, summarize=None):
    """Returns one string with all elements, as Python writes nested lists.

    Args:
      rt: a ragged tensor of known rank.
      summarize: how many elements to show at the beginning and at the end of each list; None or -1 for all.
    """
    if summarize not in (None, -1) and not (isinstance(summarize, int) and summarize > 0):
        raise ValueError("Expected summarize to be -1 or a positive int, got %r" % (summarize,))
    with name_scope(None, "AsString", [rt]):
        rt = as_ragged_or_tensor(rt)
        if rt.shape.rank is None:
            raise ValueError("RaggedTensor to_string requires that rt.shape.rank is not None.")
        flat, partitions = rt.flat_values, list(rt._nested_row_partitions)
        if flat.shape.rank > 1:
            inner = RaggedTensor.from_tensor(flat, ragged_rank=flat.shape.rank - 1, row_splits_dtype=partitions[0].dtype)
            flat, partitions = inner.flat_values, partitions + list(inner._nested_row_partitions)
        if flat.dtype == dtypes.string:
            text = _ops.StringJoin(["'", _ops.RegexReplace(flat, r"(['\\])", r"\\\1", True), "'"])
        else:
            text = _ops.AsString(flat)
        for partition in reversed(partitions):
            text = _rows_as_text(text, partition, summarize)
        whole = RowPartition.from_row_lengths(array_ops.shape(text, out_type=partitions[0].dtype), validate=False)
        return _rows_as_text(text, whole, summarize)[0]


def string_format(template, inputs, placeholder="{}", summarize=3, name=None):
    """Formats tensors, some of them ragged, into a string by a template."""
    from runnel.ops import string_ops
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    texts = template.split(placeholder)
    if len(inputs) != len(texts) - 1:
        raise ValueError("num placeholders in template and num inputs must match: %d vs %d" % (len(texts) - 1, len(inputs)))
    with name_scope(name, "StringFormat", inputs):
        pieces = texts[:1]
        for value, text in zip(inputs, texts[1:]):
            is_ragged = isinstance(value, RaggedTensor)
            pieces += [ragged_tensor_to_string(value, summarize) if is_ragged else string_ops.string_format("{}", [value], summarize=summarize), text]
        return _ops.StringJoin(pieces)


def _rows_as_text(text, partition, summarize):
    """Returns one string per row: "[a, b, ..., y, z]"."""
    rows = partition.value_rowids()
    if summarize not in (None, -1):
        place, length = partition.offsets_in_rows(), array_ops.gather(partition.row_lengths(), rows)
        is_long = _ops.Greater(length, 2 * summarize)
        is_gap = _ops.LogicalAnd(is_long, _ops.Equal(place, summarize))
        shown = _ops.LogicalOr(_ops.LessEqual(place, summarize), _ops.GreaterEqual(place, length - summarize))
        text = array_ops.where(is_gap, array_ops.fill(array_ops.shape(text), "..."), text)
        shown = _ops.LogicalOr(shown, _ops.LogicalNot(is_long))
        text, rows = array_ops.boolean_mask(text, shown), array_ops.boolean_mask(rows, shown)
    return _ops.StringJoin(["[", _ops.UnsortedSegmentJoin(text, rows, partition.nrows(), separator=", "), "]"])
