"""Parsing of tf.Example, CSV and raw bytes: tf.parse_example and others."""

import collections

from runnel import dtypes, raw_ops as _ops
from runnel.core import tensor_shape
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.io.ragged_features import RaggedFeature, as_ragged, partitioned

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

    def __init__(self, features, may_be_empty=False):
        if not features and not may_be_empty:
            raise ValueError("Missing: features was %s." % (features,))
        self.sparse, self.dense, self.ragged = {}, {}, {}  # ragged: key -> (type of values, type of splits)
        for key in sorted(features):
            feature = features[key]
            if isinstance(feature, VarLenFeature):
                self._add_sparse(key, feature.dtype)
            elif isinstance(feature, SparseFeature):
                index_keys = feature.index_key if isinstance(feature.index_key, (list, tuple)) else [feature.index_key]
                for index_key in sorted(index_keys):
                    self._add_sparse(index_key, dtypes.int64)
                self._add_sparse(feature.value_key, feature.dtype)
            elif isinstance(feature, RaggedFeature):
                for name, dtype in feature.keys(key).items():
                    self._add_ragged(name, dtype, feature.row_splits_dtype)
            elif isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
                if feature.dtype is None:
                    raise ValueError("Missing type for feature %s. Received feature=%s" % (key, feature))
                self.dense[key] = feature
            else:
                raise ValueError("Unsupported %s %s for key '%s'" % (type(feature).__name__, feature, key))
        for first, second, names in ((self.dense, self.sparse, "Dense and sparse"), (self.dense, self.ragged, "Dense and ragged"),
                                     (self.ragged, self.sparse, "Ragged and sparse")):
            if not first.keys().isdisjoint(second):
                one, other = names.lower().split(" and ")
                raise ValueError("%s keys must not intersect; %s_keys: %s, %s_keys: %s, intersection: %s" % (
                    names, one, list(first), other, list(second), first.keys() & second.keys()))

    def _add_sparse(self, key, dtype):
        dtype = dtypes.as_dtype(dtype)
        if self.sparse.setdefault(key, dtype) != dtype:
            raise ValueError("Conflicting type %s vs %s for feature %s." % (self.sparse[key], dtype, key))

    def _add_ragged(self, key, dtype, splits):
        known = self.ragged.setdefault(key, (dtype, splits))
        if known[0] != dtype:
            raise ValueError("Conflicting type %s vs %s for feature %s." % (known[0], dtype, key))
        if known[1] != splits:
            raise ValueError("Conflicting partition type %s vs %s for feature %s." % (known[1], splits, key))

    def ragged_types(self):
        """Returns (types of values, types of splits)."""
        return [row[0] for row in self.ragged.values()], [row[1] for row in self.ragged.values()]

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


def _gather(features, parsed):
    """Returns the results for a dict of features, from what the op parsed."""
    out = {}
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            out[key] = _from_parts(feature, parsed)
        elif isinstance(feature, RaggedFeature):
            out[key] = partitioned(feature, key, parsed)
        else:
            out[key] = parsed[key]
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
      features: {name: FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature or RaggedFeature}.
      name: name of the operation.
      example_names: names for error messages.

    Returns:
      A dict of tensors, SparseTensors and RaggedTensors.
    """
    params = _Params(features)
    with name_scope(name, "ParseExample", [serialized, example_names]) as scope:
        serialized = convert_to_tensor(serialized, dtype=dtypes.string, name="serialized")
        _check_rank(serialized, params)
        names = convert_to_tensor([] if example_names is None else example_names, dtype=dtypes.string, name="names")
        value_types, split_types = params.ragged_types()
        out = _ops.ParseExampleV2(
            serialized, names, _keys(params.sparse, "sparse_keys"), _keys(params.dense, "dense_keys"), _keys(params.ragged, "ragged_keys"),
            params.dense_defaults(), num_sparse=len(params.sparse), sparse_types=list(params.sparse.values()), ragged_value_types=value_types,
            ragged_split_types=split_types, dense_shapes=params.dense_shapes(), name=scope)
        parsed = _sparse(params, out.sparse_indices, out.sparse_values, out.sparse_shapes)
        parsed.update(zip(params.dense, out.dense_values))
        parsed.update(zip(params.ragged, as_ragged(serialized.shape.ndims == 0, out.ragged_values, out.ragged_row_splits)))
        return _gather(features, parsed)


def _keys(names, label):
    return convert_to_tensor(list(names), dtype=dtypes.string, name=label)


def _check_rank(serialized, *all_params):
    if any(params.ragged for params in all_params) and serialized.shape.ndims is None:
        raise ValueError("serialized must have statically-known rank to parse ragged features.")


def _sparse(params, indices, values, shapes):
    return {key: SparseTensor(*row) for key, row in zip(params.sparse, zip(indices, values, shapes))}


def parse_single_example(serialized, features, name=None, example_names=None):
    """Parses one serialized tf.Example."""
    params = _Params(features)
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        serialized = convert_to_tensor(serialized, name="serialized")
        if params.ragged:
            serialized.shape.assert_has_rank(0)
            return parse_example(serialized, features, None, example_names)
        out = _ops.ParseSingleExample(
            serialized, params.dense_defaults(), num_sparse=len(params.sparse), sparse_keys=list(params.sparse), dense_keys=list(params.dense),
            sparse_types=list(params.sparse.values()), dense_shapes=params.dense_shapes())
        parsed = _sparse(params, out.sparse_indices, out.sparse_values, out.sparse_shapes)
        parsed.update(zip(params.dense, out.dense_values))
        return _gather(features, parsed)


def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None, name=None):
    """Parses one serialized tf.SequenceExample. Returns (context, sequences)."""
    if not (context_features or sequence_features):
        raise ValueError("Both context_features and sequence_features are None or empty.")
    context = _Params(context_features) if context_features else None
    steps = _Params(sequence_features) if sequence_features else None
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        if (context and context.ragged) or (steps and steps.ragged):
            serialized = convert_to_tensor(serialized, name="serialized")
            serialized.shape.assert_has_rank(0)
            return parse_sequence_example(serialized, context_features, sequence_features, example_name)[:2]
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
        parsed = _sparse(context, out.context_sparse_indices, out.context_sparse_values, out.context_sparse_shapes)
        parsed.update(zip(context.dense, out.context_dense_values))
        first = _gather(context_features, parsed)
    if steps:
        parsed = _sparse(steps, out.feature_list_sparse_indices, out.feature_list_sparse_values, out.feature_list_sparse_shapes)
        parsed.update(zip(sequence_dense, out.feature_list_dense_values))
        second = _gather(sequence_features, parsed)
    return first, second


def parse_sequence_example(serialized, context_features=None, sequence_features=None, example_names=None, name=None):
    """Parses a batch of serialized tf.SequenceExamples.

    Args:
      serialized: a vector of strings.
      context_features: {name: FixedLenFeature, VarLenFeature or RaggedFeature}, of whole sequences.
      sequence_features: {name: FixedLenSequenceFeature, VarLenFeature or RaggedFeature}, of their steps.
      example_names: names for error messages.
      name: name of the operation.

    Returns:
      (features of whole sequences, features of steps, {name of a FixedLenSequenceFeature: the number of steps of each sequence}).
    """
    if not (context_features or sequence_features):
        raise ValueError("Both `context_features` and `sequence_features` argument are None, but at least one should have values.")
    context, steps = (_params_of(features, kinds) for features, kinds in (
        (context_features, (VarLenFeature, FixedLenFeature, RaggedFeature)),
        (sequence_features, (VarLenFeature, FixedLenSequenceFeature, RaggedFeature))))
    for key, feature in steps.dense.items():
        if feature.default_value is not None:
            raise ValueError("Value feature_list.dense_defaults[%s] must be None" % key)
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        serialized = convert_to_tensor(serialized, dtype=dtypes.string, name="serialized")
        _check_rank(serialized, context, steps)
        context_types, steps_types = context.ragged_types(), steps.ragged_types()
        out = _ops.ParseSequenceExampleV2(
            serialized, convert_to_tensor([] if example_names is None else example_names, dtype=dtypes.string, name="debug_name"),
            _keys(context.sparse, "context_sparse_keys"), _keys(context.dense, "context_dense_keys"), _keys(context.ragged, "context_ragged_keys"),
            _keys(steps.sparse, "feature_list_sparse_keys"), _keys(steps.dense, "feature_list_dense_keys"),
            _keys(steps.ragged, "feature_list_ragged_keys"),
            convert_to_tensor([feature.allow_missing for feature in steps.dense.values()], dtype=dtypes.bool,
                              name="feature_list_dense_missing_assumed_empty"),
            context.dense_defaults(), Ncontext_sparse=len(context.sparse), context_sparse_types=list(context.sparse.values()),
            context_ragged_value_types=context_types[0], context_ragged_split_types=context_types[1], context_dense_shapes=context.dense_shapes(),
            Nfeature_list_sparse=len(steps.sparse), Nfeature_list_dense=len(steps.dense),
            feature_list_dense_types=[dtypes.as_dtype(f.dtype) for f in steps.dense.values()],
            feature_list_sparse_types=list(steps.sparse.values()), feature_list_ragged_value_types=steps_types[0],
            feature_list_ragged_split_types=steps_types[1],
            feature_list_dense_shapes=[tensor_shape.as_shape(f.shape) for f in steps.dense.values()])
        is_single = serialized.shape.ndims == 0
        first = _sparse(context, out.context_sparse_indices, out.context_sparse_values, out.context_sparse_shapes)
        first.update(zip(context.dense, out.context_dense_values))
        first.update(zip(context.ragged, as_ragged(is_single, out.context_ragged_values, out.context_ragged_row_splits)))
        second = _sparse(steps, out.feature_list_sparse_indices, out.feature_list_sparse_values, out.feature_list_sparse_shapes)
        second.update(zip(steps.dense, out.feature_list_dense_values))
        second.update(zip(steps.ragged, as_ragged(
            is_single, out.feature_list_ragged_values, out.feature_list_ragged_outer_splits, out.feature_list_ragged_inner_splits)))
        return (_gather(context_features or {}, first), _gather(sequence_features or {}, second),
                dict(zip(steps.dense, out.feature_list_dense_lengths)))


def _params_of(features, kinds):
    """Returns the arguments of the op for a dict, which may be empty, of features of these kinds."""
    for key in sorted(features or {}):
        if not isinstance(features[key], kinds):
            raise ValueError("Unsupported %s %s for key '%s'" % (type(features[key]).__name__, features[key], key))
    return _Params(features or {}, may_be_empty=True)


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
