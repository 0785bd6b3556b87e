"""Tables from keys to values, initialized once per session."""

import types

from runnel import dtypes, raw_ops as _ops
from runnel.core import framework
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, name_scope
from runnel.core.trackable import Trackable, TrackableResource


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
        self._resource_handle_value = handle
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

    def lookup(self, keys, name=None):
        """Returns the values of keys, with the default for missing keys."""
        values = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys, dtype_hint=self._key_dtype)
        if values.dtype.base_dtype != self._key_dtype:
            raise TypeError("Dtype of argument `keys` must be %s, received: %s" % (self._key_dtype, values.dtype))
        with name_scope(name, "%s_Lookup" % self._name, [self.resource_handle, values, self._default_value]):
            found = _ops.LookupTableFindV2(self.resource_handle, values, self._default_value)
            found.set_shape(values.shape.concatenate(self._default_value.shape))
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

    def _make(self):
        return _ops.HashTableV2(key_dtype=self._key_dtype, value_dtype=self._value_dtype, shared_name=_unique_name(self, "hash_table"), name="hash_table")

    def _saved_methods(self):
        from runnel.saved_model.object_saving import Asset, done, method
        rows, how = [], {}
        if isinstance(self._initializer, TextFileInitializer) and isinstance(self._initializer._filename_arg, (str, bytes)):
            path = self._initializer._filename_arg
            asset = Asset(path if isinstance(path, str) else path.decode())
            rows.append(("_filename", asset))
            how["filename"] = asset.path
        return rows + [("_create_resource", method("_creator", self._make)),
                       ("_initialize", method("_initializer", lambda: done(self._initializer.initialize(self, **how)))),
                       ("_destroy_resource", method("_destroyer", done))]


class StaticVocabularyTable(LookupInterface):
    """A table from strings to ids; unknown strings hash to one of the extra buckets."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        self._buckets = num_oov_buckets
        self._table = None if initializer is None else StaticHashTable(initializer, -1, name=name)
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

    def _saved_children(self):
        return [] if self._table is None else [("_table", self._table)]

    def size(self, name=None):
        """Returns the number of ids, including the buckets."""
        known = self._table.size() if self._table is not None else convert_to_tensor(0, dtype=dtypes.int64)
        return known + convert_to_tensor(self._buckets, dtype=dtypes.int64)

    def lookup(self, keys, name=None):
        """Returns the ids of keys."""
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


class MutableHashTable(_Table):
    """A table that steps can change with `insert` and `remove`."""

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True):
        default = convert_to_tensor(default_value, dtype=dtypes.as_dtype(value_dtype))
        self._how = {"key_dtype": key_dtype, "value_dtype": value_dtype}
        self._op = _ops.MutableHashTableV2
        if default._rank() != 0:
            self._op = _ops.MutableHashTableOfTensorsV2
            self._how["value_shape"] = default.shape
        handle = self._op(use_node_name_sharing=True, shared_name=_eager_name(self, "table"), name=name, **self._how)
        super().__init__(key_dtype, value_dtype, handle, default,
                         name if handle.op is None else handle.op.name.split("/")[-1])

    def insert(self, keys, values, name=None):
        """Returns the operation that sets the values of keys."""
        keys = convert_to_tensor(keys, self._key_dtype, name="keys")
        values = convert_to_tensor(values, self._value_dtype, name="values")
        return _ops.LookupTableInsertV2(self.resource_handle, keys, values, name=name)

    def remove(self, keys, name=None):
        """Returns the operation that removes keys."""
        return _ops.LookupTableRemoveV2(self.resource_handle, keys, name=name)

    # For models and checkpoints.

    _registered_name = ""

    def _saveable(self):
        from runnel.train.saveable import Saveable
        return Saveable(self, "table", [("-keys", self._key_dtype), ("-values", self._value_dtype)], lambda: list(self.export()),
                        lambda tensors: _ops.LookupTableImportV2(self.resource_handle, tensors[0], tensors[1]))

    def _make(self):
        return self._op(shared_name=_unique_name(self, "table"), name="MutableHashTable", **self._how)

    def _saved_methods(self):
        from runnel.saved_model.object_saving import done, method
        return [("_create_resource", method("_creator", self._make)), ("_initialize", method("_initializer", done)),
                ("_destroy_resource", method("_destroyer", done))]

    def _saving_functions(self):
        from runnel.saved_model.object_saving import saving_functions
        return saving_functions(self._saveable())


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


def index_table_from_file(vocabulary_file, num_oov_buckets=0, vocab_size=None, default_value=-1, key_dtype=dtypes.string, name=None):
    """Makes a table from the lines of a file to their line numbers."""
    with name_scope(name, "string_to_index"):
        initializer = TextFileInitializer(vocabulary_file, key_dtype, TextFileIndex.WHOLE_LINE, dtypes.int64, TextFileIndex.LINE_NUMBER,
                                          vocab_size=vocab_size, name="table_init")
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


def index_to_string_table_from_file(vocabulary_file, vocab_size=None, default_value="UNK", name=None):
    """Makes a table from line numbers to the lines of a file."""
    if vocabulary_file is None or isinstance(vocabulary_file, str) and not vocabulary_file:
        raise ValueError("`vocabulary_file` must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError("`vocab_size` must be greater than 0, got %s." % vocab_size)
    with name_scope(name, "index_to_string"):
        initializer = TextFileInitializer(vocabulary_file, dtypes.int64, TextFileIndex.LINE_NUMBER, dtypes.string,
                                          TextFileIndex.WHOLE_LINE, vocab_size=vocab_size, name="table_init")
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
