"""MethodNameUpdater: other method names for the signatures of a SavedModel."""

import os

from runnel import logging
from runnel.io import any_files
from runnel.saved_model.signature_defs import SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT


class MethodNameUpdater:
    """Changes the method names of signatures of the SavedModel in a folder."""

    def __init__(self, export_dir):
        from runnel.saved_model.meta_graphs import parse_saved_model
        self._export_dir = os.fsdecode(export_dir)
        self._saved_model = parse_saved_model(self._export_dir)

    def replace_method_name(self, signature_key, method_name, tags=None):
        """Sets the method name of a signature, in the graph with these tags or, without tags, in all graphs."""
        if not signature_key:
            raise ValueError("`signature_key` must be defined.")
        if not method_name:
            raise ValueError("`method_name` must be defined.")
        if tags is not None and not isinstance(tags, list):
            tags = [tags]
        chosen = [meta for meta in self._saved_model.meta_graphs if tags is None or set(tags) == set(meta.meta_info_def.tags)]
        for meta in chosen:
            if signature_key not in meta.signature_def:
                raise ValueError("MetaGraphDef associated with tags %s does not have a signature_def with key: '%s'. This means either you specified "
                                 "the wrong signature key or forgot to put the signature_def with the corresponding key in your SavedModel." % (
                                     tags, signature_key))
            meta.signature_def[signature_key].method_name = method_name
        if not chosen:
            raise ValueError("MetaGraphDef associated with tags %s could not be found in SavedModel. This means either you specified invalid tags or "
                             "your SavedModel does not have a MetaGraphDef with the specified tags." % (tags,))

    def save(self, new_export_dir=None):
        """Writes the model's file, in text form if it was read so, to its folder or to another one."""
        folder = os.fsdecode(new_export_dir or self._export_dir)
        is_text = any_files.exists(os.path.join(self._export_dir, SAVED_MODEL_FILENAME_PBTXT))
        path = os.path.join(folder, SAVED_MODEL_FILENAME_PBTXT if is_text else SAVED_MODEL_FILENAME_PB)
        with any_files.open(path, "w" if is_text else "wb") as file:
            file.write(str(self._saved_model) if is_text else self._saved_model.SerializeToString(deterministic=True))
        logging.info("SavedModel written to: %s", path)
