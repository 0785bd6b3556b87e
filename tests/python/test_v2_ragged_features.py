"""tf.io.RaggedFeature: examples whose features become ragged tensors, by each kind of partition."""

from both import both


def _example(tf, **features):
    made = tf.train.Features()
    for name, values in features.items():
        if values and isinstance(values[0], float):
            made.feature[name].float_list.value.extend(values)
        elif values and isinstance(values[0], bytes):
            made.feature[name].bytes_list.value.extend(values)
        else:
            made.feature[name].int64_list.value.extend(values)
    return tf.train.Example(features=made).SerializeToString()


def _examples(tf):
    return [
        _example(tf, v=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], lengths=[2, 0, 4], splits=[0, 2, 2, 6], starts=[0, 2, 2], limits=[2, 2, 6],
                 ids=[0, 0, 2, 2, 2, 2], outer=[1, 2], pairs=[2, 1], text=[b"a"]),
        _example(tf, v=[9.0, 8.0], lengths=[2], splits=[0, 2], starts=[0], limits=[2], ids=[1, 1], outer=[1], pairs=[1], text=[b"b", b"c"]),
        _example(tf, splits=[0])]


def _features(tf, splits_dtype):
    def of_values(*partitions, **options):
        return tf.io.RaggedFeature(tf.float32, "v", partitions, splits_dtype, **options)
    kind = tf.io.RaggedFeature
    return {"values": of_values(), "lengths": of_values(kind.RowLengths("lengths")), "splits": of_values(kind.RowSplits("splits")),
            "starts": of_values(kind.RowStarts("starts")), "limits": of_values(kind.RowLimits("limits"), validate=True),
            "ids": of_values(kind.ValueRowIds("ids")), "pairs": of_values(kind.UniformRowLength(2)),
            "two": of_values(kind.RowLengths("outer"), kind.RowLengths("lengths")),
            "ones": of_values(kind.UniformRowLength(1), kind.RowLengths("lengths")),
            "rows of pairs": of_values(kind.RowLengths("pairs"), kind.UniformRowLength(2)), "text": kind(tf.string, row_splits_dtype=splits_dtype)}


def _seen(x):
    return x.to_list() if hasattr(x, "to_list") else x.numpy().tolist(), x.shape.as_list(), x.dtype.name


@both(v2=True)
def test_batches(tf, np):
    seen = []
    for splits_dtype in (tf.int32, tf.int64):
        parsed = tf.io.parse_example(_examples(tf), _features(tf, splits_dtype))
        seen += [(key, _seen(parsed[key]), parsed[key].row_splits.dtype.name) for key in sorted(parsed)]
    return seen


@both(v2=True)
def test_single_examples(tf, np):
    features = {**_features(tf, tf.int64), "fixed": tf.io.FixedLenFeature([], tf.int64, 5)}
    seen = []
    for example in _examples(tf):
        parsed = tf.io.parse_single_example(example, features)
        seen += [(key, _seen(parsed[key])) for key in sorted(parsed)]
    return seen


@both(v2=True)
def test_in_a_pipeline(tf, np):
    features = {key: feature for key, feature in _features(tf, tf.int64).items() if key in ("two", "ids", "text")}
    found = tf.data.Dataset.from_tensor_slices(_examples(tf)).batch(2).map(lambda x: tf.io.parse_example(x, features))
    return [[parsed[key].to_list() for key in sorted(features)] for parsed in found]


@both(v2=True, raises=True, message=True)
def test_key_that_is_no_string(tf, np):
    tf.io.RaggedFeature(tf.int64, 3)


@both(v2=True, raises=True, message=True)
def test_types_that_examples_lack(tf, np):
    tf.io.parse_example([b""], {"a": tf.io.RaggedFeature(tf.int32)})


@both(v2=True, raises=True, message=True)
def test_two_types_of_a_feature(tf, np):
    tf.io.parse_example([b""], {"a": tf.io.RaggedFeature(tf.int64), "b": tf.io.RaggedFeature(tf.float32, "a")})


@both(v2=True, raises=True, message=True)
def test_two_types_of_splits(tf, np):
    tf.io.parse_example([b""], {"a": tf.io.RaggedFeature(tf.int64), "b": tf.io.RaggedFeature(tf.int64, "a", row_splits_dtype=tf.int64)})


@both(v2=True, raises=True, message=True)
def test_sparse_and_ragged(tf, np):
    tf.io.parse_example([b""], {"a": tf.io.VarLenFeature(tf.int64), "b": tf.io.RaggedFeature(tf.int64, "a")})


@both(v2=True, raises=True)
def test_what_is_no_partition(tf, np):
    tf.io.RaggedFeature(tf.int64, partitions=[3])
