"""Ops that only graphs of version 18 and earlier may have: Skipgram and NegTrain."""

import pytest

from both import both


def old_graph(tf, fill):
    """Returns a graph of version 18 with the nodes that `fill` adds to a GraphDef."""
    definition = tf.GraphDef()
    definition.versions.producer = 18
    fill(definition)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return graph


def node(tf, definition, name, op, inputs=(), **attrs):
    made = definition.node.add(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        attr = made.attr[key]
        if isinstance(value, tf.DType):
            attr.type = value.as_datatype_enum
        elif isinstance(value, str):
            attr.s = value.encode()
        elif isinstance(value, int):
            attr.i = value
        elif isinstance(value, float):
            attr.f = value
        elif isinstance(value, list):
            attr.list.i.extend(value)
        else:
            attr.tensor.CopyFrom(tf.make_tensor_proto(value)) if key == "value" else attr.shape.CopyFrom(tf.TensorShape(value).as_proto())


TEXTS = ("contains too little data: 3 words", "Must be a matrix", "w_in.shape == w_out.shape", "Must be a vector", "examples.shape == labels.shape",
         "Must be a scalar", "vocab_size mismatches: 3 vs. 2")


def outcome(call):
    """Returns a result, or the class of an error and the text of TEXTS that is in its message."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, [text for text in TEXTS if text in str(error)]


def words():
    """A text whose words have different counts."""
    text = []
    for i in range(40):
        text += ["w%d" % i] * (3 * i + 1)
    return "\n ".join(text[i * 11 % len(text)] for i in range(len(text)))


def skipgram(tf, path, steps, **attrs):
    graph = old_graph(tf, lambda d: node(tf, d, "s", "Skipgram", filename=path, **attrs))
    with tf.Session(graph=graph) as sess:
        return [sess.run(["s:%d" % i for i in range(7)]) for _ in range(steps)]


@both
def test_skipgram(tf, np):
    import tempfile
    results = []
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(words())
        file.flush()
        for attrs in ({}, {"window_size": 3, "min_count": 20, "subsample": 0.0}, {"window_size": 8, "subsample": 0.1}):
            results.append(skipgram(tf, file.name, 3, batch_size=1700, **attrs))
        results.append(skipgram(tf, file.name, 1, batch_size=3000))
        results.append(skipgram(tf, file.name, 2, batch_size=0))
    return results


@both
def test_bad_skipgrams(tf, np):
    import tempfile
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("a few words")
        file.flush()
        return [outcome(lambda path=path: skipgram(tf, path, 1, batch_size=4)) for path in (file.name, "/nonexistent/words")]


def neg_train(tf, np, vocab_count, samples, w_in, w_out, examples, labels, rate):
    def fill(d):
        for name, value in (("w_in", w_in), ("w_out", w_out)):
            node(tf, d, name, "VariableV2", dtype=tf.float32, shape=value.shape)
            node(tf, d, name + "_value", "Const", dtype=tf.float32, value=value)
            node(tf, d, name + "_assign", "Assign", [name, name + "_value"], T=tf.float32)
        for name, value in (("examples", examples), ("labels", labels), ("lr", rate)):
            node(tf, d, name, "Const", dtype=tf.as_dtype(value.dtype), value=value)
        node(tf, d, "train", "NegTrain", ["w_in", "w_out", "examples", "labels", "lr"], vocab_count=vocab_count, num_negative_samples=samples)
    with tf.Session(graph=old_graph(tf, fill)) as sess:
        sess.run(["w_in_assign", "w_out_assign"])
        sess.run("train")
        return sess.run(["w_in:0", "w_out:0"])


@both
def test_neg_train(tf, np):
    """Where samples are random, one word is the only one that can be drawn."""
    rng = np.random.RandomState(0)
    w_in, w_out = rng.randn(2, 3, 4).astype("f")
    words, labels, rate = np.array([0, 2, 2], "i"), np.array([1, 0, 2], "i"), np.array(0.25, "f")
    return [neg_train(tf, np, counts, samples, w_in, w_out, words, labels, rate) for counts, samples in (([5, 6, 7], 0), ([0, 9, 0], 3), ([5, 6, 7], -1))]


@both
def test_bad_neg_train(tf, np):
    w, one = np.ones((3, 4), "f"), np.array(1, "f")
    words = np.array([0, 1], "i")
    rows = [([1] * 3, w[0], w[0], words, words, one), ([1] * 3, w, w[:, :2], words, words, one), ([1] * 3, w, w, words[None], words, one),
            ([1] * 3, w, w, words, words[:1], one), ([1] * 3, w, w, words, words, w[0]), ([1] * 2, w, w, words, words, one)]
    return [outcome(lambda row=row: neg_train(tf, np, row[0], 0, *row[1:])) for row in rows]


def test_words_out_of_range():
    """Stock ends the process, or writes outside of its memory."""
    import numpy as np
    import runnel as tf
    w, words, one = np.ones((3, 4), "f"), np.array([0, 1], "i"), np.array(1, "f")
    for bad in (3, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"labels\[1\] = %d is not in \[0, 3\)" % bad):
            neg_train(tf, np, [1] * 3, 0, w, w, words, np.array([0, bad], "i"), one)
    assert outcome(lambda: neg_train(tf, np, [0] * 3, 2, w, w, words, words, one))[0] == "InvalidArgumentError"
    assert outcome(lambda: neg_train(tf, np, [-1] * 3, 2, w, w, words, words, one))[0] == "InvalidArgumentError"
    for attrs in ({"window_size": 0, "batch_size": 1}, {"batch_size": -1}):
        assert outcome(lambda attrs=attrs: skipgram(tf, __file__, 1, **attrs))[0] == "InvalidArgumentError"
