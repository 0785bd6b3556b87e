"""RaggedFeature and tf.io.parse_sequence_example."""

from both import both


def feature(tf, values):
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def features(tf, **values):
    return tf.train.Features(feature={key: feature(tf, value) for key, value in values.items()})


def examples(tf):
    return [tf.train.Example(features=features(tf, **values)).SerializeToString() for values in (
        dict(v=[3, 1, 4, 1, 5, 9], s=[0, 2, 3, 3, 6], t=[0, 2, 3, 4], l=[2, 1, 0, 3], st=[0, 2, 3, 3], e=[2, 3, 3, 6], ids=[0, 0, 1, 3, 3, 3], d=[1], b=[b"x", b"y"]),
        dict(v=[2, 7, 1, 8, 2, 8], s=[0, 3, 4, 5, 6], t=[0, 1, 1, 4], l=[3, 1, 1, 1], st=[0, 3, 4, 5], e=[3, 4, 5, 6], ids=[0, 0, 0, 1, 2, 3], d=[2]))]


def kinds(tf, **more):
    r = tf.io.RaggedFeature
    return {"plain": r(tf.int64, "v", **more), "splits": r(tf.int64, "v", [r.RowSplits("s")], **more), "lengths": r(tf.int64, "v", [r.RowLengths("l")], **more),
            "starts": r(tf.int64, "v", [r.RowStarts("st")], **more), "limits": r(tf.int64, "v", [r.RowLimits("e")], **more),
            "ids": r(tf.int64, "v", [r.ValueRowIds("ids")], **more), "two": r(tf.int64, "v", [r.RowSplits("t"), r.RowSplits("s")], **more),
            "uniform": r(tf.int64, "v", [r.UniformRowLength(2)], **more), "uniform_outer": r(tf.int64, "v", [r.UniformRowLength(2), r.RowSplits("s")], **more),
            "uniform_inner": r(tf.int64, "v", [r.UniformRowLength(3), r.UniformRowLength(2)], **more), "b": r(tf.string, **more),
            "d": tf.io.FixedLenFeature([], tf.int64), "none": r(tf.float32, **more)}


def shown(tf, parsed):
    if isinstance(parsed, tuple):
        return [shown(tf, part) for part in parsed]
    found = {}
    for key, value in sorted(parsed.items()):
        if isinstance(value, tf.RaggedTensor):
            found[key] = (value.to_list(), str(value.shape), value.row_splits.dtype.name, value.ragged_rank)
        elif isinstance(value, tf.SparseTensor):
            found[key] = [value.indices, value.values, value.dense_shape]
        else:
            found[key] = value
    return found


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


@both(v2=True)
def test_ragged_features(tf, np):
    batch = examples(tf)
    results = []
    for more in ({}, {"row_splits_dtype": tf.int64, "validate": True}):
        results += [shown(tf, tf.io.parse_example(batch, kinds(tf, **more))), shown(tf, tf.io.parse_single_example(batch[0], kinds(tf, **more)))]
    dataset = tf.data.Dataset.from_tensor_slices(batch).batch(2).map(lambda x: tf.io.parse_example(x, kinds(tf)))
    return results + [shown(tf, element) for element in dataset]


@both(v2=True)
def test_bad_ragged_features(tf, np):
    r, batch = tf.io.RaggedFeature, examples(tf)
    return [outcome(call) for call in (
        lambda: r(tf.int32), lambda: r(tf.int64, ""), lambda: r(tf.int64, 3), lambda: r(tf.int64, partitions=[3]), lambda: r(tf.int64, partitions=3),
        lambda: r(tf.int64, row_splits_dtype=tf.float32), lambda: r(tf.int64, validate=1),
        lambda: tf.io.parse_example(batch, {"v": r(tf.int64), "w": r(tf.float32, "v")}),
        lambda: tf.io.parse_example(batch, {"v": r(tf.int64), "w": r(tf.int64, "v", row_splits_dtype=tf.int64)}),
        lambda: tf.io.parse_example(batch, {"v": r(tf.int64), "w": tf.io.FixedLenFeature([], tf.int64), "x": r(tf.int64, "w")}),
        lambda: tf.io.parse_example(batch, {"v": r(tf.int64), "w": tf.io.VarLenFeature(tf.int64), "x": r(tf.int64, "w")}),
        lambda: tf.io.parse_example(batch, {"v": r(tf.int64, "v", [r.RowSplits("l")], validate=True)}))]


def sequences(tf):
    rows = ((dict(a=[1], r=[5, 6, 7], s=[0, 1, 3]), {"x": [[1, 2], [3], [4, 5, 6]], "p": [[1, 1], [1], [1, 0, 2]], "y": [[1.5, 2.0]], "z": [[b"q"], [b"r", b"s"]]}),
            (dict(a=[2], r=[], s=[0]), {"x": [[9, 8]], "p": [[2]]}))
    return [tf.train.SequenceExample(
        context=features(tf, **context), feature_lists=tf.train.FeatureLists(feature_list={
            key: tf.train.FeatureList(feature=[feature(tf, step) for step in steps]) for key, steps in lists.items()})).SerializeToString()
        for context, lists in rows]


@both(v2=True)
def test_sequences(tf, np):
    r, batch = tf.io.RaggedFeature, sequences(tf)
    context = {"a": tf.io.FixedLenFeature([], tf.int64), "r": r(tf.int64), "rs": r(tf.int64, "r", [r.RowSplits("s")])}
    steps = {"x": r(tf.int64), "xp": r(tf.int64, "x", [r.RowLengths("p")], validate=True), "z": tf.io.VarLenFeature(tf.string),
             "y": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)}
    results = [shown(tf, tf.io.parse_sequence_example(batch, context, steps)), shown(tf, tf.io.parse_single_sequence_example(batch[0], context, steps))]
    results.append(shown(tf, tf.io.parse_sequence_example(batch, {"a": tf.io.VarLenFeature(tf.int64), "w": tf.io.FixedLenFeature([1], tf.int64, [7])})))
    results.append(shown(tf, tf.io.parse_sequence_example(batch, None, {"x": tf.io.VarLenFeature(tf.int64)}, example_names=["one", "two"])))
    return results + [outcome(call) for call in (
        lambda: tf.io.parse_sequence_example(batch), lambda: tf.io.parse_sequence_example(batch, {"a": tf.io.FixedLenSequenceFeature([], tf.int64)}),
        lambda: tf.io.parse_sequence_example(batch, None, {"y": tf.io.FixedLenSequenceFeature([2], tf.float32)}),
        lambda: tf.io.parse_sequence_example(batch, None, {"y": tf.io.FixedLenSequenceFeature([2], tf.float32, True, 1.0)}),
        lambda: tf.io.parse_sequence_example(batch, None, {"x": tf.io.FixedLenFeature([2], tf.float32)}))]
