"""tf.contrib.lookup: tables from keys to values."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__, "tables_initializer", "initialize_all_tables=tables_initializer",
    "HashTable=lookup.StaticHashTable KeyValueTensorInitializer=lookup.KeyValueTensorInitializer",
    "TextFileInitializer=lookup.TextFileInitializer TextFileIndex=lookup.TextFileIndex",
    "index_table_from_file=lookup_ops.index_table_from_file",
    "index_table_from_tensor=lookup_ops.index_table_from_tensor",
    "index_to_string_table_from_file=lookup_ops.index_to_string_table_from_file",
    "index_to_string_table_from_tensor=lookup_ops.index_to_string_table_from_tensor",
    "MutableHashTable=lookup_ops.MutableHashTable")
