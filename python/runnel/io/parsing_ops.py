"""Parsing of tf.Example, CSV and raw bytes: tf.parse_example and others."""

import collections

from runnel import dtypes, raw_ops as _ops
from runnel.core import tensor_shape
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope

VarLenFeature = collections.namedtuple("VarLenFeature", ["dtype"])
VarLenFeature.__doc__ = "A feature of any length, which becomes a SparseTensor."


class FixedLenFeature(collections.namedtuple("FixedLenFeature", ["shape", "dtype", "default_value"])):
    """A feature of a fixed shape."""

    def __new__(cls, shape, dtype, default_value=None):
        return super().__new__(cls, shape, dtype, default_value)


class FixedLenSequenceFeature(collections.namedtuple(
        "FixedLenSequenceFeature", ["shape", "dtype", "allow_missing", "default_value"])):
    """A feature of any number of values of one shape, which becomes a padded tensor."""

    def __new__(cls, shape, dtype, allow_missing=False, default_value=None):
        return super().__new__(cls, shape, dtype, allow_missing, default_value)


class SparseFeature(collections.namedtuple(
        "SparseFeature", ["index_key", "value_key", "dtype", "size", "already_sorted"])):
    """A sparse feature whose indices and values are features of their own."""

    def __new__(cls, index_key, value_key, dtype, size, already_sorted=False):
        return super().__new__(cls, index_key, value_key, dtype, size, already_sorted)


class _Params:
    """The arguments of the op for a dict of features."""

    def __init__(self, features):
        if not features:
            raise ValueError("Missing: features was %s." % (features,))
        self.sparse, self.dense = {}, {}
        for key in sorted(features):
            feature = features[key]
            if isinstance(feature, VarLenFeature):
                self._add_sparse(key, feature.dtype)
            elif isinstance(feature, SparseFeature):
                index_keys = feature.index_key if isinstance(feature.index_key, (list, tuple)) else [feature.index_key]
                for index_key in sorted(index_keys):
                    self._add_sparse(index_key, dtypes.int64)
                self._add_sparse(feature.value_key, feature.dtype)
            elif isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
                if feature.dtype is None:
                    raise ValueError("Missing type for feature %s. Received feature=%s" % (key, feature))
                self.dense[key] = feature
            else:
                raise ValueError("Unsupported FixedLenFeature, VarLenFeature or SparseFeature %s: %r" % (key, feature))

    def _add_sparse(self, key, dtype):
        dtype = dtypes.as_dtype(dtype)
        if self.sparse.setdefault(key, dtype) != dtype:
            raise ValueError("Conflicting type %s vs %s for feature %s." % (self.sparse[key], dtype, key))

    def dense_shapes(self):
        shapes = []
        for feature in self.dense.values():
            shape = tensor_shape.as_shape(feature.shape)
            if isinstance(feature, FixedLenSequenceFeature):
                shape = tensor_shape.TensorShape([None]).concatenate(shape)
            shapes.append(shape)
        return shapes

    def dense_defaults(self):
        defaults = []
        for key, feature in self.dense.items():
            dtype = dtypes.as_dtype(feature.dtype)
            value = feature.default_value
            shape = tensor_shape.as_shape(feature.shape)
            if value is None:
                if isinstance(feature, FixedLenSequenceFeature):
                    if not feature.allow_missing:
                        raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
                    value = "" if dtype == dtypes.string else 0
                    value = convert_to_tensor(value, dtype=dtype, name="key_" + _clean(key))
                else:
                    value = convert_to_tensor([], dtype=dtype, name="Const")
            elif isinstance(feature, FixedLenSequenceFeature):
                value = convert_to_tensor(value, dtype=dtype, name="key_" + _clean(key))
            else:
                value = convert_to_tensor(value, dtype=dtype, name="key_" + _clean(key))
                if shape.is_fully_defined():
                    from runnel.ops.array_ops import reshape
                    value = reshape(value, shape)
            defaults.append(value)
        return defaults


def _clean(key):
    import re
    return re.sub("[^A-Za-z0-9_.\\-/]", "_", key)


def _gather(features, sparse, dense):
    """Returns the results for a dict of features."""
    out = {}
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            out[key] = _from_parts(feature, sparse)
        else:
            out[key] = sparse[key] if key in sparse else dense[key]
    return out


def _from_parts(feature, sparse):
    from runnel.ops.array_ops import concat, expand_dims
    from runnel.ops.sparse_ops import sparse_merge, sparse_reorder
    values = sparse[feature.value_key]
    if not isinstance(feature.index_key, (list, tuple)):
        return sparse_merge(sparse[feature.index_key], values, feature.size, already_sorted=feature.already_sorted)
    columns = [expand_dims(sparse[key].values, 1) for key in feature.index_key]
    indices = concat([values.indices[:, :-1]] + columns, 1)
    shape = concat([values.dense_shape[:-1], convert_to_tensor(list(feature.size), dtype=dtypes.int64)], 0)
    merged = SparseTensor(indices, values.values, shape)
    return merged if feature.already_sorted else sparse_reorder(merged)


def parse_example(serialized, features, name=None, example_names=None):
    """Parses a batch of serialized tf.Examples.

    Args:
      serialized: a vector of strings.
      features: {name: FixedLenFeature, VarLenFeature, FixedLenSequenceFeature or SparseFeature}.
      name: name of the operation.
      example_names: names for error messages.

    Returns:
      A dict of tensors and SparseTensors.
    """
    params = _Params(features)
    with name_scope(name, "ParseExample", [serialized, example_names]) as scope:
        serialized = convert_to_tensor(serialized, dtype=dtypes.string, name="serialized")
        names = convert_to_tensor([] if example_names is None else example_names, dtype=dtypes.string, name="names")
        out = _ops.ParseExampleV2(
            serialized, names, convert_to_tensor(list(params.sparse), dtype=dtypes.string, name="sparse_keys"),
            convert_to_tensor(list(params.dense), dtype=dtypes.string, name="dense_keys"), convert_to_tensor([], dtype=dtypes.string, name="ragged_keys"),
            params.dense_defaults(), num_sparse=len(params.sparse), sparse_types=list(params.sparse.values()), ragged_value_types=[],
            ragged_split_types=[], dense_shapes=params.dense_shapes(), name=scope)
        return _result(features, params, out)


def _result(features, params, out):
    sparse = {key: SparseTensor(*row) for key, row in zip(
        params.sparse, zip(out.sparse_indices, out.sparse_values, out.sparse_shapes))}
    return _gather(features, sparse, dict(zip(params.dense, out.dense_values)))


def parse_single_example(serialized, features, name=None, example_names=None):
    """Parses one serialized tf.Example."""
    params = _Params(features)
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        serialized = convert_to_tensor(serialized, name="serialized")
        out = _ops.ParseSingleExample(
            serialized, params.dense_defaults(), num_sparse=len(params.sparse), sparse_keys=list(params.sparse), dense_keys=list(params.dense),
            sparse_types=list(params.sparse.values()), dense_shapes=params.dense_shapes())
        return _result(features, params, out)


def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None, name=None):
    """Parses one serialized tf.SequenceExample. Returns (context, sequences)."""
    if not (context_features or sequence_features):
        raise ValueError("Both context_features and sequence_features are None or empty.")
    context = _Params(context_features) if context_features else None
    steps = _Params(sequence_features) if sequence_features else None
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        sequence_dense = dict(steps.dense) if steps else {}
        missing = [key for key, feature in sequence_dense.items() if feature.allow_missing]
        out = _ops.ParseSingleSequenceExample(
            serialized, missing, list(context.sparse) if context else [], list(context.dense) if context else [],
            list(steps.sparse) if steps else [], list(sequence_dense), context.dense_defaults() if context else [],
            "" if example_name is None else example_name,
            context_sparse_types=list(context.sparse.values()) if context else [],
            feature_list_dense_types=[dtypes.as_dtype(f.dtype) for f in sequence_dense.values()],
            context_dense_shapes=context.dense_shapes() if context else [],
            feature_list_sparse_types=list(steps.sparse.values()) if steps else [],
            feature_list_dense_shapes=[tensor_shape.as_shape(f.shape) for f in sequence_dense.values()])
    first, second = {}, {}
    if context:
        sparse = {key: SparseTensor(*row) for key, row in zip(context.sparse, zip(
            out.context_sparse_indices, out.context_sparse_values, out.context_sparse_shapes))}
        first = _gather(context_features, sparse, dict(zip(context.dense, out.context_dense_values)))
    if steps:
        sparse = {key: SparseTensor(*row) for key, row in zip(steps.sparse, zip(
            out.feature_list_sparse_indices, out.feature_list_sparse_values, out.feature_list_sparse_shapes))}
        second = _gather(sequence_features, sparse, dict(zip(sequence_dense, out.feature_list_dense_values)))
    return first, second


def decode_raw(input_bytes=None, out_type=None, little_endian=True, name=None, bytes=None):  # noqa: A002
    """Reinterprets the bytes of strings as numbers."""
    from runnel.ops.math_ops import _pick
    return _ops.DecodeRaw(_pick("input_bytes", input_bytes, "bytes", bytes), out_type=out_type, little_endian=little_endian, name=name)


def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, name=None, na_value="", select_cols=None):
    """Parses lines of comma-separated values into one tensor per field."""
    if select_cols is not None and any(select_cols[i] >= select_cols[i + 1] for i in range(len(select_cols) - 1)):
        raise ValueError("select_cols is not strictly increasing.")
    return _ops.DecodeCSV(records, record_defaults, field_delim=field_delim, use_quote_delim=use_quote_delim, na_value=na_value,
                          select_cols=select_cols, name=name)


def parse_tensor(serialized, out_type, name=None):
    """Converts a serialized TensorProto to a tensor."""
    return _ops.ParseTensor(serialized, out_type=out_type, name=name)


def serialize_tensor(tensor, name=None):
    """Serializes a tensor as a TensorProto."""
    return _ops.SerializeTensor(tensor, name=name)
