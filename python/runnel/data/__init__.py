"""tf.data: input pipelines (datasets) and iterators over them."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "data.dataset: AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY Dataset DatasetSpec DatasetV1 DatasetV2",
    "data.owned_iterator: NumpyIterator",
    "data.options: Options ThreadingOptions",
    "data.file_datasets: FixedLengthRecordDataset TFRecordDataset TextLineDataset",
    "data.iterators: Iterator get_output_classes get_output_shapes get_output_types make_initializable_iterator make_one_shot_iterator",
    "submodules: experimental",
)
