"""Names of 2.x: fingerprints, asynchronous scopes."""

from both import both


@both(v2=True)
def test_fingerprints(tf, np):
    import os
    import tempfile
    e = tf.saved_model.experimental
    f = e.Fingerprint(1, 2, 3, 4, 5)
    results = [str(f), repr(f), f.singleprint(), f == e.Fingerprint(1, 2, 3, 4, 5, 9), f == e.Fingerprint(1, 2, 3, 4, 6), f == 3, f.version]
    data = b"\x08\x01\x10\x02\x18\x03\x20\x04\x28\x05\x32\x02\x08\x07"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "fingerprint.pb"), "wb") as file:
            file.write(data)
        read = e.read_fingerprint(folder)
        results += [repr(read), read.version.producer, read == f, e.Fingerprint.from_proto(data) == f]
        for bad in (b"\xff\xff\xff", None):
            if bad is None:
                os.remove(os.path.join(folder, "fingerprint.pb"))
            else:
                with open(os.path.join(folder, "fingerprint.pb"), "wb") as file:
                    file.write(bad)
            try:
                e.read_fingerprint(folder)
            except (FileNotFoundError, RuntimeError) as error:
                results += [type(error).__name__, str(error).split("\n")[0].replace(folder, "FOLDER")]
    for values in ((), (1, 2, 3, 4, -1), (1, 2, 3, "4", 5)):
        try:
            e.Fingerprint(*values).singleprint()
        except ValueError as error:
            results.append(type(error).__name__)
    return results


@both(v2=True)
def test_scopes(tf, np):
    v = tf.Variable(0.0)

    @tf.function
    def step(x):
        v.assign_add(x)
        return v * 2

    with tf.experimental.async_scope():
        for i in range(3):
            last = step(float(i))
    results = [last, v.read_value()]
    try:
        with tf.experimental.async_scope():
            tf.debugging.assert_equal(tf.constant(1), tf.constant(2))
    except tf.errors.InvalidArgumentError:
        tf.experimental.async_clear_error()
        results.append("caught")
    with tf.experimental.function_executor_type("DEFAULT"):
        results.append(step(1.0))
    return results


@both(v2=True)
def test_shared_embeddings(tf, np):
    column = tf.feature_column.categorical_column_with_identity
    try:
        tf.feature_column.shared_embeddings([column("a", 3), column("b", 3)], 2)
        return "no error"
    except RuntimeError as error:
        eager = str(error)
    with tf.Graph().as_default():
        made = tf.feature_column.shared_embeddings([column("b", 3), column("a", 3)], 2)
        errors = []
        for columns, size in (([column("a", 3), column("b", 4)], 2), ([column("a", 3)], 0)):
            try:
                tf.feature_column.shared_embeddings(columns, size)
            except ValueError as error:
                errors.append(type(error).__name__)
    return eager, [x.name for x in made], errors


@both(v2=True)
def test_shuffled_elements_by_index(tf, np):
    at, results = tf.data.experimental.at, []
    for kw in ({"seed": 7}, {"seed": 7, "reshuffle_each_iteration": False}, {"seed": 3, "reshuffle_each_iteration": True}):
        dataset = tf.data.Dataset.range(10).shuffle(3, **kw)
        results += [[at(dataset, i) for i in range(10)], len(list(dataset)), [at(dataset.map(lambda x: x * 2), i) for i in range(3)]]
        for bad in (10, -1):
            try:
                at(dataset, bad)
            except tf.errors.OutOfRangeError:
                results.append("out of range")
    try:
        at(tf.data.Dataset.range(4).filter(lambda x: True).shuffle(3, seed=5), 0)
    except tf.errors.FailedPreconditionError:
        results.append("unknown cardinality")
    kind = {"output_types": [tf.int64], "output_shapes": [[]]}
    twice = tf.raw_ops.ShuffleAndRepeatDataset(input_dataset=tf.data.Dataset.range(4)._variant_tensor, buffer_size=3, seed=1, seed2=2, count=2,
                                               reshuffle_each_iteration=False, **kind)
    for i in range(8):  # places are among all walks, and only those of the first one are there
        try:
            results.append(tf.raw_ops.GetElementAtIndex(dataset=twice, index=i, **kind)[0])
        except tf.errors.OutOfRangeError:
            results.append("out of range")
    return results
