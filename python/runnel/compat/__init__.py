"""tf.compat: v1 is tf itself; conversion between str and bytes."""

import sys

import runnel as v1
from runnel.core.tensor_shape import dimension_at_index, dimension_value  # noqa: F401

sys.modules[__name__ + ".v1"] = v1
bytes_or_text_types = (bytes, str)
integral_types = (int,)
real_types = (int, float)
complex_types = (int, float, complex)


def as_bytes(value, encoding="utf-8"):
    """Converts str to bytes; bytes are returned unchanged."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode(encoding)
    raise TypeError("Expected binary or unicode string, got %r" % (value,))


def as_text(value, encoding="utf-8"):
    """Converts bytes to str; str is returned unchanged."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode(encoding)
    raise TypeError("Expected binary or unicode string, got %r" % (value,))


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    """Converts any value to str."""
    return as_text(value, encoding) if isinstance(value, (bytes, bytearray)) else str(value)


def path_to_str(path):
    """Converts a path object to str."""
    return path.__fspath__() if hasattr(path, "__fspath__") else path


def forward_compatible(year, month, day):
    """Returns True: new behaviour may be used."""
    return True


def __getattr__(name):
    if name == "v2":
        import importlib
        return importlib.import_module(__name__ + ".v2")
    raise AttributeError("tf.compat has no %r: see doc/python_names.md" % name)
