"""SavedModels of graphs: folders with graph, signatures, variables and assets."""

import os
import sys
import types

from runnel import errors
from runnel.core.composite import SparseTensor
from runnel.core.framework import (
    GraphKeys, Operation, Tensor, add_to_collection, control_dependencies, get_collection, get_collection_ref,
    get_default_graph)
from runnel.core.protobuf import message_class
from runnel.io import any_files

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
EVAL = "eval"
TRAIN_OP_KEY = "saved_model_train_op"


# Signatures


def build_tensor_info(tensor):
    """Returns the TensorInfo of a tensor: its name, type and shape."""
    info = message_class("TensorInfo")()
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


def is_valid_signature(signature_def):
    """Tells whether a signature can be served."""
    return bool(signature_def is not None and signature_def.inputs and signature_def.outputs
                and signature_def.method_name)


# Writing


class Builder:
    """Writes a SavedModel: the first graph with variables, further graphs with other tags without."""

    def __init__(self, export_dir):
        export_dir = os.fsdecode(export_dir)
        if any_files.isdir(export_dir) and any_files.listdir(export_dir):
            raise AssertionError("Export directory %s already exists, and isn't empty. Please choose a "
                                 "different export directory, or delete all the contents of the "
                                 "specified directory." % export_dir)
        any_files.makedirs(export_dir)
        self._export_dir = export_dir
        self._saved_model = message_class("SavedModel")()
        self._saved_model.saved_model_schema_version = SAVED_MODEL_SCHEMA_VERSION
        self._has_variables = False

    def add_meta_graph_and_variables(self, sess, tags, signature_def_map=None, assets_collection=None,
                                     legacy_init_op=None, clear_devices=False, init_op=None,
                                     train_op=None, strip_default_attrs=False, saver=None,
                                     main_op=None):
        """Adds the default graph, and writes the variables of a session."""
        if self._has_variables:
            raise AssertionError("Graph state including variables and assets has already been saved. "
                                 "Please invoke `add_meta_graph()` instead.")
        self._add_assets(assets_collection)
        self._add_init_op(init_op or main_op or legacy_init_op)
        self._add_train_op(train_op)
        saver = self._saver(saver)
        folder = os.path.join(self._export_dir, VARIABLES_DIRECTORY)
        any_files.makedirs(folder)
        if saver is not None:
            saver.save(sess, os.path.join(folder, VARIABLES_FILENAME), write_meta_graph=False,
                       write_state=False)
        self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)
        self._has_variables = True

    def add_meta_graph(self, tags, signature_def_map=None, assets_collection=None,
                       legacy_init_op=None, clear_devices=False, init_op=None, train_op=None,
                       saver=None, strip_default_attrs=False, main_op=None):
        """Adds another graph, which uses the variables already written."""
        if not self._has_variables:
            raise AssertionError("Graph state including variables and assets has not been saved yet. "
                                 "Please invoke `add_meta_graph_and_variables()` first.")
        self._add_assets(assets_collection)
        self._add_init_op(init_op or main_op or legacy_init_op)
        self._add_train_op(train_op)
        self._add(self._saver(saver), tags, signature_def_map, clear_devices, strip_default_attrs)

    def _saver(self, saver):
        from runnel.train.saver import Saver
        return saver or Saver(sharded=True, write_version=2, allow_empty=True)

    def _add_train_op(self, train_op):
        if train_op is not None:
            if not isinstance(train_op, (Operation, Tensor)):
                raise TypeError("`train_op` %r needs to be a Tensor or Op." % (train_op,))
            add_to_collection(TRAIN_OP_KEY, train_op)

    def _add_init_op(self, init_op):
        if init_op is None:
            return
        if not isinstance(init_op, Operation):
            raise TypeError("init_op needs to be an Operation: %r" % init_op)
        ref = get_collection_ref(MAIN_OP_KEY)
        if ref and ref[0] is not init_op:
            raise ValueError("Graph already contains one or more main ops under the collection %s." %
                             MAIN_OP_KEY)
        if not ref:
            add_to_collection(MAIN_OP_KEY, init_op)

    def _add_assets(self, assets_collection):
        for tensor in assets_collection or ():
            from runnel.core.convert import constant_value
            path = constant_value(tensor)
            path = path.item().decode() if hasattr(path, "item") else bytes(path).decode()
            folder = os.path.join(self._export_dir, ASSETS_DIRECTORY)
            any_files.makedirs(folder)
            import shutil
            try:
                shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
            except OSError as error:
                raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
            asset = message_class("AssetFileDef")()
            asset.filename = os.path.basename(path)
            asset.tensor_info.name = tensor.name
            any_message = message_class("Any")()
            any_message.type_url = "type.googleapis.com/tensorflow.AssetFileDef"
            any_message.value = asset.SerializeToString()
            add_to_collection(ASSETS_KEY, any_message)

    def _add(self, saver, tags, signature_def_map, clear_devices, strip_default_attrs):
        for key, signature in (signature_def_map or {}).items():
            for info in list(signature.inputs.values()) + list(signature.outputs.values()):
                if not info.WhichOneof("encoding") or info.dtype == 0:
                    raise AssertionError("All TensorInfo protos used in the SignatureDefs must have the "
                                         "`name` and `dtype` fields set: %s" % key)
        if saver is not None:
            meta = saver.export_meta_graph(clear_devices=clear_devices,
                                           strip_default_attrs=strip_default_attrs)
        else:
            from runnel.core.meta_graph import export_scoped_meta_graph
            meta, _ = export_scoped_meta_graph(clear_devices=clear_devices,
                                               strip_default_attrs=strip_default_attrs)
        for tag in tags:
            meta.meta_info_def.tags.append(tag)
        for key, signature in (signature_def_map or {}).items():
            meta.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.add().CopyFrom(meta)

    def save(self, as_text=False):
        """Writes the model's file. Returns its path."""
        from runnel.saved_model.object_saving import replace_file
        path = os.path.join(self._export_dir,
                            SAVED_MODEL_FILENAME_PBTXT if as_text else SAVED_MODEL_FILENAME_PB)
        data = str(self._saved_model).encode() if as_text else self._saved_model.SerializeToString()
        replace_file(path, data)
        return path.encode()


def simple_save(session, export_dir, inputs, outputs, legacy_init_op=None):
    """Writes a SavedModel with one signature for prediction."""
    builder = Builder(export_dir)
    builder.add_meta_graph_and_variables(
        session, tags=[SERVING],
        signature_def_map={DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)},
        assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS), main_op=legacy_init_op,
        clear_devices=True)
    builder.save()


# Reading


def contains_saved_model(export_dir):
    """Tells whether a folder contains a SavedModel."""
    return any(any_files.exists(os.path.join(os.fsdecode(export_dir), name))
               for name in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT))


maybe_saved_model_directory = contains_saved_model


def _parse(export_dir):
    model = message_class("SavedModel")()
    binary = os.path.join(export_dir, SAVED_MODEL_FILENAME_PB)
    text = os.path.join(export_dir, SAVED_MODEL_FILENAME_PBTXT)
    if any_files.exists(binary):
        with any_files.open(binary, "rb") as file:
            data = file.read()
        try:
            model.ParseFromString(data)
        except Exception as error:
            raise OSError("Cannot parse file %s: %s." % (binary, error)) from None
        return model
    if any_files.exists(text):
        from runnel.core.protobuf import parse_text
        with any_files.open(text) as file:
            return parse_text(file.read(), model)
    raise OSError("SavedModel file does not exist at: %s/{%s|%s}" % (
        export_dir, SAVED_MODEL_FILENAME_PBTXT, SAVED_MODEL_FILENAME_PB))


def _find(model, tags, export_dir):
    wanted = set(tags)
    for meta in model.meta_graphs:
        if set(meta.meta_info_def.tags) == wanted:
            return meta
    raise RuntimeError("MetaGraphDef associated with tags %s could not be found in SavedModel at %s, "
                       "with available tags %s. To inspect available tag-sets in the SavedModel, use "
                       "`runnel saved_model show`." % (
                           sorted(wanted), export_dir,
                           [sorted(m.meta_info_def.tags) for m in model.meta_graphs]))


def load(sess, tags=None, export_dir=None, import_scope=None, **saver_kwargs):
    """Loads the graph with `tags` into a session. Returns its MetaGraphDef.

    Given only a folder, as in 2.x, returns the object that was saved.
    """
    if export_dir is None and isinstance(sess, (str, os.PathLike)):
        return load_v2(sess, tags, **saver_kwargs)
    export_dir = os.fsdecode(export_dir)
    meta = _find(_parse(export_dir), tags, export_dir)
    with sess.graph.as_default():
        from runnel.train.saver import import_meta_graph
        saver = import_meta_graph(meta, import_scope=import_scope, **saver_kwargs)
        prefix = os.path.join(export_dir, VARIABLES_DIRECTORY, VARIABLES_FILENAME)
        if saver is not None and any_files.exists(prefix + ".index"):
            saver.restore(sess, prefix)
        feeds = _asset_feeds(meta, export_dir, import_scope)
        op = _init_op(meta, import_scope)
        if op is not None:
            sess.run(op, feed_dict=feeds)
    return meta


def load_v2(export_dir, tags=None, options=None):
    """Returns the object that was saved: variables, functions, `signatures`."""
    from runnel.saved_model.object_loading import load as load_objects
    return load_objects(export_dir, tags, options)


def save(obj, export_dir, signatures=None, options=None):
    """Writes an object with its variables and functions as a SavedModel."""
    from runnel.saved_model.object_saving import save as save_objects
    save_objects(obj, export_dir, signatures, options)


def _asset_feeds(meta, export_dir, import_scope):
    """Returns the feeds with the current paths of the assets."""
    feeds = {}
    prefix = import_scope + "/" if import_scope else ""
    if ASSETS_KEY not in meta.collection_def:
        return feeds
    for item in meta.collection_def[ASSETS_KEY].any_list.value:
        asset = message_class("AssetFileDef").FromString(item.value)
        feeds[prefix + asset.tensor_info.name] = os.path.join(export_dir, ASSETS_DIRECTORY,
                                                              asset.filename)
    return feeds


def _init_op(meta, import_scope):
    prefix = import_scope + "/" if import_scope else ""
    graph = get_default_graph()
    if _INIT_SIGNATURE in meta.signature_def:
        name = meta.signature_def[_INIT_SIGNATURE].outputs[_INIT_SIGNATURE].name
        return graph.get_operation_by_name(prefix + name.split(":")[0])
    for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
        if key in meta.collection_def:
            nodes = meta.collection_def[key].node_list.value
            if len(nodes) != 1:
                raise RuntimeError("Expected exactly one SavedModel init op. Found %d" % len(nodes))
            return graph.as_graph_element(prefix + nodes[0])
    return None


class _Loader:
    """A SavedModel, read once and loaded into sessions."""

    def __init__(self, export_dir):
        self._export_dir = os.fsdecode(export_dir)
        self._saved_model = _parse(self._export_dir)

    @property
    def export_dir(self):
        return self._export_dir

    @property
    def saved_model(self):
        return self._saved_model

    def get_meta_graph_def_from_tags(self, tags):
        return _find(self._saved_model, tags, self._export_dir)

    def load(self, sess, tags, import_scope=None, **saver_kwargs):
        return load(sess, tags, self._export_dir, import_scope, **saver_kwargs)


def main_op_with_restore(restore_op_name):
    """Returns an operation that initializes, and then runs the operation of that name."""
    with control_dependencies([_main_op()]):
        from runnel.ops.control_flow import group
        return group(get_default_graph().get_operation_by_name(restore_op_name))


def _main_op():
    """Returns an operation that initializes all variables and tables."""
    from runnel.ops.control_flow import group
    from runnel.ops.lookup_ops import tables_initializer
    from runnel.ops.variables import global_variables_initializer, local_variables_initializer
    return group(global_variables_initializer(), local_variables_initializer(), tables_initializer())


def get_variables_dir(export_dir):
    """Returns the folder of a model's variables."""
    return os.path.join(os.fsdecode(export_dir), VARIABLES_DIRECTORY)


def get_variables_path(export_dir):
    """Returns the path of a model's checkpoint."""
    return os.path.join(get_variables_dir(export_dir), VARIABLES_FILENAME)


def _module(name, **members):
    module = types.ModuleType("%s.%s" % (__package__, name))
    module.__dict__.update(members)
    sys.modules[module.__name__] = module
    return module


def _constants(*names):
    return {name: globals()[name] for name in names}


constants = _module("constants", **_constants(
    "ASSETS_DIRECTORY", "ASSETS_KEY", "DEBUG_DIRECTORY", "DEBUG_INFO_FILENAME_PB", "LEGACY_INIT_OP_KEY", "MAIN_OP_KEY", "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT", "SAVED_MODEL_SCHEMA_VERSION", "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME"))
signature_constants = _module("signature_constants", **_constants(
    *(n for n in dir() if n.startswith(("CLASSIFY_", "PREDICT_", "REGRESS_", "DEFAULT_SERVING")))))
tag_constants = _module("tag_constants", SERVING=SERVING, TRAINING=TRAINING, GPU=GPU, TPU=TPU)
SavedModelBuilder, SavedModelLoader = Builder, _Loader
builder = _module("builder", SavedModelBuilder=Builder)
loader = _module("loader", load=load, maybe_saved_model_directory=maybe_saved_model_directory,
                 SavedModelLoader=_Loader)
main_op = _module("main_op", main_op=_main_op, main_op_with_restore=main_op_with_restore)
utils = _module("utils", build_tensor_info=build_tensor_info,
                get_tensor_from_tensor_info=get_tensor_from_tensor_info)
signature_def_utils = _module(
    "signature_def_utils", build_signature_def=build_signature_def,
    predict_signature_def=predict_signature_def, regression_signature_def=regression_signature_def,
    classification_signature_def=classification_signature_def, is_valid_signature=is_valid_signature)

