"""TFRecord files, written and read without a graph: tf.python_io."""

import contextlib
import errno
import os
import struct
import zlib

from runnel import _core, errors
from runnel.io import any_files


class TFRecordCompressionType:
    """The compression of records."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """Options for writing record files."""

    compression_type_map = {0: "", 1: "ZLIB", 2: "GZIP"}

    def __init__(self, compression_type=None, flush_mode=None, input_buffer_size=None, output_buffer_size=None, window_bits=None,
                 compression_level=None, compression_method=None, mem_level=None, compression_strategy=None):
        if isinstance(compression_type, TFRecordOptions):
            compression_type = compression_type.compression_type
        if compression_type in self.compression_type_map:
            compression_type = self.compression_type_map[compression_type]
        if (compression_type or "") not in ("", "ZLIB", "GZIP"):
            raise ValueError("Not a valid compression_type: \"%s\"" % (compression_type,))
        self.compression_type = compression_type or ""
        self.flush_mode, self.input_buffer_size, self.output_buffer_size = flush_mode, input_buffer_size, output_buffer_size
        self.window_bits, self.compression_level, self.compression_method = window_bits, compression_level, compression_method
        self.mem_level, self.compression_strategy = mem_level, compression_strategy

    def _compressor(self):
        """Returns zlib's object that compresses in this way; None if nothing is compressed."""
        if not self.compression_type:
            return None
        bits = (self.window_bits or 15) + (16 if self.compression_type == "GZIP" else 0)
        return zlib.compressobj(
            -1 if self.compression_level is None else self.compression_level, self.compression_method or zlib.DEFLATED, bits,
            self.mem_level or zlib.DEF_MEM_LEVEL, self.compression_strategy or zlib.Z_DEFAULT_STRATEGY)

    @classmethod
    def get_compression_type_string(cls, options):
        """Returns the name of the compression, given options, a number or a name."""
        return TFRecordOptions(options).compression_type


def _bits(options):
    """Returns zlib's window bits for a compression, or None."""
    return {"": None, "ZLIB": 15, "GZIP": 31}[TFRecordOptions.get_compression_type_string(options)]


class TFRecordWriter:
    """Writes records to a file. A context manager."""

    def __init__(self, path, options=None):
        try:
            self._file = any_files.open(os.fspath(path), "wb")
        except OSError as error:
            raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
        self._zip = (options if isinstance(options, TFRecordOptions) else TFRecordOptions(options))._compressor()

    def write(self, record):
        """Appends a record, bytes."""
        self._check_open()
        if isinstance(record, str):
            record = record.encode("utf-8")
        length = struct.pack("<Q", len(record))
        data = b"".join((length, struct.pack("<I", _core.masked_crc32c(length)), record,
                         struct.pack("<I", _core.masked_crc32c(record))))
        self._put(data if self._zip is None else self._zip.compress(data))

    def _check_open(self):
        if self._file.closed:
            raise errors.FailedPreconditionError(None, None, "Writer not initialized or previously closed")

    def _put(self, data, flushes=False):
        try:
            self._file.write(data)
            if flushes:
                self._file.flush()
        except OSError as error:
            kind = errors.ResourceExhaustedError if error.errno == errno.ENOSPC else errors.UnknownError
            raise kind(None, None, "%s; %s" % (self._file.name, error.strerror)) from None

    def flush(self):
        """Writes buffered records."""
        self._check_open()
        self._put(b"" if self._zip is None else self._zip.flush(zlib.Z_SYNC_FLUSH), flushes=True)

    def close(self):
        """Closes the file."""
        if not self._file.closed:
            try:
                self._put(b"" if self._zip is None else self._zip.flush(), flushes=True)
            finally:
                with contextlib.suppress(OSError):  # the flush above has reported the error
                    self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class _Source:
    """The bytes of a file, plain or inflated, of which what was not taken stays for the next attempt: files grow while they are read."""

    def __init__(self, path, bits, offset=0):
        self.path, self.offset = path, offset
        try:
            self._stream = any_files.open(path, "rb")
        except OSError as error:
            raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
        self._zip = None if bits is None else zlib.decompressobj(bits)
        self._data = b""
        if self._zip is None:
            self._stream.seek(offset)
        elif offset:
            self.peek(offset)
            self._data = self._data[offset:]

    def peek(self, size):
        """Returns the next `size` bytes, or fewer if the file ends."""
        while len(self._data) < size:
            block = self._stream.read(size - len(self._data) if self._zip is None else 1 << 16)
            if not block:
                break
            self._data += block if self._zip is None else self._zip.decompress(block)
        return self._data[:size]

    def has(self, size):
        """Tells whether a plain file is that long from here on, so that no memory is asked for what is not there."""
        return self._zip is not None or size <= any_files.stat(self.path)[0] - self.offset

    def take(self, size):
        self._data, self.offset = self._data[size:], self.offset + size

    def close(self):
        self._stream.close()


def _next_record(source):
    """Returns the next record, or None at the end of the file. An error leaves the source where it was."""
    header, at = source.peek(12), (source.offset, source.path)
    if not header:
        return None
    if len(header) < 12:
        raise errors.DataLossError(None, None, "truncated record at %d; %s" % at)
    length, check = struct.unpack("<QI", header)
    if _core.masked_crc32c(header[:8]) != check:
        raise errors.DataLossError(None, None, "corrupted record at %d; %s" % at)
    body = source.peek(length + 16)[12:] if source.has(length + 16) else b""
    if len(body) < length + 4:
        raise errors.DataLossError(None, None, "truncated record at %d; %s" % at)
    if _core.masked_crc32c(body[:length]) != struct.unpack("<I", body[length:])[0]:
        raise errors.DataLossError(None, None, "corrupted record at %d; %s" % at)
    source.take(length + 16)
    return body[:length]


class _RecordIterator:
    """The records of a file. At the end of the file, or of what is whole, the next call looks again."""

    def __init__(self, path, bits):
        self._path, self._bits = path, bits
        self._source = _Source(path, bits)

    def __iter__(self):
        return self

    def __next__(self):
        record = None if self._source is None else _next_record(self._source)
        if record is None:
            raise StopIteration
        return record

    def close(self):
        """Closes the file."""
        if self._source is not None:
            self._offset = self._source.offset
            self._source.close()
            self._source = None

    def reopen(self):
        """Opens the file again, which may be another one of that name, at the place where reading was."""
        self.close()
        self._source = _Source(self._path, self._bits, self._offset)

    def __del__(self):
        if getattr(self, "_source", None) is not None:
            self._source.close()


def tf_record_iterator(path, options=None):
    """Returns an iterator of the records of a file."""
    return _RecordIterator(os.fspath(path), _bits(options))


class tf_record_random_reader:  # noqa: N801
    """Reads the records of a file that is not compressed by their offsets."""

    def __init__(self, path):
        self._path = os.fspath(path)
        _Source(self._path, None).close()
        self._is_closed = False

    def read(self, offset):
        """Returns (the record at an offset, the offset of the next record)."""
        if self._is_closed:
            raise errors.FailedPreconditionError(None, None, "Random TFRecord Reader is closed.")
        source = _Source(self._path, None, offset)
        try:
            record = _next_record(source)
        finally:
            source.close()
        if record is None:
            raise IndexError("Out of range at reading offset %d" % offset)
        return record, source.offset

    def close(self):
        """Closes the reader."""
        self._is_closed = True
