"""Functions of string tensors."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops.math_ops import _pick


def string_split(source=None, sep=None, skip_empty=True, delimiter=None, result_type="SparseTensor", name=None):
    """Splits strings at separators. Returns a SparseTensor."""
    delimiter = _pick("sep", sep, "delimiter", delimiter)
    delimiter = " " if delimiter is None else delimiter
    with name_scope(name, "StringSplit", [source]):
        source = convert_to_tensor(source, dtype=dtypes.string, name="source")
        delimiter = convert_to_tensor(delimiter, dtype=dtypes.string, name="delimiter")
        return SparseTensor(*_ops.StringSplit(source, delimiter, skip_empty=skip_empty))


def string_split_v2(input=None, sep=None, maxsplit=-1, result_type="SparseTensor", source=None, name=None):  # noqa: A002
    """Splits strings as Python's str.split does. Returns a SparseTensor or a RaggedTensor."""
    input = _pick("input", input, "source", source)  # noqa: A001
    if result_type.lower() not in ("sparsetensor", "raggedtensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    with name_scope(name, "StringSplit", [input]):
        source = convert_to_tensor(input, dtype=dtypes.string, name="input")
        if source._rank() == 0:
            from runnel.ops.array_ops import expand_dims
            source = expand_dims(source, 0)
        if result_type.lower() == "sparsetensor" and source._rank() in (None, 1):
            return SparseTensor(*_ops.StringSplitV2(source, "" if sep is None else sep, maxsplit=maxsplit))
        from runnel.ragged import ragged_strings
        rows = ragged_strings.split(source, sep, maxsplit)
        return rows.to_sparse() if result_type.lower() == "sparsetensor" else rows


def string_join(inputs, separator="", name=None):
    """Joins the strings of several tensors element-wise."""
    return _ops.StringJoin(inputs, separator=separator, name=name)


def reduce_join(inputs, axis=None, keep_dims=None, separator="", name=None, reduction_indices=None, keepdims=None):
    """Joins strings over dimensions."""
    from runnel.ops.math_ops import range as range_op
    keepdims = bool(_pick("keepdims", keepdims, "keep_dims", keep_dims))
    axis = _pick("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(name, "ReduceJoin", [inputs, axis]) as scope:
        inputs = convert_to_tensor(inputs, dtype=dtypes.string, name="inputs")
        if axis is None:
            rank = inputs._rank()
            axis = list(range(rank - 1, -1, -1)) if rank is not None else range_op(_ops.Rank(inputs) - 1, -1, -1)
        return _ops.ReduceJoin(inputs, axis, keep_dims=keepdims, separator=separator, name=scope)


def string_length(input, name=None, unit="BYTE"):  # noqa: A002
    """Returns the length of strings in bytes or characters."""
    return _ops.StringLength(input, unit=unit, name=name)


def substr(input, pos, len, name=None, unit="BYTE"):  # noqa: A002
    """Returns substrings."""
    return _ops.Substr(input, pos, len, unit=unit, name=name)


def string_lower(input, encoding="", name=None):  # noqa: A002
    """Converts strings to lower case."""
    return _ops.StringLower(input, encoding=encoding, name=name)


def string_upper(input, encoding="", name=None):  # noqa: A002
    """Converts strings to upper case."""
    return _ops.StringUpper(input, encoding=encoding, name=name)


def string_strip(input, name=None):  # noqa: A002
    """Removes leading and trailing whitespace."""
    return _ops.StringStrip(input, name=name)


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):  # noqa: A002
    """Replaces the parts of strings that match a regular expression."""
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return _ops.StaticRegexReplace(input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name)
    return _ops.RegexReplace(input, pattern, rewrite, replace_global=replace_global, name=name)


def regex_full_match(input, pattern, name=None):  # noqa: A002
    """Tells which strings match a regular expression as a whole."""
    if isinstance(pattern, (str, bytes)):
        return _ops.StaticRegexFullMatch(input, pattern=pattern, name=name)
    return _ops.RegexFullMatch(input, pattern, name=name)


def string_to_number(string_tensor=None, out_type=dtypes.float32, name=None, input=None):  # noqa: A002
    """Converts strings to numbers."""
    return _ops.StringToNumber(_pick("input", input, "string_tensor", string_tensor), out_type=out_type, name=name)


def string_to_hash_bucket(string_tensor=None, num_buckets=None, name=None, input=None):  # noqa: A002
    """Hashes strings to numbers below `num_buckets`."""
    return _ops.StringToHashBucket(_pick("input", input, "string_tensor", string_tensor), num_buckets=num_buckets, name=name)


def string_to_hash_bucket_fast(input, num_buckets, name=None):  # noqa: A002
    """Hashes strings to numbers below `num_buckets`."""
    return _ops.StringToHashBucketFast(input, num_buckets=num_buckets, name=name)


def string_to_hash_bucket_strong(input, num_buckets, key, name=None):  # noqa: A002
    """Hashes strings with a key to numbers below `num_buckets`."""
    return _ops.StringToHashBucketStrong(input, num_buckets=num_buckets, key=key, name=name)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):  # noqa: A002
    """Converts numbers to strings."""
    return _ops.AsString(input, precision=precision, scientific=scientific, shortest=shortest, width=width, fill=fill, name=name)


def string_format(template, inputs, placeholder="{}", summarize=3, name=None):
    """Formats tensors into a string by a template."""
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    if template.count(placeholder) != len(inputs):
        raise ValueError("The template expects %d tensors, but the inputs only has %d. Please ensure the number of placeholders in template matches "
                         "inputs length." % (template.count(placeholder), len(inputs)))
    return _ops.StringFormat(inputs, template=template, placeholder=placeholder, summarize=summarize, name=name)


def unicode_script(input, name=None):  # noqa: A002
    """Returns the script of each character."""
    return _ops.UnicodeScript(input, name=name)


def unicode_transcode(input, input_encoding, output_encoding, errors="replace", replacement_char=65533,  # noqa: A002
                      replace_control_characters=False, name=None):
    """Converts strings to another encoding."""
    return _ops.UnicodeTranscode(input, input_encoding=input_encoding, output_encoding=output_encoding, errors=errors,
                                 replacement_char=replacement_char, replace_control_characters=replace_control_characters, name=name)


def unsorted_segment_join(inputs, segment_ids, num_segments, separator="", name=None):
    """Joins the strings of each segment."""
    return _ops.UnsortedSegmentJoin(inputs, segment_ids, num_segments, separator=separator, name=name)
