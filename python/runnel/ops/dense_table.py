"""tf.lookup.experimental.DenseHashTable: a mutable table with open addressing."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.ops.lookup_ops import MutableHashTable, _eager_name, _Table


class DenseHashTable(MutableHashTable):
    """A table that steps can change. It keeps keys and values in two tensors; two keys, which no entry may have, mark free places.

    Args:
      key_dtype, value_dtype: types of the keys and values.
      default_value: the value of keys that are not in the table; its shape is that of all values.
      empty_key: marks places that were never used.
      deleted_key: marks places whose entry was removed.
      initial_num_buckets: the number of places at first, a power of two.
      name: name of the table.
      checkpoint: whether checkpoints contain it.
      experimental_is_anonymous: whether the table is deleted with its last handle and has no name.
    """

    def __init__(self, key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets=None, name="MutableDenseHashTable",
                 checkpoint=True, experimental_is_anonymous=False):
        default = convert_to_tensor(default_value, dtype=dtypes.as_dtype(value_dtype), name="default_value")
        self._marks = [convert_to_tensor(key, dtype=dtypes.as_dtype(key_dtype), name=label)
                       for key, label in ((empty_key, "empty_key"), (deleted_key, "deleted_key"))]
        self._key_rank = self._marks[0].shape.rank or 0
        self._how = {"key_dtype": key_dtype, "value_dtype": value_dtype, "value_shape": default.shape}
        if initial_num_buckets is not None:
            self._how["initial_num_buckets"] = initial_num_buckets
        self._is_anonymous, self._op = experimental_is_anonymous, self._create
        shared = {} if experimental_is_anonymous else {"use_node_name_sharing": True, "shared_name": _eager_name(self, "table")}
        handle = self._create(name=name, **shared, **self._how)
        _Table.__init__(self, key_dtype, value_dtype, handle, default, name if handle.op is None else handle.op.name.split("/")[-1])

    def _create(self, **how):
        op = _ops.AnonymousMutableDenseHashTable if self._is_anonymous else _ops.MutableDenseHashTableV2
        return op(empty_key=self._marks[0], deleted_key=self._marks[1], **how)

    def lookup(self, keys, name=None):
        """Returns the values of keys, with the default for missing keys."""
        return self._lookup(keys, self._default_value, name)

    def insert_or_assign(self, keys, values, name=None):
        """Returns the operation that sets the values of keys."""
        return self.insert(keys, values, name)

    def erase(self, keys, name=None):
        """Returns the operation that removes keys."""
        return self.remove(keys, name)
