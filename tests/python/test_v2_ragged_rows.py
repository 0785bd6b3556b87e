"""Row partitions, and products, repetitions and texts of ragged tensors, against stock TensorFlow 2."""

import pytest

pytest.importorskip("numpy")
from both import both


def _all_of(partition):
    found = [partition.row_splits(), partition.row_lengths(), partition.value_rowids(), partition.nrows(), partition.nvals(),
             partition.row_starts(), partition.row_limits(), partition.offsets_in_rows()]
    known = [partition.static_nrows, partition.static_nvals, partition.static_uniform_row_length]
    return [value.numpy() for value in found] + [None if number is None else int(number) for number in known] + [
        partition.dtype.name, repr(partition)]


@both(v2=True)
def test_row_partitions(tf, np):
    make = tf.experimental.RowPartition
    return [_all_of(partition) for partition in (
        make.from_row_splits([0, 2, 2, 5]), make.from_row_lengths([2, 0, 3], dtype=tf.int32), make.from_row_starts([0, 2, 2], nvals=5),
        make.from_row_limits([2, 2, 5]), make.from_value_rowids([0, 0, 2, 2, 2]), make.from_value_rowids([1], nrows=4),
        make.from_uniform_row_length(3, nvals=6), make.from_uniform_row_length(0, nvals=0, nrows=2))]


@both(v2=True, raises=True, message=True)
def test_rows_that_do_not_fit(tf, np):
    tf.experimental.RowPartition.from_uniform_row_length(3, nvals=7, nrows=2)


@both(v2=True, raises=True, message=True)
def test_too_few_rows(tf, np):
    tf.experimental.RowPartition.from_value_rowids([0, 3], nrows=2)


@both(v2=True, raises=True)
def test_splits_that_descend(tf, np):
    tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 3, 2])


@both(v2=True)
def test_matmul(tf, np):
    a, b = tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]]), tf.ragged.constant([[[1], [2]], [[3], [4]]])
    thick = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    found = [tf.matmul(a, b), tf.matmul(a, np.ones([2, 2, 3], np.int32)), tf.matmul(thick, np.ones([2, 2, 2], np.float32)),
             tf.matmul(b, a, transpose_a=True, transpose_b=True), tf.matmul(thick, thick, transpose_a=True)]
    return [(value.to_list(), value.ragged_rank, value.shape.as_list()[0]) for value in found]


@both(v2=True, raises=True)
def test_matmul_of_ragged_matrices(tf, np):
    tf.matmul(tf.ragged.constant([[1], [2, 3, 4]]), tf.ragged.constant([[1], [2]]))


@both(v2=True)
def test_tile(tf, np):
    ragged = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    thick = tf.ragged.constant([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1)
    later = tf.function(lambda m: tf.tile(ragged, m))(tf.constant([1, 2, 3]))
    found = [tf.tile(ragged, [2, 1, 1]), tf.tile(ragged, [1, 2, 1]), tf.tile(ragged, [2, 3, 2]), tf.tile(thick, [1, 2, 2]), later]
    return [(value.to_list(), value.shape.as_list()) for value in found]


@both(v2=True)
def test_text(tf, np):
    many = tf.ragged.constant([[1], [2, 3, 4, 5, 6], [], [], [7], [8, 9]])
    words = tf.ragged.constant([[["a"], ["b'", "c"]], [["d"], []]])
    wide = tf.ragged.constant([[[1.5, 2.5]], []], ragged_rank=1)
    return [tf.strings.format("{}", [tf.strings.join([tf.ragged.constant([["x"], ["y", "z"]]).flat_values, "!"])]).numpy(),
            tf.strings.join([words, words], separator="-").to_list(), many.to_list(), wide.to_list()]


@both(v2=True)
def test_ragged_tensors_keep_what_they_were_made_of(tf, np):
    ids, lengths = tf.constant([0, 0, 2], tf.int64), tf.constant([2, 0, 1], tf.int64)
    by_ids, by_lengths = tf.RaggedTensor.from_value_rowids([1, 2, 3], ids, nrows=5), tf.RaggedTensor.from_row_lengths([1, 2, 3], lengths)
    uniform = tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)
    sparse = tf.RaggedTensor.from_sparse(tf.sparse.from_dense([[1, 2], [3, 0]]))
    return [by_ids.value_rowids() is ids, by_lengths.row_lengths() is lengths, by_ids.shape.as_list(), uniform.shape.as_list(),
            uniform.uniform_row_length.numpy(), sparse.to_list(), by_ids.with_row_splits_dtype(tf.int32).row_splits.dtype.name]


@both(v2=True, raises=True)
def test_sparse_with_holes(tf, np):
    tf.RaggedTensor.from_sparse(tf.sparse.from_dense([[0, 2], [3, 0]]))


@both(v2=True)
def test_slices_with_steps(tf, np):
    rows = [tf.ragged.constant([[1, 2, 3], [], [4, 5]]), tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6], [7, 8], [9, 10]]], ragged_rank=1),
            tf.ragged.constant([[[1, 2], [3]], [[5, 6], [], [9, 10]], []], row_splits_dtype=tf.int32)]
    results = []
    for x in rows:
        for start, stop, step in ((None, None, 2), (None, None, -1), (2, 0, -1), (-2, None, -2), (1, None, 3), (5, None, -2), (-9, 2, 2), (0, -1, 2), (2, 2, -3)):
            y = x[:, start:stop:step]
            results.append((y.to_list(), str(y.shape), y.row_splits.dtype.name))
        try:
            x[:, ::0]
        except tf.errors.InvalidArgumentError:
            results.append("zero")
    return results + [y.to_list() for y in (rows[2][:, :, ::2], rows[2][:, ::-1, ::-1], rows[1][:, ::-1, ::-1], rows[1][1:, ::2, 0])]


@both(v2=True)
def test_gather_by_matrices(tf, np):
    results = []
    for x in (tf.ragged.constant([[1, 2, 3], [4, 5, 6]]), tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6], [7, 8], [9, 10]]], ragged_rank=1),
              tf.ragged.constant([[[1, 2], [3]], [[5, 6], [], [9, 10]]])):
        for i in ([[0, 1], [1, 0]], tf.ragged.constant([[0], [1, 0]]), [[[0, 1], [1, 0]]], tf.zeros([0, 2], tf.int32)):
            y = tf.gather(x, i, axis=1)
            results.append((y.to_list() if isinstance(y, tf.RaggedTensor) else y.numpy(), str(y.shape)))
    return results


@both(v2=True)
def test_texts(tf, np):
    x, texts = tf.ragged.constant([[1, 2, 3], [], [4, 5]]), tf.ragged.constant([["a", "b'"], [], ["c"]])
    long, deep = tf.ragged.constant([list(range(9))] + [[i] for i in range(7)]), tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    f = tf.strings.format
    results = [f("{}", x), f("{} and {}!", (texts, tf.constant([1, 2]))), f("{}", long), f("{}", long, summarize=-1), f("x@@", (deep,), "@@", 1),
               tf.function(lambda: f("{}{}", [x, 3]))()]
    for template, inputs in (("{} {}", x), ("{} {}", tf.constant(1)), ("", [x])):
        try:
            f(template, inputs)
        except ValueError as error:
            results.append(str(error))
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out")
        for values in ((x,), (texts, 3, x), ({"a": x, "b": [texts]},)):
            tf.print(*values, output_stream="file://" + path)
        tf.print(long, deep, summarize=1, output_stream="file://" + path)
        with open(path) as file:
            results.append(file.read())
    return results


@both(v2=True)
def test_resized_images(tf, np):
    rng = np.random.RandomState(0)
    images = tf.ragged.stack([rng.rand(4, 4, 3).astype("f"), rng.rand(2, 6, 3).astype("f")])
    resize = tf.image.resize
    results = [resize(images, [3, 5]), resize(images, [3, 5], method="nearest"), tf.compat.v1.image.resize(images, [3, 5]), resize(images[:0], [3, 5]).shape[:3],
               tf.function(lambda x: resize(x, [3, 5], antialias=True))(images)]
    for call in (lambda: resize(tf.ragged.constant([[1.0]]), [3, 3]),):
        try:
            call()
        except ValueError as error:
            results.append(str(error))
    return results


@both(v2=True)
def test_rows_in_eager_loops(tf, np):
    rows, deep = tf.ragged.constant([[], [1], [1, 2]]), tf.ragged.constant([[[1]], [[1], [2, 3]]])
    try:
        outside = rows[3]
    except IndexError as error:
        outside = str(error)
    return [list(rows), [len(list(x)) for x in deep], rows[-1], outside]


@both(v2=True)
def test_indices_of_rows(tf, np):
    rows = tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1, 2], [], [3], [4, 5, 6], [7], []]), 2)
    keys = [(0,), (slice(None), 1), (slice(None), -2), (slice(1, None),), (slice(None), slice(1, None)), (slice(None), slice(None, None, -1)),
            (Ellipsis, slice(0, 1)), (slice(None), slice(None), slice(None, None, 2)), (tf.newaxis, 1), (slice(None), tf.newaxis), (),
            (slice(None), tf.constant(1)), (slice(None), slice(tf.constant(0), None, tf.constant(-1))), (slice(None, None, tf.constant(2)),)]
    made = [rows[key] for key in keys]
    wrong = []
    for key in [(0.5,), ("a",), (slice(None), 2), (slice(None), slice(None), 0), (3,), (slice(0, 1, 0.5),), (Ellipsis, Ellipsis)]:
        try:
            rows[key]
        except (IndexError, TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            wrong.append(type(error).__name__)
    lengths = [getattr(x, "uniform_row_length", None) for x in made[3:6]]
    return [x.to_list() if hasattr(x, "to_list") else x for x in made], lengths, wrong, rows.merge_dims(1, 1).to_list()


@both(v2=True)
def test_repeats_of_few(tf, np):
    empty = tf.repeat(tf.zeros([0, 2]), tf.constant([], tf.int32), axis=0)
    return tf.repeat(3, 4, axis=0), tf.repeat(tf.constant(3), [2]), empty


def test_flat_values_of_other_classes():
    import runnel.v2 as tf
    from runnel.core import fallbacks
    from runnel.ragged import ragged_tensor

    class Wrapped(tf.experimental.BatchableExtensionType):
        value: tf.Tensor
        shape = property(lambda self: self.value.shape)
        dtype = property(lambda self: self.value.dtype)

        def __getitem__(self, index):
            return Wrapped(self.value[index])

        def to_list(self):
            return self.value.numpy().tolist()

    class Dispatcher(fallbacks.GlobalOpDispatcher):
        def handle(self, op, args, kwargs):
            if not any(isinstance(x, Wrapped) for x in args):
                return self.NOT_SUPPORTED
            return Wrapped(op(*[getattr(x, "value", x) for x in args], **kwargs))

    dispatcher = Dispatcher()
    dispatcher.register()
    ragged_tensor._add_supported_value_type(Wrapped)
    try:
        rows = tf.RaggedTensor.from_row_splits(Wrapped(tf.constant([1.0, 4.0, 9.0, 16.0])), [0, 2, 2, 4])
        assert isinstance(rows.flat_values, Wrapped) and isinstance(rows[0], Wrapped) and isinstance(rows[1:].flat_values, Wrapped)
        assert tf.sqrt(rows).to_list() == [[1.0, 2.0], [], [3.0, 4.0]] and tf.add(rows, rows).to_list() == [[2.0, 8.0], [], [18.0, 32.0]]
        assert rows[1:].to_list() == [[], [9.0, 16.0]] and rows.shape.as_list() == [3, None]
    finally:
        ragged_tensor._flat_types.remove(Wrapped)
        fallbacks._global.remove(dispatcher)


@both(v2=True)
def test_rows_by_partition(tf, np):
    words = tf.constant(["a", "b", "c"])
    made = [tf.ragged.stack_dynamic_partitions(words, [2, 0, 2], 4), tf.ragged.stack_dynamic_partitions(words[:0], tf.constant([], tf.int32), 0),
            tf.ragged.stack_dynamic_partitions(tf.constant(7), 1, 3), tf.ragged.stack_dynamic_partitions(tf.ragged.constant([[1, 2], [3]]), [1, 0], 2)]
    wrong = []
    for function in (lambda: tf.ragged.stack_dynamic_partitions(words, [0, 1, 9], 2), lambda: tf.ragged.stack_dynamic_partitions(words, [0, -1, 1], 2),
                     lambda: tf.ragged.stack_dynamic_partitions(words, [0, 1], 2), lambda: tf.RaggedTensor.from_tensor([[1]], ragged_rank="bad"),
                     lambda: tf.RaggedTensor.from_tensor([[1]], ragged_rank=0), lambda: tf.RaggedTensor.from_tensor([[1]], lengths=[0.5]),
                     lambda: tf.RaggedTensor.from_tensor([[1, 2, 3]], lengths=[[1], [1]])):
        try:
            function()
        except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            wrong.append(type(error).__name__)
    return [x.to_list() for x in made], wrong
