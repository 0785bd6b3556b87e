"""Gradients of composite values: which of their tensors have one, and what the gradients of those make.

A class says it by two methods. `_gradient_parts()` returns the tensors (or composite values) that have gradients;
`_with_gradients(gradients)` returns the gradient of the whole, given one gradient or None per part. Classes without them, such as
IndexedSlices, have gradients of their own kind.
"""


def _parts(value):
    make = getattr(value, "_gradient_parts", None)
    return None if make is None else list(make())


def flatten(values):
    """Returns the tensors that stand for `values`, a list, where gradients are computed."""
    flat = []
    for value in values:
        parts = _parts(value)
        flat.extend([value] if parts is None else flatten(parts))
    return flat


def pack(values, gradients):
    """Returns the gradients of `values`, given those of `flatten(values)`."""
    gradients = iter(gradients)
    return [_pack_one(value, gradients) for value in values]


def _pack_one(value, gradients):
    parts = _parts(value)
    if parts is None:
        return next(gradients)
    found = [_pack_one(part, gradients) for part in parts]
    return None if all(gradient is None for gradient in found) else value._with_gradients(found)
