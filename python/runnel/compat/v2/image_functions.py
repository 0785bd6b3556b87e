"""Functions of tf.image with the parameters of 2.x, and random ones that a seed of two integers determines."""

import runnel as _v1
from runnel import raw_ops
from runnel.core.convert import convert_to_tensor


def extract_glimpse(input, size, offsets, centered=True, normalized=True, noise="uniform", name=None):  # noqa: A002
    """Cuts windows out of images; what is outside of an image is noise."""
    return raw_ops.ExtractGlimpseV2(input=input, size=size, offsets=offsets, centered=centered, normalized=normalized, noise=noise,
                                    uniform_noise=False, name=name)


def sample_distorted_bounding_box(image_size, bounding_boxes, seed=0, min_object_covered=0.1, aspect_ratio_range=None, area_range=None,
                                  max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """Draws a random box that covers part of the given boxes. Returns (begin, size, box)."""
    first, second = _v1.get_seed(seed) if seed else (0, 0)
    return _v1.image.sample_distorted_bounding_box(image_size, bounding_boxes, first, second, min_object_covered, aspect_ratio_range, area_range,
                                                   max_attempts, use_image_if_no_bounding_boxes, name)


def stateless_sample_distorted_bounding_box(image_size, bounding_boxes, seed, min_object_covered=0.1, aspect_ratio_range=None, area_range=None,
                                            max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """Draws a box that covers part of the given boxes, determined by `seed`. Returns (begin, size, box)."""
    return raw_ops.StatelessSampleDistortedBoundingBox(
        image_size=image_size, bounding_boxes=bounding_boxes, min_object_covered=min_object_covered, seed=seed,
        aspect_ratio_range=list(aspect_ratio_range or [0.75, 1.33]), area_range=list(area_range or [0.05, 1.0]), max_attempts=max_attempts or 100,
        use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes), name=name)


def _uniform(seed, low, high, shape=(), dtype="float32"):
    return _v1.random.stateless_uniform(list(shape), seed, low, high, dtype)


def _flip(image, seed, axis):
    image = convert_to_tensor(image)
    if image.shape.rank == 4:
        drawn = raw_ops.Reshape(_uniform(seed, 0, 1, [image.shape.as_list()[0] or _v1.shape(image)[0]]), [-1, 1, 1, 1])
        flips = _v1.cast(raw_ops.Round(drawn), image.dtype)
        return flips * _v1.reverse(image, [axis + 1]) + (1 - flips) * image
    keeps = raw_ops.Less(0.5, _uniform(seed, 0, 1.0))
    return _v1.cond(keeps, lambda: image, lambda: _v1.reverse(image, [axis]))


def stateless_random_flip_left_right(image, seed):
    """Flips images to left and right with probability 1/2."""
    return _flip(image, seed, 1)


def stateless_random_flip_up_down(image, seed):
    """Flips images upside down with probability 1/2."""
    return _flip(image, seed, 0)


def stateless_random_brightness(image, max_delta, seed):
    """Changes the brightness by a number from [-max_delta, max_delta)."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return _v1.image.adjust_brightness(image, _uniform(seed, -max_delta, max_delta))


def stateless_random_contrast(image, lower, upper, seed):
    """Changes the contrast by a factor from [lower, upper)."""
    _check_bounds(lower, upper)
    return _v1.image.adjust_contrast(image, _uniform(seed, lower, upper))


def stateless_random_saturation(image, lower, upper, seed=None):
    """Changes the saturation by a factor from [lower, upper)."""
    _check_bounds(lower, upper)
    return _v1.image.adjust_saturation(image, _uniform(seed, lower, upper))


def stateless_random_hue(image, max_delta, seed):
    """Changes the hue by a number from [-max_delta, max_delta)."""
    if not 0 <= max_delta <= 0.5:
        raise ValueError("max_delta must be <= 0.5." if max_delta > 0.5 else "max_delta must be non-negative.")
    return _v1.image.adjust_hue(image, _uniform(seed, -max_delta, max_delta))


def _check_bounds(lower, upper):
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


def stateless_random_crop(value, size, seed, name=None):
    """Cuts a piece of a size out of a tensor, at a place that `seed` determines."""
    value, size = convert_to_tensor(value), convert_to_tensor(size, dtype="int32")
    limit = raw_ops.Shape(input=value) - size + 1
    largest = 2 ** 31 - 1
    offset = _v1.random.stateless_uniform([value.shape.rank], seed, 0, largest, "int32") % limit
    return _v1.slice(value, offset, size, name=name)
