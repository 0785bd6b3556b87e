"""Flips, transposes and rotates images (tf.image)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import cond
from runnel.ops.random_ops import random_uniform


def _axis(image, of_three):
    rank = image.shape.ndims
    if rank not in (3, 4):
        raise ValueError("'image' (shape %s) must have either 3 or 4 dimensions." % image.shape)
    return of_three + rank - 3


def flip_left_right(image):
    """Mirrors an image horizontally."""
    with name_scope(None, "flip_left_right", [image]):
        image = convert_to_tensor(image, name="image")
        return array_ops.reverse(image, [_axis(image, 1)])


def flip_up_down(image):
    """Flips an image vertically."""
    with name_scope(None, "flip_up_down", [image]):
        image = convert_to_tensor(image, name="image")
        return array_ops.reverse(image, [_axis(image, 0)])


def _random_flip(image, axis, seed, scope):
    with name_scope(None, scope, [image]) as scope:
        image = convert_to_tensor(image, name="image")
        at = _axis(image, axis)
        if image.shape.ndims == 3:
            turns = random_uniform([], 0, 1.0, seed=seed) < 0.5
            result = cond(turns, lambda: array_ops.reverse(image, [at]), lambda: image, name=scope)
            result.set_shape(image.shape)
            return result
        count = array_ops.shape(image)[0]
        flips = math_ops.cast(raw_ops.Round(x=random_uniform([count], seed=seed)), image.dtype)
        flips = array_ops.reshape(flips, [count, 1, 1, 1])
        return flips * array_ops.reverse(image, [at]) + (1 - flips) * image


def random_flip_left_right(image, seed=None):
    """Mirrors an image horizontally with probability 1/2."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image, seed=None):
    """Flips an image vertically with probability 1/2."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def transpose_image(image, name=None):
    """Swaps the rows and columns of an image."""
    with name_scope(name, "transpose", [image]):
        image = convert_to_tensor(image, name="image")
        order = [1, 0, 2] if image.shape.ndims == 3 else [0, 2, 1, 3]
        return array_ops.transpose(image, order, name=name)


transpose = transpose_image


def rot90(image, k=1, name=None):
    """Rotates an image counter-clockwise by k times 90 degrees."""
    with name_scope(name, "rot90", [image, k]):
        image = convert_to_tensor(image, name="image")
        k = k % 4 if isinstance(k, int) else k
        if not isinstance(k, int):
            from runnel.ops.control_flow import case
            k = convert_to_tensor(k, dtypes.int32) % 4
            result = case([(math_ops.equal(k, n), lambda n=n: rot90(image, n)) for n in (1, 2, 3)],
                          default=lambda: image, exclusive=True)
            return result
        if k == 0:
            return array_ops.identity(image)
        if k == 2:
            return array_ops.reverse(image, [_axis(image, 0), _axis(image, 1)])
        if k == 1:
            return array_ops.reverse(transpose_image(image), [_axis(image, 0)])
        return transpose_image(array_ops.reverse(image, [_axis(image, 0)]))
