"""tf.saved_model.Asset: a file that belongs to a model."""

import os

from runnel import dtypes
from runnel.core import convert, framework
from runnel.core.trackable import Trackable


class Asset(Trackable):
    """A file that is copied into the model."""

    def __init__(self, path):
        with framework.init_scope(), framework.device("CPU"):
            self._path = convert.convert_to_tensor(os.fspath(path) if isinstance(path, os.PathLike) else path, dtype=dtypes.string,
                                                   name="asset_path")

    @property
    def asset_path(self):
        """The path, as a tensor that functions may read."""
        return self._path

    path = asset_path

    def file(self):
        """Returns the path as str."""
        from runnel.checkpoint.saveables import as_text
        return as_text(self._path)

    @classmethod
    def _deserialize_from_proto(cls, object_proto=None, export_dir=None, asset_file_def=None, **kwargs):
        name = asset_file_def[object_proto.asset.asset_file_def_index].filename
        made = cls(os.path.join(export_dir, "assets", name))
        if not framework.executing_eagerly():
            framework.add_to_collection(framework.GraphKeys.ASSET_FILEPATHS, made.asset_path)
        return made

    def _add_trackable_child(self, name, value):
        setattr(self, name, value)


convert.register_tensor_conversion_function(
    Asset, lambda value, dtype=None, name=None, as_ref=False: convert.convert_to_tensor(value.asset_path, dtype, name=name))
