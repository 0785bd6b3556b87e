"""Products and other linear algebra of tf.experimental.numpy."""

import runnel as tf
from runnel import dtypes
from runnel.experimental_numpy.promotion import asarray, axis_of, promoted, result_type
from runnel.experimental_numpy.shapes import moveaxis


def _of_bools(compute, a, b):
    """Computes a product; that of bools is by integers, and a bool."""
    if a.dtype != dtypes.bool:
        return compute(a, b)
    return tf.cast(compute(tf.cast(a, dtypes.int8), tf.cast(b, dtypes.int8)), dtypes.bool)


def matmul(x1, x2):
    """Multiplies matrices; a vector is a row on the left and a column on the right."""
    def compute(a, b):
        if not a.shape.rank or not b.shape.rank:
            raise ValueError("matmul: Input operand does not have enough dimensions")
        if b.shape.rank == 1:
            return tf.tensordot(a, b, axes=[[-1], [-1]])
        if a.shape.rank == 1:
            return tf.tensordot(a, b, axes=[[0], [-2]])
        return tf.matmul(a, b)
    return _of_bools(compute, *promoted(x1, x2))


def dot(a, b):
    """Sums products over the last axis of `a` and the last but one of `b`; numbers multiply."""
    def compute(x, y):
        if x.shape.rank == 0 or y.shape.rank == 0:
            return x * y
        return tf.tensordot(x, y, axes=[[-1], [-1 if y.shape.rank == 1 else -2]])
    return _of_bools(compute, *promoted(a, b))


def inner(a, b):
    """Sums products over the last axes."""
    return _of_bools(lambda x, y: x * y if x.shape.rank == 0 or y.shape.rank == 0 else tf.tensordot(x, y, axes=[[-1], [-1]]), *promoted(a, b))


def vdot(a, b):
    """Sums products of all elements; those of `a` are conjugated."""
    def compute(x, y):
        return tf.tensordot(tf.conj(tf.reshape(x, [-1])), tf.reshape(y, [-1]), axes=[[0], [0]])
    return _of_bools(compute, *promoted(a, b))


def outer(a, b):
    """Returns the products of all pairs of elements."""
    return _of_bools(lambda x, y: tf.reshape(x, [-1, 1]) * tf.reshape(y, [1, -1]), *promoted(a, b))


def tensordot(a, b, axes=2):
    """Sums products over pairs of axes."""
    return _of_bools(lambda x, y: tf.tensordot(x, y, axes=axes), *promoted(a, b))


def einsum(subscripts, *operands, **kwargs):
    """Computes sums of products in Einstein's notation."""
    casting, optimize = kwargs.pop("casting", "safe"), kwargs.pop("optimize", False)
    if casting != "safe" or kwargs:
        raise ValueError("einsum supports casting='safe' and optimize only. Received: casting=%r, %s" % (casting, list(kwargs)))
    del optimize
    operands = promoted(*operands)
    if operands[0].dtype == dtypes.bool:
        return tf.cast(tf.einsum(subscripts, *[tf.cast(x, dtypes.int32) for x in operands]), dtypes.bool)
    return tf.einsum(subscripts, *operands)


def kron(a, b):
    """Returns the Kronecker product."""
    common = result_type(a, b)
    a, b = asarray(a, common), asarray(b, common)
    rank = max(a.shape.rank, b.shape.rank)
    a, b = (tf.reshape(x, tf.concat([[1] * (rank - x.shape.rank), tf.shape(x)], 0)) for x in (a, b))
    sizes = tf.shape(a) * tf.shape(b)
    a = tf.reshape(a, tf.reshape(tf.stack([tf.shape(a), tf.ones_like(tf.shape(a))], 1), [-1]))
    b = tf.reshape(b, tf.reshape(tf.stack([tf.ones_like(tf.shape(b)), tf.shape(b)], 1), [-1]))
    return tf.reshape(_of_bools(lambda x, y: x * y, a, b), sizes)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Returns the vector products; vectors of two elements have a third one that is zero."""
    a, b = promoted(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    lengths = a.shape.as_list()[-1], b.shape.as_list()[-1]
    if any(n not in (2, 3) for n in lengths):
        raise ValueError("incompatible dimensions for cross product (dimension must be 2 or 3)")
    if lengths == (2, 2):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    parts = [tf.unstack(x, axis=-1) for x in (a, b)]
    u, v = (p if len(p) == 3 else [*p, tf.zeros_like(p[0])] for p in parts)
    found = tf.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]], -1)
    return moveaxis(found, -1, axisc)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Returns the diagonals of the matrices in two axes."""
    a = asarray(a)
    rank = a.shape.rank
    moved = moveaxis(a, (axis_of(axis1, rank), axis_of(axis2, rank)), (-2, -1))
    size = moved.shape.as_list()[-2:]
    if None not in size and (offset <= -size[0] or offset >= size[1]):
        return tf.zeros(tf.concat([tf.shape(moved)[:-2], [0]], 0), a.dtype)
    return tf.linalg.diag_part(moved, k=offset)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """Returns the sums of diagonals."""
    a = asarray(a, dtype)
    return tf.reduce_sum(diagonal(a, offset, axis1, axis2), -1)


def _triangle(m, k, keep):
    m = asarray(m)
    rows, columns = m.shape.as_list()[-2:]
    distance = tf.range(columns)[None, :] - tf.range(rows)[:, None]
    return tf.where_v2(tf.broadcast_to(keep(distance, k), tf.shape(m)), m, tf.zeros_like(m))


def tril(m, k=0):
    """Returns matrices with zeros above diagonal `k`."""
    return _triangle(m, k, lambda distance, k: distance <= k)


def triu(m, k=0):
    """Returns matrices with zeros below diagonal `k`."""
    return _triangle(m, k, lambda distance, k: distance >= k)


def polyval(p, x):
    """Returns the values of a polynomial, whose highest coefficient comes first."""
    p, x = promoted(p, x)
    result = tf.zeros_like(x)
    for coefficient in tf.unstack(p):
        result = result * x + coefficient
    return result
