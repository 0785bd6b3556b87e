"""Summaries in an SQLite database: what stock writes is there, in its tables."""

from both import both

TABLES = "Ids Descriptions Tensors TensorStrings Tags Runs Experiments Users Graphs Nodes NodeInputs".split()


def opened(tf, name, path, *names):
    writer = tf.raw_ops.SummaryWriter(shared_name=name, container="")
    tf.raw_ops.CreateSummaryDbWriter(writer=writer, db_uri=path, experiment_name=names[0], run_name=names[1], user_name=names[2])
    return writer


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def contents(path):
    """What the tables hold, without numbers and times that are new each time."""
    import sqlite3
    db = sqlite3.connect(path)

    def query(text):
        return [list(row) for row in db.execute(text).fetchall()]

    tags = query("SELECT r.run_name, t.tag_name, t.display_name, t.plugin_name, t.plugin_data, d.description, x.step, x.dtype, x.shape, x.data, "
                 "x.computed_time = 12.5 FROM Tags t LEFT JOIN Runs r USING (run_id) LEFT JOIN Tensors x ON x.series = t.tag_id "
                 "LEFT JOIN Descriptions d ON d.id = t.tag_id WHERE x.dtype IS NOT NULL ORDER BY r.run_name, t.tag_name, x.step, t.rowid")
    return {
        "head": query("PRAGMA application_id") + query("PRAGMA user_version"), "names": sorted(query("SELECT type, name FROM sqlite_master")),
        "columns": [[list(column[1:]) for column in query("PRAGMA table_info(%s)" % table)] for table in TABLES], "tags": tags,
        "texts": query("SELECT t.tag_name, s.idx, s.data FROM Tags t JOIN Tensors x ON x.series = t.tag_id JOIN TensorStrings s ON "
                       "s.tensor_rowid = x.rowid ORDER BY t.tag_name, s.idx"),
        "runs": query("SELECT run_name, finished_time IS NULL, started_time = 12.5 FROM Runs"), "users": query("SELECT user_name, email FROM Users"),
        "experiments": query("SELECT experiment_name, is_watching, started_time = 12.5 FROM Experiments"), "ids": query("SELECT count(*) FROM Ids"),
        "nodes": query("SELECT node_id, node_name, op, device, node_def FROM Nodes ORDER BY node_id"),
        "inputs": query("SELECT node_id, idx, input_node_id, input_node_idx, is_control FROM NodeInputs ORDER BY node_id, idx"),
        "graphs": query("SELECT graph_def, run_id IS NULL FROM Graphs")}


GRAPH = """node { name: "a" op: "Const" device: "/cpu:0" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "b" op: "Identity" input: "a" input: "a:3" input: "^a" } versions { producer: 7 }"""


@both(v2=True)
def test_every_kind(tf, np):
    import os
    import tempfile
    from google.protobuf import text_format
    raw = tf.raw_ops
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.sqlite")
        w = opened(tf, "all", path, "exp", "run", "me")
        for step, value in ((1, np.float32(1.5)), (2, np.int64(7)), (2, np.float64(8))):
            raw.WriteScalarSummary(writer=w, step=step, tag="scalar", value=value)
        metadata = b"\n\x07\n\x03plg\x12\x00\x12\x03dsp\x1a\x04desc"
        for tag, tensor in (("matrix", np.arange(6.0).reshape(2, 3)), ("texts", np.array(["a", "bc"])), ("text", "hello"), ("empty", ""),
                            ("none", np.zeros((0, 2), "f")), ("complex", np.array([1j, 2], "F")), ("texts", np.array(["d"]))):
            raw.WriteSummary(writer=w, step=3, tag=tag, tensor=tf.constant(tensor), summary_metadata=metadata if tag == "texts" else b"")
        raw.WriteHistogramSummary(writer=w, step=5, tag="h", values=np.array([1.0, 2, 2, -3], "f"))
        raw.WriteImageSummary(writer=w, step=5, tag="im", tensor=np.zeros((2, 2, 3, 3), "u1"), bad_color=np.array([255, 0, 0, 255], "u1"), max_images=2)
        raw.WriteAudioSummary(writer=w, step=6, tag="au", tensor=np.zeros((1, 4), "f"), sample_rate=8000.0, max_outputs=1)
        graph = text_format.Parse(GRAPH, tf.compat.v1.GraphDef()) if tf.__name__ != "runnel.v2" else parsed(GRAPH)
        raw.WriteGraphSummary(writer=w, step=0, tensor=graph.SerializeToString())
        event = tf.compat.v1.Event(wall_time=12.5, step=9)
        event.summary.value.add(tag="e", simple_value=3.0)
        event.summary.value.add(tag="e2").tensor.CopyFrom(tf.make_tensor_proto([1, 2]))
        raw.ImportEvent(writer=w, event=event.SerializeToString())
        raw.ImportEvent(writer=w, event=tf.compat.v1.Event(file_version="x").SerializeToString())
        summary = tf.compat.v1.Summary()
        summary.value.add(tag="raw", simple_value=4.0)
        raw.WriteRawProtoSummary(writer=w, step=4, tensor=[summary.SerializeToString()])
        errors = [outcome(lambda: raw.WriteSummary(writer=w, step=3, tag="t", tensor=np.array([True]), summary_metadata=b"")),
                  outcome(lambda: raw.WriteSummary(writer=w, step=3, tag="t", tensor=np.float32(1), summary_metadata=b"\xff\xff")),
                  outcome(lambda: raw.WriteGraphSummary(writer=w, step=0, tensor=b"\n\x06\n\x01x\x1a\x01y"))]
        raw.FlushSummaryWriter(writer=w)
        raw.CloseSummaryWriter(writer=w)
        return contents(path), errors


def parsed(text):
    from runnel.core import text_format
    from runnel.core.protobuf import message_class
    return text_format.Parse(text, message_class("GraphDef")())


@both(v2=True)
def test_names(tf, np):
    """Runs of one name replace each other; users and experiments stay; without a run, tags belong to none."""
    import os
    import tempfile
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.sqlite")
        for i, names in enumerate((("e", "r", "u"), ("e", "r", "u"), ("e", "q", "u"), ("e", "r", "v"), ("", "r", ""), ("e", "", "u"), ("", "", ""))):
            w = opened(tf, "w%d" % i, path, *names)
            tf.raw_ops.WriteScalarSummary(writer=w, step=i, tag="a", value=np.float32(i))
            tf.raw_ops.CloseSummaryWriter(writer=w)
        results.append(contents(path))
        for bad in ("/nonexistent/folder/x.sqlite", folder):
            results.append(outcome(lambda bad=bad: opened(tf, "bad" + bad, bad, "e", "r", "u")))
        with open(os.path.join(folder, "text"), "w") as file:
            file.write("no database" * 1000)
        results.append(outcome(lambda: opened(tf, "text", os.path.join(folder, "text"), "e", "r", "u")))
    return results
