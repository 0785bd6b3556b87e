"""Outputs of exported models as signatures, modes, and timestamped folders.

This is behind tf.estimator.export; TensorFlow has it in saved_model.model_utils.
"""

import collections.abc
import os
import time

from runnel import dtypes, logging
from runnel.core import framework
from runnel.saved_model import meta_graphs as saved_model

SINGLE_FEATURE_DEFAULT_NAME, SINGLE_RECEIVER_DEFAULT_NAME, SINGLE_LABEL_DEFAULT_NAME = "feature", "input", "label"
MAX_DIRECTORY_CREATION_ATTEMPTS = 10


class KerasModeKeys:
    """The modes of a model, as Keras names them."""

    TRAIN, TEST, PREDICT = "train", "test", "predict"


class EstimatorModeKeys:
    """The modes of a model, as estimators name them."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


def is_train(mode):
    """Tells whether a mode, of either naming, is training."""
    return mode == "train"


def is_eval(mode):
    """Tells whether a mode, of either naming, is evaluation."""
    return mode in ("test", "eval")


def is_predict(mode):
    """Tells whether a mode, of either naming, is prediction."""
    return mode in ("predict", "infer")


class ModeKeyMap(collections.abc.Mapping):
    """A dict by modes of either naming."""

    def __init__(self, **values):
        self._given, self._values = list(values), {}
        for key, value in values.items():
            mode = self._mode(key)
            if mode in self._values:
                raise ValueError("Error creating ModeKeyMap. Multiple keys/values found for %s mode." % mode)
            self._values[mode] = value

    @staticmethod
    def _mode(key):
        for test, mode in ((is_train, "train"), (is_eval, "test"), (is_predict, "predict")):
            if test(key):
                return mode
        raise ValueError("Invalid mode key: %s." % (key,))

    def __getitem__(self, key):
        return self._values[self._mode(key)]

    def __iter__(self):
        return iter(self._given)

    def __len__(self):
        return len(self._given)


EXPORT_TAG_MAP = ModeKeyMap(predict=[saved_model.SERVING], train=[saved_model.TRAINING], test=["eval"])
SIGNATURE_KEY_MAP = ModeKeyMap(predict=saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY, train="train", test="eval")


class ExportOutput:
    """The base of outputs: `as_signature_def` returns the signature for given inputs."""

    _SEPARATOR_CHAR = "/"

    def as_signature_def(self, receiver_tensors):
        raise NotImplementedError

    def _check_output_key(self, key, error_label):
        key = self._SEPARATOR_CHAR.join(key) if isinstance(key, tuple) else key
        if not isinstance(key, str):
            raise ValueError("%s output key must be a string; got %s." % (error_label, key))
        return key

    def _wrap_and_check_outputs(self, outputs, single_output_default_name, error_label=None):
        label = error_label or single_output_default_name
        checked = {}
        for key, value in (outputs if isinstance(outputs, dict) else {single_output_default_name: outputs}).items():
            key = self._check_output_key(key, label)
            if not isinstance(value, framework.Tensor):
                raise ValueError("%s output value must be a Tensor; got %s." % (label, value))
            checked[key] = value
        return checked


def _is_floating(value):
    return isinstance(value, framework.Tensor) and value.dtype.is_floating


def _serialized(receiver_tensors, kind):
    """Returns the single string tensor that such a signature takes."""
    tensors = list(receiver_tensors.values())
    if len(tensors) != 1 or tensors[0].dtype.base_dtype != dtypes.string:
        raise ValueError(
            "%s signatures can only accept a single tensor input of type tf.string. Please check to make sure that you have "
            "structured the serving_input_receiver_fn so that it creates a single string placeholder. If your model function "
            "expects multiple inputs, then use `tf.io.parse_example()` to parse the string into multiple tensors.\n Received: %s" % (
                kind, receiver_tensors))
    return tensors[0]


class ClassificationOutput(ExportOutput):
    """Scores of classes, their labels, or both."""

    def __init__(self, scores=None, classes=None):
        if scores is not None and not _is_floating(scores):
            raise ValueError("Classification scores must be a float32 Tensor; got %s" % (scores,))
        if classes is not None and not (isinstance(classes, framework.Tensor) and classes.dtype.base_dtype == dtypes.string):
            raise ValueError("Classification classes must be a string Tensor; got %s" % (classes,))
        if scores is None and classes is None:
            raise ValueError("Cannot create a ClassificationOutput with empty arguments. At least one of `scores` and "
                             "`classes` must be defined.")
        self._scores, self._classes = scores, classes

    scores = property(lambda self: self._scores)
    classes = property(lambda self: self._classes)

    def as_signature_def(self, receiver_tensors):
        return saved_model.classification_signature_def(
            _serialized(receiver_tensors, "Classification"), self._classes, self._scores)


class RegressionOutput(ExportOutput):
    """One number per example."""

    def __init__(self, value):
        if not _is_floating(value):
            raise ValueError("Regression output value must be a float32 Tensor; got %s" % (value,))
        self._value = value

    value = property(lambda self: self._value)

    def as_signature_def(self, receiver_tensors):
        return saved_model.regression_signature_def(_serialized(receiver_tensors, "Regression"), self._value)


class PredictOutput(ExportOutput):
    """Any tensors, by name."""

    _SINGLE_OUTPUT_DEFAULT_NAME = "output"

    def __init__(self, outputs):
        self._outputs = self._wrap_and_check_outputs(outputs, self._SINGLE_OUTPUT_DEFAULT_NAME, "Prediction")

    outputs = property(lambda self: self._outputs)

    def as_signature_def(self, receiver_tensors):
        return saved_model.predict_signature_def(receiver_tensors, self._outputs)


class _SupervisedOutput(ExportOutput):
    """A loss, predictions and metrics, told apart by prefixes."""

    LOSS_NAME, PREDICTIONS_NAME, METRICS_NAME = "loss", "predictions", "metrics"
    METRIC_VALUE_SUFFIX, METRIC_UPDATE_SUFFIX = "value", "update_op"
    _METHOD_NAME = None

    def __init__(self, loss=None, predictions=None, metrics=None):
        self._loss = self._named(loss, self.LOSS_NAME)
        self._predictions = self._named(predictions, self.PREDICTIONS_NAME)
        self._metrics = None if metrics is None else self._of_metrics(metrics)

    loss = property(lambda self: self._loss)
    predictions = property(lambda self: self._predictions)
    metrics = property(lambda self: self._metrics)

    def _prefix_key(self, key, output_name):
        return key if key.startswith(output_name) else output_name + self._SEPARATOR_CHAR + key

    def _named(self, outputs, name):
        if outputs is None:
            return None
        return {self._prefix_key(key, name): value for key, value in self._wrap_and_check_outputs(outputs, name).items()}

    def _of_metrics(self, metrics):
        outputs = {}
        for key, metric in (metrics if isinstance(metrics, dict) else {self.METRICS_NAME: metrics}).items():
            value, update = metric if isinstance(metric, tuple) else (metric.result(), metric.updates[0])
            key = self._prefix_key(self._check_output_key(key, self.METRICS_NAME), self.METRICS_NAME)
            if not isinstance(value, framework.Tensor):
                raise ValueError("%s output value must be a Tensor; got %s." % (key, value))
            if not isinstance(update, framework.Operation) and not framework.is_tensor(update):
                raise ValueError("%s update_op must be a Tensor or Operation; got %s." % (key, update))
            if not isinstance(update, framework.Tensor):
                from runnel.core.convert import constant
                with framework.control_dependencies([update]):
                    update = constant([], name="metric_op_wrapper")
            outputs[key + self._SEPARATOR_CHAR + self.METRIC_VALUE_SUFFIX] = value
            outputs[key + self._SEPARATOR_CHAR + self.METRIC_UPDATE_SUFFIX] = update
        return outputs

    def as_signature_def(self, receiver_tensors):
        if not receiver_tensors:
            raise ValueError("%s inputs cannot be None or empty." % self._METHOD_NAME)
        outputs = {**(self._loss or {}), **(self._predictions or {}), **(self._metrics or {})}
        infos = [{key: saved_model.build_tensor_info(tensor) for key, tensor in tensors.items()}
                 for tensors in (receiver_tensors, outputs)]
        return saved_model.build_signature_def(*infos, self._METHOD_NAME)


class TrainOutput(_SupervisedOutput):
    """The output of a training step."""

    _METHOD_NAME = saved_model.SUPERVISED_TRAIN_METHOD_NAME


class EvalOutput(_SupervisedOutput):
    """The output of an evaluation step."""

    _METHOD_NAME = saved_model.SUPERVISED_EVAL_METHOD_NAME


def get_export_outputs(export_outputs, predictions):
    """Checks the outputs of a model for serving: by default all predictions; one is the default signature."""
    default = saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if export_outputs is None:
        export_outputs = {default: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError("`export_outputs` must be dict, received: %s." % (export_outputs,))
    if not all(isinstance(output, ExportOutput) for output in export_outputs.values()):
        raise TypeError("Values in `export_outputs` must be ExportOutput objects, received: %s." % (export_outputs,))
    if len(export_outputs) == 1:
        export_outputs.setdefault(default, next(iter(export_outputs.values())))
    elif export_outputs and default not in export_outputs:
        raise ValueError("Multiple `export_outputs` were provided, but none of them are specified as the default. Use"
                         "`tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY` to specify a default.")
    return export_outputs


def export_outputs_for_mode(mode, serving_export_outputs=None, predictions=None, loss=None, metrics=None):
    """Returns {signature key: output} of a model built for `mode`."""
    if is_predict(mode):
        return get_export_outputs(serving_export_outputs, predictions)
    if not is_train(mode) and not is_eval(mode):
        raise ValueError("Export output type not found for `mode`: %s. Expected one of: %s." % (mode, list(SIGNATURE_KEY_MAP)))
    cls = TrainOutput if is_train(mode) else EvalOutput
    return {SIGNATURE_KEY_MAP[mode]: cls(loss=loss, predictions=predictions, metrics=metrics)}


def _check_servable(inputs, outputs, graph):
    """Raises an error if an output needs a placeholder that is not among the inputs."""
    from runnel import nest
    fed = {id(t) for t in nest.flatten(inputs, expand_composites=True)}
    targets = nest.flatten([saved_model.get_tensor_from_tensor_info(info, graph=graph) for info in outputs.values()],
                           expand_composites=True)
    names = [t.name for t in targets]
    wanted, seen = [t for t in targets if id(t) not in fed], set()
    while wanted:
        op = wanted.pop().op
        if op in seen:
            continue
        seen.add(op)
        if op.type == "Placeholder":
            raise ValueError("The signature's input tensors %s are insufficient to compute its output keys %s (respectively, "
                             "tensors %s) because of the dependency on `%s` which is not given as a signature input" % (
                                 [t.name for t in nest.flatten(inputs, expand_composites=True)], list(outputs), names, op.name))
        wanted += [t for t in op.inputs if id(t) not in fed]


def build_all_signature_defs(receiver_tensors, export_outputs, receiver_tensors_alternatives=None, serving_only=True):
    """Returns {name: SignatureDef} of all outputs, for each set of receiver tensors."""
    if not isinstance(export_outputs, dict):
        raise ValueError("`export_outputs` must be a dict. Received %s with type %s." % (
            export_outputs, type(export_outputs).__name__))
    included, excluded = {}, {}
    receivers = [("", receiver_tensors)]
    receivers += [("%s:" % (name or "None"), tensors) for name, tensors in (receiver_tensors_alternatives or {}).items()]
    for prefix, tensors in receivers:
        if not isinstance(tensors, dict):
            tensors = {SINGLE_RECEIVER_DEFAULT_NAME: tensors}
        for key, output in export_outputs.items():
            name = "%s%s" % (prefix, key or "None")
            try:
                signature = output.as_signature_def(tensors)
                _check_servable(list(tensors.values()), signature.outputs, framework.get_default_graph())
                included[name] = signature
            except ValueError as error:
                excluded[name] = str(error)
    _report(included, excluded)
    if serving_only:
        included = {name: signature for name, signature in included.items() if saved_model.is_valid_signature(signature)}
    return included


def _report(included, excluded):
    methods = {saved_model.CLASSIFY_METHOD_NAME: "Classify", saved_model.REGRESS_METHOD_NAME: "Regress",
               saved_model.PREDICT_METHOD_NAME: "Predict", saved_model.SUPERVISED_TRAIN_METHOD_NAME: "Train",
               saved_model.SUPERVISED_EVAL_METHOD_NAME: "Eval"}
    for method, title in methods.items():
        names = [name for name, signature in included.items() if signature.method_name == method]
        logging.info("Signatures INCLUDED in export for %s: %s" % (title, names or "None"))
    if excluded:
        logging.info("Signatures EXCLUDED from export because they cannot be be served via TensorFlow Serving APIs:")
        for name, message in excluded.items():
            logging.info("'%s' : %s" % (name, message))
    if not included:
        logging.warn("Export includes no signatures!")
    elif saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY not in included:
        logging.warn("Export includes no default signature!")


def get_timestamped_export_dir(export_dir_base):
    """Returns a new path below a folder: the seconds since 1970, as bytes."""
    for attempt in range(1, MAX_DIRECTORY_CREATION_ATTEMPTS + 1):
        folder = os.path.join(os.fsencode(export_dir_base), b"%d" % int(time.time()))
        if not os.path.exists(folder):
            return folder
        time.sleep(1)
        logging.warn("Directory %s already exists; retrying (attempt %d/%d)" % (
            os.fsdecode(folder), attempt, MAX_DIRECTORY_CREATION_ATTEMPTS))
    raise RuntimeError("Failed to obtain a unique export directory name after %d attempts." % MAX_DIRECTORY_CREATION_ATTEMPTS)


def get_temp_export_dir(timestamped_export_dir):
    """Returns the temporary folder "temp-..." to write before it is renamed, as bytes."""
    folder, name = os.path.split(os.fsencode(timestamped_export_dir))
    return os.path.join(folder, b"temp-" + name)
