"""tf.compat: v1 is tf itself; texts and bytes."""

import sys

import runnel as v1

sys.modules[__name__ + ".v1"] = v1
bytes_or_text_types = (bytes, str)
integral_types = (int,)
real_types = (int, float)
complex_types = (int, float, complex)


def as_bytes(value, encoding="utf-8"):
    """Bytes of a text, or the bytes themselves."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode(encoding)
    raise TypeError("Expected binary or unicode string, got %r" % (value,))


def as_text(value, encoding="utf-8"):
    """The text of bytes, or the text itself."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode(encoding)
    raise TypeError("Expected binary or unicode string, got %r" % (value,))


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    """Any value as text."""
    return as_text(value, encoding) if isinstance(value, (bytes, bytearray)) else str(value)


def path_to_str(path):
    """The text of a path object."""
    return path.__fspath__() if hasattr(path, "__fspath__") else path


def dimension_value(dimension):
    """The size, of a Dimension or a number."""
    return v1.dimension_value(dimension)


def dimension_at_index(shape, index):
    """A dimension of a shape."""
    return v1.dimension_at_index(shape, index)


def forward_compatible(year, month, day):
    """Whether what was new then may be used."""
    return True


def __getattr__(name):
    if name == "v2":
        import importlib
        return importlib.import_module(__name__ + ".v2")
    raise AttributeError("tf.compat has no %r: see doc/python_names.md" % name)
