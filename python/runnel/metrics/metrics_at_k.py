"""Metrics of the k best predictions: sets of labels against sets of predicted classes."""

from runnel import dtypes, raw_ops, sets
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.convert import convert_to_tensor, convert_to_tensor_or_sparse_tensor
from runnel.core.framework import control_dependencies, executing_eagerly, name_scope
from runnel.metrics.metrics_impl import _collect, metric_variable
from runnel.ops import array_ops, math_ops, sparse_ops
from runnel.ops.control_flow import cond
from runnel.ops.state_ops import assign_add
from runnel.ops.weights_broadcast_ops import assert_broadcastable, broadcast_weights


def _at_k_name(name, k=None, class_id=None):
    name = "%s_at_k" % name if k is None else "%s_at_%d" % (name, k)
    return name if class_id is None else "%s_class%d" % (name, class_id)


def _top_k(predictions, k):
    from runnel.nn.nn_ops import top_k
    return top_k(predictions, k)[1]


def _maybe_expand_labels(labels, predictions):
    """Gives labels the predictions' rank: a single label per example gets a dimension of its own."""
    with name_scope(None, "expand_labels", [labels, predictions]) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            def expanded():
                return sparse_ops.sparse_reshape(labels, array_ops.concat((labels.dense_shape, (1,)), 0), name=scope)
            return cond(raw_ops.Equal(x=array_ops.rank(predictions), y=array_ops.size(labels.dense_shape) + 1),
                        expanded, lambda: labels)
        one, two = labels.shape.ndims, predictions.shape.ndims
        if one is not None and two is not None:
            if two not in (one, one + 1):
                raise ValueError("Unexpected labels shape %s for predictions shape %s. Predictions rank should be the same rank "
                                 "as labels rank or labels rank plus one ." % (labels.shape, predictions.shape))
            return labels if one == two else array_ops.expand_dims(labels, -1, name=scope)
        return cond(raw_ops.Equal(x=array_ops.rank(predictions), y=array_ops.rank(labels) + 1),
                    lambda: array_ops.expand_dims(labels, -1, name=scope), lambda: labels)


def _expand_and_tile(tensor, multiple, dim=0, name=None):
    """Inserts a dimension at `dim` with `multiple` copies."""
    if multiple < 1:
        raise ValueError("Invalid argument multiple=%s for expand_and_tile  call. `multiple` must be an integer > 0" % multiple)
    with name_scope(name, "expand_and_tile", [tensor, multiple, dim]) as scope:
        tensor = convert_to_tensor_or_sparse_tensor(tensor)
        if isinstance(tensor, SparseTensor):
            shape = tensor.dense_shape
            at = array_ops.reshape(array_ops.size(shape) + dim, [1]) if dim < 0 else [dim]
            whole = array_ops.concat((array_ops.slice(shape, [0], at), [1], array_ops.slice(shape, at, [-1])), 0,
                                     name="expanded_shape")
            single = sparse_ops.sparse_reshape(tensor, whole, name="expand")
            return single if multiple == 1 else sparse_ops.sparse_concat(dim - (dim < 0), [single] * multiple, name=scope)
        single = array_ops.expand_dims(tensor, dim - (dim < 0), name="expand")
        if multiple == 1:
            return single
        ones = array_ops.ones_like(array_ops.shape(tensor))
        counts = array_ops.concat((ones[:dim], (multiple,), ones[dim:]), 0, name="multiples")
        return array_ops.tile(single, counts, name=scope)


def _select_class_id(ids, selected_id):
    """Keeps only one class of each set."""
    ids = convert_to_tensor_or_sparse_tensor(ids)
    if isinstance(ids, SparseTensor):
        return sparse_ops.sparse_retain(ids, raw_ops.Equal(x=ids.values, y=selected_id))
    shape = array_ops.shape(ids, out_type=dtypes.int64)
    last = array_ops.size(shape) - 1
    one = math_ops.reduced_shape(shape, array_ops.reshape(last, [1]))
    filled = array_ops.fill(one, math_ops.cast(selected_id, dtypes.int64))
    found = sets.set_intersection(filled, ids)
    return SparseTensor(indices=found.indices, values=found.values, dense_shape=shape)


def _maybe_select_class_id(labels, predictions_idx, selected_id=None):
    if selected_id is None:
        return labels, predictions_idx
    return _select_class_id(labels, selected_id), _select_class_id(predictions_idx, selected_id)


def _sizes(found, weights):
    """Returns the sizes of sets, weighted."""
    sizes = math_ops.cast(sets.set_size(found), dtypes.float64)
    if weights is None:
        return sizes
    with control_dependencies([assert_broadcastable(weights, sizes)]):
        return raw_ops.Mul(x=sizes, y=math_ops.cast(weights, dtypes.float64))


def _sparse_true_positive_at_k(labels, predictions_idx, class_id=None, weights=None, name=None):
    """Counts the predictions of each example that are labels."""
    with name_scope(name, "true_positives", [predictions_idx, labels, weights]):
        labels, predictions_idx = _maybe_select_class_id(labels, predictions_idx, class_id)
        return _sizes(sets.set_intersection(predictions_idx, labels), weights)


def _sparse_false_positive_at_k(labels, predictions_idx, class_id=None, weights=None):
    """Counts the predictions of each example that are not labels."""
    with name_scope(None, "false_positives", [predictions_idx, labels, weights]):
        labels, predictions_idx = _maybe_select_class_id(labels, predictions_idx, class_id)
        return _sizes(sets.set_difference(predictions_idx, labels, aminusb=True), weights)


def _sparse_false_negative_at_k(labels, predictions_idx, class_id=None, weights=None):
    """Counts the labels of each example that are not predicted."""
    with name_scope(None, "false_negatives", [predictions_idx, labels, weights]):
        labels, predictions_idx = _maybe_select_class_id(labels, predictions_idx, class_id)
        return _sizes(sets.set_difference(predictions_idx, labels, aminusb=False), weights)


def _streaming(what, function):
    """Returns (variable, update) of the sum of what `function` returns."""
    def streaming(labels, predictions_idx, k=None, class_id=None, weights=None, name=None):
        with name_scope(name, _at_k_name(what, k, class_id), [predictions_idx, labels, weights]) as scope:
            found = function(labels, predictions_idx, class_id, weights)
            total = math_ops.cast(math_ops.reduce_sum(found), dtypes.float64)
            variable = metric_variable([], dtypes.float64, name=scope)
            return variable, assign_add(variable, total, name="update")
    return streaming


_streaming_sparse_true_positive_at_k = _streaming("true_positive", _sparse_true_positive_at_k)
_streaming_sparse_false_positive_at_k = _streaming("false_positive", _sparse_false_positive_at_k)
_streaming_sparse_false_negative_at_k = _streaming("false_negative", _sparse_false_negative_at_k)


def _not_eager(name):
    if executing_eagerly():
        raise RuntimeError("tf.metrics.%s is not supported when eager execution is enabled." % name)


def _share_of_top_k(what, other, labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections, name):
    with name_scope(name, _at_k_name(what, k, class_id), [predictions_idx, labels, weights]) as scope:
        predictions_idx = convert_to_tensor(predictions_idx)
        labels = _maybe_expand_labels(labels, predictions_idx)
        best = math_ops.cast(predictions_idx, dtypes.int64)
        hits, hits_update = _streaming_sparse_true_positive_at_k(labels, best, k, class_id, weights)
        misses, misses_update = other(labels, best, k, class_id, weights)
        value = math_ops.divide(hits, math_ops.add(hits, misses), name=scope)
        update = math_ops.divide(hits_update, math_ops.add(hits_update, misses_update), name="update")
        return _collect(value, update, metrics_collections, updates_collections)


def recall_at_top_k(labels, predictions_idx, k=None, class_id=None, weights=None, metrics_collections=None,
                    updates_collections=None, name=None):
    """Like recall_at_k, for predictions that are class indices already."""
    return _share_of_top_k("recall", _streaming_sparse_false_negative_at_k, labels, predictions_idx, k, class_id, weights,
                           metrics_collections, updates_collections, name)


def precision_at_top_k(labels, predictions_idx, k=None, class_id=None, weights=None, metrics_collections=None,
                       updates_collections=None, name=None):
    """Like precision_at_k, for predictions that are class indices already."""
    _not_eager("precision_at_top_k")
    return _share_of_top_k("precision", _streaming_sparse_false_positive_at_k, labels, predictions_idx, k, class_id, weights,
                           metrics_collections, updates_collections, name)


def recall_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                updates_collections=None, name=None):
    """Computes how many of the labels are among the k best predictions."""
    _not_eager("recall_at_k")
    with name_scope(name, _at_k_name("recall", k, class_id), [predictions, labels, weights]) as scope:
        return recall_at_top_k(labels, _top_k(predictions, k), k, class_id, weights, metrics_collections, updates_collections, scope)


def precision_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                   updates_collections=None, name=None):
    """Computes how many of the k best predictions are labels."""
    _not_eager("sparse_precision_at_k")
    with name_scope(name, _at_k_name("precision", k, class_id), [predictions, labels, weights]) as scope:
        return precision_at_top_k(labels, _top_k(predictions, k), k, class_id, weights, metrics_collections, updates_collections,
                                  scope)


def sparse_precision_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                          updates_collections=None, name=None):
    """The old name of precision_at_k."""
    return precision_at_k(labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name)


def _num_relevant(labels, k):
    """Returns the number of labels per example, at most k. Negative labels do not count."""
    if k < 1:
        raise ValueError("Invalid k=%s" % k)
    with name_scope(None, "num_relevant", [labels]) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            return raw_ops.Minimum(x=sets.set_size(labels), y=k, name=scope)
        real = raw_ops.SelectV2(condition=raw_ops.GreaterEqual(x=labels, y=0), t=array_ops.ones_like(labels),
                                e=array_ops.zeros_like(labels))
        return raw_ops.Minimum(x=math_ops.reduce_sum(real, axis=-1), y=k, name=scope)


def _sparse_average_precision_at_top_k(labels, predictions_idx):
    """Returns, per example, the mean of the precisions at those of the best predictions that are labels."""
    with name_scope(None, "average_precision", [predictions_idx, labels]) as scope:
        predictions_idx = math_ops.cast(predictions_idx, dtypes.int64, name="predictions_idx")
        if predictions_idx.shape.ndims == 0:
            raise ValueError("The rank of `predictions_idx` must be at least 1.")
        k = predictions_idx.shape.as_list()[-1]
        if k is None:
            raise ValueError("The last dimension of predictions_idx must be set. Currently, it is None.")
        labels = _maybe_expand_labels(labels, predictions_idx)
        each = array_ops.expand_dims(predictions_idx, -1, name="predictions_idx_per_k")
        labels_each = _expand_and_tile(labels, multiple=k, dim=-1, name="labels_per_k")
        relevant = _sparse_true_positive_at_k(labels_each, each, name="relevant_per_k")
        found = math_ops.cumsum(relevant, axis=-1, name="tp_per_k")
        seen = math_ops.cumsum(array_ops.ones_like(relevant), axis=-1, name="retrieved_per_k")
        shares = math_ops.divide(math_ops.cast(found, dtypes.float64), math_ops.cast(seen, dtypes.float64), name="precision_per_k")
        counted = raw_ops.Mul(x=shares, y=math_ops.cast(relevant, dtypes.float64), name="relevant_precision_per_k")
        total = math_ops.reduce_sum(counted, axis=(-1,), name="precision_sum")
        return math_ops.divide(total, math_ops.cast(_num_relevant(labels, k), dtypes.float64), name=scope)


def _streaming_sparse_average_precision_at_top_k(labels, predictions_idx, weights=None, metrics_collections=None,
                                                 updates_collections=None, name=None):
    with name_scope(name, "average_precision_at_top_k", [predictions_idx, labels, weights]) as scope:
        scores = _sparse_average_precision_at_top_k(labels, predictions_idx)
        if weights is not None:
            weights = broadcast_weights(math_ops.cast(weights, dtypes.float64), scores)
            scores = raw_ops.Mul(x=scores, y=weights)
        with name_scope(None, "max", [scores]) as inner:
            most = metric_variable([], dtypes.float64, name=inner)
            if weights is None:
                number = math_ops.cast(array_ops.size(scores, name="batch_max"), dtypes.float64)
            else:
                number = math_ops.reduce_sum(weights, name="batch_max")
            most_update = assign_add(most, number, name="update")
        with name_scope(None, "total", [scores]) as inner:
            total = metric_variable([], dtypes.float64, name=inner)
            total_update = assign_add(total, math_ops.reduce_sum(scores, name="batch_total"), name="update")
        value = raw_ops.DivNoNan(x=total, y=most, name="mean")
        return _collect(value, raw_ops.DivNoNan(x=total_update, y=most_update, name=scope), metrics_collections,
                        updates_collections)


def _clean_out_of_range_indices(labels, num_classes):
    """Replaces labels that are not a class by -1."""
    is_sparse = isinstance(labels, (SparseTensor, SparseTensorValue))

    def cleaned(values):
        return raw_ops.SelectV2(condition=raw_ops.GreaterEqual(x=values, y=num_classes), t=-1 * array_ops.ones_like(values), e=values)

    def clean():
        if is_sparse:
            return type(labels)(indices=labels.indices, values=cleaned(labels.values), dense_shape=labels.dense_shape)
        return cleaned(labels)
    largest = math_ops.reduce_max(labels.values if is_sparse else labels)
    return cond(raw_ops.GreaterEqual(x=largest, y=num_classes), clean, lambda: labels)


def average_precision_at_k(labels, predictions, k, weights=None, metrics_collections=None, updates_collections=None,
                           name=None):
    """Computes the mean over examples of the average precision at k."""
    _not_eager("sparse_average_precision_at_k")
    if k < 1:
        raise ValueError("Invalid k=%s. `k` should be >= 1." % k)
    with name_scope(name, _at_k_name("average_precision", k), [predictions, labels, weights]) as scope:
        best = _top_k(predictions, k)
        labels = _clean_out_of_range_indices(labels, math_ops.cast(array_ops.shape(predictions)[-1], dtypes.int64))
        return _streaming_sparse_average_precision_at_top_k(labels, best, weights, metrics_collections, updates_collections, scope)


def sparse_average_precision_at_k(labels, predictions, k, weights=None, metrics_collections=None, updates_collections=None,
                                  name=None):
    """The old name of average_precision_at_k."""
    return average_precision_at_k(labels, predictions, k, weights, metrics_collections, updates_collections, name)
