"""tf.image.resize of images of different sizes."""

from runnel import dtypes
from runnel.core.convert import convert_to_tensor, evaluated_value
from runnel.core.tensor_shape import TensorShape
from runnel.core.type_spec import TensorSpec
from runnel.ops import array_ops, check_ops, functional_ops
from runnel.ragged.ragged_tensor import RaggedTensor


def resize(resize_one, images, size, method="bilinear", **options):
    """Resizes each image of a ragged tensor [batch, height, width, channels] with the function `resize_one`."""
    if images.shape.ndims != 4:
        raise ValueError("tf.image.resize: images.shape.rank must be 4 if images is ragged.")
    size = convert_to_tensor(size, dtypes.int32, name="size")
    known = evaluated_value(size)
    dims = [None, None] if known is None else [int(d) for d in known]
    is_copy = method in ("nearest", 1)
    dtype = images.dtype if is_copy else dtypes.float32
    shape = TensorShape(dims + images.shape.as_list()[-1:])

    if images.shape.as_list()[0] == 0:
        return array_ops.zeros([0] + [size[0], size[1], shape.as_list()[-1] or 0], dtype)

    def one(image):
        dense = image.to_tensor() if isinstance(image, RaggedTensor) else image
        return check_ops.ensure_shape(resize_one(dense, size, method, **options), shape)

    made = functional_ops.map_fn(one, images, fn_output_signature=TensorSpec(shape, dtype))
    made.set_shape(images.shape[:1].concatenate(shape))
    return made
