"""Functions of tf.experimental.numpy that change shapes, and join and split arrays."""

import runnel as tf
from runnel.core.convert import evaluated_value
from runnel.experimental_numpy.promotion import asarray, axis_of, promoted


def shape(a):
    """Returns the shape, a tuple if it is known."""
    a = asarray(a)
    return tuple(a.shape.as_list()) if a.shape.is_fully_defined() else tf.shape(a)


def ndim(a):
    """Returns the number of dimensions."""
    a = asarray(a)
    return a.shape.rank if a.shape.rank is not None else tf.rank(a)


def size(x, axis=None):
    """Returns the number of elements."""
    if axis is not None:
        raise NotImplementedError("axis argument is not supported in the current `np.size` implementation")
    import numpy as np
    x = asarray(x)
    return np.int64(x.shape.num_elements()) if x.shape.is_fully_defined() else tf.size(x)


def reshape(a, newshape, order="C"):
    """Returns the elements in another shape; order "F" reads and writes the first index fastest."""
    if order not in ("C", "F"):
        raise ValueError("Unsupported order argument %s" % order)
    a = asarray(a)
    newshape = [newshape] if isinstance(newshape, int) else newshape
    if order == "C":
        return tf.reshape(a, newshape)
    return transpose(tf.reshape(transpose(a), list(newshape)[::-1]))


def ravel(a):
    """Returns the elements as a vector."""
    return tf.reshape(asarray(a), [-1])


def flatten(a, order="C"):
    """Returns the elements as a vector."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError("Unsupported value for argument `order`. Received: order=%s" % order)
    return reshape(a, -1, "F" if order == "F" else "C")


def transpose(a, axes=None):
    """Permutes the axes; reverses them by default."""
    return tf.transpose(asarray(a), axes if axes is None or not isinstance(axes, tuple) else list(axes))


def expand_dims(a, axis):
    """Adds an axis of size 1."""
    return tf.expand_dims(asarray(a), axis)


def squeeze(a, axis=None):
    """Removes axes of size 1."""
    return tf.squeeze(asarray(a), [axis] if isinstance(axis, int) else axis)


def swapaxes(a, axis1, axis2):
    """Exchanges two axes."""
    a = asarray(a)
    order = list(range(a.shape.rank))
    one, two = axis_of(axis1, a.shape.rank), axis_of(axis2, a.shape.rank)
    order[one], order[two] = order[two], order[one]
    return tf.transpose(a, order)


def moveaxis(a, source, destination):
    """Moves axes to other places."""
    a = asarray(a)
    rank = a.shape.rank
    listed = [[axis_of(i, rank) for i in ([x] if isinstance(x, int) else x)] for x in (source, destination)]
    if len(listed[0]) != len(listed[1]):
        raise ValueError("The lengths of source and destination must equal")
    order = [i for i in range(rank) if i not in listed[0]]
    for place, axis in sorted(zip(listed[1], listed[0])):
        order.insert(place, axis)
    return tf.transpose(a, order)


def broadcast_to(array, shape):
    """Repeats an array to a shape."""
    return tf.broadcast_to(asarray(array), [shape] if isinstance(shape, int) else shape)


def broadcast_arrays(*args, **kwargs):
    """Broadcasts arrays against each other."""
    if kwargs.pop("subok", False):
        raise ValueError("subok=True is not supported. Received: subok=True")
    if kwargs:
        raise ValueError("Received unsupported arguments %s" % list(kwargs))
    args = [asarray(x) for x in args]
    common = tf.shape(args[0])
    for x in args[1:]:
        common = tf.broadcast_dynamic_shape(common, tf.shape(x))
    return [tf.broadcast_to(x, common) for x in args]


def _at_least(rank, grow, arrays):
    found = [grow(x) if x.shape.rank < rank else x for x in map(asarray, arrays)]
    return found[0] if len(found) == 1 else found


def atleast_1d(*arys):
    """Returns arrays with at least one dimension."""
    return _at_least(1, lambda x: tf.reshape(x, [-1]), arys)


def atleast_2d(*arys):
    """Returns arrays with at least two dimensions; vectors become rows."""
    return _at_least(2, lambda x: tf.reshape(x, [1, -1]), arys)


def atleast_3d(*arys):
    """Returns arrays with at least three dimensions."""
    return _at_least(3, lambda x: tf.reshape(x, [1, -1, 1]) if x.shape.rank < 2 else tf.expand_dims(x, -1), arys)


def concatenate(arys, axis=0):
    """Joins arrays along an axis; None joins them as vectors."""
    if axis is None:
        arys, axis = [ravel(x) for x in arys], 0
    return tf.concat(promoted(*arys), axis)


def append(arr, values, axis=None):
    """Joins two arrays."""
    return concatenate([arr, values], axis)


def stack(arrays, axis=0):
    """Joins arrays along a new axis."""
    return tf.stack(promoted(*arrays), axis) if isinstance(arrays, (list, tuple)) else tf.stack(tf.unstack(asarray(arrays)), axis)


def vstack(tup):
    """Joins arrays as rows."""
    return tf.concat([atleast_2d(x) for x in promoted(*tup)], 0)


def hstack(tup):
    """Joins arrays along the second axis, vectors along their only one."""
    arrays = promoted(*[atleast_1d(x) for x in tup])
    return tf.concat(arrays, 0 if arrays[0].shape.rank == 1 else 1)


def dstack(tup):
    """Joins arrays along the third axis."""
    return tf.concat([atleast_3d(x) for x in promoted(*tup)], 2)


def split(ary, indices_or_sections, axis=0):
    """Divides an array into equal parts, or at indices."""
    ary = asarray(ary)
    if isinstance(indices_or_sections, int):
        return tf.split(ary, indices_or_sections, axis)
    total = ary.shape.as_list()[axis]
    bounds = [0] + [min(i, total) for i in indices_or_sections] + [total]
    return tf.split(ary, [max(0, b - a) for a, b in zip(bounds, bounds[1:])], axis)


def vsplit(ary, indices_or_sections):
    """Divides along the first axis."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """Divides along the second axis, a vector along its only one."""
    return split(ary, indices_or_sections, 0 if asarray(ary).shape.rank == 1 else 1)


def dsplit(ary, indices_or_sections):
    """Divides along the third axis."""
    return split(ary, indices_or_sections, 2)


def flip(m, axis=None):
    """Reverses the order of elements along an axis, or along all."""
    m = asarray(m)
    return tf.reverse(m, list(range(m.shape.rank)) if axis is None else [axis_of(axis, m.shape.rank)])


def flipud(m):
    """Reverses the rows."""
    return flip(m, 0)


def fliplr(m):
    """Reverses the columns."""
    return flip(m, 1)


def rot90(m, k=1, axes=(0, 1)):
    """Turns an array by 90 degrees, `k` times."""
    m = asarray(m)
    first, second = (axis_of(i, m.shape.rank) for i in axes)
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return flip(flip(m, first), second)
    return swapaxes(flip(m, second), first, second) if k == 1 else flip(swapaxes(m, first, second), second)


def roll(a, shift, axis=None):
    """Moves elements along an axis; those that leave at the end come back at the start."""
    a = asarray(a)
    if axis is not None:
        return tf.roll(a, shift, axis)
    return tf.reshape(tf.roll(ravel(a), shift, 0), tf.shape(a))


def repeat(a, repeats, axis=None):
    """Repeats elements."""
    return tf.repeat(asarray(a), repeats, axis)


def tile(a, reps):
    """Repeats a whole array."""
    a, reps = asarray(a), asarray(reps, "int32")
    if reps.shape.rank == 0:
        reps = tf.reshape(reps, [1])
    missing = reps.shape.as_list()[0] - a.shape.rank
    if missing > 0:
        a = tf.reshape(a, tf.concat([[1] * missing, tf.shape(a)], 0))
    elif missing < 0:
        reps = tf.concat([[1] * -missing, reps], 0)
    return tf.tile(a, reps)


def pad(array, pad_width, mode, **kwargs):
    """Adds elements at the ends; `mode` is "constant", "reflect" or "symmetric"."""
    values = kwargs.pop("constant_values", 0)
    if kwargs:
        raise ValueError("pad does not support %s" % list(kwargs))
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError("Unsupported padding mode: " + mode)
    array = asarray(array)
    widths = tf.broadcast_to(asarray(pad_width, "int32"), [array.shape.rank, 2])
    known = evaluated_value(widths)
    return tf.pad(array, widths if known is None else known, mode.upper(), constant_values=tf.cast(asarray(values), array.dtype))
