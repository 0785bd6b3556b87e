"""tensorflow.python.pywrap_tensorflow: functions that scripts take from the C library directly."""

from runnel import _core
from runnel.core.convert import evaluated_value
from runnel.train.checkpoint_reader import NewCheckpointReader  # noqa: F401


class EventsWriter:
    """Writes events to a file whose name begins with a prefix."""

    def __init__(self, file_prefix):
        self._prefix, self._suffix = _text(file_prefix), ""
        self._path = self._writer = None

    def InitWithSuffix(self, suffix):
        """Sets the suffix of the file's name."""
        self._suffix = _text(suffix)
        self._open()

    def _open(self):
        if self._writer is None:
            import socket
            import time
            from runnel.core.protobuf import message_class
            from runnel.io.record_io import TFRecordWriter
            now = time.time()
            self._path = "%s.out.tfevents.%010d.%s%s" % (
                self._prefix, int(now), socket.gethostname(), self._suffix)
            self._writer = TFRecordWriter(self._path)
            self._write(message_class("Event")(wall_time=now, file_version="brain.Event:2"))
            self._writer.flush()

    def _write(self, event):
        self._writer.write(event.SerializeToString())

    def FileName(self):
        """Returns the path of the file."""
        self._open()
        return self._path

    def WriteEvent(self, event):
        """Adds an event."""
        self._open()
        self._write(event)

    def Flush(self):
        """Flushes the file."""
        if self._writer is not None:
            self._writer.flush()
        return True

    def Close(self):
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        return True


def _text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def TF_TryEvaluateConstant_wrapper(graph, output):  # noqa: N802
    """Returns the constant value of an output as an array, or None."""
    return evaluated_value(output)


def TF_GetAllOpList():  # noqa: N802
    """Returns all ops, an OpList in a buffer."""
    return _core.op_list()


def TF_GetBuffer(buffer):  # noqa: N802
    """Returns the bytes of a buffer."""
    return buffer


def TF_DeleteBuffer(buffer):  # noqa: N802
    """Does nothing: Python frees buffers."""
