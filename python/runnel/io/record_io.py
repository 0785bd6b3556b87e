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

    def __init__(self, compression_type=None, **kwargs):
        if isinstance(compression_type, int):
            compression_type = self.compression_type_map[compression_type]
        elif isinstance(compression_type, TFRecordOptions):
            compression_type = compression_type.compression_type
        self.compression_type = compression_type or ""
        self.compression_level = kwargs.get("compression_level")

    @classmethod
    def get_compression_type_string(cls, options):
        """Returns the name of the compression, given options, a number or a name."""
        return TFRecordOptions(options).compression_type


def _bits(options):
    """Returns zlib's window bits for a compression, or None."""
    name = TFRecordOptions.get_compression_type_string(options)
    if name not in ("", "ZLIB", "GZIP"):
        raise ValueError("Not a valid compression_type: \"%s\"" % name)
    return {"": None, "ZLIB": 15, "GZIP": 31}[name]


class TFRecordWriter:
    """Writes records to a file. A context manager."""

    def __init__(self, path, options=None):
        try:
            self._file = any_files.open(os.fspath(path), "wb")
        except OSError as error:
            raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
        bits = _bits(options)
        level = options.compression_level if isinstance(options, TFRecordOptions) else None
        self._zip = None if bits is None else zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, bits)

    def write(self, record):
        """Appends a record, bytes."""
        if isinstance(record, str):
            record = record.encode("utf-8")
        length = struct.pack("<Q", len(record))
        data = b"".join((length, struct.pack("<I", _core.masked_crc32c(length)), record,
                         struct.pack("<I", _core.masked_crc32c(record))))
        self._put(data if self._zip is None else self._zip.compress(data))

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


def tf_record_iterator(path, options=None):
    """Yields the records of a file."""
    bits = _bits(options)
    try:
        stream = any_files.open(os.fspath(path), "rb")
    except OSError as error:
        raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
    with stream:
        source = stream if bits is None else _Inflated(stream, bits)
        offset = 0
        while True:
            header = source.read(12)
            if not header:
                return
            if len(header) < 12:
                raise errors.DataLossError(None, None, "truncated record at %d; %s" % (offset, os.fspath(path)))
            length, check = struct.unpack("<QI", header)
            if _core.masked_crc32c(header[:8]) != check:
                raise errors.DataLossError(None, None, "corrupted record at %d; %s" % (offset, os.fspath(path)))
            # Reject a length beyond the file's end before allocating memory for it.
            is_short = bits is None and length + 4 > any_files.stat(os.fspath(path))[0] - offset - 12
            body = b"" if is_short else source.read(length + 4)
            if len(body) < length + 4:
                raise errors.DataLossError(None, None, "truncated record at %d; %s" % (offset, os.fspath(path)))
            if _core.masked_crc32c(body[:length]) != struct.unpack("<I", body[length:])[0]:
                raise errors.DataLossError(None, None, "corrupted record at %d; %s" % (offset, os.fspath(path)))
            offset += length + 16
            yield body[:length]


class _Inflated:
    """Reads a compressed file."""

    def __init__(self, stream, bits):
        self._stream = stream
        self._zip = zlib.decompressobj(bits)
        self._data = b""

    def read(self, size):
        while len(self._data) < size:
            block = self._stream.read(1 << 16)
            if not block:
                break
            self._data += self._zip.decompress(block)
        out, self._data = self._data[:size], self._data[size:]
        return out
