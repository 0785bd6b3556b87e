"""SavedModels, exchanged with stock TensorFlow in both directions: stock_test.py WRITE_TOOL RUNNEL

Both of stock's loaders load what WRITE_TOOL wrote. The command runs what stock writes: models of 1.x and 2.x, with assets, tables, several
graphs, and as text.
"""
import os
import re
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
try:
    import numpy as np
    import tensorflow as tf
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2
except ImportError:
    sys.exit(77)
v1 = tf.compat.v1
TOOL, RUNNEL = sys.argv[1:3]
WORDS = ["zero", "one", "two"]


def words_file(folder):
    path = os.path.join(folder, "words.txt")
    with open(path, "w") as file:
        file.write("\n".join(WORDS) + "\n")
    return path


def runnel(*args, fails=None):
    done = subprocess.run([RUNNEL, *args], capture_output=True, text=True)
    if fails:
        assert done.returncode == 1 and fails in done.stderr, (done.returncode, done.stderr)
        return None
    assert done.returncode == 0, done.stderr
    return [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", done.stdout.split("\n", 1)[1])]


def ours_in_stock(folder):
    model = os.path.join(folder, "ours")
    subprocess.run([TOOL, model, words_file(folder)], check=True)
    wanted = [[0.25, 0, 6.75], [0, 10.5, 0]]
    with v1.Session(graph=tf.Graph()) as session:
        meta = v1.saved_model.loader.load(session, ["serve"], model)
        signature = meta.signature_def["serving_default"]
        y = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: [[4, 1], [0, 2]]})
        np.testing.assert_array_equal(y, wanted)
        count = meta.signature_def["count"].outputs["count"].name
        assert [session.run(count) for _ in range(2)] == [42, 43]
        lookup = meta.signature_def["lookup"]
        numbers = session.run(lookup.outputs["numbers"].name, {lookup.inputs["words"].name: ["two", "zero", "?"]})
        assert numbers.tolist() == [2, 0, -1]
        # It saves and restores itself by the saver it came with.
        saver = meta.saver_def
        session.run(saver.save_tensor_name, {saver.filename_tensor_name: os.path.join(folder, "again")})
        session.run(saver.restore_op_name, {saver.filename_tensor_name: os.path.join(folder, "again")})
        assert session.run(count) == 44
    loaded = tf.saved_model.load(model)
    y = loaded.signatures["serving_default"](x=tf.constant([[4.0, 1], [0, 2]]))["y"]
    np.testing.assert_array_equal(y.numpy(), wanted)
    assert loaded.signatures["count"]()["count"].numpy() == 42
    # An object with variables, which can be trained.
    variables = {v.name: v for v in loaded.variables}
    assert sorted(variables) == ["counter:0", "layer/b:0", "layer/w:0"], sorted(variables)
    assert [variables[n].trainable for n in sorted(variables)] == [False, True, True]
    assert variables["counter:0"].numpy() == 42
    np.testing.assert_array_equal(variables["layer/w:0"].numpy(), [[1, -2, 3], [-4, 5, -6]])
    variables["layer/b:0"].assign([1, 1, 1])
    y = loaded.signatures["serving_default"](x=tf.constant([[4.0, 1], [0, 2]]))["y"]
    np.testing.assert_array_equal(y.numpy(), [[1, 0, 7], [0, 11, 0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.signatures["serving_default"](x=tf.constant([[4.0, 1]]))["y"])
    np.testing.assert_array_equal(tape.gradient(loss, variables["layer/b:0"]).numpy(), [1, 0, 1])
    numbers = loaded.signatures["lookup"](words=tf.constant(["two", "zero", "?"]))["numbers"]
    assert numbers.numpy().tolist() == [2, 0, -1]
    # Its objects are the parts of the variables' names.
    assert loaded.layer.b is variables["layer/b:0"] and loaded.counter.numpy() == 42
    assert [v.name for v in loaded.trainable_variables] == ["layer/w:0", "layer/b:0"]
    # What was loaded is saved by stock in its turn, and is a checkpoint for objects of that shape.
    tf.saved_model.save(loaded, os.path.join(folder, "by_stock"))
    assert tf.saved_model.load(os.path.join(folder, "by_stock")).layer.b.numpy().tolist() == [1, 1, 1]
    root = tf.train.Checkpoint(layer=tf.train.Checkpoint(w=tf.Variable(tf.zeros([2, 3]))))
    root.read(os.path.join(model, "variables", "variables")).expect_partial()
    assert root.layer.w.numpy().tolist() == [[1, -2, 3], [-4, 5, -6]]


def first_generation(folder):
    model = os.path.join(folder, "v1")
    builder = v1.saved_model.Builder(model)
    with v1.Session(graph=tf.Graph()) as session:
        x = v1.placeholder(tf.float32, [None], "x")
        a = v1.get_variable("a", initializer=0.5, use_resource=False)
        b = v1.get_variable("b", initializer=2.0, use_resource=True)
        y = tf.identity(a * x + b, "y")
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            words_file(folder), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        words = v1.placeholder(tf.string, [None], "words")
        ids = table.lookup(words)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        signatures = {
            "serving_default": v1.saved_model.predict_signature_def({"x": x}, {"y": y}),
            "ids": v1.saved_model.predict_signature_def({"words": words}, {"ids": ids}),
        }
        builder.add_meta_graph_and_variables(session, ["serve", "train"], signatures, main_op=v1.tables_initializer(),
                                             assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS))
    with v1.Session(graph=tf.Graph()) as session:
        x = v1.placeholder(tf.float32, [None], "x")
        a = v1.get_variable("a", initializer=0.0, use_resource=False)
        y = tf.identity(a * x, "y")
        session.run(v1.global_variables_initializer())
        builder.add_meta_graph(["serve"], {"serving_default": v1.saved_model.predict_signature_def({"x": x}, {"y": y})})
    builder.save()
    assert runnel("run", model, "--tags", "train,serve", "--feed", "x=[0,2,4]", "--fetch", "y") == [2, 3, 4]
    assert runnel("run", model, "--feed", "x=[0,2,4]") == [0, 1, 2]
    assert runnel("run", model, "--tags", "serve,train", "--signature", "ids", "--feed",
                  'words=["two","?","one"]') == [2, -1, 1]
    runnel("run", model, "--tags", "gpu", "--feed", "x=[1]", fails="--tags may be: ")
    runnel("run", model, "--signature", "nothing", "--feed", "x=[1]", fails="it has: serving_default")
    # The same as text.
    message = saved_model_pb2.SavedModel()
    with open(os.path.join(model, "saved_model.pb"), "rb") as file:
        message.ParseFromString(file.read())
    os.remove(os.path.join(model, "saved_model.pb"))
    with open(os.path.join(model, "saved_model.pbtxt"), "w") as file:
        file.write(text_format.MessageToString(message))
    assert runnel("run", model, "--tags", "train,serve", "--feed", "x=[0,2,4]") == [2, 3, 4]


def second_generation(folder):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2], [3, 4]])
            self.steps = tf.Variable(3)
            self.table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
                words_file(folder), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER), -1)

        @tf.function(input_signature=[tf.TensorSpec([None, 2])])
        def call(self, x):
            y = x
            for _ in tf.range(self.steps):
                y = tf.cond(tf.reduce_sum(y) > 100.0, lambda: y, lambda: tf.matmul(y, self.w))
            return {"y": y}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def ids(self, words):
            return {"ids": self.table.lookup(words)}

    module = Model()
    path = os.path.join(folder, "v2")
    tf.saved_model.save(module, path, signatures={"serving_default": module.call, "ids": module.ids})
    os.rename(path, path + "_moved")
    wanted = module.call(tf.constant([[1.0, 1]]))["y"].numpy().ravel().tolist()
    assert runnel("run", path + "_moved", "--feed", "x=[[1,1]]") == wanted
    assert runnel("run", path + "_moved", "--signature", "ids", "--feed", 'words=["one","none"]') == [1, -1]
    frozen = os.path.join(folder, "frozen.pb")
    subprocess.run([RUNNEL, "saved_model", "freeze", path + "_moved", frozen], check=True)
    assert runnel("run", frozen, "--feed", "x=[[1,1]]", "--fetch", "y") == wanted
    # Stock runs the frozen graph too.
    graph_def = v1.GraphDef()
    with open(frozen, "rb") as file:
        graph_def.ParseFromString(file.read())
    with v1.Session(graph=tf.Graph()) as session:
        tf.import_graph_def(graph_def, name="")
        assert session.run("y:0", {"x:0": [[1, 1]]}).ravel().tolist() == wanted


class Layer(tf.Module):
    def __init__(self):
        super().__init__()
        self.k = tf.Variable([1.0, 2], name="k")


def written_again(folder):
    """A model of stock's, loaded and written by C, has the objects it had, and the values that it has got."""
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2], [3, 4]], name="k")
            self.layer = Layer()
            self.more = [tf.Variable(1.0), Layer()]
            self.by_name = {"a": tf.Variable(5, trainable=False)}
            self.table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
                words_file(folder), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)

        @tf.function
        def __call__(self, x, scale=2.0):
            return tf.matmul(x, self.w) * scale + self.layer.k + self.more[1].k

        @tf.function(input_signature=[])
        def count(self):
            return {"count": self.by_name["a"].assign_add(1)}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def ids(self, words):
            return {"ids": self.table.lookup(words)}

    module = Model()
    module.more[1].k.assign([10.0, 20.0])
    first, second = module(tf.constant([[1.0, 1]])), module(tf.constant([[1.0, 1], [2, 2]]), scale=3.0)
    path, again = os.path.join(folder, "from"), os.path.join(folder, "to")
    tf.saved_model.save(module, path, signatures={"count": module.count, "ids": module.ids})
    subprocess.run([TOOL, "--again", path, again, "count", "count"], check=True)
    loaded = tf.saved_model.load(again)
    assert loaded.by_name["a"].numpy() == 6 and loaded.count()["count"].numpy() == 7
    np.testing.assert_array_equal(loaded(tf.constant([[1.0, 1]])), first)
    np.testing.assert_array_equal(loaded(tf.constant([[1.0, 1], [2, 2]]), scale=3.0), second)
    assert loaded.more[1].k.numpy().tolist() == [10, 20] and loaded.layer.k.numpy().tolist() == [1, 2]
    assert loaded.ids(tf.constant(["two", "?"]))["ids"].numpy().tolist() == [2, -1]
    assert sorted(loaded.signatures) == ["count", "ids"]
    before, after = (saved_model_pb2.SavedModel.FromString(open(os.path.join(p, "saved_model.pb"), "rb").read()).meta_graphs[0]
                     for p in (path, again))
    assert after.object_graph_def == before.object_graph_def and after.signature_def == before.signature_def
    assert os.path.exists(os.path.join(again, "assets", "words.txt"))
    assert runnel("run", again, "--signature", "ids", "--feed", 'words=["one","none"]') == [1, -1]


def main():
    for test in (ours_in_stock, first_generation, second_generation, written_again):
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
        print("good", test.__name__, flush=True)


if __name__ == "__main__":
    main()
