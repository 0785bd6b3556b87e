"""Gradients of images, and measures of their similarity (tf.image)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.image.colors import convert_image_dtype
from runnel.ops import array_ops, math_ops


def image_gradients(image):
    """Returns (dy, dx), the differences of neighbouring pixels."""
    image = convert_to_tensor(image)
    if image.shape.ndims != 4:
        raise ValueError("image_gradients expects a 4D tensor [batch_size, h, w, d], not %s." %
                         image.shape)
    count, height, width, depth = array_ops.unstack(array_ops.shape(image), 4)
    dy = image[:, 1:, :, :] - image[:, :-1, :, :]
    dx = image[:, :, 1:, :] - image[:, :, :-1, :]
    dy = array_ops.concat([dy, array_ops.zeros(array_ops.stack([count, 1, width, depth]),
                                               image.dtype)], 1)
    dx = array_ops.concat([dx, array_ops.zeros(array_ops.stack([count, height, 1, depth]),
                                               image.dtype)], 2)
    dy.set_shape(image.shape)
    dx.set_shape(image.shape)
    return dy, dx


def sobel_edges(image):
    """Returns (dy, dx) of Sobel's filters in a last dimension of 2."""
    from runnel.nn import nn_conv
    image = convert_to_tensor(image)
    depth = image.shape.as_list()[-1]
    kernel = array_ops.tile(array_ops.reshape(convert_to_tensor(
        [[[-1., -1.], [-2., 0.], [-1., 1.]], [[0., -2.], [0., 0.], [0., 2.]],
         [[1., -1.], [2., 0.], [1., 1.]]]), [3, 3, 1, 2]), [1, 1, depth, 1])
    padded = array_ops.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = nn_conv.depthwise_conv2d(padded, kernel, [1, 1, 1, 1], "VALID")
    return array_ops.reshape(edges, array_ops.concat([array_ops.shape(image), [2]], 0))


def total_variation(images, name=None):
    """Returns the sum of the differences of neighbouring pixels, one value per image."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axes = None if images.shape.ndims == 3 else [1, 2, 3]
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        along = images[..., :, 1:, :] - images[..., :, :-1, :]
        return (math_ops.reduce_sum(math_ops.abs(down), axis=axes)
                + math_ops.reduce_sum(math_ops.abs(along), axis=axes))


def psnr(a, b, max_val, name=None):
    """Returns the peak signal-to-noise ratio in decibels."""
    with name_scope(name, "PSNR", [a, b]):
        largest = convert_image_dtype(math_ops.cast(max_val, convert_to_tensor(a).dtype), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = math_ops.reduce_mean(raw_ops.SquaredDifference(x=a, y=b), [-3, -2, -1])
        ten = convert_to_tensor(10.0)
        return math_ops.subtract(20 * raw_ops.Log(x=largest) / raw_ops.Log(x=ten),
                                 convert_to_tensor(4.342944819) * raw_ops.Log(x=error), name="psnr")


def _ssim_window(size, sigma):
    import numpy
    at = numpy.arange(size, dtype=numpy.float32) - (size - 1) / 2.0
    logits = -0.5 * (at / sigma) ** 2
    grid = logits[:, None] + logits[None, :]
    weights = numpy.exp(grid - grid.max())
    return convert_to_tensor((weights / weights.sum()).astype(numpy.float32).reshape(size, size, 1, 1))


def _ssim_parts(one, two, max_val, filter_size, filter_sigma, k1, k2):
    """Returns (similarity, contrast and structure), one value per image and channel."""
    from runnel.nn import nn_conv
    kernel = array_ops.tile(_ssim_window(filter_size, filter_sigma),
                            array_ops.stack([1, 1, array_ops.shape(one)[-1], 1]))

    def blur(x):
        shape = array_ops.shape(x)
        flat = array_ops.reshape(x, array_ops.concat([[-1], shape[-3:]], 0))
        y = nn_conv.depthwise_conv2d_native(flat, kernel, [1, 1, 1, 1], "VALID")
        return array_ops.reshape(y, array_ops.concat([shape[:-3], array_ops.shape(y)[1:]], 0))
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean1, mean2 = blur(one), blur(two)
    product, squares = mean1 * mean2 * 2.0, raw_ops.Square(x=mean1) + raw_ops.Square(x=mean2)
    luminance = (product + c1) / (squares + c1)
    cross = blur(one * two) * 2.0
    both = blur(raw_ops.Square(x=one) + raw_ops.Square(x=two))
    structure = (cross - product + c2) / (both - squares + c2)
    return luminance * structure, structure


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03,
         return_index_map=False):
    """Returns the structural similarity of images, one value per image."""
    with name_scope(None, "SSIM", [img1, img2]):
        img1 = convert_to_tensor(img1)
        max_val = convert_image_dtype(math_ops.cast(max_val, img1.dtype), dtypes.float32)
        one, two = convert_image_dtype(img1, dtypes.float32), convert_image_dtype(img2, dtypes.float32)
        value, _ = _ssim_parts(one, two, max_val, filter_size, filter_sigma, k1, k2)
        if return_index_map:
            return math_ops.reduce_mean(value, [-1])
        return math_ops.reduce_mean(math_ops.reduce_mean(value, [-3, -2]), [-1])


def ssim_multiscale(img1, img2, max_val, power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
                    filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """Returns the structural similarity over several scales, one value per image."""
    from runnel.nn import nn_conv, nn_ops
    with name_scope(None, "MS-SSIM", [img1, img2]):
        img1 = convert_to_tensor(img1)
        max_val = convert_image_dtype(math_ops.cast(max_val, img1.dtype), dtypes.float32)
        pair = [convert_image_dtype(img1, dtypes.float32), convert_image_dtype(img2, dtypes.float32)]
        factors = []
        for scale in range(len(power_factors)):
            if scale > 0:
                pair = [nn_conv.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME") for x in pair]
            value, structure = _ssim_parts(*pair, max_val, filter_size, filter_sigma, k1, k2)
            value = math_ops.reduce_mean(value, [-3, -2])
            factors.append(nn_ops.relu(math_ops.reduce_mean(structure, [-3, -2])))
        factors[-1] = nn_ops.relu(value)
        stacked = array_ops.stack(factors, axis=-1)
        return math_ops.reduce_mean(math_ops.reduce_prod(raw_ops.Pow(
            x=stacked, y=convert_to_tensor(list(power_factors))), [-1]), [-1])
