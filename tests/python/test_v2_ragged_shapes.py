"""tf.experimental.DynamicRaggedShape and broadcasting of ragged tensors, against stock TensorFlow 2."""

import pytest

pytest.importorskip("numpy")
from both import both


def _all_of(shape):
    return [repr(shape), shape.rank, shape.num_row_partitions, shape.inner_rank, shape.inner_shape.numpy(), shape.dtype.name,
            [partition.row_splits().numpy() for partition in shape.row_partitions], repr(shape._type_spec), str(shape._to_tensor_shape())]


@both(v2=True)
def test_shapes(tf, np):
    make = tf.experimental.DynamicRaggedShape
    shapes = [make.from_lengths([2, (3, 1), 7]), make.from_lengths([2, 3, 4]), make.from_lengths([2, 3, 4], num_row_partitions=2),
              make.from_lengths([]), make.from_lengths([2, (2, 1), (2, 0, 3)], dtype=tf.int32),
              make.from_tensor(tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)), make.from_tensor(tf.zeros([3, 0])),
              make([tf.experimental.RowPartition.from_row_lengths([1, 2])], [3, 5])]
    found = [_all_of(shape) for shape in shapes] + [[shape.is_uniform(axis) for axis in range(shape.rank)] for shape in shapes]
    ragged, deep = shapes[0], shapes[4]
    found += [_all_of(shape) for shape in (ragged[:2], ragged[:1], shapes[2][1:], deep[:2], ragged[2:2], ragged.with_dtype(tf.int32))]
    return found + [ragged[0].numpy(), ragged[2].numpy(), ragged[-1].numpy(), shapes[2][1].numpy()]


@both(v2=True)
def test_errors(tf, np):
    make, part = tf.experimental.DynamicRaggedShape, tf.experimental.RowPartition
    ragged = make.from_lengths([2, (3, 1), 7])
    calls = [lambda: make.from_lengths([2, (1, 2, 3)]), lambda: make.from_lengths(7), lambda: make.from_lengths([2, 3], 2), lambda: make.from_lengths(["a"]),
             lambda: make.from_row_partitions([]), lambda: ragged[1], lambda: ragged[3], lambda: ragged[0:2:2], lambda: ragged[1:], lambda: ragged["a"],
             lambda: ragged.is_uniform(-1), lambda: make([part.from_row_lengths([1, 2])], [4]), lambda: make([1], [4]),
             lambda: make([part.from_row_lengths([1, 2]), part.from_row_lengths([1, 2])], [3])]
    found = []
    for call in calls:
        try:
            found.append(repr(call()))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


@both(v2=True)
def test_broadcasting(tf, np):
    make = tf.experimental.DynamicRaggedShape
    pairs = [([3, (1, 2, 1)], [1]), ([3, (1, 2, 1)], [3, 1]), ([3, 1, 2], [3, (1, 2, 1), 2]), ([2, (2, 1), (1, 2, 1), 3], [3]),
             ([2, 3, (1, 2, 3, 4, 5, 6)], [3, 1]), ([5], [2, 3, 1]), ([1, 3, (1, 2, 1)], [2, 1, 1]), ([3, (1, 2, 1)], []),
             ([2, 2, (2, 1, 3, 1)], [2, 1, (2, 2)])]
    found = []
    for one, other in pairs:
        try:
            found.append([_all_of(tf.broadcast_dynamic_shape(make.from_lengths(one), make.from_lengths(other))) for one, other in ((one, other), (other, one))])
        except Exception as error:
            found.append(type(error).__name__)
    target = make.from_lengths([3, (1, 2, 1), 2])
    values = [tf.constant([1, 2]), tf.constant([[[1], [2]][:1], [[3]], [[5]]]), tf.constant(7), tf.ragged.constant([[[1]], [[2], [3]], [[4]]], ragged_rank=1),
              tf.constant([[[1, 2]]])]
    for value in values:
        made = tf.broadcast_to(value, target)
        found.append((made.to_list(), str(made.shape), tf.function(tf.broadcast_to)(value, target).to_list()))
    return found


@both(v2=True)
def test_sums(tf, np):
    rows, deep = tf.ragged.constant([[1, 2, 3], [], [4]]), tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    wide = tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]], []], ragged_rank=1)
    pairs = [(rows, 1), (rows, [[10], [20], [30]]), (rows, [5]), (rows, rows), (rows, tf.ragged.constant([[3, 2, 1], [], [0]])), (deep, [[[10]], [[20]], [[30]]]),
             (wide, [7, 8]), (wide, [[[1]], [[2]], [[3]]]), (wide, 2), (deep, tf.ragged.constant([[[1, 2], [3]], [], [[4]]])),
             (tf.ragged.constant([[[1, 2]], [[3]]]), tf.ragged.constant([[[1], [1]][:1], [[1]]], ragged_rank=1))]
    found = []
    for one, other in pairs:
        for function in (tf.add, tf.multiply, tf.maximum, tf.equal, lambda a, b: b - a):
            made = function(one, other)
            found.append((made.to_list(), str(made.shape), made.dtype.name))
    with tf.GradientTape() as tape:
        x, y = tf.constant([1.0, 2, 3, 4]), tf.constant([[2.0], [3], [4]])
        tape.watch([x, y])
        z = tf.reduce_sum((tf.RaggedTensor.from_row_lengths(x, [3, 0, 1]) * y).flat_values)
    found += [tf.convert_to_tensor(part).numpy() for part in tape.gradient(z, [x, y])]
    for one, other in ((rows, [1, 2]), (rows, tf.ragged.constant([[1], [2], [3, 4, 5]])), (rows, rows.with_row_splits_dtype(tf.int32))):
        try:
            found.append((one + other).to_list())
        except (ValueError, tf.errors.InvalidArgumentError) as error:
            found.append(isinstance(error, ValueError))
    return found


@both(v2=True)
def test_values_of_shapes(tf, np):
    shape = tf.experimental.DynamicRaggedShape.from_lengths([2, (3, 1), 2])
    found = [tf.ones(shape), tf.zeros(shape, tf.int32), tf.fill(shape, "a"), tf.reshape(tf.range(8), shape), tf.reshape(tf.reshape(tf.range(8), shape), [2, 4])]
    return [part.to_list() if hasattr(part, "to_list") else part for part in found]


@both(v2=True)
def test_shapes_in_functions_and_datasets(tf, np):
    shape = tf.experimental.DynamicRaggedShape.from_lengths([3, (2, 0, 1), 2])
    double = tf.function(lambda s: s.inner_shape * 2)
    parts = tf.data.Dataset.from_tensors(shape).unbatch()
    return [double(shape).numpy(), repr(tf.function(lambda s: s[:2])(shape)), [repr(part) for part in parts], repr(parts.element_spec)]


@both(v2=True)
def test_tensors_as_variants(tf, np):
    ops = tf.raw_ops
    found = []
    for values in ([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]):
        rows = ops.RaggedTensorToVariant(rt_nested_splits=[], rt_dense_values=values, batched_input=True)
        for variants in (rows, tf.reshape(rows, [2, 1]), rows[:0]):
            for rank in (-1, 0):
                found.append(ops.RaggedTensorFromVariant(encoded_ragged=variants, input_ragged_rank=rank, output_ragged_rank=0, Tvalues=tf.float32,
                                                         Tsplits=tf.int64).output_dense_values)
    parts = [ops.RaggedTensorToVariant(rt_nested_splits=[], rt_dense_values=value, batched_input=False) for value in ([1.0], [1.0, 2.0])]
    try:
        ops.RaggedTensorFromVariant(encoded_ragged=tf.stack(parts), input_ragged_rank=-1, output_ragged_rank=0, Tvalues=tf.float32, Tsplits=tf.int64)
    except tf.errors.InvalidArgumentError:
        found.append("shapes differ")
    shapes = tf.data.Dataset.from_tensors(tf.experimental.DynamicRaggedShape.from_lengths([3])).unbatch()
    return found + [[repr(shape) for shape in shapes], [repr(shape) for shape in shapes.batch(2)]]


@both(v2=True)
def test_where(tf, np):
    ragged = tf.ragged.constant
    condition, x = ragged([[True, False], [True]]), ragged([[1, 2], [3]])
    results = [tf.where(condition, x, 0), tf.where(condition, x, [[10], [20]]), tf.where(condition, 5, x), tf.where([[True], [False]], x, -x),
               tf.where(condition)]
    return [part.to_list() if hasattr(part, "to_list") else part for part in results]


@both(v2=True)
def test_comparisons_and_rows(tf, np):
    x, y = tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[4, 2], [3]])
    results = [(x == y).to_list(), (x != y).to_list(), (x == 2).to_list(), x == None, [row.numpy() for row in x]]  # noqa: E711
    results += [x.to_tensor(shape=tf.constant([3, 1])), x.to_tensor(shape=[None, tf.constant(3)][1:] * 2), tf.add_n([x, y]).to_list(),
                tf.nn.softmax(tf.cast(x, tf.float32)).to_list(), tf.math.bessel_i0(tf.cast(x, tf.float32)).to_list(), tf.bitwise.invert(x).to_list(),
                tf.strings.lower(tf.ragged.constant([["A", "b"], []])).to_list(), tf.nn.gelu(tf.cast(x, tf.float32)).to_list(),
                tf.math.xlogy(tf.cast(x, tf.float32), 2.0).to_list(), tf.concat([x], 0).to_list(), tf.stack([x, y], 1).to_list()]
    tf.debugging.assert_equal(x, x)
    tf.debugging.assert_less(x, 5)
    try:
        tf.debugging.assert_less(x, [[2], [3]])
    except tf.errors.InvalidArgumentError:
        results.append("not less")
    for call in (lambda: tf.stack([x, y], 4), lambda: tf.where(x > 1, x), lambda: tf.concat([x, y], 2)):
        try:
            call()
        except ValueError:
            results.append("ValueError")
    return results
