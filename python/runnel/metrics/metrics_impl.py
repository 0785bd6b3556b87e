"""Metrics accumulated over batches (tf.metrics). Each returns (value so far, operation that adds a batch).

The counts are local variables: tf.local_variables_initializer() sets them to 0.
"""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, add_to_collections, control_dependencies, executing_eagerly
from runnel.core.naming import named
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import cond
from runnel.ops.state_ops import assign_add
from runnel.ops.weights_broadcast_ops import broadcast_weights, remove_squeezable_dimensions



def _scope(name, default, values):
    from runnel.ops.variable_scopes import variable_scope
    if executing_eagerly():
        raise RuntimeError("tf.metrics.%s is not supported when eager execution is enabled." % default)
    return variable_scope(name, default, values)


def metric_variable(shape, dtype, validate_shape=True, name=None):
    """Creates a local variable of zeros for a metric."""
    from runnel.ops.variables import Variable, VariableAggregation, VariableSynchronization
    return Variable(lambda: array_ops.zeros(shape, dtype), trainable=False, collections=[
        GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], validate_shape=validate_shape,
        synchronization=VariableSynchronization.ON_READ, aggregation=VariableAggregation.SUM, name=name)


def _collect(value, update, metrics_collections, updates_collections):
    """Adds value and update to the collections and returns both."""
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def _aggregate_across_replicas(metrics_collections, metric_value_fn, *args):
    """Returns metric_value_fn(None, *args) and adds it to the collections: there is one replica."""
    value = metric_value_fn(None, *args)
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    return value


def _aggregate_variable(v, collections):
    return _aggregate_across_replicas(collections, lambda _, value: array_ops.identity(value), v)


def _safe_scalar_div(numerator, denominator, name):
    """Returns x / y of scalars or vectors, and 0 where y is 0."""
    numerator.shape.with_rank_at_most(1)
    denominator.shape.with_rank_at_most(1)
    return raw_ops.DivNoNan(x=numerator, y=denominator, name=name)


def _remove_squeezable_dimensions(predictions, labels, weights):
    """Gives the three one rank: removes a last dimension of 1, or adds it to the weights."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = convert_to_tensor(weights)
    one, two = weights.shape.ndims, predictions.shape.ndims
    if one == 0:
        return predictions, labels, weights
    if one is not None and two is not None:
        if one - two == 1:
            weights = array_ops.squeeze(weights, [-1])
        elif two - one == 1:
            weights = array_ops.expand_dims(weights, [-1])
        return predictions, labels, weights
    return predictions, labels, _adjusted(weights, predictions)


def _adjusted(weights, predictions):
    """Gives weights the predictions' rank when the step runs."""
    rank = array_ops.rank(weights)
    extra = rank - array_ops.rank(predictions)
    fixed = weights.shape.ndims is not None and weights.shape.as_list()[-1] not in (None, 1)

    def expanded():
        return cond(raw_ops.Equal(x=extra, y=-1), lambda: array_ops.expand_dims(weights, [-1]), lambda: weights)

    def adjusted():
        return cond(raw_ops.Equal(x=extra, y=1),
                    (lambda: weights) if fixed else (lambda: array_ops.squeeze(weights, [-1])), expanded)
    return cond(raw_ops.Equal(x=rank, y=0), lambda: weights, adjusted)


def _share(x, y, name=None):
    """Returns x / y where y is positive, else 0."""
    return raw_ops.DivNoNan(x=x, y=raw_ops.Maximum(x=y, y=0), name=name or "div_no_nan")


def _weighted(values, weights):
    """Returns (values times weights, weights in their shape)."""
    values, _, weights = _remove_squeezable_dimensions(values, None, weights)
    weights = broadcast_weights(math_ops.cast(weights, dtypes.float32), values)
    return raw_ops.Mul(x=values, y=weights), weights


def _sums(shape, suffix=""):
    """Returns the variables of a mean: (total, count)."""
    return tuple(metric_variable(shape, dtypes.float32, name=name + suffix) for name in ("total", "count"))


def mean(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
    """Computes the mean of all values so far."""
    with _scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total, count = _sums([])
        if weights is None:
            number = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            values, weights = _weighted(values, weights)
            number = math_ops.reduce_sum(weights)
        update_total = assign_add(total, math_ops.reduce_sum(values))
        with control_dependencies([values]):
            update_count = assign_add(count, number)
        value = _share(total, count, "value")
        return _collect(value, _share(update_total, update_count, "update_op"), metrics_collections, updates_collections)


def mean_tensor(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
    """Computes the element-wise mean of all values so far."""
    with _scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total, count = _sums(values.shape, "_tensor")
        counts = array_ops.ones_like(values)
        if weights is not None:
            values, weights = _weighted(values, weights)
            counts = raw_ops.Mul(x=counts, y=weights)
        update_total = assign_add(total, values)
        with control_dependencies([values]):
            update_count = assign_add(count, counts)
        value = _share(total, count, "value")
        return _collect(value, _share(update_total, update_count, "update_op"), metrics_collections, updates_collections)


def accuracy(labels, predictions, weights=None, metrics_collections=None, updates_collections=None,
             name=None):
    """Computes the fraction of predictions that equal the labels."""
    predictions, labels, weights = _remove_squeezable_dimensions(predictions, labels, weights)
    if labels.dtype != predictions.dtype:
        predictions = math_ops.cast(predictions, labels.dtype)
    is_correct = math_ops.cast(raw_ops.Equal(x=predictions, y=labels), dtypes.float32)
    return mean(is_correct, weights, metrics_collections, updates_collections, name or "accuracy")


def _count_condition(values, weights=None, metrics_collections=None, updates_collections=None):
    """Counts the true values, weighted."""
    from runnel.ops import check_ops
    check_ops.assert_type(values, dtypes.bool)
    total = metric_variable([], dtypes.float32, name="count")
    holds = math_ops.cast(values, dtypes.float32)
    if weights is not None:
        with control_dependencies([check_ops.assert_rank_in(weights, (0, array_ops.rank(holds)))]):
            holds = raw_ops.Mul(x=holds, y=math_ops.cast(weights, dtypes.float32))
    value = array_ops.identity(total)
    return _collect(value, assign_add(total, math_ops.reduce_sum(holds)), metrics_collections, updates_collections)


def _booleans(predictions, labels, weights):
    return _remove_squeezable_dimensions(math_ops.cast(predictions, dtypes.bool), math_ops.cast(labels, dtypes.bool), weights)


def _confusion_count(wants_label, wants_prediction, default):
    """Makes a metric that counts one cell of the confusion matrix of two classes."""
    def metric(labels, predictions, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        with _scope(name, default, (predictions, labels, weights)):
            predictions, labels, weights = _booleans(predictions, labels, weights)
            hits = raw_ops.LogicalAnd(x=raw_ops.Equal(x=labels, y=wants_label),
                                      y=raw_ops.Equal(x=predictions, y=wants_prediction))
            return _count_condition(hits, weights, metrics_collections, updates_collections)
    return named(metric, default, "Counts the %s." % default.replace("_", " "))


true_positives = _confusion_count(True, True, "true_positives")
true_negatives = _confusion_count(False, False, "true_negatives")
false_positives = _confusion_count(False, True, "false_positives")
false_negatives = _confusion_count(True, False, "false_negatives")


def _share_of_cells(labels, predictions, weights, other, metrics_collections, updates_collections, name, default):
    with _scope(name, default, (predictions, labels, weights)):
        predictions, labels, weights = _booleans(predictions, labels, weights)
        hits, hits_update = true_positives(labels, predictions, weights)
        misses, misses_update = other(labels, predictions, weights)

        def share(hits, misses, name):
            return array_ops.where(raw_ops.Greater(x=hits + misses, y=0), math_ops.divide(hits, hits + misses), 0, name)
        value = share(hits, misses, "value")
        return _collect(value, share(hits_update, misses_update, "update_op"), metrics_collections, updates_collections)


def precision(labels, predictions, weights=None, metrics_collections=None, updates_collections=None,
              name=None):
    """Computes the fraction of positive predictions that are right."""
    return _share_of_cells(labels, predictions, weights, false_positives, metrics_collections,
                           updates_collections, name, "precision")


def recall(labels, predictions, weights=None, metrics_collections=None, updates_collections=None,
           name=None):
    """Computes the fraction of positive labels that are predicted."""
    return _share_of_cells(labels, predictions, weights, false_negatives, metrics_collections,
                           updates_collections, name, "recall")


def _mean_of(default, function):
    """Makes a metric that is the mean of a function of labels and predictions."""
    def metric(labels, predictions, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        predictions, labels, weights = _remove_squeezable_dimensions(predictions, labels, weights)
        return mean(function(labels, predictions), weights, metrics_collections, updates_collections,
                    name or default)
    return named(metric, default, "Computes the %s." % default.replace("_", " "))


mean_absolute_error = _mean_of("mean_absolute_error", lambda y, p: raw_ops.Abs(x=p - y))
mean_squared_error = _mean_of("mean_squared_error", lambda y, p: raw_ops.SquaredDifference(x=y, y=p))


def root_mean_squared_error(labels, predictions, weights=None, metrics_collections=None,
                            updates_collections=None, name=None):
    """Computes the root of the mean squared error."""
    predictions, labels, weights = _remove_squeezable_dimensions(predictions, labels, weights)
    value, update = mean_squared_error(labels, predictions, weights, None, None,
                                       name or "root_mean_squared_error")
    value = raw_ops.Sqrt(x=value)
    return _collect(value, raw_ops.Sqrt(x=update), metrics_collections, updates_collections)


def mean_relative_error(labels, predictions, normalizer, weights=None, metrics_collections=None,
                        updates_collections=None, name=None):
    """Computes the mean of |error| / normalizer."""
    predictions, labels, weights = _remove_squeezable_dimensions(predictions, labels, weights)
    predictions, normalizer = remove_squeezable_dimensions(predictions, normalizer)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    relative = array_ops.where(raw_ops.Equal(x=normalizer, y=0.0), array_ops.zeros_like(labels),
                               math_ops.divide(raw_ops.Abs(x=labels - predictions), normalizer))
    return mean(relative, weights, metrics_collections, updates_collections,
                name or "mean_relative_error")


def mean_cosine_distance(labels, predictions, dim, weights=None, metrics_collections=None,
                         updates_collections=None, name=None):
    """Computes the mean of 1 - labels . predictions."""
    predictions, labels, weights = _remove_squeezable_dimensions(predictions, labels, weights)
    products = math_ops.reduce_sum(raw_ops.Mul(x=predictions, y=labels), axis=[dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    return _collect(raw_ops.Sub(x=1.0, y=value), raw_ops.Sub(x=1.0, y=update), metrics_collections, updates_collections)


def percentage_below(values, threshold, weights=None, metrics_collections=None,
                     updates_collections=None, name=None):
    """Computes the fraction of values below a threshold."""
    below = math_ops.cast(raw_ops.Less(x=values, y=threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


def _flat(x):
    return array_ops.reshape(x, [-1]) if x.shape.ndims is not None and x.shape.ndims > 1 else x


def _streaming_confusion_matrix(labels, predictions, num_classes, weights=None):
    """Returns (variable, update) of the confusion matrix."""
    from runnel.ops.special_ops import confusion_matrix
    total = metric_variable([num_classes, num_classes], dtypes.float64, name="total_confusion_matrix")
    predictions, labels, num_classes = (math_ops.cast(x, dtypes.int64) for x in (predictions, labels, num_classes))
    predictions, labels = _flat(predictions), _flat(labels)
    weights = None if weights is None else _flat(convert_to_tensor(weights))
    matrix = confusion_matrix(labels, predictions, num_classes, weights=weights, dtype=dtypes.float64)
    return total, assign_add(total, matrix)


def mean_iou(labels, predictions, num_classes, weights=None, metrics_collections=None,
             updates_collections=None, name=None):
    """Computes the mean over classes of intersection over union."""
    with _scope(name, "mean_iou", (predictions, labels, weights)):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total, update = _streaming_confusion_matrix(labels, predictions, num_classes, weights)
        rows = math_ops.cast(math_ops.reduce_sum(total, 0), dtypes.float32)
        columns = math_ops.cast(math_ops.reduce_sum(total, 1), dtypes.float32)
        diagonal = math_ops.cast(raw_ops.DiagPart(input=total), dtypes.float32)
        union = rows + columns - diagonal
        valid = math_ops.reduce_sum(math_ops.cast(raw_ops.NotEqual(x=union, y=0), dtypes.float32))
        union = array_ops.where(raw_ops.Greater(x=union, y=0), union, array_ops.ones_like(union))
        iou = math_ops.divide(diagonal, union)
        value = array_ops.where(raw_ops.Greater(x=valid, y=0), math_ops.reduce_sum(iou, name="mean_iou") / valid, 0)
        return _collect(value, update, metrics_collections, updates_collections)


def mean_per_class_accuracy(labels, predictions, num_classes, weights=None, metrics_collections=None,
                            updates_collections=None, name=None):
    """Computes the mean over classes of their accuracy."""
    from runnel.ops.state_ops import scatter_add
    with _scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = _flat(math_ops.cast(labels, dtypes.int64))
        predictions = _flat(convert_to_tensor(predictions))
        predictions.shape.assert_is_compatible_with(labels.shape)
        total, count = _sums([num_classes])
        ones = array_ops.ones([array_ops.size(labels)], dtypes.float32)
        if labels.dtype != predictions.dtype:
            predictions = math_ops.cast(predictions, labels.dtype)
        is_correct = math_ops.cast(raw_ops.Equal(x=predictions, y=labels), dtypes.float32)
        if weights is not None:
            weights = math_ops.cast(_flat(convert_to_tensor(weights)), dtypes.float32)
            is_correct, ones = is_correct * weights, ones * weights
        update_total = scatter_add(total, labels, ones)
        update_count = scatter_add(count, labels, is_correct)
        value = math_ops.reduce_mean(_share(count, total), name="mean_accuracy")
        return _collect(value, _share(update_count, update_total, "update_op"), metrics_collections, updates_collections)


_CELLS = {"tp": ("true_positives", True, True), "fn": ("false_negatives", True, False),
          "tn": ("true_negatives", False, False), "fp": ("false_positives", False, True)}


def _in_range(predictions):
    """Returns the predictions, checked to be in [0, 1]."""
    from runnel.ops import check_ops
    return control_dependencies([
        check_ops.assert_greater_equal(predictions, math_ops.cast(0.0, predictions.dtype), message="predictions must be in [0, 1]"),
        check_ops.assert_less_equal(predictions, math_ops.cast(1.0, predictions.dtype), message="predictions must be in [0, 1]")])


def _confusion_matrix_at_thresholds(labels, predictions, thresholds, weights=None, includes=None):
    """Returns the counts per threshold: ({name: variable}, {name: update})."""
    includes = tuple(_CELLS) if includes is None else includes
    for include in includes:
        if include not in _CELLS:
            raise ValueError("Invalid key: %s" % include)
    predictions = convert_to_tensor(predictions)
    with _in_range(predictions):
        predictions, labels, weights = _remove_squeezable_dimensions(
            math_ops.cast(predictions, dtypes.float32), math_ops.cast(labels, dtypes.bool), weights)
    number = len(thresholds)
    column = array_ops.reshape(predictions, [-1, 1])
    row = array_ops.reshape(math_ops.cast(labels, dtypes.bool), [1, -1])
    count = column.shape.as_list()[0]
    if count is None:
        count = array_ops.shape(column)[0]
    limits = array_ops.tile(array_ops.expand_dims(convert_to_tensor(list(thresholds)), [1]), array_ops.stack([1, count]))
    positive = raw_ops.Greater(x=array_ops.tile(array_ops.transpose(column), [number, 1]), y=limits)
    said = {True: positive}
    if "fn" in includes or "tn" in includes:
        said[False] = raw_ops.LogicalNot(x=positive)
    holds = {True: array_ops.tile(row, [number, 1])}
    if "fp" in includes or "tn" in includes:
        holds[False] = raw_ops.LogicalNot(x=holds[True])
    tiled = None
    if weights is not None:
        weights = broadcast_weights(math_ops.cast(weights, dtypes.float32), predictions)
        tiled = array_ops.tile(array_ops.reshape(weights, [1, -1]), [number, 1])
        limits.shape.assert_is_compatible_with(tiled.shape)
    values, updates = {}, {}
    for key, (name, label, prediction) in _CELLS.items():
        if key in includes:
            values[key] = metric_variable([number], dtypes.float32, name=name)
            hits = math_ops.cast(raw_ops.LogicalAnd(x=holds[label], y=said[prediction]), dtypes.float32)
            if tiled is not None:
                hits *= tiled
            updates[key] = assign_add(values[key], math_ops.reduce_sum(hits, 1))
    return values, updates


def _even_thresholds(number, end=1e-7):
    return [0.0 - 1e-7] + [(i + 1) * 1.0 / (number - 1) for i in range(number - 2)] + [1.0 + end]


def auc(labels, predictions, weights=None, num_thresholds=200, metrics_collections=None,
        updates_collections=None, curve="ROC", name=None, summation_method="trapezoidal",
        thresholds=None):
    """Computes the area under the curve ("ROC" or "PR") by a sum over thresholds."""
    with _scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError("Curve must be either ROC or PR. Curve %s is unknown." % curve)
        limits = _even_thresholds(num_thresholds) if thresholds is None else (
            [0.0 - 1e-7] + sorted(thresholds) + [1.0 + 1e-7])
        values, updates = _confusion_matrix_at_thresholds(labels, predictions, limits, weights)
        value = _area(values, len(limits), curve, summation_method, "value")
        return _collect(value, _area(updates, len(limits), curve, summation_method, "update_op"), metrics_collections,
                        updates_collections)


def _area(v, number, curve, method, name):
    """Returns the area for one set of counts."""
    if curve == "PR":
        if method == "careful_interpolation":
            return _pr_area(v["tp"], v["fp"], v["fn"], number)
        if method == "trapezoidal":
            from runnel import logging
            logging.warning("Trapezoidal rule is known to produce incorrect PR-AUCs; please switch to "
                            "\"careful_interpolation\" instead.")
    epsilon = 1e-6
    found = math_ops.divide(v["tp"] + epsilon, v["tp"] + v["fn"] + epsilon)
    if curve == "ROC":
        x, y = math_ops.divide(v["fp"], v["fp"] + v["tn"] + epsilon), found
    else:
        x, y = found, math_ops.divide(v["tp"] + epsilon, v["tp"] + v["fp"] + epsilon)
    steps = x[:number - 1] - x[1:]
    if method in ("trapezoidal", "careful_interpolation"):
        heights = (y[:number - 1] + y[1:]) / 2.0
    elif method in ("minoring", "majoring"):
        heights = (raw_ops.Minimum if method == "minoring" else raw_ops.Maximum)(x=y[:number - 1], y=y[1:])
    else:
        raise ValueError("Invalid summation_method: %s summation_method should be 'trapezoidal', 'careful_interpolation', "
                         "'minoring', or 'majoring'." % method)
    return math_ops.reduce_sum(raw_ops.Mul(x=steps, y=heights), name=name)


def _pr_area(tp, fp, fn, number):
    """Returns the area under a PR curve: between thresholds, precision follows the counts, not a straight line."""
    dtp = tp[:number - 1] - tp[1:]
    p = tp + fp
    slope = _share(dtp, p[:number - 1] - p[1:], "prec_slope")
    intercept = tp[1:] - raw_ops.Mul(x=slope, y=p[1:])
    ratio = array_ops.where(raw_ops.LogicalAnd(x=p[:number - 1] > 0, y=p[1:] > 0),
                            _share(p[:number - 1], p[1:], "recall_relative_ratio"), array_ops.ones_like(p[1:]))
    return math_ops.reduce_sum(_share(slope * (dtp + intercept * raw_ops.Log(x=ratio)), tp[1:] + fn[1:],
                                      "pr_auc_increment"), name="interpolate_pr_auc")


def _share_at_thresholds(what, pair):
    default = what + "_at_thresholds"

    def metric(labels, predictions, thresholds, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        with _scope(name, default, (predictions, labels, weights)):
            values, updates = _confusion_matrix_at_thresholds(labels, predictions, thresholds, weights, pair)

            def share(v, name):
                return math_ops.divide(v[pair[0]], 1e-7 + v[pair[0]] + v[pair[1]], name="%s_%s" % (what, name))
            value = share(values, "value")
            return _collect(value, share(updates, "update_op"), metrics_collections, updates_collections)
    return named(metric, default, "Computes the %s, one value per threshold." % what)


precision_at_thresholds = _share_at_thresholds("precision", ("tp", "fp"))
recall_at_thresholds = _share_at_thresholds("recall", ("tp", "fn"))


def _count_at_thresholds(key):
    what = _CELLS[key][0]

    def metric(labels, predictions, thresholds, weights=None, metrics_collections=None,
               updates_collections=None, name=None):
        with _scope(name, what, (predictions, labels, weights)):
            values, updates = _confusion_matrix_at_thresholds(labels, predictions, thresholds, weights, (key,))
            return _collect(array_ops.identity(values[key]), updates[key], metrics_collections, updates_collections)
    return named(metric, what + "_at_thresholds", "Counts the %s, one count per threshold." % what.replace("_", " "))


true_positives_at_thresholds = _count_at_thresholds("tp")
true_negatives_at_thresholds = _count_at_thresholds("tn")
false_positives_at_thresholds = _count_at_thresholds("fp")
false_negatives_at_thresholds = _count_at_thresholds("fn")


def sensitivity_at_specificity(labels, predictions, specificity, weights=None, num_thresholds=200, metrics_collections=None,
                               updates_collections=None, name=None):
    """Computes the sensitivity at the threshold whose specificity is nearest to `specificity`."""
    if specificity < 0 or specificity > 1:
        raise ValueError("`specificity` must be in the range [0, 1]. Currently, `specificity` got %s." % specificity)

    def find(v, name):
        shares = math_ops.divide(v["tn"], v["tn"] + v["fp"] + 1e-7)
        at = math_ops.cast(math_ops.argmin(raw_ops.Abs(x=shares - specificity), 0), dtypes.int32)
        return math_ops.divide(v["tp"][at], v["tp"][at] + v["fn"][at] + 1e-7, name)
    return _where_nearest("sensitivity_at_specificity", find, labels, predictions, weights, _even_thresholds(num_thresholds),
                          metrics_collections, updates_collections, name)


def specificity_at_sensitivity(labels, predictions, sensitivity, weights=None, num_thresholds=200, metrics_collections=None,
                               updates_collections=None, name=None):
    """Computes the specificity at the threshold whose sensitivity is nearest to `sensitivity`."""
    if sensitivity < 0 or sensitivity > 1:
        raise ValueError("`sensitivity` must be in the range [0, 1]. Currently, `sensitivity` is %s." % sensitivity)

    def find(v, name):
        shares = math_ops.divide(v["tp"], v["tp"] + v["fn"] + 1e-7)
        least = math_ops.reduce_min(raw_ops.Abs(x=shares - sensitivity))
        nearest = math_ops.cast(raw_ops.Equal(x=raw_ops.Abs(x=shares - sensitivity), y=least), dtypes.int64)
        at = math_ops.cast(math_ops.argmax(math_ops.cumsum(nearest), 0), dtypes.int32)  # the last of several equally near
        return math_ops.divide(v["tn"][at], v["tn"][at] + v["fp"][at] + 1e-7, name)
    return _where_nearest("specificity_at_sensitivity", find, labels, predictions, weights,
                          _even_thresholds(num_thresholds, -1e-7), metrics_collections, updates_collections, name)


def _where_nearest(default, find, labels, predictions, weights, thresholds, metrics_collections, updates_collections, name):
    with _scope(name, default, (predictions, labels, weights)):
        values, updates = _confusion_matrix_at_thresholds(labels, predictions, thresholds, weights)
        value = find(values, "value")
        return _collect(value, find(updates, "update_op"), metrics_collections, updates_collections)
