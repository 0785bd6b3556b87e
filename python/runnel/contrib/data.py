"""tf.contrib.data: the old name of tf.data.experimental."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__, "Dataset=data.Dataset Iterator=data.Iterator TFRecordDataset=data.TFRecordDataset",
    "TextLineDataset=data.TextLineDataset FixedLengthRecordDataset=data.FixedLengthRecordDataset",
    *("%s=data.experimental.%s" % (name, name) for name in (
        "map_and_batch shuffle_and_repeat parallel_interleave ignore_errors "
        "unbatch group_by_window bucket_by_sequence_length dense_to_sparse_batch enumerate_dataset "
        "rejection_resample sample_from_datasets choose_from_datasets scan Counter CsvDataset "
        "make_csv_dataset make_batched_features_dataset get_single_element prefetch_to_device "
        "copy_to_device make_saveable_from_iterator CheckpointInputPipelineHook unique Optional "
        "get_next_as_optional parse_example_dataset").split()))


def batch_and_drop_remainder(batch_size):
    """Returns a transformation that batches and drops an incomplete last batch."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)
