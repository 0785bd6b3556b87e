"""Feature columns (their kinds are in `feature_kinds`), and the functions that use them: input_layer and linear_model."""

from runnel import dtypes
from runnel.core import framework, tensor_shape
from runnel.feature_column.feature_kinds import (
    BucketizedColumn, Categorical, Column, CrossedColumn, Dense, EmbeddingColumn, Features, HashedCategoricalColumn,
    IdentityCategoricalColumn, IndicatorColumn, NumericColumn, SharedEmbeddingColumn, VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn, WeightedCategoricalColumn, check_string_or_int)
from runnel.ops import array_ops, math_ops, sparse_ops, variable_scopes


def _check_key(key):
    if not isinstance(key, str):
        raise ValueError("key must be a string. Got: type %s. Given key: %s." % (type(key), key))


def _default_values(shape, default, dtype, key):
    """Returns a default value as nested tuples of a shape, or None."""
    import numpy as np
    if default is None:
        return None
    is_number = isinstance(default, (int, float)) and not isinstance(default, bool)
    values = np.full(shape, default) if is_number else np.asarray(default)
    if tuple(values.shape) != tuple(shape):
        raise ValueError("The shape of default_value must be equal to given shape. default_value: %s, shape: %s, key: %s" % (
            default, shape, key))
    if values.dtype.kind not in "iuf" or (values.dtype.kind == "f" and dtype.is_integer):
        raise TypeError("default_value must be compatible with dtype. default_value: %s, dtype: %s, key: %s" % (default, dtype, key))

    def tuples(value):
        return tuple(tuples(v) for v in value) if isinstance(value, list) else value

    return tuples(values.tolist())


def numeric_column(key, shape=(1,), default_value=None, dtype=dtypes.float32, normalizer_fn=None):
    """Creates a column of numbers.

    Args:
      key: the feature's name.
      shape: the shape of one example's numbers.
      default_value: used by the parser for examples without the feature.
      dtype: a numeric type.
      normalizer_fn: a function applied to the numbers first.
    """
    shape = tuple(shape) if isinstance(shape, (list, tuple, tensor_shape.TensorShape)) else (shape,)
    for size in shape:
        if not isinstance(size, int):
            raise TypeError("shape dimensions must be integer. shape: %s, key: %s" % (shape, key))
        if size < 1:
            raise ValueError("shape dimensions must be greater than 0. shape: %s, key: %s" % (shape, key))
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError("dtype must be convertible to float. dtype: %s, key: %s" % (dtype, key))
    default_value = _default_values(shape, default_value, dtype, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError("normalizer_fn must be a callable. Given: %s" % (normalizer_fn,))
    _check_key(key)
    return NumericColumn(key, shape, default_value, dtype, normalizer_fn)


def bucketized_column(source_column, boundaries):
    """Creates a column of the intervals between `boundaries` that a numeric column's numbers are in, one-hot or as ids."""
    if not isinstance(source_column, NumericColumn):
        raise ValueError("source_column must be a column generated with numeric_column(). Given: %s" % (source_column,))
    if len(source_column.shape) > 1:
        raise ValueError("source_column must be one-dimensional column. Given: %s" % (source_column,))
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if not isinstance(boundaries, (list, tuple)) or any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def categorical_column_with_hash_bucket(key, hash_bucket_size, dtype=dtypes.string):
    """Creates a column whose ids are hashes of strings or integers, below `hash_bucket_size`."""
    if hash_bucket_size is None:
        raise ValueError("hash_bucket_size must be set. key: %s" % key)
    if hash_bucket_size < 1:
        raise ValueError("hash_bucket_size must be at least 1. hash_bucket_size: %s, key: %s" % (hash_bucket_size, key))
    _check_key(key)
    check_string_or_int(dtype, "column_name: %s" % key)
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


def _check_oov(num_oov_buckets, has_default, key):
    if num_oov_buckets:
        if has_default:
            raise ValueError("Can't specify both num_oov_buckets and default_value in %s." % key)
        if num_oov_buckets < 0:
            raise ValueError("Invalid num_oov_buckets %s in %s." % (num_oov_buckets, key))


def categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size=None, num_oov_buckets=0, default_value=None,
                                            dtype=dtypes.string):
    """Creates a column whose ids are line numbers of strings or integers in a file.

    Args:
      key: the feature's name.
      vocabulary_file: a text file.
      vocabulary_size: how many of its lines to use; by default all.
      num_oov_buckets: how many more ids there are for values that are not in the file.
      default_value: the id of those values if there are no buckets; by default -1, which is ignored.
      dtype: string, or an integer type.
    """
    if not vocabulary_file:
        raise ValueError("Missing vocabulary_file in %s." % key)
    if vocabulary_size is None:
        from runnel import gfile
        if not gfile.Exists(vocabulary_file):
            raise ValueError("vocabulary_file in %s does not exist." % key)
        with gfile.GFile(vocabulary_file, "rb") as stream:
            vocabulary_size = sum(1 for _ in stream)
    if vocabulary_size < 1:
        raise ValueError("Invalid vocabulary_size in %s." % key)
    _check_oov(num_oov_buckets, default_value is not None, key)
    check_string_or_int(dtype, "column_name: %s" % key)
    _check_key(key)
    return VocabularyFileCategoricalColumn(key, vocabulary_file, vocabulary_size, num_oov_buckets or 0, dtype,
                                           -1 if default_value is None else default_value, None)


def categorical_column_with_vocabulary_list(key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0):
    """Creates a column whose ids are indices of strings or integers in a list.

    The other arguments are those of categorical_column_with_vocabulary_file.
    """
    import numpy as np
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError("vocabulary_list %s must be non-empty, column_name: %s" % (vocabulary_list, key))
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError("Duplicate keys in vocabulary_list %s, column_name: %s" % (vocabulary_list, key))
    own = dtypes.as_dtype(np.array(vocabulary_list).dtype)
    _check_oov(num_oov_buckets, default_value != -1, key)
    check_string_or_int(own, "column_name: %s vocabulary" % key)
    if dtype is None:
        dtype = own
    elif dtype.is_integer != own.is_integer:
        raise ValueError("dtype %s and vocabulary dtype %s do not match, column_name: %s" % (dtype, own, key))
    check_string_or_int(dtype, "column_name: %s" % key)
    _check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


def categorical_column_with_identity(key, num_buckets, default_value=None):
    """Creates a column of integers that are ids already. Others are an error, or become `default_value`."""
    if num_buckets < 1:
        raise ValueError("num_buckets %s < 1, column_name %s" % (num_buckets, key))
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError("default_value %s not in range [0, %s), column_name %s" % (default_value, num_buckets, key))
    _check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def weighted_categorical_column(categorical_column, weight_feature_key, dtype=dtypes.float32):
    """Creates a categorical column whose ids have weights, the values of another feature."""
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise ValueError("dtype %s is not convertible to float." % dtype)
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


def crossed_column(keys, hash_bucket_size, hash_key=None):
    """Creates a column whose ids are hashes, below `hash_bucket_size`, of all combinations of several features' values."""
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError("hash_bucket_size must be > 1. hash_bucket_size: %s" % hash_bucket_size)
    if not keys or len(keys) < 2:
        raise ValueError("keys must be a list with length > 1. Given: %s" % (keys,))
    for key in keys:
        if not isinstance(key, (str, Categorical)):
            raise ValueError("Unsupported key type. All keys must be either string, or categorical column except "
                             "HashedCategoricalColumn. Given: %s" % (key,))
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError("categorical_column_with_hash_bucket is not supported for crossing: it would be hashed twice. "
                             "Use the feature name as a string. Given: %s" % (key,))
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column):
    """Creates a dense column of a categorical one: the count of each id."""
    if not isinstance(categorical_column, Categorical):
        raise ValueError("Unsupported input type. Input must be a CategoricalColumn. Given: %s" % (categorical_column,))
    return IndicatorColumn(categorical_column)


def _embedding_arguments(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, note=""):
    """Checks the arguments that embedding columns share. Returns the initializer."""
    if dimension is None or dimension < 1:
        raise ValueError("Invalid dimension %s." % dimension)
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is None:
        from runnel.ops import init_ops
        return init_ops.truncated_normal_initializer(mean=0.0, stddev=1 / dimension ** 0.5)
    if not callable(initializer):
        raise ValueError("initializer must be callable if specified. " + note)
    return initializer


def embedding_column(categorical_column, dimension, combiner="mean", initializer=None, ckpt_to_load_from=None, tensor_name_in_ckpt=None,
                     max_norm=None, trainable=True, use_safe_embedding_lookup=True):
    """Creates a dense column of a categorical one: a learned vector per id.

    Args:
      categorical_column: the ids.
      dimension: the length of a vector.
      combiner: how several vectors of a row are combined: "mean", "sqrtn" or "sum".
      initializer: initializer of the vectors; by default a truncated normal one.
      ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint, and a variable in it, with initial values.
      max_norm: vectors with a larger norm are scaled down to it.
      trainable: whether the vectors are trained.
      use_safe_embedding_lookup: whether rows without ids give zeros.
    """
    initializer = _embedding_arguments(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt,
                                       "Embedding of column_name: %s" % categorical_column.name)
    return EmbeddingColumn(categorical_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
                           trainable, use_safe_embedding_lookup)


def shared_embedding_columns(categorical_columns, dimension, combiner="mean", initializer=None, shared_embedding_collection_name=None,
                             ckpt_to_load_from=None, tensor_name_in_ckpt=None, max_norm=None, trainable=True, use_safe_embedding_lookup=True):
    """Creates embedding columns, one per categorical column, that share one table."""
    if framework.executing_eagerly():
        raise RuntimeError("shared_embedding_columns are not supported when eager execution is enabled.")
    initializer = _embedding_arguments(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    ordered = sorted(categorical_columns, key=lambda column: column.name)
    bare = [column.categorical_column if isinstance(column, WeightedCategoricalColumn) else column for column in ordered]
    for column in bare:
        if not isinstance(column, Categorical):
            raise ValueError("All categorical_columns must be subclasses of _CategoricalColumn. Given: %s, of type: %s" % (column, type(column)))
        if not isinstance(column, type(bare[0])) or column.num_buckets != bare[0].num_buckets:
            raise ValueError("To use shared_embedding_column, all categorical_columns must have the same type and the same number of "
                             "buckets. Given: %s and %s" % (bare[0], column))
    collection = shared_embedding_collection_name or "_".join(column.name for column in ordered) + "_shared_embedding"
    result = []
    for column in categorical_columns:
        made = SharedEmbeddingColumn(column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable,
                                     use_safe_embedding_lookup)
        made._collection = collection
        result.append(made)
    return result


# Models of columns.


def _in_order(feature_columns):
    """Returns the columns sorted by name. Each name may occur once."""
    if isinstance(feature_columns, Column):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    feature_columns, names = list(feature_columns), {}
    if not feature_columns:
        raise ValueError("feature_columns must not be empty.")
    for column in feature_columns:
        if not isinstance(column, Column):
            raise ValueError("Items of feature_columns must be a _FeatureColumn. Given (type %s): %s." % (type(column), column))
        if column.name in names:
            raise ValueError("Duplicate feature column name found for columns: %s and %s: remove one, or rename its "
                             "feature." % (column, names[column.name]))
        names[column.name] = column
    return sorted(feature_columns, key=lambda column: column.name)


def _check_batches(tensors, columns):
    known = [(int(tensor.shape[0]), column) for tensor, column in zip(tensors, columns) if tensor.shape.dims[0].value is not None]
    for size, column in known[1:]:
        if size != known[0][0]:
            raise ValueError("Batch size (first dimension) of each feature must be same. Batch size of columns (%s, %s): (%s, %s)" % (
                known[0][1].name, column.name, known[0][0], size))


def _collections(weight_collections):
    found = list(weight_collections or [])
    for name in framework.GraphKeys.GLOBAL_VARIABLES, framework.GraphKeys.MODEL_VARIABLES:
        if name not in found:
            found.append(name)
    return found


def _flat(column, features, collections, trainable):
    """Returns a dense column as [batch, numbers]."""
    tensor = column._dense(features, collections, trainable)
    return array_ops.reshape(tensor, (array_ops.shape(tensor)[0], column.variable_shape.num_elements()))


def _variables_here():
    return framework.get_collection(framework.GraphKeys.GLOBAL_VARIABLES, scope=variable_scopes.get_variable_scope().name)


def input_layer(features, feature_columns, weight_collections=None, trainable=True, cols_to_vars=None, cols_to_output_tensors=None):
    """Concatenates dense columns, sorted by name, to a tensor [batch, numbers].

    Args:
      features: {name: Tensor or SparseTensor}.
      feature_columns: dense columns.
      weight_collections: collections for variables besides GLOBAL_VARIABLES and MODEL_VARIABLES.
      trainable: whether variables are added to TRAINABLE_VARIABLES.
      cols_to_vars: a dict that receives the variables of each column.
      cols_to_output_tensors: a dict that receives the tensor of each column.
    """
    with variable_scopes.variable_scope(None, default_name="input_layer", values=features.values()):
        return _dense_side_by_side(features, feature_columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors)


def _dense_side_by_side(features, feature_columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors):
    columns, collections = dense_columns(feature_columns), _collections(weight_collections)
    given, parts = Features(features), []
    for column in columns:
        with variable_scopes.variable_scope(None, default_name=column._var_scope_name):
            parts.append(_flat(column, given, collections, trainable))
            if cols_to_vars is not None:
                cols_to_vars[column] = _variables_here()
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
    _check_batches(parts, columns)
    return array_ops.concat(parts, 1)


def dense_columns(feature_columns):
    """Returns the columns sorted by name. Raises ValueError unless all are dense."""
    columns = _in_order(feature_columns)
    for column in columns:
        if not isinstance(column, Dense):
            raise ValueError("Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an "
                             "embedding_column or indicator_column. Given: %s" % (column,))
    return columns


def dense_features(features, columns, tables):
    """Returns (concatenated dense columns, variables created for them); `tables` keeps variables between calls."""
    given, parts, before = Features(features, tables), [], set(tables)
    for column in columns:
        with variable_scopes.variable_scope(None, default_name=column._var_scope_name):
            parts.append(_flat(column, given, _collections(None), True))
    return array_ops.concat(parts, 1), [table for column, table in tables.items() if column not in before]


def _weighted_sum(column, features, units, sparse_combiner, collections, trainable):
    from runnel.nn import embedding_ops
    from runnel.ops import init_ops
    sparse = isinstance(column, Categorical)
    rows = column.num_buckets if sparse else column.variable_shape.num_elements()
    weights = variable_scopes.get_variable("weights", shape=(rows, units), initializer=init_ops.zeros_initializer(),
                                           trainable=trainable, collections=collections)
    if not sparse:
        return math_ops.matmul(_flat(column, features, collections, trainable), weights, name="weighted_sum")
    ids, factors = (tensor if tensor is None else sparse_ops.sparse_reshape(tensor, [array_ops.shape(tensor)[0], -1])
                    for tensor in column._ids(features))
    return embedding_ops.safe_embedding_lookup_sparse(weights, ids, sparse_weights=factors, combiner=sparse_combiner, name="weighted_sum")


def linear_model(features, feature_columns, units=1, sparse_combiner="sum", weight_collections=None, trainable=True, cols_to_vars=None,
                 _scope="linear_model"):
    """Returns the sum of a linear function of each column, and a bias: a tensor [batch, units].

    Args:
      features: {name: Tensor or SparseTensor}.
      feature_columns: dense or categorical columns; a categorical one has a weight per id.
      units: the number of outputs.
      sparse_combiner: how several ids of a row are combined: "sum", "mean" or "sqrtn".
      weight_collections, trainable, cols_to_vars: as for input_layer; the bias has the key "bias".
    """
    columns, collections = _in_order(feature_columns), _collections(weight_collections)
    for column in columns:
        if not isinstance(column, (Dense, Categorical)):
            raise ValueError("Items of feature_columns must be either a _DenseColumn or _CategoricalColumn. Given: %s" % (column,))
    from runnel.nn import nn_ops
    from runnel.ops import init_ops
    with variable_scopes.variable_scope(None, _scope):
        given, sums = Features(features), []
        for column in columns:
            with variable_scopes.variable_scope(None, default_name=column._var_scope_name):
                sums.append(_weighted_sum(column, given, units, sparse_combiner, collections, trainable))
                if cols_to_vars is not None:
                    cols_to_vars[column] = _variables_here()
        _check_batches(sums, columns)
        total = math_ops.add_n(sums, name="weighted_sum_no_bias")
        bias = variable_scopes.get_variable("bias_weights", shape=[units], initializer=init_ops.zeros_initializer(), trainable=trainable,
                                            collections=collections)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = list(bias) if hasattr(bias, "_get_variable_list") else [bias]
        return nn_ops.bias_add(total, bias, name="weighted_sum")


def make_parse_example_spec(feature_columns):
    """Returns {name: FixedLenFeature or VarLenFeature} for tf.parse_example to read the columns' features."""
    result = {}
    for column in feature_columns:
        if not isinstance(column, Column):
            raise ValueError("All feature_columns must be _FeatureColumn instances. Given: %s" % (column,))
        for key, value in column.parse_example_spec.items():
            if key in result and value != result[key]:
                raise ValueError("feature_columns contain different parse_spec for key %s. Given %s and %s" % (key, value, result[key]))
            result[key] = value
    return result


__all__ = """bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity categorical_column_with_vocabulary_file
categorical_column_with_vocabulary_list crossed_column embedding_column indicator_column input_layer linear_model make_parse_example_spec
numeric_column shared_embedding_columns weighted_categorical_column""".split()
