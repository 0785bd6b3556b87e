"""Tables from keys to values, initialized once per session."""

import types

from runnel import dtypes, raw_ops as _ops
from runnel.core import framework
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, name_scope
from runnel.checkpoint.saveable_compat import legacy_saveable_name
from runnel.core.trackable import Trackable
from runnel.core.trackable_resource import TrackableResource


class TextFileIndex:
    """Which part of a line a TextFileInitializer uses: the whole line, its number, or a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TableInitializerBase(Trackable):
    """The base of objects that fill a table."""

    def __init__(self, key_dtype, value_dtype):
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self):
        """The type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self):
        """The type of the values."""
        return self._value_dtype

    @property
    def _shared_name(self):
        return ""

    def initialize(self, table):
        """Returns the operation that fills a table."""
        raise NotImplementedError


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with keys and values given as tensors."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        with name_scope(name, "key_value_init", [keys, values]) as scope:
            self._name = scope
            self._keys = convert_to_tensor(keys, dtype=key_dtype, name="keys")
            self._values = convert_to_tensor(values, dtype=value_dtype, name="values")
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table):
        """Returns the operation that fills a table."""
        with name_scope(self._name, "key_value_init", [self._keys, self._values]):
            return _collect(_ops.LookupTableImportV2(table.resource_handle, self._keys, self._values))


class TextFileInitializer(TableInitializerBase):
    """Fills a table with columns, lines or line numbers of a text file."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None, value_index_offset=0):
        super().__init__(key_dtype, value_dtype)
        self._filename_arg = filename
        self._key_index, self._value_index = key_index, value_index
        self._vocab_size, self._delimiter, self._name = vocab_size, delimiter, name
        self._offset = value_index_offset

    @property
    def _shared_name(self):
        if isinstance(self._filename_arg, (str, bytes)):
            name = "hash_table_%s_%s_%s_%s" % (self._filename_arg, self._vocab_size or -1, self._key_index, self._value_index)
            return "%s_%s" % (name, self._offset) if self._offset else name
        return ""

    def initialize(self, table, filename=None):
        """Returns the operation that fills a table."""
        with name_scope(self._name, "text_file_init", [table.resource_handle]):
            filename = convert_to_tensor(self._filename_arg if filename is None else filename, dtypes.string, name="asset_filepath")
            op = _ops.InitializeTableFromTextFileV2(
                table.resource_handle, filename, key_index=self._key_index, value_index=self._value_index,
                vocab_size=-1 if self._vocab_size is None else self._vocab_size, delimiter=self._delimiter, offset=self._offset)
        framework.add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return _collect(op)


class TextFileStringTableInitializer(TextFileInitializer):
    """Fills a table from line numbers to lines of a text file."""

    def __init__(self, filename, key_column_index=TextFileIndex.LINE_NUMBER, value_column_index=TextFileIndex.WHOLE_LINE, vocab_size=None,
                 delimiter="\t", name="text_file_string_table_init"):
        super().__init__(filename, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter, name)


class TextFileIdTableInitializer(TextFileInitializer):
    """Fills a table from lines of a text file to line numbers."""

    def __init__(self, filename, key_column_index=TextFileIndex.WHOLE_LINE, value_column_index=TextFileIndex.LINE_NUMBER, vocab_size=None,
                 delimiter="\t", name="text_file_id_table_init", key_dtype=dtypes.string):
        super().__init__(filename, key_dtype, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter, name)


def _collect(op):
    framework.add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
    return op


def _unique_name(table, stem):
    """Returns the name of a table's resource in models and in eager execution; it is the same every time."""
    if not hasattr(table, "_saved_name"):
        import uuid
        table._saved_name = "%s_%s" % (stem, uuid.uuid4())
    return table._saved_name


def _eager_name(table, stem):
    """Returns a resource name in eager execution. In a graph the node's name tells tables apart."""
    return _unique_name(table, stem) if framework.executing_eagerly() else ""


class LookupInterface(TrackableResource):
    """The base of tables: the types of keys and values."""

    def __init__(self, key_dtype, value_dtype):
        super().__init__()
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self):
        """The type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self):
        """The type of the values."""
        return self._value_dtype


class _Table(LookupInterface):
    """The operations that all tables share."""

    def __init__(self, key_dtype, value_dtype, handle, default_value, name):
        super().__init__(key_dtype, value_dtype)
        self._resource_handle = handle
        self._default_value = convert_to_tensor(default_value, dtype=self._value_dtype)
        self._name = name

    @property
    def name(self):
        return self._name

    @property
    def default_value(self):
        return self._default_value

    def size(self, name=None):
        """Returns the number of keys."""
        with name_scope(name, "%s_Size" % self._name, [self.resource_handle]):
            return _ops.LookupTableSizeV2(self.resource_handle)

    _key_rank = 0  # dimensions of a key

    def lookup(self, keys, name=None):
        """Returns the values of keys, with the default for missing keys."""
        return self._lookup(keys, self._default_value, name)

    def _lookup(self, keys, default, name):
        if hasattr(keys, "ragged_rank"):
            return keys.with_flat_values(self._lookup(keys.flat_values, default, name))
        values = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys, dtype_hint=self._key_dtype)
        if values.dtype.base_dtype != self._key_dtype:
            raise TypeError("Dtype of argument `keys` must be %s, received: %s" % (self._key_dtype, values.dtype))
        with name_scope(name, "%s_Lookup" % self._name, [self.resource_handle, values, default]):
            found = _ops.LookupTableFindV2(self.resource_handle, values, default)
            if values.shape.rank is not None:
                found.set_shape(values.shape[:values.shape.rank - self._key_rank].concatenate(self._default_value.shape))
        return SparseTensor(keys.indices, found, keys.dense_shape) if isinstance(keys, SparseTensor) else found

    def __getitem__(self, keys):
        return self.lookup(keys)

    def export(self, name=None):
        """Returns (keys, values) of the whole table."""
        with name_scope(name, "%s_Export" % self._name, [self.resource_handle]):
            return _ops.LookupTableExportV2(self.resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype)


class StaticHashTable(_Table):
    """A table that does not change after it is initialized (tf.tables_initializer)."""

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        with name_scope(name, "hash_table") as scope:
            shared_name = initializer._shared_name or _eager_name(self, "hash_table")
            self._is_anonymous = experimental_is_anonymous
            if experimental_is_anonymous:
                handle = _ops.AnonymousHashTable(key_dtype=initializer.key_dtype, value_dtype=initializer.value_dtype, name=scope)
            else:
                handle = _ops.HashTableV2(key_dtype=initializer.key_dtype, value_dtype=initializer.value_dtype, shared_name=shared_name,
                                          use_node_name_sharing=True, name=scope)
        super().__init__(initializer.key_dtype, initializer.value_dtype, handle, default_value, scope.rstrip("/").split("/")[-1])
        self._initializer = initializer
        self._init_op = initializer.initialize(self)

    @property
    def initializer(self):
        """The operation that fills the table."""
        return self._init_op

    # For SavedModels: functions that create and fill the table, and the file it is filled from.

    _registered_name = "tf.StaticHashTable"

    def _create_resource(self):
        if self._is_anonymous:
            return _ops.AnonymousHashTable(key_dtype=self._key_dtype, value_dtype=self._value_dtype, name="hash_table")
        return _ops.HashTableV2(key_dtype=self._key_dtype, value_dtype=self._value_dtype, shared_name=_unique_name(self, "hash_table"), name="hash_table")

    def _initialize(self):
        asset = self._asset()
        return self._initializer.initialize(self, **({} if asset is None else {"filename": asset.asset_path}))

    def _asset(self):
        """Returns the Asset of the file that the table is filled from, or None."""
        if not isinstance(self._initializer, TextFileInitializer):
            return None
        path = self._initializer._filename_arg
        from runnel.saved_model.asset import Asset
        if isinstance(path, Asset):
            return path
        if isinstance(path, (str, bytes)) and not hasattr(self, "_file_asset"):
            self._file_asset = Asset(path if isinstance(path, str) else path.decode())
        return getattr(self, "_file_asset", None)

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == "savedmodel" and self._asset() is not None:
            children["_filename"] = self._asset()
        return children


class StaticVocabularyTable(LookupInterface):
    """A table from strings to ids; unknown strings hash to one of the extra buckets."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        self._buckets = num_oov_buckets
        self._table = None if initializer is None else StaticHashTable(initializer, -1, name, experimental_is_anonymous)
        key_dtype = lookup_key_dtype or (initializer.key_dtype if initializer is not None else dtypes.string)
        super().__init__(key_dtype, dtypes.int64)

    @property
    def initializer(self):
        """The operation that fills the table."""
        from runnel.ops import control_flow
        return self._table.initializer if self._table is not None else control_flow.no_op()

    @property
    def resource_handle(self):
        """The table's handle."""
        return None if self._table is None else self._table.resource_handle

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        return {} if self._table is None else {"_table": self._table}

    def size(self, name=None):
        """Returns the number of ids, including the buckets."""
        known = self._table.size() if self._table is not None else convert_to_tensor(0, dtype=dtypes.int64)
        return known + convert_to_tensor(self._buckets, dtype=dtypes.int64)

    def lookup(self, keys, name=None):
        """Returns the ids of keys."""
        if hasattr(keys, "ragged_rank"):
            return keys.with_flat_values(self.lookup(keys.flat_values, name))
        values = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys, dtype=self._key_dtype)
        texts = values if values.dtype == dtypes.string else _ops.AsString(values)
        with name_scope(name, "string_to_index_Lookup"):
            buckets = _ops.StringToHashBucketFast(texts, num_buckets=self._buckets, name="hash_bucket")
            if self._table is None:
                found = buckets
            else:
                if self._table.key_dtype != values.dtype:
                    from runnel.ops.math_ops import cast
                    values = cast(values, self._table.key_dtype)
                ids = self._table.lookup(values)
                moved = buckets + self._table.size()
                found = _ops.SelectV2(_ops.NotEqual(ids, self._table.default_value), ids, moved)
        return SparseTensor(keys.indices, found, keys.dense_shape) if isinstance(keys, SparseTensor) else found

    __getitem__ = lookup


@legacy_saveable_name("table")
class MutableHashTable(_Table):
    """A table that steps can change with `insert` and `remove`."""

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True, experimental_is_anonymous=False):
        default = convert_to_tensor(default_value, dtype=dtypes.as_dtype(value_dtype))
        self._how = {"key_dtype": key_dtype, "value_dtype": value_dtype}
        self._is_anonymous = experimental_is_anonymous
        self._op = _ops.AnonymousMutableHashTable if experimental_is_anonymous else _ops.MutableHashTableV2
        if default._rank() != 0:
            self._op = _ops.AnonymousMutableHashTableOfTensors if experimental_is_anonymous else _ops.MutableHashTableOfTensorsV2
            self._how["value_shape"] = default.shape
        shared = {} if experimental_is_anonymous else {"use_node_name_sharing": True, "shared_name": _eager_name(self, "table")}
        handle = self._op(name=name, **shared, **self._how)
        super().__init__(key_dtype, value_dtype, handle, default,
                         name if handle.op is None else handle.op.name.split("/")[-1])

    def lookup(self, keys, dynamic_default_values=None, name=None):
        """Returns the values of keys; for missing keys, the default or the value of the same place in `dynamic_default_values`."""
        default = self._default_value
        if dynamic_default_values is not None:
            default = convert_to_tensor(dynamic_default_values, dtype=self._value_dtype, name="default_value")
        return self._lookup(keys, default, name)

    def insert(self, keys, values, name=None):
        """Returns the operation that sets the values of keys."""
        keys = convert_to_tensor(keys, self._key_dtype, name="keys")
        values = convert_to_tensor(values, self._value_dtype, name="values")
        return _ops.LookupTableInsertV2(self.resource_handle, keys, values, name=name)

    def remove(self, keys, name=None):
        """Returns the operation that removes keys."""
        return _ops.LookupTableRemoveV2(self.resource_handle, convert_to_tensor(keys, dtype_hint=self._key_dtype, name="keys"), name=name)

    # For models and checkpoints.

    _registered_name = ""

    def _serialize_to_tensors(self):
        keys, values = self.export()
        return {"-keys": keys, "-values": values}

    def _restore_from_tensors(self, restored_tensors):
        return _ops.LookupTableImportV2(self.resource_handle, restored_tensors["-keys"], restored_tensors["-values"])

    def _create_resource(self):
        shared = {} if self._is_anonymous else {"shared_name": _unique_name(self, "table")}
        return self._op(name="MutableHashTable", **shared, **self._how)


StaticHashTableV1, StaticVocabularyTableV1 = StaticHashTable, StaticVocabularyTable


def index_table_from_tensor(vocabulary_list, num_oov_buckets=0, default_value=-1, dtype=dtypes.string, name=None):
    """Makes a table from the words of a list to their indices.

    Other words get `default_value`, or one of `num_oov_buckets` ids after the list.
    """
    import numpy as np
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(vocabulary_list, None if dtypes.as_dtype(dtype).is_integer else dtype)
        if keys.dtype != dtype:
            from runnel.ops.math_ops import cast
            keys = cast(keys, dtype)
        if isinstance(vocabulary_list, framework.Tensor):
            from runnel.ops import array_ops, math_ops
            places = math_ops.cast(math_ops.range(array_ops.size(keys)), dtypes.int64)
        else:
            places = np.arange(len(vocabulary_list), dtype=np.int64)
        initializer = KeyValueTensorInitializer(keys, places, dtype, dtypes.int64, name="table_init")
        return _index_table(initializer, num_oov_buckets, default_value, dtype)


def _check_vocabulary(vocabulary_file, vocab_size):
    if vocabulary_file is None or isinstance(vocabulary_file, str) and not vocabulary_file:
        raise ValueError("`vocabulary_file` must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError("`vocab_size` must be greater than 0, got %s for vocabulary_file: %s." % (vocab_size, vocabulary_file))


def index_table_from_file(vocabulary_file, num_oov_buckets=0, vocab_size=None, default_value=-1, key_dtype=dtypes.string, name=None,
                          key_column_index=TextFileIndex.WHOLE_LINE, value_column_index=TextFileIndex.LINE_NUMBER, delimiter="\t"):
    """Makes a table from the lines of a file, or a column of it, to their line numbers or another column."""
    _check_vocabulary(vocabulary_file, vocab_size)
    if num_oov_buckets < 0:
        raise ValueError("num_oov_buckets must be greater or equal than 0, got %d." % num_oov_buckets)
    with name_scope(name, "string_to_index"):
        # Keys that are numbers are read as 64-bit ones; the table converts those that it looks up.
        kind = dtypes.int64 if dtypes.as_dtype(key_dtype).is_integer else key_dtype
        initializer = TextFileInitializer(vocabulary_file, kind, key_column_index, dtypes.int64, value_column_index,
                                          vocab_size=vocab_size, delimiter=delimiter, name="table_init")
        return _index_table(initializer, num_oov_buckets, default_value, key_dtype)


def index_to_string_table_from_tensor(vocabulary_list, default_value="UNK", name=None):
    """Makes a table from indices to the words of a list."""
    from runnel.ops import array_ops, math_ops
    if vocabulary_list is None:
        raise ValueError("`vocabulary_list` argument must be specified.")
    with name_scope(name, "index_to_string"):
        words = convert_to_tensor(vocabulary_list, dtypes.string)
        keys = math_ops.cast(math_ops.range(array_ops.size(words)), dtypes.int64)
        return StaticHashTable(KeyValueTensorInitializer(keys, words, dtypes.int64, dtypes.string, name="table_init"), default_value)


def index_to_string_table_from_file(vocabulary_file, vocab_size=None, default_value="UNK", name=None,
                                    key_column_index=TextFileIndex.LINE_NUMBER, value_column_index=TextFileIndex.WHOLE_LINE, delimiter="\t"):
    """Makes a table from line numbers, or a column of a file, to its lines or another column."""
    _check_vocabulary(vocabulary_file, vocab_size)
    with name_scope(name, "index_to_string"):
        initializer = TextFileInitializer(vocabulary_file, dtypes.int64, key_column_index, dtypes.string, value_column_index,
                                          vocab_size=vocab_size, delimiter=delimiter, name="table_init")
        return StaticHashTable(initializer, default_value)


def _index_table(initializer, num_oov_buckets, default_value, dtype):
    if num_oov_buckets:
        return StaticVocabularyTable(initializer, num_oov_buckets, lookup_key_dtype=dtype)
    return StaticHashTable(initializer, default_value)


def tables_initializer(name="init_all_tables"):
    """Returns the operation that fills all tables of the default graph."""
    from runnel.ops.control_flow import group, no_op
    initializers = framework.get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*initializers, name=name) if initializers else no_op(name=name)


initialize_all_tables = tables_initializer
HashTable = StaticHashTable
experimental = types.SimpleNamespace(MutableHashTable=MutableHashTable)
