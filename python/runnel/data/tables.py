"""Lookup tables that are filled from datasets (tf.data.experimental)."""

from runnel import dtypes, raw_ops
from runnel.core.type_spec import TensorSpec
from runnel.data.dataset import Dataset
from runnel.ops import lookup_ops


class DatasetInitializer(lookup_ops.TableInitializerBase):
    """Fills a table with the elements of a dataset of (key, value)."""

    def __init__(self, dataset):
        spec = dataset.element_spec
        if not isinstance(spec, (list, tuple)) or len(spec) != 2 or any(
                not isinstance(one, TensorSpec) or one.shape.rank not in (0, None) for one in spec):
            raise ValueError("DatasetInitializer requires a dataset that has elements of two scalars, (key, value), not %s." % (spec,))
        self.dataset = dataset
        super().__init__(*dataset._types)

    def initialize(self, table):
        """Returns the operation that fills `table`."""
        return lookup_ops._collect(raw_ops.InitializeTableFromDataset(
            table_handle=table.resource_handle, dataset=self.dataset._variant_tensor))


def table_from_dataset(dataset=None, num_oov_buckets=0, vocab_size=None, default_value=None, hasher_spec=None, key_dtype=dtypes.string,
                       name=None):
    """Returns a table of the elements (key, value) of a dataset."""
    if not isinstance(dataset, Dataset):
        raise ValueError("`dataset` must be a `tf.data.Dataset`")
    if vocab_size is not None:
        if vocab_size < 1:
            raise ValueError("`vocab_size` must be greater than 0, got %s." % vocab_size)
        dataset = dataset.take(vocab_size)
    if num_oov_buckets < 0:
        raise ValueError("`num_oov_buckets` must be greater than or equal to 0, got %d" % num_oov_buckets)
    initializer = DatasetInitializer(dataset)
    if num_oov_buckets:
        return lookup_ops.StaticVocabularyTable(initializer, num_oov_buckets, lookup_key_dtype=dtypes.as_dtype(key_dtype))
    return lookup_ops.StaticHashTable(initializer, -1 if default_value is None else default_value)


def index_table_from_dataset(dataset=None, num_oov_buckets=0, vocab_size=None, default_value=-1, hasher_spec=None, key_dtype=dtypes.string,
                             name=None):
    """Returns a table from the elements of a dataset to their numbers."""
    return table_from_dataset(dataset.enumerate().map(lambda number, key: (key, number)), num_oov_buckets, vocab_size, default_value,
                              hasher_spec, key_dtype, name)
