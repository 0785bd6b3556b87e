"""Ops that write to files: tensors, statistics of pipelines, databases of summaries."""

import glob
import os
import tempfile

from both import both


def folder():
    return tempfile.mkdtemp(prefix="runnel_dumps")


@both()
def test_statistics_are_written(tf, np):
    raw, path = tf.raw_ops, folder()
    kind = dict(output_types=[tf.int64], output_shapes=[[]])
    aggregator = raw.StatsAggregatorHandleV2(container="", shared_name="a")
    writer = raw.SummaryWriter(shared_name="w", container="")
    opened = raw.CreateSummaryFileWriter(writer=writer, logdir=path, max_queue=1, flush_millis=1, filename_suffix="")
    numbers = raw.RangeDataset(start=np.int64(0), stop=np.int64(3), step=np.int64(1), **kind)
    counted = raw.BytesProducedStatsDataset(input_dataset=numbers, tag="bytes", **kind)
    data = raw.SetStatsAggregatorDataset(
        input_dataset=counted, stats_aggregator=aggregator, tag="t", counter_prefix="c", **kind
    )
    iterator = raw.IteratorV2(shared_name="i", container="", **kind)
    made = raw.MakeIterator(dataset=data, iterator=iterator)
    following = raw.IteratorGetNext(iterator=iterator, **kind)
    summary = raw.StatsAggregatorSummary(iterator=aggregator)
    joined = raw.StatsAggregatorSetSummaryWriter(stats_aggregator=aggregator, summary=writer)
    closed = raw.CloseSummaryWriter(writer=writer)
    with tf.Session() as sess:
        sess.run(opened)
        sess.run(joined)
        sess.run(made)
        out = [sess.run(following) for _ in range(3)] + [sess.run(summary)]
        sess.run(closed)
    (log,) = glob.glob(os.path.join(path, "*"))
    for event in tf.train.summary_iterator(log):
        out += [[event.step, v.tag, v.histo.num, v.histo.sum, v.histo.max] for v in event.summary.value]
    return out


def dump(tf, path, values, enabled):
    graph = tf.GraphDef()
    node = graph.node.add(name="values", op="Const")
    node.attr["dtype"].type = tf.as_dtype(values.dtype).as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values))
    node = graph.node.add(name="dump", op="DumpTensor", input=["values"])
    node.attr["T"].type = tf.as_dtype(values.dtype).as_datatype_enum
    node.attr["enabled"].b = enabled
    for name, text in (("log_dir_path", path), ("file_name", "a.pb"), ("func_name", "f"), ("node_name", "n")):
        node.attr[name].s = text.encode()
    return tf.import_graph_def(graph, return_elements=["dump"], name="")[0]


@both()
def test_tensors_are_dumped(tf, np):
    out = []
    for values in (np.float32([1.5, 2.5, -1.0]), np.int64(7), np.array([[b"a"], [b"bc"]])):
        for enabled in (True, False):
            path = os.path.join(folder(), "x", "y")
            with tf.Graph().as_default(), tf.Session() as sess:
                op = dump(tf, path, values, enabled)
                sess.run(op)
                sess.run(op)
            options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB)
            out += list(tf.python_io.tf_record_iterator(os.path.join(path, "a.pb"), options))
            with open(os.path.join(path, "quant_unit.pb"), "rb") as file:
                out.append(file.read())
    return out
