"""tf.io: files, records, tf.Example and image formats."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue SparseFeature VarLenFeature gfile "
    "decode_base64 decode_compressed decode_csv decode_json_example decode_raw deserialize_many_sparse encode_base64 matching_files "
    "parse_example parse_single_example parse_single_sequence_example parse_tensor read_file serialize_many_sparse serialize_sparse "
    "serialize_tensor write_file",
    "TFRecordCompressionType=python_io.TFRecordCompressionType TFRecordOptions=python_io.TFRecordOptions TFRecordWriter=python_io.TFRecordWriter "
    "tf_record_iterator=python_io.tf_record_iterator write_graph=train.write_graph match_filenames_once=train.match_filenames_once "
    "decode_and_crop_jpeg=image.decode_and_crop_jpeg decode_bmp=image.decode_bmp decode_gif=image.decode_gif decode_image=image.decode_image "
    "decode_jpeg=image.decode_jpeg decode_jxl=image.decode_jxl decode_png=image.decode_png decode_webp=image.decode_webp "
    "encode_jpeg=image.encode_jpeg encode_png=image.encode_png "
    "extract_jpeg_shape=image.extract_jpeg_shape is_jpeg=image.is_jpeg",
    "ops.late_ops: decode_proto encode_proto",
    "io.ragged_features: RaggedFeature",
    "io.parsing_ops: parse_sequence_example",
)
