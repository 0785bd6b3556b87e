"""tf.tpu.experimental.embedding.serving_embedding_lookup: looks features up in tables on CPUs, as TPUs do."""

import logging

import runnel
from runnel import dtypes, nest, raw_ops
from runnel.core.composite import SparseTensor
from runnel.core.framework import Tensor
from runnel.ops import array_ops, math_ops
from runnel.ragged.ragged_tensor import RaggedTensor


def serving_embedding_lookup(inputs, weights, tables, feature_config):
    """Returns the embeddings of features.

    Args:
      inputs: tensors, sparse or ragged tensors of ids, in the structure of `feature_config`.
      weights: None, or weights in the same structure; None for features without.
      tables: {TableConfig: variable}.
      feature_config: FeatureConfigs.
    """
    nest.assert_same_structure(inputs, feature_config)
    flat = nest.flatten(inputs)
    if weights is not None:
        nest.assert_same_structure(inputs, weights)
    flat_weights = [None] * len(flat) if weights is None else nest.flatten(weights)
    rows = nest.flatten_with_joined_string_paths(feature_config)
    found = [_looked_up(ids, weight, tables[feature.table], path, feature) for ids, weight, (path, feature) in zip(flat, flat_weights, rows)]
    return nest.pack_sequence_as(feature_config, found)


cpu_embedding_lookup = serving_embedding_lookup


def _looked_up(ids, weight, table, path, feature):
    if weight is not None:
        if isinstance(ids, Tensor):
            raise ValueError("Weight specified for %s, but input is dense." % path)
        if type(weight) is not type(ids):
            raise ValueError("Weight for %s is of type %s but it does not match type of the input which is %s." % (path, type(weight), type(ids)))
        if feature.max_sequence_length > 0:
            raise ValueError("Weight specified for %s, but this is a sequence feature." % path)
    if isinstance(ids, Tensor):
        if feature.max_sequence_length > 0:
            raise ValueError("Feature %s is a sequence feature but a dense tensor was passed." % path)
        return runnel.nn.embedding_lookup(table, ids)
    if isinstance(ids, SparseTensor):
        return _of_sparse(ids, weight, table, feature)
    if isinstance(ids, RaggedTensor):
        return _of_ragged(ids, weight, table, feature)
    raise ValueError("Input %s is type %s. Tensor, SparseTensor or RaggedTensor expected." % (path, type(ids)))


def _of_sparse(ids, weight, table, feature):
    length, rank = feature.max_sequence_length, ids.shape.rank
    if not feature.output_shape and length > 0 and rank in (None, 2):
        size = math_ops.cast(array_ops.shape(ids)[0], dtypes.int64)
        kept = runnel.sparse.slice(ids, [0, 0], array_ops.stack([size, length]))
        rows = array_ops.gather(table.read_value(), kept.values)
        return raw_ops.ScatterNd(indices=kept.indices, updates=rows, shape=array_ops.stack([size, length, feature.table.dim]))
    if length > 0:
        logging.warning("max_sequence_length is ignored: the rank of the input is %d, not 2.", rank)
    if not feature.validate_weights_and_indices and rank is not None and rank <= 2:
        return runnel.nn.embedding_lookup_sparse(table, ids, weight, combiner=feature.table.combiner)
    return runnel.nn.safe_embedding_lookup_sparse(table, ids, weight, combiner=feature.table.combiner)


def _of_ragged(ids, weight, table, feature):
    if ids.shape.rank != 2:
        raise ValueError("Only rank 2 ragged tensor is supported, but got rank %s" % ids.shape.rank)
    size, length, dim = ids.shape.as_list()[0], feature.max_sequence_length, feature.table.dim
    size = ids.nrows() if size is None else size
    if not feature.output_shape:
        if length > 0:
            return runnel.nn.embedding_lookup(table, ids).to_tensor(shape=[size, length, dim])
        return _combined(table, ids, weight, feature.table.combiner)
    wanted, shape = feature.output_shape.num_elements(), feature.output_shape.as_list() + [dim]
    if wanted == size:
        return array_ops.reshape(_combined(table, ids, weight, feature.table.combiner), shape)
    if wanted > size and wanted % size == 0:
        return array_ops.reshape(runnel.nn.embedding_lookup(table, ids).to_tensor(shape=[size, wanted // size, dim]), shape)
    raise ValueError("Output shape set in the FeatureConfig should be the factor of the input data batch size. But instead got output shape %s, "
                     "input data batch size %s" % (feature.output_shape, size))


def _combined(table, ids, weights, combiner):
    """Returns the weighted sum, mean, or sum divided by the norm of the weights, of the rows of each row of ids."""
    if weights is None:
        weights = ids.with_values(array_ops.ones_like(ids.values, table.dtype))
    weights = weights.with_values(array_ops.expand_dims(weights.values, 1))
    rows = ids.with_values(runnel.nn.embedding_lookup(table, ids.values) * weights.values)
    total = math_ops.reduce_sum(rows, axis=1)
    if combiner == "sum":
        return total
    by = math_ops.reduce_sum(weights if combiner == "mean" else weights.with_values(math_ops.square(weights.values)), axis=1)
    return raw_ops.DivNoNan(x=total, y=by if combiner == "mean" else math_ops.sqrt(by))
