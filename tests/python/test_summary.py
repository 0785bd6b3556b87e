"""Summaries and event files, read with TensorBoard's reader."""

import glob

import pytest
from both import both


@both
def test_summaries(tf, np):
    x = tf.placeholder(tf.float32, [10])
    tf.summary.scalar("loss/a b", tf.reduce_mean(x), family="group")
    tf.summary.histogram("h", x)
    tf.summary.text("t", tf.constant("hello **world**"))
    merged = tf.summary.merge_all()
    with tf.Session() as sess:
        return tf.Summary.FromString(sess.run(merged, {x: np.arange(10.0)})).SerializeToString()


def test_event_file(tmp_path):
    tensorboard = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    import numpy as np
    import runnel as tf
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [10])
        tf.summary.scalar("loss", tf.reduce_mean(x))
        tf.summary.image("im", tf.ones([2, 4, 4, 3]))
        merged = tf.summary.merge_all()
        with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path), graph) as writer:
            for step in range(5):
                writer.add_summary(sess.run(merged, {x: np.arange(10) * step}), step)
            metadata = tf.RunMetadata()
            sess.run(merged, {x: np.zeros(10)}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
            writer.add_run_metadata(metadata, "step5", 5)
    assert len(glob.glob(str(tmp_path / "events.out.tfevents.*"))) == 1
    seen = tensorboard.EventAccumulator(str(tmp_path))
    seen.Reload()
    assert [e.value for e in seen.Scalars("loss")] == [0.0, 4.5, 9.0, 13.5, 18.0]
    assert seen.Tags()["images"] == ["im/image/0", "im/image/1"] and seen.Tags()["run_metadata"] == ["step5"]
    assert {node.name for node in seen.Graph().node} == {op.name for op in graph.get_operations()}


@both
def test_writers_that_are_opened_and_closed(tf, np):
    """Each opening makes a file, though nothing is written; what is closed is not there."""
    import os
    import tempfile
    counts = []

    def outcome(op):
        try:
            sess.run(op)
        except tf.errors.NotFoundError:
            return "not found"
        return len(os.listdir(folder))
    with tempfile.TemporaryDirectory() as folder, tf.Session() as sess:
        writer = tf.raw_ops.SummaryWriter(shared_name="opened_and_closed", container="")
        start = tf.raw_ops.CreateSummaryFileWriter(writer=writer, logdir=folder, max_queue=100, flush_millis=1000000, filename_suffix=".v2")
        close, flush = tf.raw_ops.CloseSummaryWriter(writer=writer), tf.raw_ops.FlushSummaryWriter(writer=writer)
        counts += [outcome(op) for op in (close, flush, start, start, flush, close, flush, close)]
        for _ in range(10):
            counts += [outcome(start), outcome(close)]
    return counts
