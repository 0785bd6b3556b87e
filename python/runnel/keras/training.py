"""compile, fit, evaluate and predict."""

from runnel import dtypes, nest
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import control_dependencies, executing_eagerly
from runnel.keras import backend as K, callbacks as _callbacks, losses, metrics, optimizers  # noqa: N812
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import group


class Trainable:
    """The base of models: training and prediction."""

    def __init__(self):
        self.optimizer = self.loss = None
        self.stop_training = False
        self.history = None
        self.metrics_names = []
        self._compiled = None

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, loss_weights=None,  # noqa: A003
                sample_weight_mode=None, weighted_metrics=None, **kwargs):
        """Configures training.

        Args:
          optimizer: a name, one of tf.keras.optimizers or one of tf.train.
          loss: a name or a function of (true values, predictions); a list for several outputs.
          metrics: names or functions, whose means are shown.
          loss_weights: weights of the losses of several outputs.
        """
        self._training_config = None
        if isinstance(optimizer, str) and isinstance(loss, str) and all(
                isinstance(m, str) for m in metrics or []):
            self._training_config = {"optimizer": optimizer, "loss": loss, "metrics": metrics}
        self.optimizer = optimizers.get(optimizer)
        self.loss, self._metrics, self._loss_weights = loss, metrics or [], loss_weights
        self._compiled = None

    def _ensure(self, x, y=None):
        """Adds the loss and the training step to the graph once the data is known."""
        if executing_eagerly():
            self._ensure_eagerly(x, y)
            return
        if self.inputs is None:
            keys = getattr(self, "_input_keys", None)
            if keys is not None:
                x = dict(zip(keys, x if isinstance(x, list) else [x]))
            first = nest.flatten(x)[0]
            if hasattr(self, "_build_for") and keys is None:
                kind = None if first.dtype.kind == "f" else first.dtype.name
                self._build_for(first.shape[1:], kind)
            elif hasattr(self, "_begin"):
                self._begin(_placeholders(x))
            else:
                tensors = _placeholders(x)
                outputs = self.call(tensors)
                self._input_structure, self._output_structure = tensors, outputs
                self.inputs, self.outputs = nest.flatten(tensors), nest.flatten(outputs)
        if y is None or self._compiled is not None:
            return
        if self.optimizer is None:
            raise RuntimeError("You must compile your model before training/testing. Use "
                               "`model.compile(optimizer, loss)`.")
        self._compiled = _Step(self, [a.dtype for a in y], [a.shape for a in y])

    def _ensure_eagerly(self, x, y):
        if y is None or self._compiled is not None:
            return
        if self.optimizer is None:
            raise RuntimeError("You must compile your model before training/testing. Use "
                               "`model.compile(optimizer, loss)`.")
        from runnel.keras.eager_training import EagerStep
        self._compiled = EagerStep(self, x if isinstance(x, list) else [x])

    def _outputs(self, xs):
        """Returns the outputs for a batch, as arrays."""
        if executing_eagerly():
            from runnel.keras.eager_training import outputs_of
            return [x.numpy() for x in outputs_of(self, xs)]
        return K.get_session().run(self.outputs, dict(zip(self.inputs, xs)))

    @property
    def input_names(self):
        return [_name_of(x) for x in self.inputs or []]

    @property
    def output_names(self):
        """The names of the layers that compute the outputs."""
        names = [_name_of(x) for x in self.outputs or []]
        return ["output_%d" % (i + 1) for i in range(len(names))] if None in names else names

    def _arrays(self, data, names):
        """Returns arrays of data: one, a list, or a dict by `names` (none if not yet known)."""
        import numpy
        if data is None:
            return None
        if isinstance(data, dict):
            known = names if names and set(names) <= set(data) else sorted(data)
            data = [data[name] for name in known]
        elif not isinstance(data, (list, tuple)) or not names or len(names) == 1 and not _is_listed(data):
            data = [data]
        return [numpy.asarray(a) for a in data]

    def _data(self, x, y=None):
        if isinstance(x, dict) and self.inputs is None:
            self._input_keys = sorted(x)
        xs = self._arrays(x, self.input_names)
        ys = None if y is None else self._arrays(y, self.output_names)
        counts = {len(a) for a in xs + (ys or [])}
        if len(counts) > 1:
            raise ValueError("All input arrays and the target array must have the same number of "
                             "samples. Got array sizes: %s" % sorted(counts))
        return xs, ys

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose=1, callbacks=None,
            validation_split=0.0, validation_data=None, shuffle=True, class_weight=None,
            sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
            validation_freq=1, **kwargs):
        """Trains for `epochs` passes over the data. Returns a History.

        `x` is arrays, or a dataset, a generator or a Sequence of batches (x, y).
        """
        batch_size = batch_size or 32
        source = _source(self, x, y, batch_size, steps_per_epoch, sample_weight, class_weight,
                         shuffle)
        if validation_split and source.arrays is not None:
            validation_data = source.split(validation_split)
        source.prepare(self)
        figures = ["loss"] + self._compiled.names
        self.metrics_names = figures
        history = _callbacks.History()
        given = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        active = list(given) + ([_callbacks.ProgbarLogger(verbose)] if verbose else []) + [history]
        params = {"batch_size": batch_size, "epochs": epochs, "samples": source.samples,
                  "steps": source.steps, "verbose": verbose, "metrics": figures}
        for callback in active:
            callback.set_model(self)
            callback.set_params(params)
        self.stop_training, self.history = False, history
        _tell(active, "on_train_begin")
        for epoch in range(initial_epoch, epochs):
            _tell(active, "on_epoch_begin", epoch)
            logs = self._epoch(source, active)
            if validation_data is not None and (epoch + 1) % validation_freq == 0:
                logs.update(self._validate(validation_data, batch_size, validation_steps, active))
            _tell(active, "on_epoch_end", epoch, logs)
            if self.stop_training:
                break
        _tell(active, "on_train_end")
        return history

    def fit_generator(self, generator, steps_per_epoch=None, epochs=1, **kwargs):
        """The same as fit, for a generator."""
        return self.fit(generator, steps_per_epoch=steps_per_epoch, epochs=epochs, **kwargs)

    def _epoch(self, source, active):
        figures = _Figures(self._compiled)
        for number, (xs, ys, weights) in enumerate(source.batches()):
            size = len(xs[0])
            _tell(active, "on_train_batch_begin", number, {"batch": number, "size": size})
            values = self._compiled.run(xs, ys, weights, True)
            figures.add(values, size)
            _tell(active, "on_train_batch_end", number, dict(zip(self.metrics_names, values), batch=number, size=size))
            if self.stop_training:
                break
        return metrics.Figures(zip(self.metrics_names, figures.values()))

    def _validate(self, data, batch_size, steps, active):
        if isinstance(data, (list, tuple)):
            values = self.evaluate(data[0], data[1], batch_size, verbose=0, callbacks=active,
                                   sample_weight=data[2] if len(data) > 2 else None)
        else:
            values = self.evaluate(data, steps=steps, verbose=0, callbacks=active)
        values = values if isinstance(values, list) else [values]
        return {"val_" + name: value for name, value in zip(self.metrics_names, values)}

    def evaluate(self, x=None, y=None, batch_size=None, verbose=1, sample_weight=None, steps=None,
                 callbacks=None, **kwargs):
        """Returns the loss and the metrics over data."""
        source = _source(self, x, y, batch_size or 32, steps, sample_weight, None, False)
        source.prepare(self)
        self.metrics_names = ["loss"] + self._compiled.names
        active = [callback for callback in callbacks or [] if callback.model is not None or not callback.set_model(self)]
        figures = _Figures(self._compiled)
        _tell(active, "on_test_begin")
        for number, (xs, ys, weights) in enumerate(source.batches()):
            size = len(xs[0])
            _tell(active, "on_test_batch_begin", number, {"batch": number, "size": size})
            values = self._compiled.run(xs, ys, weights, False)
            figures.add(values, size)
            _tell(active, "on_test_batch_end", number, dict(zip(self.metrics_names, values), batch=number, size=size))
        _tell(active, "on_test_end")
        means = figures.values()
        if verbose:
            print("%d/%d - %s" % (figures.seen, figures.seen, " - ".join("%s: %.4f" % pair for pair in zip(
                self.metrics_names, means))))
        return means if len(means) > 1 else means[0]

    def predict(self, x, batch_size=None, verbose=0, steps=None, **kwargs):
        """Returns the outputs for data: an array, or a list of arrays."""
        import numpy
        source = _source(self, x, None, batch_size or 32, steps, None, None, False)
        source.prepare(self, False)
        parts = [self._outputs(xs) for xs, _, _ in source.batches()]
        results = [numpy.concatenate(column) for column in zip(*parts)]
        return results[0] if len(results) == 1 else results

    def train_on_batch(self, x, y, sample_weight=None, class_weight=None):
        """Runs one training step. Returns the loss and the metrics."""
        return self._one(x, y, sample_weight, True)

    def test_on_batch(self, x, y, sample_weight=None):
        """Returns the loss and the metrics of a batch."""
        return self._one(x, y, sample_weight, False)

    def _one(self, x, y, weights, trains):
        xs, ys = self._data(x, y)
        self._ensure(xs if len(xs) > 1 else xs[0], ys)
        self.metrics_names = ["loss"] + self._compiled.names
        values = self._compiled.run(xs, ys, weights, trains)
        return values if len(values) > 1 else values[0]

    def predict_on_batch(self, x):
        """Returns the outputs for a batch."""
        xs, _ = self._data(x)
        self._ensure(xs if len(xs) > 1 else xs[0])
        results = self._outputs(xs)
        return results[0] if len(results) == 1 else results


def _placeholders(arrays):
    """Creates placeholders for arrays like these."""
    def one(a):
        kind = dtypes.float32 if a.dtype.kind == "f" else dtypes.string if a.dtype.kind in "OSU" else a.dtype
        return array_ops.placeholder(kind, (None,) + a.shape[1:])

    return {key: one(a) for key, a in arrays.items()} if isinstance(arrays, dict) else nest.map_structure(one, arrays)


def _name_of(tensor):
    """Returns the name of the layer that made a tensor, or None."""
    history = getattr(tensor, "_keras_history", None)
    return history[0].name if history is not None else None


def per_output(given, names, default=None):
    """Returns the part of `given` for each output: one for all, a list, or a dict by name."""
    if isinstance(given, dict):
        return [given.get(name, default) for name in names]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError("the model has %d outputs, but %d were given: %s" % (len(names), len(given), given))
        return list(given)
    return [default if given is None else given] * len(names)


def metrics_of(given, names):
    """Returns the list of metrics of each output: all for each, a list of lists, or a dict by name."""
    if isinstance(given, dict):
        chosen = [given.get(name, []) for name in names]
        return [list(m) if isinstance(m, (list, tuple)) else [m] for m in chosen]
    given = list(given or [])
    if len(names) > 1 and len(given) == len(names) and all(isinstance(m, (list, tuple)) for m in given):
        return [list(m) for m in given]
    return [given for _ in names]


def _is_listed(data):
    return bool(data) and hasattr(data[0], "shape") and getattr(data[0], "ndim", 0) > 0


def _tell(active, method, *arguments):
    """Calls a method of all callbacks; missing results become an empty dict."""
    if not arguments or not isinstance(arguments[-1], dict):
        arguments += ({},)
    for callback in active:
        getattr(callback, method)(*arguments)


class _Figures:
    """The results of an epoch: means over examples, but the last value of metrics with state."""

    def __init__(self, step):
        self._step, self._totals, self.seen = step, [0.0] * (1 + len(step.names)), 0
        for metric in step.stateful.values():
            metric.reset_states()

    def add(self, values, size):
        self.seen += size
        self._totals = [value if i in self._step.stateful else total + value * size for i, (total, value) in enumerate(zip(self._totals, values))]

    def values(self):
        return [total if i in self._step.stateful else total / max(1, self.seen) for i, total in enumerate(self._totals)]


class _Step:
    """The nodes of a model's training: loss, metrics, update."""

    def __init__(self, model, kinds, shapes):
        self._model = model
        outputs, labels = model.outputs, model.output_names
        factors = per_output(model._loss_weights, labels, 1.0)
        self.targets, parts = [], []
        self.weights = array_ops.placeholder_with_default(
            convert_to_tensor([1.0]), [None], name="sample_weights")
        self.names, values, self.stateful = [], [], {}
        chosen = metrics_of(model._metrics, labels)
        found = [losses.get(function) for function in per_output(model.loss, labels)]
        for number, (output, loss) in enumerate(zip(outputs, found)):
            target = self._target(output, loss, kinds[number], shapes[number])
            self.targets.append(target)
            per_example = loss(target, output)
            axes = list(range(1, per_example.shape.ndims or 1))
            if axes:
                per_example = math_ops.reduce_mean(per_example, axes)
            parts.append(math_ops.reduce_mean(per_example * self.weights))
        if len(outputs) > 1:
            self.names += [label + "_loss" for label in labels]
            values += parts
        for number, (output, loss) in enumerate(zip(outputs, found)):
            for metric in chosen[number]:
                name, fn = metrics.get(metric, loss, output)
                self.names.append(name if len(outputs) == 1 else "%s_%s" % (labels[number], name))
                if isinstance(fn, metrics.Metric):
                    self.stateful[len(self.names)] = fn
                values.append(math_ops.reduce_mean(fn(self.targets[number], output)))
        parts = [part if factor == 1.0 else factor * part for factor, part in zip(factors, parts)]
        self.loss = math_ops.add_n(parts) if len(parts) > 1 else parts[0]
        penalties = _penalties(model)
        if penalties:
            self.loss = math_ops.add_n([self.loss] + penalties)
        self.figures = [self.loss] + values
        self.update = None

    def _target(self, output, loss, kind, shape):
        dims = output.shape.as_list()
        if "sparse" in getattr(loss, "__name__", ""):
            return array_ops.placeholder(dtypes.as_dtype(kind), [None] + list(shape[1:]))
        if kind.kind != "f":
            kind = dtypes.float32
        if len(shape) == len(dims) - 1 and dims[-1] == 1:
            flat = array_ops.placeholder(output.dtype, [None] + list(shape[1:]))
            self._feeds_flat = True
            return array_ops.expand_dims(flat, -1)
        return array_ops.placeholder(output.dtype, [None] + list(shape[1:]))

    def _build_update(self):
        model = self._model
        pairs = model.optimizer._own().compute_gradients(self.loss, model.trainable_weights)
        with control_dependencies(self.figures):
            applied = model.optimizer.apply_gradients(pairs)
        constrained = []
        with control_dependencies([applied]):
            for _, variable in pairs:
                constraint = getattr(variable, "constraint", None)
                if constraint is not None:
                    constrained.append(variable.assign(constraint(variable)))
        self.update = group(applied, *constrained, *model.updates)

    def run(self, xs, ys, weights, trains):
        if trains and self.update is None:
            self._build_update()
        model, feeds = self._model, {}
        for tensor, value in zip(model.inputs, xs):
            feeds[tensor] = value
        for tensor, value in zip(self.targets, ys):
            feeds[tensor.op.inputs[0] if tensor.op.type == "ExpandDims" else tensor] = value
        if weights is not None:
            feeds[self.weights] = weights
        session = K.get_session()
        if trains:
            feeds[K.learning_phase()] = True
            return [float(v) for v in session.run((self.figures, self.update), feeds)[0]]
        return [float(v) for v in session.run(self.figures, feeds)]


def _penalties(model):
    """Returns the regularization losses of a model's variables and layers."""
    from runnel.core.framework import GraphKeys, get_collection
    names = {v.op.name for v in model.weights}
    found = list(model.losses)
    for loss in get_collection(GraphKeys.REGULARIZATION_LOSSES):
        owner = loss.op.name.split("/Regularizer")[0]
        if owner in names and not any(loss is other for other in found):
            found.append(loss)
    return found


class _Arrays:
    """Batches of arrays."""

    def __init__(self, model, x, y, batch_size, weights, class_weight, shuffle):
        self.arrays = model._data(x, y)
        self._size, self._shuffle = batch_size, shuffle
        self._weights = _weights(weights, class_weight, self.arrays[1])

    @property
    def samples(self):
        return len(self.arrays[0][0])

    @property
    def steps(self):
        return -(-self.samples // self._size)

    def split(self, share):
        """Keeps the first part. Returns the rest, for validation."""
        xs, ys = self.arrays
        at = int(self.samples * (1 - share))
        rest = [a[at:] for a in xs], [a[at:] for a in ys]
        self.arrays = [a[:at] for a in xs], [a[:at] for a in ys]
        if self._weights is not None:
            self._weights = self._weights[:at]
        return tuple(part if len(part) > 1 else part[0] for part in rest)

    def prepare(self, model, with_loss=True):
        xs, ys = self.arrays
        model._ensure(xs if len(xs) > 1 else xs[0], ys if with_loss else None)
        if with_loss and ys is None:
            raise ValueError("Targets are missing: call the model with x and y")

    def batches(self):
        import numpy
        order = numpy.arange(self.samples)
        if self._shuffle:
            numpy.random.shuffle(order)
        xs, ys = self.arrays
        for start in range(0, self.samples, self._size):
            rows = order[start:start + self._size]
            if not self._shuffle:
                rows = slice(start, start + self._size)
            yield ([a[rows] for a in xs], None if ys is None else [a[rows] for a in ys],
                   None if self._weights is None else self._weights[rows])


def _weights(sample_weight, class_weight, ys):
    import numpy
    if sample_weight is not None:
        return numpy.asarray(sample_weight, "float32")
    if class_weight is None:
        return None
    classes = ys[0].argmax(-1) if ys[0].ndim > 1 and ys[0].shape[-1] > 1 else ys[0].reshape(-1)
    return numpy.array([class_weight[int(c)] for c in classes], "float32")


def _length(source):
    """How many batches there are; None if only reaching the end tells."""
    try:
        return len(source)
    except TypeError:
        return None


class _Batches:
    """Batches from a generator, a Sequence or a dataset."""

    arrays = None
    samples = None

    def __init__(self, model, source, steps):
        self._model, self._source, self._iterator = model, source, None
        self.steps = _length(source) if steps is None else steps
        self._held = []

    def _next(self):
        item = next(self._iterator)
        item = item if isinstance(item, tuple) else (item,)
        xs, ys = self._model._data(item[0], item[1] if len(item) > 1 else None)
        return xs, ys, item[2] if len(item) > 2 else None

    def prepare(self, model, with_loss=True):
        if self._iterator is None:
            self._iterator = _iterate(self._source)
        if not self._held:
            self._held.append(self._next())
        xs, ys, _ = self._held[0]
        model._ensure(xs if len(xs) > 1 else xs[0], ys if with_loss else None)

    def batches(self):
        count = 0
        while self.steps is None or count < self.steps:
            try:
                batch = self._held.pop() if self._held else self._next()
            except StopIteration:
                self._iterator = _iterate(self._source)
                if self.steps is None or count == 0 and not hasattr(self._source, "__len__"):
                    return
                continue
            count += 1
            yield batch
        if hasattr(self._source, "on_epoch_end"):
            self._source.on_epoch_end()
            self._iterator = _iterate(self._source)


def _iterate(source):
    from runnel.data.dataset import Dataset
    if not isinstance(source, Dataset):
        return iter(source)
    return _dataset_batches(source)


def _dataset_batches(dataset):
    from runnel.errors import OutOfRangeError
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    session = K.get_session()
    session.run(iterator.initializer)
    while True:
        try:
            yield session.run(element)
        except OutOfRangeError:
            return


def _source(model, x, y, batch_size, steps, weights, class_weight, shuffle):
    from runnel.data.dataset import Dataset
    if isinstance(x, Dataset) or hasattr(x, "__next__") or (
            hasattr(x, "__getitem__") and hasattr(x, "on_epoch_end")):
        return _Batches(model, x, steps)
    return _Arrays(model, x, y, batch_size, weights, class_weight, shuffle)
