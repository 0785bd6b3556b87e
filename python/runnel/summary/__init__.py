"""tf.summary: summary ops, and the event files that TensorBoard reads."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "summary.summary_ops: audio get_summary_description histogram image merge merge_all scalar "
    "tensor_summary text",
    "summary.writers: all_v2_summary_ops initialize",
    "summary.event_writer: FileWriter FileWriterCache",
    "core.protobuf: Event SessionLog Summary SummaryDescription TaggedRunMetadata",
)
