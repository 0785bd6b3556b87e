"""Clipping of tensors by their norms."""

import runnel as tf
from runnel import raw_ops
from runnel.core import framework
from runnel.core.composite import IndexedSlices


def _values(t, name="t"):
    return tf.convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name=name)


def _like(t, values):
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


def clip_by_norm(t, clip_norm, axes=None, name=None):
    """Scales `t` down if its L2 norm, taken along `axes`, exceeds `clip_norm`."""
    with tf.name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t)
        if isinstance(clip_norm, (int, float)):
            clip_norm = max(clip_norm, 0)
        else:
            clip_norm = tf.cast(tf.maximum(clip_norm, 0), values.dtype)
        squares = tf.reduce_sum(values * values, axes, keepdims=True)
        # The gradient of sqrt is infinite at 0, so sqrt gets 1 instead.
        is_positive = squares > 0
        safe = tf.where(is_positive, squares, tf.ones_like(squares))
        norm = tf.where(is_positive, tf.sqrt(safe), squares)
        scaled = values * clip_norm
        values.shape.assert_is_compatible_with(scaled.shape)
        return _like(t, raw_ops.Identity(input=scaled / tf.maximum(norm, clip_norm), name=scope))


def _checked(t_list):
    if not isinstance(t_list, (list, tuple)):
        raise TypeError("`t_list` should be a sequence of tensors. Received %s." % type(t_list))
    return list(t_list)


def global_norm(t_list, name=None):
    """Returns the L2 norm of all tensors of a list together."""
    t_list = _checked(t_list)
    with tf.name_scope(name, "global_norm", t_list):
        halves = []
        for value in [None if t is None else _values(t, "t_%d" % i) for i, t in enumerate(t_list)]:
            if value is not None:
                with framework.colocate_with(value):
                    halves.append(raw_ops.L2Loss(t=value))
        half = tf.reduce_sum(tf.stack(halves))
        return tf.sqrt(half * tf.constant(2.0, dtype=half.dtype), name="global_norm")


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """Scales all tensors of a list by one factor if their global norm exceeds `clip_norm`.

    Returns (clipped list, global norm). If the norm is not finite, the results are NaN.
    """
    t_list = _checked(t_list)
    if use_norm is None:
        use_norm = global_norm(t_list, name)
    with tf.name_scope(name, "clip_by_global_norm", t_list + [clip_norm]) as scope:
        scale = clip_norm * tf.minimum(
            1.0 / use_norm, tf.constant(1.0, dtype=use_norm.dtype) / clip_norm)
        scale = scale + (use_norm - use_norm)
        values = [None if t is None else _values(t, "t_%d" % i) for i, t in enumerate(t_list)]
        out = []
        for i, (t, value) in enumerate(zip(t_list, values)):
            if value is None:
                out.append(None)
                continue
            with framework.colocate_with(value):
                out.append(_like(t, raw_ops.Identity(input=value * tf.cast(scale, value.dtype),
                                                     name="%s_%d" % (scope, i))))
    return out, use_norm


def clip_by_average_norm(t, clip_norm, name=None):
    """Scales `t` down if its L2 norm divided by its number of elements exceeds `clip_norm`."""
    with tf.name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = tf.convert_to_tensor(t, name="t")
        count = tf.cast(tf.size(t), tf.float32)
        inverse = tf.rsqrt(tf.reduce_sum(t * t, tf.range(tf.rank(t))))
        return raw_ops.Identity(
            input=t * clip_norm * tf.minimum(inverse * count, tf.constant(1.0) / clip_norm), name=scope)
