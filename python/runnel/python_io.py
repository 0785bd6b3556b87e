"""tf.python_io: record files, read and written without a graph."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "io.record_io: TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
)
