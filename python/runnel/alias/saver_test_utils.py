"""tensorflow.python.training.saver_test_utils: a table that tests save by a SaveableObject of their own."""

from runnel import dtypes, raw_ops
from runnel.checkpoint.saveable import SaveableObject, SaveSpec
from runnel.core import framework


class CheckpointedOp:
    """A table from strings to numbers. In graphs, its saveable is in the collection of saveables."""

    def __init__(self, name, table_ref=None):
        self._name, self.table_ref = name, table_ref
        if table_ref is None:
            self.table_ref = raw_ops.MutableHashTableV2(key_dtype=dtypes.string, value_dtype=dtypes.float32, name=name)
        self._saveable = None
        if not framework.executing_eagerly():
            self._saveable = CheckpointedOp.CustomSaveable(self, name)
            framework.add_to_collection("saveable_objects", self._saveable)

    name = property(lambda self: self._name)

    @property
    def saveable(self):
        """What a Saver stores."""
        return self._saveable or CheckpointedOp.CustomSaveable(self, self._name)

    def insert(self, keys, values):
        """Returns the operation that sets values."""
        return raw_ops.LookupTableInsertV2(table_handle=self.table_ref, keys=keys, values=values)

    def lookup(self, keys, default):
        """Returns values."""
        return raw_ops.LookupTableFindV2(table_handle=self.table_ref, keys=keys, default_value=default)

    def keys(self):
        """Returns all keys."""
        return self._export()[0]

    def values(self):
        """Returns all values."""
        return self._export()[1]

    def _export(self):
        return raw_ops.LookupTableExportV2(table_handle=self.table_ref, Tkeys=dtypes.string, Tvalues=dtypes.float32)

    class CustomSaveable(SaveableObject):
        """Keys and values of a table."""

        def __init__(self, table, name):
            rows = zip(table._export(), ("-keys", "-values"))
            super().__init__(table, [SaveSpec(tensor, "", name + suffix) for tensor, suffix in rows], name)

        def restore(self, restored_tensors, restored_shapes):
            return raw_ops.LookupTableImportV2(table_handle=self.op.table_ref, keys=restored_tensors[0], values=restored_tensors[1])
