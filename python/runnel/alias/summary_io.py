"""tensorflow.python.training.summary_io: writers of event files under their first names."""

from runnel.summary.event_writer import FileWriter
from runnel.summary.event_writer import FileWriterCache as SummaryWriterCache  # noqa: F401
from runnel.train.training_util import summary_iterator  # noqa: F401


class SummaryWriter(FileWriter):
    """The same as tf.summary.FileWriter."""
