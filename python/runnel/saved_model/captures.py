"""Captures: a library function as the objects of a model hold it."""

from runnel import nest


class Captures:
    """A library function as objects hold it: its name, what it captures, its arguments and results.

    The arguments are ((positional), {keyword}) with TensorSpecs; the results are a structure.
    """

    def __init__(self, name, captured, inputs, outputs, keywords=None, result_types=None):
        self.name, self.captured = name, captured
        self.inputs, self.outputs = inputs, outputs
        self.keywords = keywords  # the arguments' names, if the file describes this as a SavedBareConcreteFunction; else None
        self.defaults = {}  # name of an argument of a signature -> the tensor that it is if it is not given
        self.dtypes = result_types if result_types is not None else [x.dtype for x in nest.flatten(outputs) if x is not None]
