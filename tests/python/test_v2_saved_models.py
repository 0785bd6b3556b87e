"""tf.saved_model of 2.x: objects, functions, signatures, assets, resources, registered classes and parts of models."""

import json
import os
import subprocess
import sys

import pytest
from both import ROOT, both
from support import stock


@both(v2=True)
def test_objects_come_back(tf, np):
    import tempfile
    folder = tempfile.mkdtemp()
    root = tf.Module()
    root.rows, root.names, root.pair = [tf.Variable(1.0), tf.Variable([2.0])], {"a": tf.Variable(3)}, (tf.Variable(4.0), tf.Variable(5.0))
    root.f = tf.function(lambda x: {"sum": x + root.rows[0], "both": [x, x * root.pair[1]]}, input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(root, folder)
    for _ in range(2):
        root = tf.saved_model.load(folder)
        folder = tempfile.mkdtemp()
        tf.saved_model.save(root, folder)
    loaded = tf.saved_model.load(folder)
    out = loaded.f(tf.constant([1.0, 2.0]))
    return [[v.numpy() for v in loaded.rows], loaded.names["a"].numpy(), [v.numpy() for v in loaded.pair], out["sum"].numpy(),
            [x.numpy() for x in out["both"]], list(loaded.signatures)]


@both(v2=True)
def test_untracked_resources(tf, np):
    import tempfile
    out, outside = [], tf.Variable(1.0)
    for signature in (None, [tf.TensorSpec([], tf.float32)]):
        root = tf.Module()
        root.f = tf.function(lambda x: x + outside, input_signature=signature)
        root.f(tf.constant(1.0))
        try:
            tf.saved_model.save(root, tempfile.mkdtemp())
        except (KeyError, AssertionError) as error:
            out.append([type(error).__name__, "untracked" in str(error), "reachable from root" in str(error)])
    return out


@both(v2=True)
def test_assets(tf, np):
    import tempfile
    folder, files = tempfile.mkdtemp(), tempfile.mkdtemp()
    for name in ("a", "b"):
        os.mkdir(os.path.join(files, name))
        with open(os.path.join(files, name, "words"), "w") as file:
            file.write("one %s" % name)
    root = tf.Module()
    root.one, root.two = (tf.saved_model.Asset(os.path.join(files, name, "words")) for name in ("a", "b"))
    root.read = tf.function(lambda: [tf.io.read_file(root.one.asset_path), tf.io.read_file(root.two.asset_path)], input_signature=[])
    tf.saved_model.save(root, folder)
    loaded = tf.saved_model.load(folder)
    return [[x.numpy() for x in loaded.read()], sorted(os.listdir(os.path.join(folder, "assets")))]


@both(v2=True)
def test_parts_of_models(tf, np):
    import tempfile
    folder, out = tempfile.mkdtemp(), []
    root = tf.Module()
    root.a, root.b = tf.Module(), tf.Module()
    root.a.v, root.b.v = tf.Variable(1.0), tf.Variable(2.0)
    tf.saved_model.save(root, folder)
    found = tf.__internal__.saved_model.load_partial(folder, ["root.b"])
    out += [sorted(found), found["root.b"].v.numpy()]
    mine = tf.Module()
    mine.v = tf.Variable(9.0)
    tf.__internal__.saved_model.load_partial(folder, {"root.a": mine})
    out.append(mine.v.numpy())
    for bad in (["a"], ["root.c"]):
        try:
            tf.__internal__.saved_model.load_partial(folder, bad)
        except ValueError as error:
            out.append(str(error))
    return out


@both(v2=True)
def test_options(tf, np):
    import tempfile
    out, folder = [], tempfile.mkdtemp()
    root = tf.Module()
    root.v = tf.Variable(3.0)
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(root, folder, options=tf.saved_model.SaveOptions(function_aliases={"twice": root.f}, extra_tags=["more"]))
    loaded = tf.saved_model.load(folder, options=tf.saved_model.LoadOptions(experimental_load_function_aliases=True))
    out += [sorted(loaded.function_aliases), loaded.f(tf.constant(2.0)).numpy()]
    for tags in ("serve", ["serve", "more"]):
        try:
            out.append(tf.saved_model.load(folder, tags=tags).v.numpy())
        except ValueError as error:
            out.append(str(error).split(":")[0])
    try:
        loaded.f(tf.constant([1, 2]))
    except (TypeError, ValueError) as error:
        out.append(type(error).__name__)
    try:
        loaded.signatures["serving_default"](tf.constant(1.0), tf.constant(2.0))
    except TypeError:
        out.append("refused")
    return out


@both(v2=True)
def test_composite_arguments(tf, np):
    import tempfile
    folder = tempfile.mkdtemp()
    root = tf.Module()
    root.f = tf.function(lambda r, s: (r * 2, tf.sparse.to_dense(s)), input_signature=[
        tf.RaggedTensorSpec([None, None], tf.int32), tf.SparseTensorSpec([2, 2], tf.float32)])
    tf.saved_model.save(root, folder)
    loaded = tf.saved_model.load(folder)
    a, b = loaded.f(tf.ragged.constant([[1, 2], [3]]), tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]]))
    return a.to_list(), b.numpy()


@both(v2=True)
def test_graphs(tf, np):
    """Objects of a graph are saved with a session's values; those loaded into a graph get theirs from their initializers."""
    import tempfile
    folder, v1 = tempfile.mkdtemp(), tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        root = tf.Module()
        root.v, root.w = tf.Variable(2.0, name="v"), tf.Variable([1.0, 2.0], name="w", trainable=False)
        root.f = tf.function(lambda x: {"y": x * root.v + root.w}, input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        session.run(v1.global_variables_initializer())
        session.run(root.v.assign(5.0))
        tf.saved_model.save(root, folder)
    loaded = tf.saved_model.load(folder)
    out = [loaded.f(tf.constant([1.0, 1.0]))["y"]]
    with tf.Graph().as_default() as graph, v1.Session() as session:
        loaded = tf.saved_model.load(folder)
        y, served = loaded.f(tf.constant([1.0, 3.0]))["y"], loaded.signatures["serving_default"](x=tf.constant([2.0, 3.0]))["y"]
        session.run(v1.global_variables_initializer())
        out += session.run([y, served, loaded.w])
        names = sorted(v.name for v in graph.get_collection("variables")), [v.name for v in graph.get_collection("trainable_variables")]
        again = tempfile.mkdtemp()
        tf.saved_model.save(loaded, again)
    loaded = tf.saved_model.load(again)
    return [*out, names, loaded.f(tf.constant([0.0, 1.0]))["y"]]


@both(v2=True)
def test_loaded_functions(tf, np):
    import tempfile
    root, folder = tf.Module(), tempfile.mkdtemp()
    root.v = tf.Variable([1.0, 2.0])
    root.f = tf.function(lambda x, scale=2.0: {"y": x * root.v, "z": scale * x}).get_concrete_function(tf.TensorSpec([2], tf.float32))
    root.g = tf.function(lambda x: x + root.v, input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    tf.saved_model.save(root, folder)
    loaded = tf.saved_model.load(folder)
    f, g = loaded.f, loaded.g.get_concrete_function()
    return [[p.name for p in f.function_type.parameters.values()], sorted(x.name for x in f.structured_outputs.values()),
            [x.dtype.name for x in f.inputs],
            [x.shape.as_list() for x in f.outputs], len(f.graph.external_captures), f.graph.external_captures[0] is loaded.v.handle,
            "ReadVariableOp" in {op.type for op in f.graph.get_operations()}, [v is loaded.v for v in g.variables],
            g.function_def.signature.input_arg[0].name]


@both(v2=True)
def test_creators_and_scopes(tf, np):
    import tempfile
    root, folder, made = tf.Module(), tempfile.mkdtemp(), []
    root.v = tf.Variable([1.0, 2.0], name="v")
    tf.saved_model.save(root, folder)

    def creator(next_creator, **kwargs):
        made.append((kwargs["name"], tf.TensorShape(kwargs["shape"]).as_list(), kwargs["trainable"]))
        return next_creator(**kwargs)
    with tf.variable_creator_scope(creator):
        loaded = tf.saved_model.load(folder)
    with tf.compat.v1.variable_scope("inside"):
        name = tf.saved_model.load(folder).v.name, tf.Variable(1.0, name="own").name, tf.compat.v1.get_variable("got", []).name
    return [made, loaded.v.numpy(), name]


@both(v2=True)
def test_composite_signatures(tf, np):
    import tempfile
    root, folder = tf.Module(), tempfile.mkdtemp()
    root.f = tf.function(lambda x: {"rows": x, "sum": tf.reduce_sum(x)}, input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    tf.saved_model.save(root, folder)
    loaded = tf.saved_model.load(folder)
    given = {"x": tf.constant([1.0, 2.0, 3.0]), "x_1": tf.constant([0, 2, 3], tf.int64)}
    served = loaded.signatures["serving_default"](**given)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        rows = meta.signature_def["serving_default"].outputs["rows"]
        feeds = {meta.signature_def["serving_default"].inputs[key].name: value.numpy() for key, value in given.items()}
        parts = session.run([part.name for part in rows.composite_tensor.components], feeds)
        back = session.run(tf.compat.v1.saved_model.get_tensor_from_tensor_info(rows), feeds)
    return [served["rows"].to_list(), served["sum"], parts, back.to_list()]


PROGRAM = """
import json, sys
sys.path[:0] = [%r]
%s
folder = sys.argv[2]

class Counter(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.count, self.rows = tf.Variable(0), [tf.Variable([1.0, 2.0])]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def find(self, keys):
        self.count.assign_add(1)
        return {"found": self.table.lookup(keys), "count": self.count}

if sys.argv[1] == "write":
    made = Counter()
    made.table.insert(["a", "b"], [1, 2])
    made.find(tf.constant(["x"]))
    tf.saved_model.save(made, folder)
else:
    made = tf.saved_model.load(folder)
out = made.find(tf.constant(["a", "b", "c"]))
served = made.signatures["serving_default"](keys=tf.constant(["b"])) if sys.argv[1] != "write" else None
print(json.dumps([out["found"].numpy().tolist(), int(out["count"]), made.rows[0].numpy().tolist()]))
"""


@pytest.mark.skipif(not stock.is_there(), reason="no stock TensorFlow")
@pytest.mark.parametrize("writer,reader", [("ours", "stock"), ("stock", "ours")])
def test_models_are_exchanged_with_stock(tmp_path, writer, reader):
    """A model with a mutable table, a list of variables, and a function that changes a variable."""
    results = []
    for who, what in ((writer, "write"), (reader, "read")):
        program = PROGRAM % (os.path.join(ROOT, "python"), "import runnel.v2 as tf" if who == "ours" else "import tensorflow as tf")
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([sys.executable, "-c", program, what, str(tmp_path / "model")], stdout=subprocess.PIPE, check=True, text=True,
                              env=environment)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    assert results[0] == results[1]


def test_variables_named_like_tensors(tmp_path):
    import runnel.v2 as tf
    module = tf.Module()
    module.mean, module.total = tf.Variable(3.0, name="total:0"), tf.Variable(4.0, name="total")  # metrics of tf_keras are named so
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert (float(loaded.mean), float(loaded.total)) == (3.0, 4.0)
