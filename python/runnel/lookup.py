"""tf.lookup: tables from keys to values."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "ops.lookup_ops: KeyValueTensorInitializer MutableHashTable StaticHashTable StaticVocabularyTable TextFileIndex "
    "TextFileInitializer experimental",
)
