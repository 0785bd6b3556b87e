"""Datasets of sparse and ragged tensors, datasets and Nones; functions of ragged tensors; as in stock's TensorFlow 2."""

from both import both


def _lists(value):
    return value.to_list() if hasattr(value, "to_list") else value


@both(v2=True)
def test_sparse_elements(tf, np):
    sparse = tf.sparse.from_dense([[1, 0, 2], [0, 3, 0]])
    whole = tf.data.Dataset.from_tensors(sparse).repeat(3)
    rows = tf.data.Dataset.from_tensor_slices((sparse, [10, 20]))
    mapped = rows.map(lambda row, x: (tf.sparse.to_dense(row) * x, row))
    return [[tf.sparse.to_dense(x) for x in whole.batch(2)], [tf.sparse.to_dense(x) for x in whole.unbatch()], [repr(d.element_spec) for d in (whole, rows, mapped)],
            [x for x, _ in mapped], tf.sparse.to_dense(whole.batch(3, drop_remainder=True).get_single_element())]


@both(v2=True)
def test_ragged_elements(tf, np):
    ragged = tf.ragged.constant([[1, 2], [], [3, 4, 5]])
    rows = tf.data.Dataset.from_tensor_slices(ragged)
    whole = tf.data.Dataset.from_tensors(ragged)
    grown = tf.data.Dataset.range(4).map(lambda x: tf.range(x)).ragged_batch(2)
    return [list(rows), [_lists(x) for x in rows.batch(2)], list(whole.unbatch()), [_lists(x) for x in grown],
            [_lists(x) for x in whole.map(lambda x: x + 1)], [repr(d.element_spec) for d in (rows, rows.batch(2), whole, grown)]]


@both(v2=True)
def test_nested_elements(tf, np):
    windows = tf.data.Dataset.range(7).window(3)
    pairs = tf.data.Dataset.from_tensors({"a": None, "b": (1, [2, 3])})
    named = tf.data.Dataset.zip({"x": tf.data.Dataset.range(2), "y": tf.data.Dataset.range(2, 4)})

    @tf.function
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for x in dataset:
            result += x
        return result
    return [[list(w.as_numpy_iterator()) for w in windows], repr(windows.element_spec), [x["b"] for x in pairs], pairs.get_single_element()["a"] is None,
            list(named.as_numpy_iterator()), total(tf.data.Dataset.range(5)), [total(w) for w in windows]]


@both(v2=True)
def test_states_grow(tf, np):
    dataset = tf.data.Dataset.range(4)
    joined = dataset.reduce(tf.constant([], tf.int64), lambda state, x: tf.concat([state, [x]], 0))
    scanned = dataset.scan(tf.constant([0], tf.int64), lambda state, x: (tf.concat([state, [x]], 0), tf.reduce_sum(state)))
    both = dataset.reduce((0, {"n": tf.constant(1, tf.int64)}), lambda s, x: (s[0] + 1, {"n": s[1]["n"] * (x + 1)}))
    return joined, list(scanned), both


@both(v2=True)
def test_generators_of_composites(tf, np):
    def make(n):
        for i in range(n):
            yield tf.ragged.constant([[i], [i, i]]), {"x": [i, i + 1]}
    signature = (tf.RaggedTensorSpec([None, None], tf.int32), {"x": tf.TensorSpec([2], tf.int64)})
    dataset = tf.data.Dataset.from_generator(make, args=(2,), output_signature=signature)
    return [[r.to_list(), d["x"]] for r, d in dataset]


@both(v2=True)
def test_options_and_repr(tf, np):
    options = tf.data.Options()
    options.deterministic = False
    dataset = tf.data.Dataset.range(3).with_options(options).map(lambda x: x)
    return dataset.options().deterministic, repr(tf.data.Dataset.range(3)), repr(dataset.batch(2)), len(dataset.batch(2))


@both(v2=True)
def test_ragged_functions(tf, np):
    r = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]])
    deep = tf.ragged.constant([[[1], [2, 3]], [], [[4, 5, 6]]])
    picks = tf.ragged.constant([[1, 0], [0], [], [2]], dtype=tf.int64)
    uniform = tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)
    values = [r + r, tf.reverse(r, [0, 1]), tf.reverse(deep, [2]), tf.squeeze(tf.expand_dims(r, 1), 1), tf.one_hot(r, 3), tf.gather(r, [3, 0]),
              tf.gather(r, picks, batch_dims=1), tf.gather(r, tf.ragged.constant([[0], [3, 1]])), tf.gather_nd(r, [[0, 1], [3, 2]]),
              tf.gather_nd(deep, [[0, 1], [2, 0]]), tf.math.unsorted_segment_sum(r, [0, 1, 0, 1], 2), tf.math.unsorted_segment_max(deep, [0, 1, 0], 2),
              tf.cumsum(tf.ragged.constant([[1, 2], [3, 4, 5]]), 1), tf.split(r, [1, 3])[1], tf.where(r > 2, r, -r), tf.where(r > 2), tf.math.reduce_variance(tf.ragged.constant([[1.0, 3.0], [2.0]]), 1), uniform,
              tf.ragged.constant([], ragged_rank=1), tf.ragged.cross([[["a"], ["b"]], tf.ragged.constant([["c", "d"], ["e"]])]),
              tf.ragged.stack_dynamic_partitions(r, [1, 0, 1, 0], 2), *tf.dynamic_partition(r, [1, 0, 1, 0], 2)]
    return [_lists(x) for x in values], uniform.shape.as_list(), tf.reduce_sum(deep, axis=0).to_list(), tf.math.bincount(r).numpy()


@both(v2=True, raises=True, message=True)
def test_ragged_constant_with_too_many_lists(tf, np):
    tf.ragged.constant([[1, 2], [3]], ragged_rank=1, inner_shape=(2,))


@both(v2=True)
def test_branches_with_names_of_their_own(tf, np):
    @tf.function
    def steps(n, m):
        s, i = 0, 0
        if i < n:
            s = s * 10 + i + 1
            i += 1
        i = 5
        if i < m:
            i += 2
            s = s * 10 + i
        else:
            i -= 1
            s = s * 100 + i
        return s
    return [steps(tf.constant(a), tf.constant(b)) for a in (0, 1) for b in (0, 9)]


@both(v2=True)
def test_nests_of_objects(tf, np):
    import dataclasses

    @dataclasses.dataclass
    class Masked:
        mask: object
        value: object

        def __tf_flatten__(self):
            return (self.mask,), (self.value,)

        @classmethod
        def __tf_unflatten__(cls, metadata, components):
            return cls(metadata[0], components[0])
    structure = {"a": Masked(True, [1, 2]), "b": 3}
    doubled = tf.nest.map_structure(lambda x: x * 2, structure)
    return tf.nest.flatten(structure), doubled["a"].value, doubled["a"].mask, doubled["b"], tf.nest.is_nested(structure["a"])


@both(v2=True)
def test_checkpoint_options_and_intervals(tf, np):
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        step, written = tf.Variable(0), []
        options = tf.train.CheckpointOptions(experimental_write_callbacks=[lambda path: written.append(os.path.basename(path))])
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), folder, 2, step_counter=step, checkpoint_interval=2,
                                             init_fn=lambda: step.assign(10))
        first = manager.restore_or_initialize()
        saved = []
        for _ in range(5):
            saved.append(manager.save(options=options) is not None)
            step.assign_add(1)
        step.assign(0)
        return first, saved, written, os.path.basename(manager.restore_or_initialize()), step.numpy()


@both(v2=True)
def test_checkpoints_with_functions_as_saved_models(tf, np):
    import tempfile

    class Doubles(tf.train.Checkpoint):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
        def __call__(self, x):
            return x * 2
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(Doubles(), folder)
        return tf.saved_model.load(folder)(tf.constant([1, 2]))


def _twice(x):
    return x * 2


def test_functions_can_be_pickled():
    import pickle

    import runnel.v2 as tf
    doubled = pickle.loads(pickle.dumps(tf.function(_twice, reduce_retracing=True)))
    clone = doubled._clone(lambda x: x + 1)
    assert int(doubled(tf.constant(4))) == 8 and int(clone(tf.constant(4))) == 5


@both(v2=True, raises=True, message=True)
def test_loop_without_autograph(tf, np):
    @tf.function(autograph=False)
    def loop(dataset):
        for _ in dataset:
            pass
    loop(tf.data.Dataset.range(10))
