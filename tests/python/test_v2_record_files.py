"""Record files that grow while they are read, writers that are closed, and places in files."""

import functools
import os
import tempfile

import pytest

from both import both

both = functools.partial(both, v2=True)


def _tried(do):
    try:
        return do()
    except Exception as error:
        return type(error).__name__


def _next(iterator):
    return _tried(lambda: next(iterator))


@both()
def test_files_that_grow(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")
        with tf.io.TFRecordWriter(path) as writer:
            writer.write(b"one")
            writer.flush()
            found = tf.compat.v1.io.tf_record_iterator(path)
            rows = [_next(found), _next(found), _next(found)]
            writer.write(b"two")
            writer.flush()
            rows += [_next(found), _next(found)]
        with open(path, "rb") as file:
            record = file.read()[-19:]
        with open(path, "ab") as file:
            file.write(record[:-1])
        rows += [_next(found), _next(found)]
        with open(path, "ab") as file:
            file.write(record[-1:])
        rows += [_next(found), _next(found)]
        found.close()
        rows.append(_next(found))
        found.reopen()
        return [*rows, _next(found)]


@both()
def test_replaced_files(tf, np):
    def write(path, records, options):
        with tf.io.TFRecordWriter(path, options) as writer:
            for record in records:
                writer.write(record)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("", "ZLIB", "GZIP"):
            path = os.path.join(folder, "records" + kind)
            write(path, [b"one", b"two"], kind)
            found = tf.compat.v1.io.tf_record_iterator(path, tf.io.TFRecordOptions(kind))
            rows += [_next(found), _next(found), _next(found)]
            write(path + "new", [b"one", b"two", b"three"], kind)
            os.replace(path + "new", path)
            rows.append(_next(found))
            found.close()
            found.reopen()
            rows += [_next(found), _next(found)]
    return rows


@both()
def test_closed_writers_and_options(tf, np):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("", "ZLIB", "GZIP"):
            options = tf.io.TFRecordOptions(kind, compression_level=9, mem_level=5, compression_strategy=2)
            path = os.path.join(folder, "records" + kind)
            writer = tf.io.TFRecordWriter(path, options)
            writer.write(b"a" * 1000)
            writer.close()
            writer.close()
            rows += [_tried(lambda writer=writer: writer.write(b"b")), _tried(writer.flush)]
            rows.append([len(x) for x in tf.compat.v1.io.tf_record_iterator(path, options)])
    return [*rows, _tried(lambda: tf.io.TFRecordOptions(5)), _tried(lambda: tf.io.TFRecordOptions("LZ"))]


@both()
def test_places_in_files(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        with tf.io.gfile.GFile(path, "w") as file:
            file.write("one\ntwo\nthree")
        file = tf.io.gfile.GFile(path, "r")
        rows = [file.readline(), file.tell()]
        file.seek(4, 1)
        rows += [file.tell(), file.read(5)]
        file.seek(-3, 2)
        rows += [file.read(), _tried(lambda: file.seek(-1)), _tried(file.seek), _tried(lambda: file.seek(offset=0, position=0)),
                 _tried(lambda: file.read(-2))]
        file.seek(position=0)
        return [*rows, file.read(3)]


def test_records_by_their_offsets():
    from runnel import errors
    from runnel.io.record_io import TFRecordWriter, tf_record_random_reader
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")
        with TFRecordWriter(path) as writer:
            writer.write(b"one")
            writer.write(b"three")
        reader = tf_record_random_reader(path)
        first, place = reader.read(0)
        second, end = reader.read(place)
        assert (first, second, end) == (b"one", b"three", os.path.getsize(path))
        with pytest.raises(IndexError, match="offset %d" % end):
            reader.read(end)
        with pytest.raises(errors.DataLossError, match="corrupted record at 1"):
            reader.read(1)
        with open(path, "r+b") as file:  # a length that the file does not have
            file.truncate(place + 14)
        with pytest.raises(errors.DataLossError, match="truncated record at %d" % place):
            reader.read(place)
        reader.close()
        with pytest.raises(errors.FailedPreconditionError, match="closed"):
            reader.read(0)
