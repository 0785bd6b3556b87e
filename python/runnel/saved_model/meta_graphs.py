"""SavedModels of graphs: folders with graph, signatures, variables and assets."""

import os
import sys
import types

from runnel import errors
from runnel.core.framework import (
    GraphKeys, Operation, Tensor, add_to_collection, control_dependencies, get_collection, get_collection_ref,
    get_default_graph)
from runnel.core.protobuf import message_class
from runnel.io import any_files
from runnel.saved_model import metrics
from runnel.saved_model.method_names import MethodNameUpdater
# Writing
from runnel.saved_model.signature_defs import (  # noqa: F401
    ASSETS_DIRECTORY, ASSETS_KEY, CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME, CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES, DEBUG_DIRECTORY, DEBUG_INFO_FILENAME_PB, DEFAULT_EVAL_SIGNATURE_DEF_KEY, DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    DEFAULT_TRAIN_SIGNATURE_DEF_KEY, EVAL, INIT_OP_SIGNATURE_KEY, TRAIN_OP_SIGNATURE_KEY,
    GPU, LEGACY_INIT_OP_KEY, MAIN_OP_KEY, PREDICT_INPUTS, PREDICT_METHOD_NAME,
    PREDICT_OUTPUTS, REGRESS_INPUTS, REGRESS_METHOD_NAME, REGRESS_OUTPUTS, SAVED_MODEL_FILENAME_PB,
    SAVED_MODEL_FILENAME_PBTXT, SAVED_MODEL_SCHEMA_VERSION, SERVING, SUPERVISED_EVAL_METHOD_NAME, SUPERVISED_TRAIN_METHOD_NAME,
    TPU, TRAINING, TRAIN_OP_KEY, VARIABLES_DIRECTORY, VARIABLES_FILENAME,
    build_signature_def, build_tensor_info, build_tensor_info_from_op, classification_signature_def, get_element_from_tensor_info,
    get_tensor_from_tensor_info, is_valid_signature, load_op_from_signature_def, op_signature_def, predict_signature_def,
    regression_signature_def, supervised_eval_signature_def, supervised_train_signature_def, _INIT_SIGNATURE)

_SAVE_BUILDER_LABEL, _LOADER_LABEL = "save_v1_builder", "loader"  # of the counts of calls


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
                                     main_op=None, assets_list=None):
        """Adds the default graph, and writes the variables of a session."""
        if self._has_variables:
            raise AssertionError("Graph state including variables and assets has already been saved. "
                                 "Please invoke `add_meta_graph()` instead.")
        _check_signatures(signature_def_map)
        self._add_assets(assets_collection)
        files = self._copy_assets(assets_list)
        self._add_init_op(init_op or main_op or legacy_init_op)
        self._add_train_op(train_op)
        saver = self._saver(saver)
        folder = os.path.join(self._export_dir, VARIABLES_DIRECTORY)
        any_files.makedirs(folder)
        if saver is not None:
            saver.save(sess, os.path.join(folder, VARIABLES_FILENAME), write_meta_graph=False,
                       write_state=False)
        self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs, files)
        self._has_variables = True

    def add_meta_graph(self, tags, signature_def_map=None, assets_collection=None,
                       legacy_init_op=None, clear_devices=False, init_op=None, train_op=None,
                       saver=None, strip_default_attrs=False, main_op=None, assets_list=None):
        """Adds another graph, which uses the variables already written."""
        if not self._has_variables:
            raise AssertionError("Graph state including variables and assets has not been saved yet. "
                                 "Please invoke `add_meta_graph_and_variables()` first.")
        _check_signatures(signature_def_map)
        self._add_assets(assets_collection)
        files = self._copy_assets(assets_list)
        self._add_init_op(init_op or main_op or legacy_init_op)
        self._add_train_op(train_op)
        self._add(self._saver(saver), tags, signature_def_map, clear_devices, strip_default_attrs, files)

    def _saver(self, saver):
        from runnel.train.saver import Saver
        return saver or Saver(sharded=True, write_version=2, allow_empty=True)

    def _add_train_op(self, train_op):
        if train_op is not None:
            train_op = getattr(train_op, "_graph_element", train_op)  # of a variable, the tensor that reads it
            if not isinstance(train_op, (Operation, Tensor)):
                raise TypeError("`train_op` %r needs to be a Tensor or Op." % (train_op,))
            add_to_collection(TRAIN_OP_KEY, train_op)

    def _add_init_op(self, init_op):
        if init_op is None:
            return
        if not isinstance(init_op, Operation):
            raise TypeError("init_op needs to be an Operation: %r" % init_op)
        ref = get_collection_ref(MAIN_OP_KEY)
        for key in (LEGACY_INIT_OP_KEY, MAIN_OP_KEY):
            if any(known is not init_op for known in get_collection_ref(key)):
                raise ValueError("Graph already contains one or more main ops under the collection %s." % key)
        if not ref:
            add_to_collection(MAIN_OP_KEY, init_op)

    def _add_assets(self, assets_collection):
        """Copies the files that tensors name, and describes them in the collection of assets."""
        for asset in self._copy_assets(assets_collection):
            any_message = message_class("Any")()
            any_message.Pack(asset)
            add_to_collection(ASSETS_KEY, any_message)

    def _copy_assets(self, tensors):
        """Copies the files that tensors name. Returns their AssetFileDefs; files of the same name get numbers."""
        from runnel.core.convert import constant_value
        out, folder, here = [], os.path.join(self._export_dir, ASSETS_DIRECTORY), {}  # here: name in the model -> path
        for tensor in tensors or ():
            path = constant_value(tensor)
            path = path.item().decode() if hasattr(path, "item") else bytes(path).decode()
            name, number = os.path.basename(path), 0
            while not _is_same_file(here.setdefault(name, path), path):
                number += 1
                name = "%s_%d" % (os.path.basename(path), number)
            any_files.makedirs(folder)
            try:
                if not any_files.exists(os.path.join(folder, name)):
                    any_files.copyfile(path, os.path.join(folder, name))
            except OSError as error:
                raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
            out.append(message_class("AssetFileDef")(filename=name))
            out[-1].tensor_info.name = tensor.name
        return out

    def _add(self, saver, tags, signature_def_map, clear_devices, strip_default_attrs, files):
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
        for asset in files:
            meta.asset_file_def.add().CopyFrom(asset)
        self._saved_model.meta_graphs.add().CopyFrom(meta)

    def save(self, as_text=False):
        """Writes the model's file. Returns its path."""
        from runnel.saved_model.writing import replace_file
        path = os.path.join(self._export_dir,
                            SAVED_MODEL_FILENAME_PBTXT if as_text else SAVED_MODEL_FILENAME_PB)
        data = str(self._saved_model).encode() if as_text else self._saved_model.SerializeToString()
        metrics.IncrementWriteApi(_SAVE_BUILDER_LABEL)
        replace_file(path, data)
        metrics.IncrementWrite(write_version="1")
        return path.encode()


def _is_same_file(path, other):
    from runnel.io.file_io import exists, filecmp
    return path == other or exists(path) and exists(other) and filecmp(path, other)


def _check_signatures(signature_def_map):
    for key, signature in (signature_def_map or {}).items():
        for info in list(signature.inputs.values()) + list(signature.outputs.values()):
            if not info.WhichOneof("encoding") or info.WhichOneof("encoding") == "name" and info.dtype == 0:
                raise AssertionError("All TensorInfo protos used in the SignatureDefs must have the "
                                     "`name` and `dtype` fields set: %s" % key)


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
        from runnel.core.text_format import ParseError, Parse
        with any_files.open(text) as file:
            try:
                return Parse(file.read(), model)
            except ParseError as error:
                raise OSError("Cannot parse file %s: %s." % (text, error)) from None
    raise OSError("SavedModel file does not exist at: %s/{%s|%s}" % (
        export_dir, SAVED_MODEL_FILENAME_PBTXT, SAVED_MODEL_FILENAME_PB))


parse_saved_model = _parse


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
    for asset in meta.asset_file_def:
        feeds[prefix + asset.tensor_info.name] = os.path.join(export_dir, ASSETS_DIRECTORY, asset.filename)
    if feeds or ASSETS_KEY not in meta.collection_def:
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


def get_train_op(meta, import_scope=None):
    """Returns the operation or tensor that trains the model, or None."""
    if TRAIN_OP_KEY not in meta.collection_def:
        return None
    prefix = import_scope + "/" if import_scope else ""
    return get_default_graph().as_graph_element(prefix + meta.collection_def[TRAIN_OP_KEY].node_list.value[0])


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

    def load_graph(self, graph, tags, import_scope=None, **saver_kwargs):
        """Adds the graph with `tags` to `graph`. Returns (its saver or None, the elements that `return_elements` names)."""
        from runnel.train.saver import import_meta_graph
        names = saver_kwargs.pop("return_elements", None)
        with graph.as_default():
            saver = import_meta_graph(self.get_meta_graph_def_from_tags(tags), import_scope=import_scope, **saver_kwargs)
            prefix = import_scope + "/" if import_scope else ""
            try:
                return saver, None if names is None else [graph.as_graph_element(prefix + name) for name in names]
            except KeyError as error:
                raise ValueError("Requested return_element not found in graph: %s" % error) from None

    def restore_variables(self, sess, saver, import_scope=None):
        """Restores the variables of a graph that load_graph added."""
        from runnel.ops.variables import _all_saveable_objects
        from runnel.train.saver import Saver
        with sess.graph.as_default():
            if isinstance(saver, Saver):
                saver.restore(sess, get_variables_path(self._export_dir))
            elif saver is not None or _all_saveable_objects(scope=import_scope):
                raise ValueError("No tf.train.Saver object was passed to the function `SavedModelLoader.restore_variables`. Since there are "
                                 "variables in the graph, a saver is required.")

    def run_init_ops(self, sess, tags, import_scope=None):
        """Runs the initialization of a graph that load_graph added."""
        meta = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            op = _init_op(meta, import_scope)
            if op is not None:
                sess.run(op, feed_dict=_asset_feeds(meta, self._export_dir, import_scope))

    def load(self, sess, tags, import_scope=None, **saver_kwargs):
        metrics.IncrementReadApi(_LOADER_LABEL)
        metrics.IncrementRead(write_version="2" if len(self._saved_model.meta_graphs) == 1 and self._saved_model.meta_graphs[0].HasField(
            "object_graph_def") else "1")
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
    "ASSETS_DIRECTORY", "ASSETS_KEY", "DEBUG_DIRECTORY", "DEBUG_INFO_FILENAME_PB", "INIT_OP_SIGNATURE_KEY", "LEGACY_INIT_OP_KEY", "MAIN_OP_KEY",
    "SAVED_MODEL_FILENAME_PB", "SAVED_MODEL_FILENAME_PBTXT", "TRAIN_OP_KEY", "TRAIN_OP_SIGNATURE_KEY", "SAVED_MODEL_SCHEMA_VERSION", "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME"))
signature_constants = _module("signature_constants", **_constants(
    *(n for n in dir() if n.startswith(("CLASSIFY_", "PREDICT_", "REGRESS_", "DEFAULT_")))))
tag_constants = _module("tag_constants", SERVING=SERVING, TRAINING=TRAINING, GPU=GPU, TPU=TPU)
SavedModelBuilder, SavedModelLoader = Builder, _Loader
builder = _module("builder", SavedModelBuilder=Builder)
loader = _module("loader", load=load, maybe_saved_model_directory=maybe_saved_model_directory,
                 SavedModelLoader=_Loader)
main_op = _module("main_op", main_op=_main_op, main_op_with_restore=main_op_with_restore)
utils = _module("utils", build_tensor_info=build_tensor_info,
                get_tensor_from_tensor_info=get_tensor_from_tensor_info)
signature_def_utils = _module(
    "signature_def_utils", MethodNameUpdater=MethodNameUpdater, build_signature_def=build_signature_def,
    predict_signature_def=predict_signature_def, regression_signature_def=regression_signature_def,
    classification_signature_def=classification_signature_def, is_valid_signature=is_valid_signature)

