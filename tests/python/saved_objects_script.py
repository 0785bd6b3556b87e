"""A program that runs here and in stock TensorFlow: saved_objects_script.py save|check|again FOLDER WORDS, after a line that imports tf."""

import sys

import numpy as np


def run(tf, what, folder, words):
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.k = tf.Variable([1.0, 2], name="k")

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2], [3, 4]], name="k")
            self.n = tf.Variable(3, trainable=False, name="scope/n")
            self.layer, self.more, self.by_name = Layer(), [tf.Variable(1.0), Layer()], {"a.b": tf.Variable(2.0)}
            self.constant = tf.constant([7.0, 8])
            self.lines = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
                words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
            self.pairs = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
                tf.constant(["a", "b"]), tf.constant([5, 6], tf.int64)), -1)
            self.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.points = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])

        @tf.function(input_signature=[tf.TensorSpec([None, 2])])
        def product(self, x):
            return {"y": tf.matmul(x, self.w) + self.layer.k + self.constant, "n": self.n.read_value()}

        @tf.function
        def free(self, x, scale=2.0, *, flag=True):
            return (x * scale if flag else x), {"k": [self.more[1].k + x]}

        @tf.function
        def __call__(self, x):
            return x + self.layer.k

        @tf.function(input_signature=[])
        def count(self):
            self.n.assign_add(1)
            return {"n": self.n.read_value()}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def ids(self, words):
            return self.lines.lookup(words), self.pairs.lookup(words)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words"), tf.TensorSpec([None], tf.int64, name="places")])
        def learned(self, words, places):
            return {"count": self.counts.lookup(words), "point": self.points.lookup(places)}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words"), tf.TensorSpec([None], tf.int64, name="counts")])
        def learn(self, words, counts):
            self.counts.insert(words, counts)
            return self.counts.size()

    x = tf.constant([1.0, 2])
    if what == "save":
        model = Model()
        model.more[1].k.assign([10.0, 20.0])
        model.learn(tf.constant(["one", "two"]), tf.constant([1, 2], tf.int64))
        model.points.insert(tf.constant([7], tf.int64), tf.constant([[0.5, 1.5]]))
        model.free(x), model.free(x, 3.0), model.free(x, flag=False), model(x)
        tf.saved_model.save(model, folder, signatures={"serving_default": model.product, "ids": model.ids, "count": model.count,
                                                         "learned": model.learned})
        return
    loaded = (tf.saved_model.load_v2 if hasattr(tf.saved_model, "load_v2") else tf.saved_model.load)(folder)
    same = np.testing.assert_array_equal
    same(loaded.product(tf.constant([[1.0, 1]]))["y"], [[12, 16]])
    same(loaded(x), [2, 4])
    for (first, second), wanted in ((loaded.free(x), [2, 4]), (loaded.free(x, 3.0), [3, 6]), (loaded.free(x, flag=False), [1, 2])):
        same(first, wanted)
        same(second["k"][0], [11, 22])
    assert [x.numpy().tolist() for x in loaded.ids(tf.constant(["two", "b", "?"]))] == [[2, -1, -1], [-1, 6, -1]]
    assert loaded.more[0].numpy() == 1 and loaded.by_name["a.b"].numpy() == 2 and loaded.layer.k.trainable and not loaded.n.trainable
    signatures = loaded.signatures
    assert sorted(signatures) == ["count", "ids", "learned", "serving_default"]
    # What the tables learned is there, they go on learning, and what they learn is saved again.
    size = 4 if what == "check" else 3
    assert int(loaded.learn(tf.constant(["three"]), tf.constant([3], tf.int64)).numpy()) == size
    for learned in (loaded.learned, signatures["learned"]):
        found = learned(words=tf.constant(["two", "three", "none"]), places=tf.constant([7, 8], tf.int64))
        same(found["count"], [2, 3, -1])
        same(found["point"], [[0.5, 1.5], [0, 0]])
    loaded.learn(tf.constant(["four"]), tf.constant([4], tf.int64))
    same(signatures["serving_default"](x=tf.constant([[1.0, 1]]))["y"], [[12, 16]])
    same(signatures["ids"](words=tf.constant(["one"]))["output_0"], [1])
    before = int(loaded.n.numpy())
    assert int(signatures["count"]()["n"].numpy()) == before + 1 == int(loaded.n.numpy())
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.product(tf.constant([[1.0, 1]]))["y"])
    same(tape.gradient(loss, loaded.w), [[1, 1], [1, 1]])
    try:
        loaded.free(tf.constant([[1.0]]))
    except ValueError as error:
        assert "Could not find matching concrete function" in str(error), error
    else:
        raise AssertionError("called with arguments that it was not traced for")
    loaded.n.assign(3)
    if what == "again":
        tf.saved_model.save(loaded, folder + "_again", signatures=dict(signatures))


if __name__ == "__main__":
    import tensorflow
    run(tensorflow, *sys.argv[1:])
