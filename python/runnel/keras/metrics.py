"""tf.keras.metrics: functions of (true values, predictions), whose means are shown, and objects with state."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import control_dependencies, executing_eagerly
from runnel.keras import losses as _losses
from runnel.ops import array_ops, math_ops


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """Returns the fraction of right answers of two classes per example."""
    p = convert_to_tensor(y_pred)
    y = math_ops.cast(convert_to_tensor(y_true), p.dtype)
    return math_ops.reduce_mean(math_ops.cast(raw_ops.Equal(
        x=y, y=math_ops.cast(p > threshold, p.dtype)), dtypes.float32), -1)


def categorical_accuracy(y_true, y_pred):
    """Returns 1 per example whose one-hot label is predicted, else 0."""
    return math_ops.cast(raw_ops.Equal(x=math_ops.argmax(y_true, -1), y=math_ops.argmax(y_pred, -1)),
                         dtypes.float32)


def sparse_categorical_accuracy(y_true, y_pred):
    """Returns 1 per example whose class index is predicted, else 0."""
    p = convert_to_tensor(y_pred)
    y = math_ops.cast(convert_to_tensor(y_true), dtypes.int64)
    if y.shape.ndims is not None and y.shape.ndims == p.shape.ndims:
        y = array_ops.squeeze(y, [-1])
    return math_ops.cast(raw_ops.Equal(x=y, y=math_ops.argmax(p, -1)), dtypes.float32)


def top_k_categorical_accuracy(y_true, y_pred, k=5):
    """Returns 1 per example whose one-hot label is among the k best predictions, else 0."""
    return math_ops.cast(raw_ops.InTopKV2(predictions=y_pred, targets=math_ops.argmax(y_true, -1), k=k),
                         dtypes.float32)


def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5):
    """Returns 1 per example whose class index is among the k best predictions, else 0."""
    y = array_ops.reshape(math_ops.cast(y_true, dtypes.int32), [-1])
    return math_ops.cast(raw_ops.InTopKV2(predictions=y_pred, targets=y, k=k), dtypes.float32)


def accuracy_for(loss, y_pred):
    """Returns the accuracy that fits a loss and the predictions."""
    name = getattr(loss, "__name__", "")
    last = y_pred.shape.as_list()[-1] if y_pred.shape.dims else None
    if last == 1 or "binary" in name:
        return binary_accuracy
    return sparse_categorical_accuracy if "sparse" in name else categorical_accuracy


class Metric:
    """The base of metrics with state: `update_state` adds a batch, `result` returns the value so far, `reset_states` resets.

    In a graph, update_state is an operation to run. A subclass creates its variables with `add_weight`.
    """

    def __init__(self, name=None, dtype=None, **kwargs):
        self.name = name or snake_case(type(self).__name__)
        self.dtype = dtypes.as_dtype(dtype or "float32")
        self._variables = []

    def add_weight(self, name, shape=(), initializer="zeros", dtype=None):
        """Creates a variable of the metric."""
        from runnel.keras import initializers
        from runnel.ops.variables import Variable
        kind, make = dtypes.as_dtype(dtype or self.dtype), initializers.get(initializer)
        variable = Variable(lambda: make(shape, dtype=kind), trainable=False, name="%s/%s" % (self.name, name), dtype=kind,
                            collections=["local_variables"], use_resource=True)
        self._variables.append(variable)
        return variable

    @property
    def variables(self):
        return list(self._variables)

    weights = variables

    def update_state(self, *args, **kwargs):
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self):
        raise NotImplementedError("Must be implemented in subclasses.")

    def reset_states(self):
        """Resets the state."""
        import numpy
        from runnel.keras import backend
        zeros = [numpy.zeros(v.shape.as_list(), v.dtype.base_dtype.as_numpy_dtype) for v in self._variables]
        if executing_eagerly():
            for variable, value in zip(self._variables, zeros):
                variable.assign(value)
        elif zeros:
            session = backend.get_session()
            for variable, value in zip(self._variables, zeros):
                variable.load(value, session)

    reset_state = reset_states

    def __call__(self, *args, **kwargs):
        """Adds a batch and returns the value after it."""
        update = self.update_state(*args, **kwargs)
        with control_dependencies([update] if update is not None else []):
            return array_ops.identity(self.result())

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype.name}


def snake_case(name):
    """Converts MeanIoU to mean_io_u."""
    import re
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def _group(*ops):
    from runnel.ops.control_flow import group
    return None if executing_eagerly() else group(*ops)


def _weighted(values, sample_weight):
    """Returns (values times weights, sum of the weights)."""
    values = math_ops.cast(convert_to_tensor(values), dtypes.float32)
    if sample_weight is None:
        return values, math_ops.cast(array_ops.size(values), dtypes.float32)
    weights = math_ops.cast(convert_to_tensor(sample_weight), dtypes.float32)
    while weights.shape.ndims is not None and weights.shape.ndims < values.shape.ndims:
        weights = array_ops.expand_dims(weights, -1)
    weights = weights * array_ops.ones_like(values)
    return values * weights, math_ops.reduce_sum(weights)


class Sum(Metric):
    """The sum of values."""

    def __init__(self, name=None, dtype=None):
        super().__init__(name, dtype)
        self.total = self.add_weight("total")

    def update_state(self, values, sample_weight=None):
        return _group(self.total.assign_add(math_ops.reduce_sum(_weighted(values, sample_weight)[0])))

    def result(self):
        return array_ops.identity(self.total)


class Mean(Metric):
    """The mean of values."""

    def __init__(self, name=None, dtype=None):
        super().__init__(name, dtype)
        self.total, self.count = self.add_weight("total"), self.add_weight("count")

    def update_state(self, values, sample_weight=None):
        values, count = _weighted(values, sample_weight)
        return _group(self.total.assign_add(math_ops.reduce_sum(values)), self.count.assign_add(count))

    def result(self):
        return raw_ops.DivNoNan(x=convert_to_tensor(self.total), y=convert_to_tensor(self.count))


class MeanMetricWrapper(Mean):
    """The mean of a function of true values and predictions."""

    def __init__(self, fn, name=None, dtype=None, **kwargs):
        super().__init__(name, dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(self._fn(convert_to_tensor(y_true), convert_to_tensor(y_pred), **self._fn_kwargs), sample_weight)


def _of(name, fn, label, **defaults):
    """Makes a metric class of a function; `label` is its default name, `defaults` are further arguments and their defaults."""

    def __init__(self, *args, **kwargs):
        order = ["name", "dtype"] if not defaults or "from_logits" in defaults else [*defaults, "name", "dtype"]
        given = dict(zip(order, args), **kwargs)
        own = {key: given.pop(key, value) for key, value in defaults.items()}
        given.setdefault("name", label)
        MeanMetricWrapper.__init__(self, fn, **given, **own)

    return type(name, (MeanMetricWrapper,), {"__init__": __init__, "__doc__": "The mean of %s." % fn.__name__})


BinaryAccuracy = _of("BinaryAccuracy", binary_accuracy, "binary_accuracy", threshold=0.5)
CategoricalAccuracy = _of("CategoricalAccuracy", categorical_accuracy, "categorical_accuracy")
SparseCategoricalAccuracy = _of("SparseCategoricalAccuracy", sparse_categorical_accuracy, "sparse_categorical_accuracy")
TopKCategoricalAccuracy = _of("TopKCategoricalAccuracy", top_k_categorical_accuracy, "top_k_categorical_accuracy", k=5)
SparseTopKCategoricalAccuracy = _of("SparseTopKCategoricalAccuracy", sparse_top_k_categorical_accuracy, "sparse_top_k_categorical_accuracy", k=5)
MeanSquaredError = _of("MeanSquaredError", _losses.mean_squared_error, "mean_squared_error")
MeanAbsoluteError = _of("MeanAbsoluteError", _losses.mean_absolute_error, "mean_absolute_error")
MeanAbsolutePercentageError = _of("MeanAbsolutePercentageError", _losses.mean_absolute_percentage_error, "mean_absolute_percentage_error")
MeanSquaredLogarithmicError = _of("MeanSquaredLogarithmicError", _losses.mean_squared_logarithmic_error, "mean_squared_logarithmic_error")
Hinge = _of("Hinge", _losses.hinge, "hinge")
SquaredHinge = _of("SquaredHinge", _losses.squared_hinge, "squared_hinge")
LogCoshError = _of("LogCoshError", _losses.logcosh, "logcosh")
Poisson = _of("Poisson", _losses.poisson, "poisson")
KLDivergence = _of("KLDivergence", _losses.kullback_leibler_divergence, "kullback_leibler_divergence")
BinaryCrossentropy = _of("BinaryCrossentropy", _losses.binary_crossentropy, "binary_crossentropy", from_logits=False, label_smoothing=0)
CategoricalCrossentropy = _of("CategoricalCrossentropy", _losses.categorical_crossentropy, "categorical_crossentropy", from_logits=False,
                              label_smoothing=0)
SparseCategoricalCrossentropy = _of("SparseCategoricalCrossentropy", _losses.sparse_categorical_crossentropy, "sparse_categorical_crossentropy",
                                    from_logits=False)


def _equal(y_true, y_pred):
    return math_ops.cast(raw_ops.Equal(x=math_ops.cast(y_true, y_pred.dtype), y=y_pred), dtypes.float32)


Accuracy = _of("Accuracy", _equal, "accuracy")


class RootMeanSquaredError(Mean):
    """The root of the mean squared error."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        p = convert_to_tensor(y_pred)
        return super().update_state(raw_ops.SquaredDifference(x=p, y=math_ops.cast(convert_to_tensor(y_true), p.dtype)), sample_weight)

    def result(self):
        return raw_ops.Sqrt(x=super().result())


class _Confusion(Metric):
    """Counts right and wrong answers per threshold; `_kinds` says which of tp, fp, tn and fn a subclass needs."""

    _kinds = ()

    def __init__(self, thresholds=None, name=None, dtype=None):
        super().__init__(name, dtype)
        self._given = thresholds
        limits = [0.5] if thresholds is None else thresholds
        self.thresholds = [float(t) for t in (limits if isinstance(limits, (list, tuple)) else [limits])]
        self._counts = {kind: self.add_weight(kind, (len(self.thresholds),)) for kind in self._kinds}

    def update_state(self, y_true, y_pred, sample_weight=None):
        p = array_ops.reshape(math_ops.cast(convert_to_tensor(y_pred), dtypes.float32), [1, -1])
        y = array_ops.reshape(math_ops.cast(convert_to_tensor(y_true), dtypes.bool), [1, -1])
        w = array_ops.reshape(_weighted(array_ops.ones_like(convert_to_tensor(y_pred)), sample_weight)[0], [1, -1])
        above = p > array_ops.reshape(convert_to_tensor(self.thresholds, dtypes.float32), [-1, 1])

        def count(said, true):
            found = raw_ops.LogicalAnd(x=above if said else raw_ops.LogicalNot(x=above), y=y if true else raw_ops.LogicalNot(x=y))
            return math_ops.reduce_sum(math_ops.cast(found, dtypes.float32) * w, 1)

        meaning = {"tp": (True, True), "fp": (True, False), "tn": (False, False), "fn": (False, True)}
        return _group(*[variable.assign_add(count(*meaning[kind])) for kind, variable in self._counts.items()])

    def _count(self, kind):
        return convert_to_tensor(self._counts[kind])

    def _shown(self, values):
        """Returns a scalar if there is one threshold, else a vector."""
        return values[0] if len(self.thresholds) == 1 else values

    def result(self):
        return self._shown(self._count(self._kinds[0]))


def _count_class(name, kind, what):
    return type(name, (_Confusion,), {"_kinds": (kind,), "__doc__": "How many %s there are." % what})


TruePositives = _count_class("TruePositives", "tp", "true positives")
FalsePositives = _count_class("FalsePositives", "fp", "false positives")
TrueNegatives = _count_class("TrueNegatives", "tn", "true negatives")
FalseNegatives = _count_class("FalseNegatives", "fn", "false negatives")


class Precision(_Confusion):
    """The fraction of positive answers that are right."""

    _kinds = ("tp", "fp")

    def result(self):
        return self._shown(raw_ops.DivNoNan(x=self._count("tp"), y=self._count("tp") + self._count("fp")))


class Recall(_Confusion):
    """The fraction of positive labels that are found."""

    _kinds = ("tp", "fn")

    def result(self):
        return self._shown(raw_ops.DivNoNan(x=self._count("tp"), y=self._count("tp") + self._count("fn")))


class AUC(_Confusion):
    """The area under the ROC or PR curve, by trapezoids between thresholds."""

    _kinds = ("tp", "fp", "tn", "fn")

    def __init__(self, num_thresholds=200, curve="ROC", summation_method="interpolation", name=None, dtype=None, thresholds=None, **kwargs):
        if curve != "ROC" or summation_method != "interpolation":
            raise NotImplementedError("AUC supports curve='ROC' with summation_method='interpolation' only")
        inner = sorted(thresholds) if thresholds is not None else [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        super().__init__([-1e-7, *inner, 1.0 + 1e-7], name, dtype)

    def result(self):
        found = raw_ops.DivNoNan(x=self._count("tp"), y=self._count("tp") + self._count("fn"))
        wrong = raw_ops.DivNoNan(x=self._count("fp"), y=self._count("fp") + self._count("tn"))
        return math_ops.reduce_sum((wrong[:-1] - wrong[1:]) * (found[:-1] + found[1:]) / 2.0)


class MeanIoU(Metric):
    """The mean over classes of intersection over union."""

    def __init__(self, num_classes, name=None, dtype=None):
        super().__init__(name, dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight("total_confusion_matrix", (num_classes, num_classes))

    def update_state(self, y_true, y_pred, sample_weight=None):
        from runnel.ops.special_ops import confusion_matrix
        y, p = (array_ops.reshape(math_ops.cast(convert_to_tensor(t), dtypes.int64), [-1]) for t in (y_true, y_pred))
        weights = None if sample_weight is None else array_ops.reshape(convert_to_tensor(sample_weight), [-1])
        return _group(self.total_cm.assign_add(confusion_matrix(y, p, self.num_classes, weights=weights, dtype=dtypes.float32)))

    def result(self):
        table = convert_to_tensor(self.total_cm)
        both = raw_ops.MatrixDiagPart(input=table)
        either = math_ops.reduce_sum(table, 0) + math_ops.reduce_sum(table, 1) - both
        there = math_ops.reduce_sum(math_ops.cast(either > 0, dtypes.float32))
        return raw_ops.DivNoNan(x=math_ops.reduce_sum(raw_ops.DivNoNan(x=both, y=either)), y=there)


def get(identifier, loss=None, y_pred=None):
    """Returns (name, function) of a metric; a Metric is its own function.

    In graphs, names are the full ones as in 1.x ("mean_squared_error"), except "acc".
    """
    if isinstance(identifier, Metric):
        return identifier.name, identifier
    if identifier in ("accuracy", "acc"):
        return identifier if executing_eagerly() else "acc", accuracy_for(loss, y_pred)
    if callable(identifier):
        return getattr(identifier, "__name__", None) or getattr(identifier, "name", None) or type(identifier).__name__, identifier
    found = globals().get(identifier) or getattr(_losses, identifier, None)
    if isinstance(found, type):
        found = found()
        return found.name, found
    if not callable(found):
        raise ValueError("Unknown metric function: %s" % identifier)
    return identifier if executing_eagerly() else found.__name__, found


_SYNONYMS = {"accuracy": "acc", "acc": "accuracy", "mse": "mean_squared_error", "mae": "mean_absolute_error"}


def synonym(key):
    """Returns the name that a result has in the other mode: "val_accuracy" is "val_acc" in graphs."""
    prefix = "val_" if key.startswith("val_") else ""
    other = _SYNONYMS.get(key[len(prefix):])
    return None if other is None else prefix + other


class Figures(dict):
    """A dict of results by name. A result is also found under its name in the other mode."""

    def __missing__(self, key):
        return dict.__getitem__(self, synonym(key) or key)

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default


mse = MSE = _losses.mean_squared_error
mae = MAE = _losses.mean_absolute_error


def __getattr__(name):
    found = None if name.startswith("_") else getattr(_losses, name, None)  # loss functions are also metrics
    if found is None or isinstance(found, type):
        raise AttributeError("tf.keras.metrics has no %r: see doc/python_names.md" % name)
    return found
