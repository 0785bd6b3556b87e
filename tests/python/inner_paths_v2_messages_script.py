"""Files of other packages that import TensorFlow's messages, for test_inner_paths_v2.py: stock and Runnel must print the same."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow.core.example import example_pb2  # noqa: F401
from tensorflow.core.framework import attr_value_pb2, graph_pb2, summary_pb2, tensor_shape_pb2, types_pb2  # noqa: F401
from tensorflow.core.protobuf import config_pb2, struct_pb2  # noqa: F401

POOL = descriptor_pool.Default()


def shown(name):
    """Returns the fields of a message: name, number, type, whether repeated, type of the message or enumeration."""
    found = POOL.FindMessageTypeByName("tensorflow." + name)
    rows = [(field.name, field.number, field.type, field.is_repeated, (field.message_type or field.enum_type).full_name
             if field.message_type or field.enum_type else "", field.containing_oneof.name if field.containing_oneof else "") for field in found.fields]
    return sorted(rows, key=lambda row: row[1])


for name in ("TensorShapeProto", "TensorShapeProto.Dim", "AttrValue", "NodeDef", "TensorProto", "Example", "Features", "Feature", "BytesList",
             "StructuredValue", "SummaryMetadata"):
    print(name, *shown(name), sep="\n  ")

made = descriptor_pb2.FileDescriptorProto(name="mine.proto", package="mine", syntax="proto3")
made.dependency.extend(["tensorflow/core/framework/tensor_shape.proto", "tensorflow/core/framework/types.proto", "tensorflow/core/example/example.proto"])
message = made.message_type.add(name="Column")
for i, (name, kind) in enumerate((("shape", "TensorShapeProto"), ("example", "Example"))):
    message.field.add(name=name, number=i + 1, type=11, label=1, type_name=".tensorflow." + kind)
message.field.add(name="dtype", number=3, type=14, label=1, type_name=".tensorflow.DataType")
POOL.AddSerializedFile(made.SerializeToString())
column = message_factory.GetMessageClass(POOL.FindMessageTypeByName("mine.Column"))()
text_format.Parse('shape { dim { size: 2 } dim { size: -1 } } dtype: DT_FLOAT '
                  'example { features { feature { key: "a" value { int64_list { value: [1, 2] } } } } }', column)
print(column, column.SerializeToString())

import tensorflow as tf  # noqa: E402

print(tf.TensorShape(column.shape), tf.as_dtype(column.dtype), tf.io.parse_single_example(
    column.example.SerializeToString(), {"a": tf.io.FixedLenFeature([2], tf.int64)})["a"].numpy())

from google.protobuf import any_pb2  # noqa: E402
from tensorflow.core.protobuf import meta_graph_pb2, saved_object_graph_pb2  # noqa: E402

# Files that import google/protobuf/any.proto, which the package has already.
print(any_pb2.Any().ByteSize(), meta_graph_pb2.MetaGraphDef().ByteSize(), saved_object_graph_pb2.SavedObjectGraph().ByteSize())
