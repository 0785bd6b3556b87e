"""Damaged files and files of the wrong kind: errors name the file, the position and what was expected."""

import struct

import pytest
import runnel as tf
from runnel import _core


@pytest.mark.parametrize("is_resource", [True, False])
def test_wrong_shape(tmp_path, is_resource):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("layer/v", [5, 2], use_resource=is_resource)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("layer/v", [3], use_resource=is_resource)
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            tf.train.Saver().restore(session, path)
        text = str(raised.value)
        assert all(part in text for part in ("layer/v", path, "[3]", "[5,2]")), text


def test_index_with_a_bit_turned(tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", [5])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    data = (tmp_path / "model.index").read_bytes()
    unread = range(data[-48], data[-48] + data[-47] + 5)  # a block of such tables that has nothing in it
    for place in set(range(len(data) - 48)) - set(unread):
        bad = bytearray(data)
        bad[place] ^= 4
        (tmp_path / "model.index").write_bytes(bad)
        with pytest.raises(tf.errors.DataLossError, match="model.index at byte"):
            tf.train.NewCheckpointReader(path)


def test_record_longer_than_its_file(tmp_path):
    path = str(tmp_path / "records")
    length = struct.pack("<Q", 1 << 60)
    (tmp_path / "records").write_bytes(length + struct.pack("<I", _core.masked_crc32c(length)) + b"few")
    with pytest.raises(tf.errors.DataLossError, match="truncated record at 0; .*records"):
        list(tf.python_io.tf_record_iterator(path))


def test_model_with_a_node_of_no_op(tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], "x")
        tf.saved_model.simple_save(session, path, {"x": x}, {"y": x + 1.0})
    file = tmp_path / "model" / "saved_model.pb"
    file.write_bytes(file.read_bytes().replace(b"Placeholder", b"Placeholler"))
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(Exception, match="Placeholler"):
        tf.saved_model.load(session, ["serve"], path)
