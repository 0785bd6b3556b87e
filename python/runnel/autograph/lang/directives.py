"""tensorflow.python.autograph.lang.directives: calls that tell the conversion something and do nothing when they run."""

from runnel.autograph.conversion import set_loop_options  # noqa: F401

UNSPECIFIED = object()


def set_element_type(entity, dtype, shape=UNSPECIFIED):
    """Says of which type, and of which shape, the elements of a list are."""
