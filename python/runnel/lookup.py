"""tf.lookup."""

import types

from runnel.lookup_ops import (
    KeyValueTensorInitializer,
    MutableHashTable,
    StaticHashTable,
    StaticVocabularyTable,
    TextFileIndex,
    TextFileInitializer,
)

experimental = types.SimpleNamespace(MutableHashTable=MutableHashTable)

__all__ = ["KeyValueTensorInitializer", "MutableHashTable", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex", "TextFileInitializer", "experimental"]
