"""Selection by indices and conditions in tf.experimental.numpy, and NumPy's indices of tensors."""

import runnel as tf
from runnel import dtypes
from runnel.experimental_numpy.elementwise import FUNCTIONS
from runnel.experimental_numpy.promotion import asarray, axis_of, is_tensor, promoted, truth
from runnel.experimental_numpy.shapes import ravel


def where(condition, x=None, y=None):
    """Returns elements of `x` where the condition holds and of `y` elsewhere; without them, the places where it holds."""
    condition = truth(condition)
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("Both x and y must be ndarrays, or both must be None.")
    return tf.where_v2(condition, *promoted(x, y))


def select(condlist, choicelist, default=0):
    """Returns the elements of the first choice whose condition holds, `default` where none does."""
    if len(condlist) != len(choicelist):
        raise ValueError("condlist must have length equal to choicelist (%s vs %s)" % (len(condlist), len(choicelist)))
    if not condlist:
        raise ValueError("condlist must be nonempty")
    *choices, result = promoted(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        result = tf.where_v2(truth(condition), choice, result)
    return result


def nonzero(a):
    """Returns the places of the elements that are not zero: one vector per axis."""
    a = asarray(a)
    if not a.shape.rank:
        a = tf.reshape(a, [-1])
    places = tf.where_v2(tf.cast(a, dtypes.bool))  # of complex numbers, the real part counts
    return tf.unstack(places, a.shape.rank, axis=1)


def take(a, indices, axis=None, out=None, mode="clip"):
    """Returns the elements at indices along an axis; `mode` is "clip" or "wrap"."""
    if out is not None:
        raise ValueError("Setting out is not supported.")
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError("Invalid mode '%s' for take" % mode)
    if mode == "raise":
        raise ValueError("The mode 'raise' is not supported.")
    a, indices = asarray(a), asarray(indices)
    if axis is None:
        a, axis = ravel(a), 0
    count = tf.cast(tf.shape(a)[axis], indices.dtype)
    indices = tf.floormod(indices, count) if mode == "wrap" else tf.clip_by_value(indices, tf.zeros_like(count), count - 1)
    return tf.gather(a, indices, axis=axis_of(axis, a.shape.rank))


def take_along_axis(arr, indices, axis):
    """Returns the elements at the indices of each row along an axis."""
    arr, indices = asarray(arr), asarray(indices)
    if axis is None:
        arr, indices, axis = ravel(arr), ravel(indices), 0
    rank = arr.shape.rank
    axis = axis_of(axis, rank)
    places = [tf.reshape(tf.range(tf.shape(indices, out_type=dtypes.int64)[i]), [-1 if j == i else 1 for j in range(rank)]) for i in range(rank)]
    indices = tf.cast(indices, dtypes.int64)
    count = tf.shape(arr, out_type=dtypes.int64)[axis]
    places[axis] = tf.where_v2(indices < 0, indices + count, indices)
    for i in range(rank):
        if i != axis and indices.shape.as_list()[i] == 1:
            places[i] = tf.reshape(tf.range(tf.shape(arr, out_type=dtypes.int64)[i]), [-1 if j == i else 1 for j in range(rank)])
    shape = tf.shape(places[0])
    for place in places[1:]:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(place))
    return tf.gather_nd(arr, tf.stack([tf.broadcast_to(x, shape) for x in places], -1))


def compress(condition, a, axis=None):
    """Returns the parts of an array along an axis where a vector of conditions holds."""
    condition, a = truth(condition), asarray(a)
    if condition.shape.rank != 1:
        raise ValueError("condition must be a 1-d array.")
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of(axis, a.shape.rank)
    chosen = tf.where_v2(condition)[:, 0]
    return tf.gather(a, chosen, axis=axis)


def ix_(*args):
    """Returns index arrays that select every combination of rows, columns and so on."""
    found = []
    for i, item in enumerate(args):
        item = asarray(item)
        if item.shape.rank != 1:
            raise ValueError("Arguments must be 1-d, got arg %d of rank %d" % (i, item.shape.rank))
        if item.dtype == dtypes.bool:
            item = nonzero(item)[0]
        found.append(tf.reshape(item, [1] * i + [-1] + [1] * (len(args) - i - 1)))
    return found


def array_equal(a1, a2):
    """Tells whether shapes and elements are equal."""
    a1, a2 = promoted(a1, a2)
    if a1.shape.is_fully_defined() and a2.shape.is_fully_defined() and a1.shape.as_list() != a2.shape.as_list():
        return asarray(False)
    return tf.reduce_all(FUNCTIONS["equal"](a1, a2))


def _is_array(item):
    return isinstance(item, list) or is_tensor(item) or hasattr(item, "dtype") and hasattr(item, "shape")


def _expanded(tensor, spec):
    """Returns an index per axis: without ellipsis, and with places instead of arrays of bools."""
    items, used = [], 0
    for item in spec:
        if _is_array(item):
            item = asarray(item)
            if item.dtype == dtypes.bool:
                items += nonzero(item)
                used += item.shape.rank
                continue
        used += item is not None and item is not Ellipsis
        items.append(item)
    missing = [slice(None)] * (tensor.shape.rank - used)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return items[:places[0]] + missing + items[places[0] + 1:] if places else items + missing


def indexed(tensor, spec, plain):
    """Returns `tensor[spec]` by NumPy's rules; `plain` indexes by numbers and slices."""
    spec = spec if isinstance(spec, tuple) else (spec,)
    if not any(_is_array(item) and (not is_tensor(item) or item.shape.rank != 0 or item.dtype == dtypes.bool) for item in spec):
        return plain(tensor, spec)
    items = _expanded(tensor, spec)
    is_array = [item is not None and not isinstance(item, slice) for item in items]
    tensor = plain(tensor, tuple(slice(None) if chosen else item for item, chosen in zip(items, is_array)))
    axes = [i for i, chosen in enumerate(is_array) if chosen]
    arrays = [tf.cast(asarray(items[i]), dtypes.int64) for i in axes]
    sizes = tf.shape(tensor, out_type=dtypes.int64)
    arrays = [tf.where_v2(x < 0, x + sizes[i], x) for x, i in zip(arrays, axes)]
    shape = tf.shape(arrays[0])
    for x in arrays[1:]:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(x))
    places = tf.stack([tf.broadcast_to(x, shape) for x in arrays], -1)
    rest = [i for i in range(tensor.shape.rank) if i not in axes]
    found = tf.gather_nd(tf.transpose(tensor, axes + rest), places)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return found  # the axes of the arrays come first if something lies between them
    count = places.shape.rank - 1
    before = len([i for i in rest if i < axes[0]])
    order = [*range(count, count + before), *range(count), *range(count + before, count + len(rest))]
    return tf.transpose(found, order)
