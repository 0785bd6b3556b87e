"""The kinds of feature columns; the functions of tf.feature_column create them.

A column is a named tuple that says what to do with a feature. A dense column returns a tensor [batch, ...] (`_dense`),
a categorical one sparse ids with weights (`_ids`). Both work on the transformed feature (`_transform`, computed once
per call).
"""

import collections

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert, framework, tensor_shape
from runnel.core.composite import SparseTensor
from runnel.core.framework import name_scope
from runnel.io import parsing_ops
from runnel.ops import array_ops, math_ops, sparse_ops, string_ops, variable_scopes

IdWeightPair = collections.namedtuple("IdWeightPair", ["id_tensor", "weight_tensor"])


class Features:
    """The features of one call, and what columns made of them. `tables` is {column: variable}, kept between calls."""

    def __init__(self, features, tables=None):
        self._features = dict(features)
        self._made = {}
        self.tables = tables

    def get(self, key):
        """Returns the tensor of a feature (with at least two dimensions) or of a column."""
        if key not in self._made:
            if isinstance(key, str):
                self._made[key] = self._raw(key)
            elif isinstance(key, Column):
                self._made[key] = key._transform(self)
            else:
                raise TypeError("\"key\" must be either a \"str\" or \"_FeatureColumn\". Provided: %r" % (key,))
        return self._made[key]

    def _raw(self, key):
        if key not in self._features:
            raise ValueError("Feature %s is not in features dictionary." % key)
        tensor = convert.convert_to_tensor_or_sparse_tensor(self._features[key])
        rank = tensor.get_shape().ndims
        if rank == 0:
            raise ValueError("Feature (key: %s) cannot have rank 0. Given: %s" % (key, tensor))
        if rank is not None and rank > 1:
            return tensor
        if isinstance(tensor, SparseTensor):
            return sparse_ops.sparse_reshape(tensor, [array_ops.shape(tensor)[0], 1])
        if rank == 1:
            return array_ops.expand_dims(tensor, -1)
        from runnel.ops.control_flow import cond
        with framework.control_dependencies(None):
            return cond(math_ops.equal(1, array_ops.rank(tensor)), lambda: array_ops.expand_dims(tensor, -1), lambda: tensor)


def _to_sparse(tensor, ignored=None):
    """Returns the entries of a dense tensor except those that mean "missing": "" and -1."""
    tensor = convert.convert_to_tensor_or_sparse_tensor(tensor)
    if isinstance(tensor, SparseTensor):
        return tensor
    with name_scope(None, "to_sparse_input", [tensor, ignored]):
        if ignored is None:
            ignored = "" if tensor.dtype == dtypes.string else -1 if tensor.dtype.is_integer else 0
        ignored = math_ops.cast(ignored, tensor.dtype, name="ignore_value")
        indices = array_ops.where(math_ops.not_equal(tensor, ignored), name="indices")
        return SparseTensor(indices, array_ops.gather_nd(tensor, indices, name="values"),
                            array_ops.shape(tensor, out_type=dtypes.int64, name="dense_shape"))


def check_string_or_int(dtype, prefix):
    """Raises ValueError unless the type is string or an integer type."""
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError("%s dtype must be string or integer. dtype: %s." % (prefix, dtype))


class Column:
    """The base of columns: a name, the features to parse, and a scope for the variables."""

    __slots__ = ()

    @property
    def _var_scope_name(self):
        return self.name


class Dense(Column):
    """The base of dense columns."""

    __slots__ = ()


class Categorical(Column):
    """The base of categorical columns."""

    __slots__ = ()

    def _ids(self, features):
        return IdWeightPair(features.get(self), None)


class NumericColumn(Dense, collections.namedtuple("NumericColumn", "key shape default_value dtype normalizer_fn")):
    """Numbers: see numeric_column."""

    name = property(lambda self: self.key)
    variable_shape = property(lambda self: tensor_shape.TensorShape(self.shape))

    @property
    def parse_example_spec(self):
        return {self.key: parsing_ops.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def _transform(self, features):
        tensor = features.get(self.key)
        if isinstance(tensor, SparseTensor):
            raise ValueError("The corresponding Tensor of numerical column must be a Tensor. "
                             "SparseTensor is not supported. key: %s" % self.key)
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        return math_ops.cast(tensor, dtypes.float32)

    def _dense(self, features, collections, trainable):
        return features.get(self)


class BucketizedColumn(Dense, Categorical, collections.namedtuple("BucketizedColumn", "source_column boundaries")):
    """The intervals that numbers are in: see bucketized_column."""

    name = property(lambda self: self.source_column.name + "_bucketized")
    parse_example_spec = property(lambda self: self.source_column.parse_example_spec)
    num_buckets = property(lambda self: (len(self.boundaries) + 1) * self.source_column.shape[0])
    variable_shape = property(lambda self: tensor_shape.TensorShape(tuple(self.source_column.shape) + (len(self.boundaries) + 1,)))

    def _transform(self, features):
        return _ops.Bucketize(features.get(self.source_column), boundaries=list(self.boundaries))

    def _dense(self, features, collections, trainable):
        return array_ops.one_hot(math_ops.cast(features.get(self), dtypes.int64), len(self.boundaries) + 1, on_value=1.0, off_value=0.0)

    def _ids(self, features):
        buckets, count = features.get(self), self.source_column.shape[0]
        batch = array_ops.shape(buckets)[0]
        rows = array_ops.reshape(array_ops.tile(array_ops.expand_dims(math_ops.range(0, batch), 1), [1, count]), (-1,))
        columns = array_ops.tile(math_ops.range(0, count), [batch])
        ids = array_ops.reshape(buckets, (-1,)) + (len(self.boundaries) + 1) * columns
        indices = math_ops.cast(array_ops.transpose(array_ops.stack((rows, columns))), dtypes.int64)
        return IdWeightPair(SparseTensor(indices, ids, math_ops.cast(array_ops.stack([batch, count]), dtypes.int64)), None)


class _OneKey(Categorical):
    """Categorical columns of one feature, of type `dtype`; `_lookup` converts its values to ids."""

    __slots__ = ()
    name = property(lambda self: self.key)
    parse_example_spec = property(lambda self: {self.key: parsing_ops.VarLenFeature(self.dtype)})

    def _transform(self, features):
        tensor = _to_sparse(features.get(self.key))
        if self.dtype.is_integer != tensor.dtype.is_integer:
            raise ValueError("Column dtype and SparseTensors dtype must be compatible. key: %s, column dtype: %s, tensor dtype: %s" % (
                self.key, self.dtype, tensor.dtype))
        check_string_or_int(tensor.dtype, "column_name: %s input_tensor" % self.key)
        return self._lookup(tensor)


class HashedCategoricalColumn(_OneKey, collections.namedtuple("HashedCategoricalColumn", "key hash_bucket_size dtype")):
    """Ids by hashing: see categorical_column_with_hash_bucket."""

    num_buckets = property(lambda self: self.hash_bucket_size)

    def _lookup(self, tensor):
        values = tensor.values if self.dtype == dtypes.string else string_ops.as_string(tensor.values)
        ids = string_ops.string_to_hash_bucket_fast(values, self.hash_bucket_size, name="lookup")
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)


class _Vocabulary(_OneKey):
    """Ids by a table, which `_table` creates."""

    __slots__ = ()

    def _lookup(self, tensor):
        dtype = self.dtype
        if tensor.dtype.is_integer:
            dtype, tensor = dtypes.int64, math_ops.cast(tensor, dtypes.int64)
        with framework.init_scope():
            table = self._table(dtype, self.key + "_lookup")
        return table.lookup(tensor)


class VocabularyFileCategoricalColumn(_Vocabulary, collections.namedtuple(
        "VocabularyFileCategoricalColumn", "key vocabulary_file vocabulary_size num_oov_buckets dtype default_value file_format")):
    """Ids by the lines of a file: see categorical_column_with_vocabulary_file."""

    num_buckets = property(lambda self: self.vocabulary_size + self.num_oov_buckets)

    def _table(self, dtype, name):
        from runnel.ops import lookup_ops
        return lookup_ops.index_table_from_file(
            vocabulary_file=self.vocabulary_file, num_oov_buckets=self.num_oov_buckets, vocab_size=self.vocabulary_size,
            default_value=self.default_value, key_dtype=dtype, name=name)


class VocabularyListCategoricalColumn(_Vocabulary, collections.namedtuple(
        "VocabularyListCategoricalColumn", "key vocabulary_list dtype default_value num_oov_buckets")):
    """Ids by a list: see categorical_column_with_vocabulary_list."""

    num_buckets = property(lambda self: len(self.vocabulary_list) + self.num_oov_buckets)

    def _table(self, dtype, name):
        from runnel.ops import lookup_ops
        return lookup_ops.index_table_from_tensor(
            vocabulary_list=self.vocabulary_list, default_value=self.default_value, num_oov_buckets=self.num_oov_buckets,
            dtype=dtype, name=name)


class IdentityCategoricalColumn(Categorical, collections.namedtuple("IdentityCategoricalColumn", "key number_buckets default_value")):
    """Integers that are ids: see categorical_column_with_identity."""

    name = property(lambda self: self.key)
    num_buckets = property(lambda self: self.number_buckets)
    parse_example_spec = property(lambda self: {self.key: parsing_ops.VarLenFeature(dtypes.int64)})

    def _transform(self, features):
        tensor = _to_sparse(features.get(self.key))
        if not tensor.dtype.is_integer:
            raise ValueError("Invalid input, not integer. key: %s dtype: %s" % (self.key, tensor.dtype))
        values = math_ops.cast(tensor.values, dtypes.int64, name="values")
        limit = math_ops.cast(self.num_buckets, dtypes.int64, name="num_buckets")
        zero = math_ops.cast(0, dtypes.int64, name="zero")
        if self.default_value is not None:
            outside = _ops.LogicalOr(values < zero, values >= limit, name="out_of_range")
            default = array_ops.fill(array_ops.shape(values), math_ops.cast(self.default_value, dtypes.int64), name="default_values")
            values = array_ops.where(outside, default, values)
        else:
            from runnel.ops import check_ops
            checks = [check_ops.assert_less(values, limit, data=(values, limit), name="assert_less_than_num_buckets"),
                      check_ops.assert_greater_equal(values, zero, data=(values,), name="assert_greater_or_equal_0")]
            with framework.control_dependencies(checks):
                values = array_ops.identity(values)
        return SparseTensor(tensor.indices, values, tensor.dense_shape)


class WeightedCategoricalColumn(Categorical, collections.namedtuple(
        "WeightedCategoricalColumn", "categorical_column weight_feature_key dtype")):
    """Ids with weights from another feature: see weighted_categorical_column."""

    name = property(lambda self: "%s_weighted_by_%s" % (self.categorical_column.name, self.weight_feature_key))
    num_buckets = property(lambda self: self.categorical_column.num_buckets)

    @property
    def parse_example_spec(self):
        config = dict(self.categorical_column.parse_example_spec)
        if self.weight_feature_key in config:
            raise ValueError("Parse config %s already exists for %s." % (config[self.weight_feature_key], self.weight_feature_key))
        config[self.weight_feature_key] = parsing_ops.VarLenFeature(self.dtype)
        return config

    def _transform(self, features):
        weights = features.get(self.weight_feature_key)
        if weights is None:
            raise ValueError("Missing weights %s." % self.weight_feature_key)
        weights = convert.convert_to_tensor_or_sparse_tensor(weights)
        if self.dtype != weights.dtype.base_dtype:
            raise ValueError("Bad dtype, expected %s, but got %s." % (self.dtype, weights.dtype))
        if not isinstance(weights, SparseTensor):
            weights = _to_sparse(weights, 0.0)
        if not weights.dtype.is_floating:
            weights = math_ops.cast(weights, dtypes.float32)
        return features.get(self.categorical_column), weights

    def _ids(self, features):
        return IdWeightPair(*features.get(self))


class CrossedColumn(Categorical, collections.namedtuple("CrossedColumn", "keys hash_bucket_size hash_key")):
    """Hashes of several features together: see crossed_column."""

    num_buckets = property(lambda self: self.hash_bucket_size)
    name = property(lambda self: "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self._leaves())))

    def _leaves(self):
        """Returns the keys, with nested crosses replaced by their keys."""
        return [leaf for key in self.keys for leaf in (key._leaves() if isinstance(key, CrossedColumn) else [key])]

    @property
    def parse_example_spec(self):
        config = {}
        for key in self.keys:
            config.update({key: parsing_ops.VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec)
        return config

    def _transform(self, features):
        tensors = []
        for key in self._leaves():
            if isinstance(key, str):
                tensors.append(features.get(key))
                continue
            ids = key._ids(features)
            if ids.weight_tensor is not None:
                raise ValueError("crossed_column does not support weight_tensor, but the given column populates weight_tensor. "
                                 "Given column: %s" % key.name)
            tensors.append(ids.id_tensor)
        return sparse_ops.sparse_cross_hashed(tensors, self.hash_bucket_size, self.hash_key)


class IndicatorColumn(Dense, collections.namedtuple("IndicatorColumn", "categorical_column")):
    """Counts of ids: see indicator_column."""

    name = property(lambda self: self.categorical_column.name + "_indicator")
    parse_example_spec = property(lambda self: self.categorical_column.parse_example_spec)
    variable_shape = property(lambda self: tensor_shape.TensorShape([1, self.categorical_column.num_buckets]))

    def _transform(self, features):
        ids, weights = self.categorical_column._ids(features)
        depth = self.variable_shape.dims[-1].value
        if weights is not None:
            weighted = sparse_ops.sparse_merge(sp_ids=ids, sp_values=weights, vocab_size=int(depth))
            # A missing id is -1, which is before the first column, so the slice leaves it out.
            weighted = sparse_ops.sparse_slice(weighted, [0, 0], weighted.dense_shape)
            return _ops.ScatterNd(weighted.indices, weighted.values, weighted.dense_shape)
        dense = sparse_ops.sparse_tensor_to_dense(ids, default_value=-1)
        return math_ops.reduce_sum(array_ops.one_hot(dense, depth=depth, on_value=1.0, off_value=0.0), axis=[-2])

    def _dense(self, features, collections, trainable):
        return features.get(self)


class EmbeddingColumn(Dense, collections.namedtuple("EmbeddingColumn", """categorical_column dimension combiner initializer ckpt_to_load_from
        tensor_name_in_ckpt max_norm trainable use_safe_embedding_lookup""")):
    """Learned vectors of ids: see embedding_column."""

    name = property(lambda self: self.categorical_column.name + "_embedding")
    parse_example_spec = property(lambda self: self.categorical_column.parse_example_spec)
    variable_shape = property(lambda self: tensor_shape.TensorShape([self.dimension]))

    def _transform(self, features):
        return features.get(self.categorical_column)

    def _weights(self, collections, trainable):
        return variable_scopes.get_variable(
            "embedding_weights", shape=(self.categorical_column.num_buckets, self.dimension), dtype=dtypes.float32,
            initializer=self.initializer, trainable=self.trainable and trainable, collections=collections)

    def _dense(self, features, collections, trainable):
        from runnel.nn import embedding_ops
        ids, weights = self.categorical_column._ids(features)
        table = features.tables.get(self) if features.tables is not None else None
        if table is None:
            table = self._weights(collections, trainable)
            if features.tables is not None:
                features.tables[self] = table
        if self.ckpt_to_load_from is not None:
            from runnel import train
            parts = table._get_variable_list() if hasattr(table, "_get_variable_list") else table
            train.init_from_checkpoint(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: parts})
        lookup = embedding_ops.safe_embedding_lookup_sparse if self.use_safe_embedding_lookup else embedding_ops.embedding_lookup_sparse
        return lookup(table, ids, weights, combiner=self.combiner, name="%s_weights" % self.name, max_norm=self.max_norm)


class SharedEmbeddingColumn(EmbeddingColumn):
    """Learned vectors of ids from a shared table: see shared_embedding_columns."""

    name = property(lambda self: self.categorical_column.name + "_shared_embedding")
    _var_scope_name = property(lambda self: self._collection)

    def _weights(self, collections, trainable):
        shared = framework.get_collection(self._collection)
        if not shared:
            table = super()._weights(collections, trainable)
            framework.add_to_collection(self._collection, table)
            return table
        expected = (self.categorical_column.num_buckets, self.dimension)
        if len(shared) > 1 or shared[0].get_shape() != tensor_shape.TensorShape(expected):
            raise ValueError("Collection %s must have exactly one variable, of shape %s, for the columns that share it; it has %s." % (
                self._collection, expected, shared))
        return shared[0]

    def _dense(self, features, collections, trainable):
        with name_scope(None, self.name):
            return super()._dense(features, collections, trainable)
