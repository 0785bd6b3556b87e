"""Readers: records of files whose names come from a queue."""

from runnel import raw_ops as _ops
from runnel.core.framework import Tensor


class ReaderBase:
    """The base of readers: `read` returns the next record, and opens the queue's next file when one ends."""

    def __init__(self, reader_ref, supports_serialize=False):
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self):
        """The reader's handle."""
        return self._reader_ref

    @property
    def supports_serialize(self):
        return self._supports_serialize

    def read(self, queue, name=None):
        """Returns (key, value) of the next record."""
        return _ops.ReaderReadV2(self._reader_ref, _queue_ref(queue), name=name)

    def read_up_to(self, queue, num_records, name=None):
        """Returns (keys, values) of the next records."""
        return _ops.ReaderReadUpToV2(self._reader_ref, _queue_ref(queue), num_records, name=name)

    def num_records_produced(self, name=None):
        """Returns the number of records read."""
        return _ops.ReaderNumRecordsProducedV2(self._reader_ref, name=name)

    def num_work_units_completed(self, name=None):
        """Returns the number of files read to the end."""
        return _ops.ReaderNumWorkUnitsCompletedV2(self._reader_ref, name=name)

    def serialize_state(self, name=None):
        """Returns the reader's state as a string."""
        return _ops.ReaderSerializeStateV2(self._reader_ref, name=name)

    def restore_state(self, state, name=None):
        """Returns an operation that restores a state."""
        return _ops.ReaderRestoreStateV2(self._reader_ref, state, name=name)

    def reset(self, name=None):
        """Returns an operation that returns to the beginning."""
        return _ops.ReaderResetV2(self._reader_ref, name=name)


def _queue_ref(queue):
    return queue if isinstance(queue, Tensor) else queue.queue_ref


class WholeFileReader(ReaderBase):
    """A reader whose records are files: (name, contents)."""

    def __init__(self, name=None):
        super().__init__(_ops.WholeFileReaderV2(name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """A reader whose records are lines."""

    def __init__(self, skip_header_lines=None, name=None):
        super().__init__(_ops.TextLineReaderV2(skip_header_lines=skip_header_lines, name=name))


class FixedLengthRecordReader(ReaderBase):
    """A reader whose records have a fixed number of bytes."""

    def __init__(self, record_bytes, header_bytes=None, footer_bytes=None, hop_bytes=None, name=None, encoding=None):
        super().__init__(_ops.FixedLengthRecordReaderV2(
            record_bytes=record_bytes, header_bytes=header_bytes, footer_bytes=footer_bytes, hop_bytes=hop_bytes, encoding=encoding, name=name))


class TFRecordReader(ReaderBase):
    """A reader of TFRecord files."""

    def __init__(self, name=None, options=None):
        from runnel.io.record_io import TFRecordOptions
        super().__init__(_ops.TFRecordReaderV2(compression_type=TFRecordOptions.get_compression_type_string(options), name=name))


class IdentityReader(ReaderBase):
    """A reader whose records are the names in the queue."""

    def __init__(self, name=None):
        super().__init__(_ops.IdentityReaderV2(name=name), supports_serialize=True)


class LMDBReader(ReaderBase):
    """A reader of LMDB databases. As in TensorFlow, reading fails: there is no such kernel any more."""

    def __init__(self, name=None, options=None):
        super().__init__(_ops.LMDBReader(name=name))
