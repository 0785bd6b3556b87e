"""The constants of SavedModels, and SignatureDefs: named inputs and outputs of a graph."""

from runnel import errors
from runnel.core.composite import SparseTensor
from runnel.core.framework import Tensor, executing_eagerly, get_default_graph
from runnel.core.protobuf import message_class
from runnel.core.tensor_util import constant_value, make_tensor_proto

SAVED_MODEL_SCHEMA_VERSION = 1
SAVED_MODEL_FILENAME_PB = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT = "saved_model.pbtxt"
ASSETS_DIRECTORY = "assets"
ASSETS_KEY = "saved_model_assets"
VARIABLES_DIRECTORY = "variables"
VARIABLES_FILENAME = "variables"
DEBUG_DIRECTORY = "debug"
DEBUG_INFO_FILENAME_PB = "saved_model_debug_info.pb"
LEGACY_INIT_OP_KEY = "legacy_init_op"
MAIN_OP_KEY = "saved_model_main_op"
_INIT_SIGNATURE = "__saved_model_init_op"
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
PREDICT_INPUTS, PREDICT_OUTPUTS = "inputs", "outputs"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"
CLASSIFY_INPUTS, CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "inputs", "classes", "scores"
CLASSIFY_METHOD_NAME = "tensorflow/serving/classify"
REGRESS_INPUTS, REGRESS_OUTPUTS = "inputs", "outputs"
REGRESS_METHOD_NAME = "tensorflow/serving/regress"
SUPERVISED_TRAIN_METHOD_NAME = "tensorflow/supervised/training"
SUPERVISED_EVAL_METHOD_NAME = "tensorflow/supervised/eval"
DEFAULT_TRAIN_SIGNATURE_DEF_KEY, DEFAULT_EVAL_SIGNATURE_DEF_KEY = "train", "eval"
INIT_OP_SIGNATURE_KEY, TRAIN_OP_SIGNATURE_KEY = _INIT_SIGNATURE, "__saved_model_train_op"
EVAL = "eval"
TRAIN_OP_KEY = "saved_model_train_op"


# Signatures


def build_tensor_info(tensor):
    """Returns the TensorInfo of a tensor: its name, type and shape."""
    if executing_eagerly():
        raise RuntimeError("`build_tensor_info` is not supported in eager execution: its tensors have no names")
    info = message_class("TensorInfo")()
    if getattr(tensor, "_is_composite", False) and not isinstance(tensor, SparseTensor):
        from runnel import nest
        from runnel.saved_model import structured_value
        info.composite_tensor.type_spec.CopyFrom(structured_value.encode(tensor._type_spec).type_spec_value)
        for part in nest.flatten(tensor, expand_composites=True):
            info.composite_tensor.components.add().CopyFrom(build_tensor_info(part))
        return info
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    info.dtype = tensor.dtype.base_dtype.as_datatype_enum
    info.tensor_shape.CopyFrom(tensor.shape.as_proto())
    return info


def get_tensor_from_tensor_info(tensor_info, graph=None, import_scope=None):
    """Returns the tensor that a TensorInfo names."""
    graph = graph or get_default_graph()

    def one(name):
        return graph.get_tensor_by_name("%s/%s" % (import_scope, name) if import_scope else name)
    if tensor_info.WhichOneof("encoding") == "coo_sparse":
        sparse = tensor_info.coo_sparse
        return SparseTensor(one(sparse.indices_tensor_name), one(sparse.values_tensor_name),
                            one(sparse.dense_shape_tensor_name))
    if tensor_info.WhichOneof("encoding") == "composite_tensor":
        from runnel.saved_model import structured_value
        composite = tensor_info.composite_tensor
        value = message_class("StructuredValue")()
        value.type_spec_value.CopyFrom(composite.type_spec)
        return structured_value.decode(value)._from_tensors([one(part.name) for part in composite.components])
    return one(tensor_info.name)


def build_signature_def(inputs=None, outputs=None, method_name=None, defaults=None):
    """Returns a SignatureDef from dicts of TensorInfos."""
    signature = message_class("SignatureDef")()
    for key, info in (inputs or {}).items():
        signature.inputs[key].CopyFrom(info)
    for key, info in (outputs or {}).items():
        signature.outputs[key].CopyFrom(info)
    if method_name is not None:
        signature.method_name = method_name
    for key, value in (defaults or {}).items():
        signature.defaults[key].CopyFrom(make_tensor_proto(constant_value(value) if isinstance(value, Tensor) else value))
    return signature


def predict_signature_def(inputs, outputs):
    """Returns the signature of a prediction from dicts of tensors."""
    if not inputs:
        raise ValueError("Prediction `inputs` cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction `outputs` cannot be None or empty.")
    return build_signature_def({key: build_tensor_info(x) for key, x in inputs.items()},
                               {key: build_tensor_info(x) for key, x in outputs.items()},
                               PREDICT_METHOD_NAME)


def regression_signature_def(examples, predictions):
    """Returns the signature of a regression over tf.Examples."""
    if examples is None:
        raise ValueError("Regression `examples` cannot be None.")
    if predictions is None:
        raise ValueError("Regression `predictions` cannot be None.")
    return build_signature_def({REGRESS_INPUTS: build_tensor_info(examples)},
                               {REGRESS_OUTPUTS: build_tensor_info(predictions)}, REGRESS_METHOD_NAME)


def classification_signature_def(examples, classes, scores):
    """Returns the signature of a classification over tf.Examples."""
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    outputs = {}
    if classes is not None:
        outputs[CLASSIFY_OUTPUT_CLASSES] = build_tensor_info(classes)
    if scores is not None:
        outputs[CLASSIFY_OUTPUT_SCORES] = build_tensor_info(scores)
    return build_signature_def({CLASSIFY_INPUTS: build_tensor_info(examples)}, outputs,
                               CLASSIFY_METHOD_NAME)


def _supervised(method_name, inputs, *outputs):
    if not inputs:
        raise ValueError("%s `inputs` cannot be None or empty." % method_name)
    return build_signature_def(
        {key: build_tensor_info(x) for key, x in inputs.items()},
        {key: build_tensor_info(x) for group in outputs for key, x in (group or {}).items()}, method_name)


def supervised_train_signature_def(inputs, loss, predictions=None, metrics=None):
    """Returns the signature of a training step."""
    return _supervised(SUPERVISED_TRAIN_METHOD_NAME, inputs, loss, predictions, metrics)


def supervised_eval_signature_def(inputs, loss, predictions=None, metrics=None):
    """Returns the signature of an evaluation step."""
    return _supervised(SUPERVISED_EVAL_METHOD_NAME, inputs, loss, predictions, metrics)


def build_tensor_info_from_op(op):
    """Returns the TensorInfo that names an operation."""
    info = message_class("TensorInfo")(name=op.name)
    info.tensor_shape.unknown_rank = True
    return info


def op_signature_def(op, key):
    """Returns a signature that names an operation."""
    return build_signature_def(outputs={key: build_tensor_info_from_op(op)})


def get_element_from_tensor_info(tensor_info, graph=None, import_scope=None):
    """Returns the operation or tensor that a TensorInfo names."""
    name = import_scope + "/" + tensor_info.name if import_scope else tensor_info.name
    return (graph or get_default_graph()).as_graph_element(name)


def load_op_from_signature_def(signature_def, key, import_scope=None):
    """Returns the operation that op_signature_def named."""
    try:
        return get_element_from_tensor_info(signature_def.outputs[key], import_scope=import_scope)
    except KeyError:
        raise errors.NotFoundError(
            None, None, "The key \"%s\" could not be found in the graph. Please make sure the SavedModel was created by the internal "
            "_SavedModelBuilder. If you are using the public API, please make sure the SignatureDef in the SavedModel does not contain the key "
            "\"%s\"." % (key, key)) from None


def is_valid_signature(signature_def):
    """Tells whether a signature can be served: its method's name says which inputs and outputs it must have."""
    if signature_def is None:
        return False
    inputs, outputs = ({key: info.dtype for key, info in part.items()} for part in (signature_def.inputs, signature_def.outputs))
    floats, strings = 1, 7  # DT_FLOAT, DT_STRING
    if signature_def.method_name == PREDICT_METHOD_NAME:
        return bool(inputs and outputs)
    if signature_def.method_name == REGRESS_METHOD_NAME:
        return inputs == {REGRESS_INPUTS: strings} and outputs == {REGRESS_OUTPUTS: floats}
    if signature_def.method_name == CLASSIFY_METHOD_NAME:
        allowed = {CLASSIFY_OUTPUT_CLASSES: strings, CLASSIFY_OUTPUT_SCORES: floats}
        return inputs == {CLASSIFY_INPUTS: strings} and bool(outputs) and outputs.items() <= allowed.items()
    return False
