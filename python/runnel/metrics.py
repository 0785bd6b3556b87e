"""tf.metrics: figures over many batches. Each gives (value so far, operation that adds a batch).

The counts are in local variables: tf.local_variables_initializer() sets them to 0.
"""

from runnel import array_ops, dtypes, math_ops, raw_ops
from runnel.convert import convert_to_tensor
from runnel.framework import GraphKeys, add_to_collections, control_dependencies


def _scope(name, default, values):
    from runnel.variable_scopes import variable_scope
    return variable_scope(name, default, values)


def _variable(shape, dtype, name):
    from runnel.variables import Variable
    return Variable(lambda: array_ops.zeros(shape, dtype), trainable=False, collections=[
        GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], validate_shape=True, name=name)


def _collect(value, update, metrics_collections, updates_collections):
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def _weights_for(weights, values):
    """Weights as floats, broadcast to `values`."""
    weights = math_ops.cast(convert_to_tensor(weights), dtypes.float32)
    if weights.shape.ndims is not None and values.shape.ndims is not None:
        if weights.shape.ndims == values.shape.ndims + 1 and weights.shape.as_list()[-1] == 1:
            weights = array_ops.squeeze(weights, [-1])
        elif 0 < weights.shape.ndims == values.shape.ndims - 1:
            weights = array_ops.expand_dims(weights, -1)
    return weights


def _matched(predictions, labels, weights):
    """The three, without a last dimension of 1 that only one of them has."""
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    a, b = predictions.shape, labels.shape
    if a.ndims is not None and b.ndims is not None:
        if a.ndims == b.ndims + 1 and a.as_list()[-1] in (None, 1):
            predictions = array_ops.squeeze(predictions, [-1])
        elif b.ndims == a.ndims + 1 and b.as_list()[-1] in (None, 1):
            labels = array_ops.squeeze(labels, [-1])
    predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is not None:
        weights = _weights_for(weights, predictions)
    return predictions, labels, weights


def _safe_div(x, y, name):
    return raw_ops.DivNoNan(x=x, y=y, name=name)


def mean(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
    """The mean of all values so far."""
    with _scope(name, "mean", (values, weights)):
        values = math_ops.cast(convert_to_tensor(values), dtypes.float32)
        total, count = _variable([], dtypes.float32, "total"), _variable([], dtypes.float32, "count")
        if weights is None:
            batch_count = math_ops.cast(array_ops.size(values), dtypes.float32)
            batch_total = math_ops.reduce_sum(values)
        else:
            weights = _weights_for(weights, values)
            batch_count = math_ops.reduce_sum(weights * array_ops.ones_like(values))
            batch_total = math_ops.reduce_sum(values * weights)
        update_total = total.assign_add(batch_total)
        with control_dependencies([values]):
            update_count = count.assign_add(batch_count)
        value = _safe_div(total, count, "value")
        update = _safe_div(update_total, update_count, "update_op")
        return _collect(value, update, metrics_collections, updates_collections)


def mean_tensor(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
    """The mean of all values so far, element by element."""
    with _scope(name, "mean", (values, weights)):
        values = math_ops.cast(convert_to_tensor(values), dtypes.float32)
        shape = values.shape.as_list()
        total = _variable(shape, dtypes.float32, "total_tensor")
        count = _variable(shape, dtypes.float32, "count_tensor")
        counts = array_ops.ones_like(values)
        if weights is not None:
            weights = _weights_for(weights, values)
            values, counts = values * weights, counts * weights
        update_total = total.assign_add(values)
        with control_dependencies([values]):
            update_count = count.assign_add(counts)
        return _collect(_safe_div(total, count, "value"),
                        _safe_div(update_total, update_count, "update_op"), metrics_collections,
                        updates_collections)


def accuracy(labels, predictions, weights=None, metrics_collections=None, updates_collections=None,
             name=None):
    """How often predictions are the labels."""
    predictions, labels, weights = _matched(predictions, labels, weights)
    if labels.dtype != predictions.dtype:
        predictions = math_ops.cast(predictions, labels.dtype)
    is_correct = math_ops.cast(raw_ops.Equal(x=predictions, y=labels), dtypes.float32)
    return mean(is_correct, weights, metrics_collections, updates_collections, name or "accuracy")


def _count(flags, weights, name):
    """(variable, update) of how many flags hold, weighted."""
    values = math_ops.cast(flags, dtypes.float32)
    total = _variable([], dtypes.float32, name)
    if weights is not None:
        values = values * _weights_for(weights, values)
    return total, total.assign_add(math_ops.reduce_sum(values))


def _boolean(predictions, labels, weights):
    return _matched(math_ops.cast(convert_to_tensor(predictions), dtypes.bool),
                    math_ops.cast(convert_to_tensor(labels), dtypes.bool), weights)


def _confusion_count(kind, default):
    """A metric that counts one cell of the confusion of two classes."""
    wants_label, wants_prediction = kind

    def metric(labels, predictions, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        with _scope(name, default, (predictions, labels, weights)):
            predictions, labels, weights = _boolean(predictions, labels, weights)
            label = labels if wants_label else raw_ops.LogicalNot(x=labels)
            prediction = predictions if wants_prediction else raw_ops.LogicalNot(x=predictions)
            total, update = _count(raw_ops.LogicalAnd(x=label, y=prediction), weights, "count")
            return _collect(convert_to_tensor(total), update, metrics_collections,
                            updates_collections)
    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = "How many %s there were." % default.replace("_", " ")
    return metric


true_positives = _confusion_count((True, True), "true_positives")
true_negatives = _confusion_count((False, False), "true_negatives")
false_positives = _confusion_count((False, True), "false_positives")
false_negatives = _confusion_count((True, False), "false_negatives")


def _share(labels, predictions, weights, other, metrics_collections, updates_collections, name,
           default):
    with _scope(name, default, (predictions, labels, weights)):
        tp, tp_update = true_positives(labels, predictions, weights)
        fn, fn_update = other(labels, predictions, weights)

        def share(hits, misses, name):
            total = hits + misses
            return array_ops.where(total > 0, _safe_div(hits, total, None),
                                   array_ops.zeros_like(total), name=name)
        return _collect(share(tp, fn, "value"), share(tp_update, fn_update, "update_op"),
                        metrics_collections, updates_collections)


def precision(labels, predictions, weights=None, metrics_collections=None, updates_collections=None,
              name=None):
    """How many of those that were predicted are true."""
    return _share(labels, predictions, weights, false_positives, metrics_collections,
                  updates_collections, name, "precision")


def recall(labels, predictions, weights=None, metrics_collections=None, updates_collections=None,
           name=None):
    """How many of those that are true were predicted."""
    return _share(labels, predictions, weights, false_negatives, metrics_collections,
                  updates_collections, name, "recall")


def _mean_of(default, function):
    """A metric that is the mean of what `function` makes of labels and predictions."""
    def metric(labels, predictions, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        predictions, labels, weights = _matched(predictions, labels, weights)
        return mean(function(labels, predictions), weights, metrics_collections, updates_collections,
                    name or default)
    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = "The %s." % default.replace("_", " ")
    return metric


mean_absolute_error = _mean_of("mean_absolute_error",
                               lambda y, p: raw_ops.Abs(x=p - math_ops.cast(y, p.dtype)))
mean_squared_error = _mean_of(
    "mean_squared_error", lambda y, p: raw_ops.SquaredDifference(x=math_ops.cast(y, p.dtype), y=p))


def root_mean_squared_error(labels, predictions, weights=None, metrics_collections=None,
                            updates_collections=None, name=None):
    """The root of the mean squared error."""
    value, update = mean_squared_error(labels, predictions, weights, None, None,
                                       name or "root_mean_squared_error")
    return _collect(raw_ops.Sqrt(x=value), raw_ops.Sqrt(x=update), metrics_collections,
                    updates_collections)


def mean_relative_error(labels, predictions, normalizer, weights=None, metrics_collections=None,
                        updates_collections=None, name=None):
    """The mean of |error| / normalizer."""
    predictions, labels, weights = _matched(predictions, labels, weights)
    normalizer = convert_to_tensor(normalizer)
    relative = array_ops.where(
        raw_ops.Equal(x=normalizer, y=convert_to_tensor(0, normalizer.dtype)),
        array_ops.zeros_like(labels), raw_ops.RealDiv(x=raw_ops.Abs(x=labels - predictions),
                                                      y=normalizer))
    return mean(relative, weights, metrics_collections, updates_collections,
                name or "mean_relative_error")


def mean_cosine_distance(labels, predictions, dim, weights=None, metrics_collections=None,
                         updates_collections=None, name=None):
    """The mean of 1 - labels . predictions."""
    predictions, labels, weights = _matched(predictions, labels, weights)
    products = math_ops.reduce_sum(predictions * labels, axis=[dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    return _collect(1 - value, 1 - update, metrics_collections, updates_collections)


def percentage_below(values, threshold, weights=None, metrics_collections=None,
                     updates_collections=None, name=None):
    """The share of values below a threshold."""
    below = math_ops.cast(raw_ops.Less(x=values, y=threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


def _confusion(labels, predictions, num_classes, weights):
    """(variable, update) of the matrix of true and predicted classes."""
    total = _variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
    predictions = math_ops.cast(convert_to_tensor(predictions), dtypes.int64)
    labels = math_ops.cast(convert_to_tensor(labels), dtypes.int64)
    if predictions.shape.ndims != 1:
        predictions = array_ops.reshape(predictions, [-1])
    if labels.shape.ndims != 1:
        labels = array_ops.reshape(labels, [-1])
    if weights is not None:
        weights = array_ops.reshape(math_ops.cast(convert_to_tensor(weights), dtypes.float64), [-1])
    else:
        weights = array_ops.ones_like(labels, dtype=dtypes.float64)
    matrix = raw_ops.ScatterNd(indices=array_ops.stack([labels, predictions], axis=1),
                               updates=weights,
                               shape=convert_to_tensor([num_classes, num_classes], dtypes.int64))
    return total, total.assign_add(matrix)


def mean_iou(labels, predictions, num_classes, weights=None, metrics_collections=None,
             updates_collections=None, name=None):
    """The mean over classes of intersection / union."""
    with _scope(name, "mean_iou", (predictions, labels, weights)):
        total, update = _confusion(labels, predictions, num_classes, weights)
        rows = math_ops.cast(math_ops.reduce_sum(total, 0), dtypes.float32)
        columns = math_ops.cast(math_ops.reduce_sum(total, 1), dtypes.float32)
        diagonal = math_ops.cast(raw_ops.MatrixDiagPart(input=total), dtypes.float32)
        union = rows + columns - diagonal
        valid = math_ops.reduce_sum(math_ops.cast(raw_ops.NotEqual(
            x=union, y=convert_to_tensor(0, union.dtype)), dtypes.float32))
        union = array_ops.where(union > 0, union, array_ops.ones_like(union))
        iou = math_ops.reduce_sum(diagonal / union)
        value = array_ops.where(valid > 0, _safe_div(iou, valid, None), array_ops.zeros_like(iou),
                                name="mean_iou")
        return _collect(value, update, metrics_collections, updates_collections)


def mean_per_class_accuracy(labels, predictions, num_classes, weights=None, metrics_collections=None,
                            updates_collections=None, name=None):
    """The mean over classes of how often they were predicted rightly."""
    with _scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = math_ops.cast(convert_to_tensor(labels), dtypes.int64)
        labels = array_ops.reshape(labels, [-1])
        predictions = array_ops.reshape(math_ops.cast(convert_to_tensor(predictions), dtypes.int64),
                                        [-1])
        total = _variable([num_classes], dtypes.float32, "total")
        count = _variable([num_classes], dtypes.float32, "count")
        ones = array_ops.ones_like(labels, dtype=dtypes.float32)
        is_correct = math_ops.cast(raw_ops.Equal(x=predictions, y=labels), dtypes.float32)
        if weights is not None:
            weights = array_ops.reshape(math_ops.cast(convert_to_tensor(weights), dtypes.float32), [-1])
            is_correct, ones = is_correct * weights, ones * weights
        from runnel import state_ops
        update_total = state_ops.scatter_add(total, labels, ones)
        update_count = state_ops.scatter_add(count, labels, is_correct)
        value = math_ops.reduce_mean(_safe_div(count, total, None), name="mean_accuracy")
        update = _safe_div(update_count, update_total, "update_op")
        return _collect(value, update, metrics_collections, updates_collections)


def _at_thresholds(labels, predictions, thresholds, weights, includes=("tp", "fn", "tn", "fp")):
    """Counts by threshold: ({name: variable}, {name: update})."""
    predictions, labels, weights = _matched(
        math_ops.cast(convert_to_tensor(predictions), dtypes.float32),
        math_ops.cast(convert_to_tensor(labels), dtypes.bool), weights)
    number = len(thresholds)
    flat = array_ops.reshape(predictions, [1, -1])
    flags = array_ops.reshape(labels, [1, -1])
    limits = array_ops.reshape(convert_to_tensor(list(thresholds), dtypes.float32), [number, 1])
    positive = raw_ops.Greater(x=flat, y=limits)
    negative = raw_ops.LogicalNot(x=positive)
    is_true = raw_ops.LogicalAnd(x=flags, y=array_ops.ones_like(positive))
    is_false = raw_ops.LogicalNot(x=is_true)
    if weights is not None:
        weights = array_ops.reshape(weights * array_ops.ones_like(predictions), [1, -1])
    cells = {"tp": (is_true, positive, "true_positives"), "fn": (is_true, negative, "false_negatives"),
             "tn": (is_false, negative, "true_negatives"), "fp": (is_false, positive, "false_positives")}
    values, updates = {}, {}
    for key in includes:
        one, two, name = cells[key]
        hits = math_ops.cast(raw_ops.LogicalAnd(x=one, y=two), dtypes.float32)
        if weights is not None:
            hits *= weights
        variable = _variable([number], dtypes.float32, name)
        updates[key] = variable.assign_add(math_ops.reduce_sum(hits, 1))
        values[key] = convert_to_tensor(variable)
    return values, updates


def _even_thresholds(number):
    epsilon = 1e-7
    inner = [(i + 1) / (number - 1) for i in range(number - 2)]
    return [0.0 - epsilon] + inner + [1.0 + epsilon]


def auc(labels, predictions, weights=None, num_thresholds=200, metrics_collections=None,
        updates_collections=None, curve="ROC", name=None, summation_method="trapezoidal",
        thresholds=None):
    """The area under the curve ("ROC" or "PR") by a sum over thresholds."""
    if curve not in ("ROC", "PR"):
        raise ValueError("curve must be either ROC or PR, %s unknown" % curve)
    with _scope(name, "auc", (labels, predictions, weights)):
        limits = _even_thresholds(num_thresholds) if thresholds is None else (
            [-1e-7] + sorted(thresholds) + [1 + 1e-7])
        values, updates = _at_thresholds(labels, predictions, limits, weights)
        epsilon = 1e-6

        def area(v, name):
            recall_ = (v["tp"] + epsilon) / (v["tp"] + v["fn"] + epsilon)
            if curve == "ROC":
                x, y = v["fp"] / (v["fp"] + v["tn"] + epsilon), recall_
            elif summation_method == "careful_interpolation":
                return _pr_area(v["tp"], v["fp"], v["fn"], name)
            else:
                x, y = recall_, (v["tp"] + epsilon) / (v["tp"] + v["fp"] + epsilon)
            n = len(limits)
            steps = x[:n - 1] - x[1:]
            if summation_method in ("trapezoidal", "careful_interpolation"):
                return math_ops.reduce_sum(steps * ((y[:n - 1] + y[1:]) / 2.0), name=name)
            pick = raw_ops.Minimum if summation_method == "minoring" else raw_ops.Maximum
            return math_ops.reduce_sum(steps * pick(x=y[:n - 1], y=y[1:]), name=name)
        return _collect(area(values, "value"), area(updates, "update_op"), metrics_collections,
                        updates_collections)


def _pr_area(tp, fp, fn, name):
    """Between thresholds, precision follows the counts, not a straight line."""
    n = tp.shape.as_list()[0]
    dtp = tp[:n - 1] - tp[1:]
    p = tp + fp
    zero = convert_to_tensor(0.0)
    slope = _safe_div(dtp, raw_ops.Maximum(x=p[:n - 1] - p[1:], y=zero), None)
    intercept = tp[1:] - slope * p[1:]
    both = raw_ops.LogicalAnd(x=p[:n - 1] > 0, y=p[1:] > 0)
    ratio = array_ops.where(both, _safe_div(p[:n - 1], raw_ops.Maximum(x=p[1:], y=zero), None),
                            array_ops.ones_like(p[1:]))
    rest = raw_ops.Maximum(x=tp[1:] + fn[1:], y=zero)
    return math_ops.reduce_sum(_safe_div(slope * (dtp + intercept * raw_ops.Log(x=ratio)), rest, None),
                               name=name)


def _share_at_thresholds(default, pair):
    def metric(labels, predictions, thresholds, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        with _scope(name, default, (predictions, labels, weights)):
            values, updates = _at_thresholds(labels, predictions, thresholds, weights, pair)

            def share(v, name):
                return raw_ops.RealDiv(x=v[pair[0]], y=1e-7 + v[pair[0]] + v[pair[1]], name=name)
            return _collect(share(values, "value"), share(updates, "update_op"), metrics_collections,
                            updates_collections)
    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = "The %s, a value a threshold." % default.replace("_", " ")
    return metric


precision_at_thresholds = _share_at_thresholds("precision_at_thresholds", ("tp", "fp"))
recall_at_thresholds = _share_at_thresholds("recall_at_thresholds", ("tp", "fn"))


def _count_at_thresholds(default, key):
    def metric(labels, predictions, thresholds, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        with _scope(name, default, (predictions, labels, weights)):
            values, updates = _at_thresholds(labels, predictions, thresholds, weights, (key,))
            return _collect(values[key], updates[key], metrics_collections, updates_collections)
    metric.__name__ = metric.__qualname__ = default
    metric.__doc__ = "How many %s there were, a count a threshold." % default.replace(
        "_at_thresholds", "").replace("_", " ")
    return metric


true_positives_at_thresholds = _count_at_thresholds("true_positives_at_thresholds", "tp")
true_negatives_at_thresholds = _count_at_thresholds("true_negatives_at_thresholds", "tn")
false_positives_at_thresholds = _count_at_thresholds("false_positives_at_thresholds", "fp")
false_negatives_at_thresholds = _count_at_thresholds("false_negatives_at_thresholds", "fn")


def recall_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                updates_collections=None, name=None):
    """How often one of the labels of an example is among its k best predictions."""
    return _at_k("recall_at_%d" % k, labels, predictions, k, class_id, weights, metrics_collections,
                 updates_collections, name, True)


def precision_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                   updates_collections=None, name=None):
    """How many of the k best predictions are labels."""
    return _at_k("precision_at_%d" % k, labels, predictions, k, class_id, weights,
                 metrics_collections, updates_collections, name, False)


def _at_k(default, labels, predictions, k, class_id, weights, metrics_collections,
          updates_collections, name, by_label):
    with _scope(name, default, (predictions, labels, weights)):
        labels = math_ops.cast(convert_to_tensor(labels), dtypes.int64)
        predictions = convert_to_tensor(predictions)
        best = math_ops.cast(raw_ops.TopKV2(input=predictions, k=k).indices, dtypes.int64)
        return _share_of_best(labels, best, class_id, weights, metrics_collections, updates_collections, by_label)


def _at_top_k(default, labels, best, class_id, weights, metrics_collections, updates_collections, name, by_label):
    with _scope(name, default, (best, labels, weights)):
        labels = math_ops.cast(convert_to_tensor(labels), dtypes.int64)
        best = math_ops.cast(convert_to_tensor(best), dtypes.int64)
        return _share_of_best(labels, best, class_id, weights, metrics_collections, updates_collections, by_label)


def _share_of_best(labels, best, class_id, weights, metrics_collections, updates_collections, by_label):
    if labels.shape.ndims == best.shape.ndims - 1:
        labels = array_ops.expand_dims(labels, -1)
    same = raw_ops.Equal(x=array_ops.expand_dims(labels, -1), y=array_ops.expand_dims(best, -2))
    relevant = labels if by_label else best
    axis = -1 if by_label else -2
    hits = math_ops.cast(math_ops.reduce_any(same, axis), dtypes.float64)
    counts = array_ops.ones_like(hits)
    if class_id is not None:
        chosen = math_ops.cast(raw_ops.Equal(x=relevant, y=convert_to_tensor(
            class_id, dtypes.int64)), dtypes.float64)
        hits, counts = hits * chosen, counts * chosen
    if weights is not None:
        weights = math_ops.cast(_weights_for(weights, hits), dtypes.float64)
        hits, counts = hits * weights, counts * weights
    total, count = _variable([], dtypes.float64, "hits"), _variable([], dtypes.float64, "count")
    update_total = total.assign_add(math_ops.reduce_sum(hits))
    update_count = count.assign_add(math_ops.reduce_sum(counts))
    return _collect(raw_ops.RealDiv(x=total, y=count, name="value"),
                    raw_ops.RealDiv(x=update_total, y=update_count, name="update_op"),
                    metrics_collections, updates_collections)


def precision_at_top_k(labels, predictions_idx, k=None, class_id=None, weights=None, metrics_collections=None,
                       updates_collections=None, name=None):
    """As precision_at_k, of predictions that are numbers of classes already."""
    return _at_top_k("precision_at_top_k" if k is None else "precision_at_%d" % k, labels, predictions_idx, class_id, weights,
                     metrics_collections, updates_collections, name, False)


def recall_at_top_k(labels, predictions_idx, k=None, class_id=None, weights=None, metrics_collections=None,
                    updates_collections=None, name=None):
    """As recall_at_k, of predictions that are numbers of classes already."""
    return _at_top_k("recall_at_top_k" if k is None else "recall_at_%d" % k, labels, predictions_idx, class_id, weights,
                     metrics_collections, updates_collections, name, True)


def sparse_precision_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                          updates_collections=None, name=None):
    """The old name of precision_at_k."""
    return precision_at_k(labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name)


def average_precision_at_k(labels, predictions, k, weights=None, metrics_collections=None, updates_collections=None,
                           name=None):
    """The mean over examples of the mean precision at each of the k best predictions that is a label."""
    with _scope(name, "average_precision_at_%d" % k, (predictions, labels, weights)):
        labels = math_ops.cast(convert_to_tensor(labels), dtypes.int64)
        predictions = convert_to_tensor(predictions)
        if labels.shape.ndims == predictions.shape.ndims - 1:
            labels = array_ops.expand_dims(labels, -1)
        best = math_ops.cast(raw_ops.TopKV2(input=predictions, k=k).indices, dtypes.int64)
        same = raw_ops.Equal(x=array_ops.expand_dims(labels, -1), y=array_ops.expand_dims(best, -2))
        hits = math_ops.cast(math_ops.reduce_any(same, -2), dtypes.float64)
        places = math_ops.cast(math_ops.range(1, k + 1), dtypes.float64)
        relevant = math_ops.cast(raw_ops.Minimum(x=array_ops.shape(labels)[-1], y=k), dtypes.float64)
        scores = math_ops.reduce_sum(math_ops.cumsum(hits, -1) / places * hits, -1) / relevant
        counts = array_ops.ones_like(scores)
        if weights is not None:
            weights = math_ops.cast(_weights_for(weights, scores), dtypes.float64)
            scores, counts = scores * weights, counts * weights
        total, count = _variable([], dtypes.float64, "total"), _variable([], dtypes.float64, "max")
        update_total = total.assign_add(math_ops.reduce_sum(scores))
        update_count = count.assign_add(math_ops.reduce_sum(counts))
        return _collect(_safe_div(total, count, "mean"), _safe_div(update_total, update_count, "update_op"),
                        metrics_collections, updates_collections)


def sparse_average_precision_at_k(labels, predictions, k, weights=None, metrics_collections=None, updates_collections=None,
                                  name=None):
    """The old name of average_precision_at_k."""
    return average_precision_at_k(labels, predictions, k, weights, metrics_collections, updates_collections, name)


def sensitivity_at_specificity(labels, predictions, specificity, weights=None, num_thresholds=200, metrics_collections=None,
                               updates_collections=None, name=None):
    """The share of positives that are found where that of negatives is nearest to `specificity`."""
    _check_share(specificity, "specificity")

    def find(v, name):
        distance = raw_ops.Abs(x=v["tn"] / (v["tn"] + v["fp"] + 1e-7) - specificity)
        at = math_ops.cast(math_ops.argmin(distance, 0), dtypes.int32)
        return math_ops.divide(v["tp"][at], v["tp"][at] + v["fn"][at] + 1e-7, name)
    return _where_nearest("sensitivity_at_specificity", find, labels, predictions, weights, num_thresholds, metrics_collections,
                          updates_collections, name)


def specificity_at_sensitivity(labels, predictions, sensitivity, weights=None, num_thresholds=200, metrics_collections=None,
                               updates_collections=None, name=None):
    """The share of negatives that are found where that of positives is nearest to `sensitivity`."""
    _check_share(sensitivity, "sensitivity")

    def find(v, name):
        distance = raw_ops.Abs(x=v["tp"] / (v["tp"] + v["fn"] + 1e-7) - sensitivity)
        nearest = math_ops.cast(raw_ops.Equal(x=distance, y=math_ops.reduce_min(distance)), dtypes.int64)
        at = math_ops.cast(math_ops.argmax(math_ops.cumsum(nearest), 0), dtypes.int32)  # the last of equals
        return math_ops.divide(v["tn"][at], v["tn"][at] + v["fp"][at] + 1e-7, name)
    return _where_nearest("specificity_at_sensitivity", find, labels, predictions, weights, num_thresholds, metrics_collections,
                          updates_collections, name)


def _check_share(value, name):
    if value < 0 or value > 1:
        raise ValueError("`%s` must be in the range [0, 1]. Currently, `%s` got %s." % (name, name, value))


def _where_nearest(default, find, labels, predictions, weights, number, metrics_collections, updates_collections, name):
    with _scope(name, default, (predictions, labels, weights)):
        values, updates = _at_thresholds(labels, predictions, _even_thresholds(number), weights)
        return _collect(find(values, "value"), find(updates, "update_op"), metrics_collections, updates_collections)
