"""Shapes of ragged tensors by the sizes of slices. Prints the same in stock."""

import numpy as np
from tensorflow.python.framework import constant_op
from tensorflow.python.ops.ragged import ragged_factory_ops, ragged_tensor_shape

Shape = ragged_tensor_shape.RaggedTensorDynamicShape


def shown(shape):
    return [x.numpy().tolist() for x in shape.partitioned_dim_sizes], shape.inner_dim_sizes.numpy().tolist(), shape.rank


for sizes in ([], [3], [2, 3], [3, [3, 2, 4]], [3, [3, 2, 4], 2, 3], [2, [2, 1], [2, 1, 2]]):
    shape = Shape.from_dim_sizes(sizes)
    print(shown(shape), shown(shape.broadcast_to_rank(5)), [shape.is_ragged(i) for i in range(shape.rank)])
    print([int(shape.num_slices_in_dimension(i)) for i in range(-1, shape.rank)])
for value in ([[1, 2], [3, 4]], ragged_factory_ops.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1), ragged_factory_ops.constant([[1], [2, 3]])):
    print(shown(Shape.from_tensor(value)))
for axis, lengths, sizes in ((0, 3, [1, 4, 5]), (2, 5, [3, 4, 1]), (2, 5, [3, [3, 2, 8], 1]), (1, [2, 0, 1], [3, 1, 5]), (0, 3, [1, [3], [3, 5, 2], 9]),
                             (1, [4, 1, 2], [3, 1, [3, 1, 2], 5]), (2, [4, 1, 2], [3, [2, 0, 1], 1, [3, 2, 1], [1, 0, 1, 0, 2, 3], 5])):
    print(shown(Shape.from_dim_sizes(sizes).broadcast_dimension(axis, lengths)))
for x, y in (([3], [3, [2, 3, 1], 1]), ([1, 3, [3, 0, 2], 1, 2], [2, 1, 1, [7, 2], 1]), ([2, [2, 1], 2, 1], [1, 1, 2, [2, 1]])):
    print(shown(ragged_tensor_shape.broadcast_dynamic_shape(Shape.from_dim_sizes(x), Shape.from_dim_sizes(y))))
for x, sizes in (([[10], [20], [30]], [3, [3, 0, 2]]), (10, [3, [3, 0, 2]]), ([[[1, 2, 3]], [[4, 5, 6]]], [2, [2, 3], 3]), ([[10], [20]], [2, 2])):
    result = ragged_tensor_shape.broadcast_to(np.array(x), Shape.from_dim_sizes(sizes))
    print(result.numpy().tolist() if not hasattr(result, "to_list") else (result.to_list(), result.ragged_rank))
for wrong in (lambda: Shape([[1, 2]], []), lambda: Shape([1], []), lambda: Shape.from_dim_sizes([2, 3]).broadcast_to_rank(1),
              lambda: ragged_tensor_shape.broadcast_to([1], [1]), lambda: Shape.from_dim_sizes([2, 1]).broadcast_dimension(1, constant_op.constant([[1]]))):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
