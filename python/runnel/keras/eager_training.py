"""Training in eager execution: steps on a tape instead of nodes of a graph."""

from runnel import dtypes, nest
from runnel.core.convert import convert_to_tensor
from runnel.eager import backprop
from runnel.keras import losses, metrics
from runnel.keras.training import metrics_of, per_output
from runnel.ops import array_ops, math_ops


def tensors_of(arrays):
    """Converts arrays to eager tensors; all floating-point types become float32, as when fed."""
    return [convert_to_tensor(a.astype("float32") if a.dtype.kind == "f" else a) for a in arrays]


def outputs_of(model, arrays, training=False):
    """Returns the outputs of the model for a batch, as a list."""
    inputs = tensors_of(arrays)
    keys = getattr(model, "_input_keys", None)
    given = dict(zip(keys, inputs)) if keys is not None else inputs if len(inputs) > 1 else inputs[0]
    return nest.flatten(model(given, training=training))


class EagerStep:
    """The training of a model: loss, metrics, update."""

    def __init__(self, model, xs):
        self._model = model
        outputs = outputs_of(model, [a[:1] for a in xs])
        labels = model.output_names or ["output_%d" % (i + 1) for i in range(len(outputs))]
        self._losses = [losses.get(function) for function in per_output(model.loss, labels)]
        self._factors = per_output(model._loss_weights, labels, 1.0)
        self.names = [label + "_loss" for label in labels] if len(outputs) > 1 else []
        self._metrics, self.stateful = [], {}
        for number, (output, loss, chosen) in enumerate(zip(outputs, self._losses, metrics_of(model._metrics, labels))):
            for metric in chosen:
                name, function = metrics.get(metric, loss, output)
                self.names.append(name if len(outputs) == 1 else "%s_%s" % (labels[number], name))
                self._metrics.append((number, function))
                if isinstance(function, metrics.Metric):
                    self.stateful[len(self.names)] = function

    @staticmethod
    def _target(array, output, loss):
        if "sparse" in getattr(loss, "__name__", ""):
            return convert_to_tensor(array)
        target = convert_to_tensor(array.astype(output.dtype.as_numpy_dtype))
        rank = len(output.shape.as_list())
        return array_ops.expand_dims(target, -1) if len(array.shape) == rank - 1 else target

    def _figures(self, xs, ys, weights, trains):
        outputs = outputs_of(self._model, xs, trains)
        targets = [self._target(a, o, loss) for a, o, loss in zip(ys, outputs, self._losses)]
        parts = []
        for target, output, loss in zip(targets, outputs, self._losses):
            per_example = loss(target, output)
            axes = list(range(1, per_example.shape.ndims or 1))
            if axes:
                per_example = math_ops.reduce_mean(per_example, axes)
            if weights is not None:
                per_example *= convert_to_tensor(weights, dtype=dtypes.float32)
            parts.append(math_ops.reduce_mean(per_example))
        each = parts if len(parts) > 1 else []
        parts = [part if factor == 1.0 else factor * part for part, factor in zip(parts, self._factors)]
        parts += [loss() if callable(loss) else loss for loss in self._model.losses]
        total = math_ops.add_n(parts) if len(parts) > 1 else parts[0]
        return [total, *each] + [math_ops.reduce_mean(function(targets[n], outputs[n])) for n, function in self._metrics]

    def run(self, xs, ys, weights, trains):
        """Returns the loss and the metrics of a batch; if `trains`, also updates the variables."""
        if not trains:
            return [float(v) for v in self._figures(xs, ys, weights, False)]
        model = self._model
        with backprop.GradientTape() as tape:
            figures = self._figures(xs, ys, weights, True)
        found = model.trainable_weights
        pairs = [(g, v) for g, v in zip(tape.gradient(figures[0], found), found) if g is not None]
        model.optimizer.apply_gradients(pairs)
        for _, variable in pairs:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))
        return [float(v) for v in figures]
