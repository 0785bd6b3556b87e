"""Summaries of TensorFlow 2 written by graphs and sessions, against stock."""

import glob
import os
import tempfile

from both import both


def _events(tf, folder):
    """Returns [(step, tag, value)] of the event files in a folder, and whether they have a graph."""
    found, has_graph = [], False
    for path in sorted(glob.glob(os.path.join(folder, "*"))):
        for event in tf.compat.v1.train.summary_iterator(path):
            has_graph = has_graph or bool(event.graph_def)
            found += [(event.step, value.tag, value.simple_value if value.HasField("simple_value") else tf.make_ndarray(value.tensor).tolist())
                      for value in event.summary.value]
    return found, has_graph


@both(v2=True)
def test_a_session_writes_summaries(tf, np):
    folder, v1 = tempfile.mkdtemp(), tf.compat.v1
    with tf.Graph().as_default() as graph:
        step = v1.train.get_or_create_global_step()
        writer = tf.summary.create_file_writer(folder, filename_suffix=".mine")
        wanted = v1.placeholder(tf.bool, [])
        with writer.as_default():
            tf.summary.scalar("always", tf.cast(step, tf.float32) * 2.0, step=step)
            with tf.summary.record_if(wanted), tf.name_scope("scope"):
                tf.summary.scalar("sometimes", 7.0, step=step)
            ops = v1.summary.all_v2_summary_ops()
            add, flush, close = step.assign_add(1), writer.flush(), writer.close()
            with v1.Session() as sess:
                sess.run(step.initializer)
                v1.summary.initialize(graph=graph, session=sess)
                for i in range(3):
                    sess.run(ops, {wanted: i == 1})
                    sess.run(add)
                sess.run(flush)
                before = len(_events(tf, folder)[0])
                sess.run(close)
    names = [name.split(".")[-1] for name in os.listdir(folder)]
    return _events(tf, folder), before, names, len(ops), writer.init() is not None


@both(v2=True)
def test_no_writer(tf, np):
    found = []
    with tf.Graph().as_default():
        result = tf.summary.scalar("x", 1.0, step=0)
        found += [tf.compat.v1.summary.all_v2_summary_ops() == [], result.dtype.name]
        try:
            tf.compat.v1.summary.initialize()
        except RuntimeError:
            found.append("no writer")
    return found, tf.compat.v1.summary.all_v2_summary_ops(), tf.compat.v1.summary.initialize()
