"""tensorflow.python.autograph.operators.py_builtins: Python's functions as converted functions call them."""

import builtins

from runnel.autograph import on_values, operators
from runnel.core.framework import is_tensor


def overload_of(f):
    """Returns the function that stands for a function of Python in converted functions."""
    return operators.OVERLOADS.get(f, f)


abs_, enumerate_, filter_, float_, int_, len_, map_, next_, range_, sorted_, zip_ = (
    overload_of(getattr(builtins, name)) for name in
    ("abs", "enumerate", "filter", "float", "int", "len", "map", "next", "range", "sorted", "zip"))
all_ = operators._of_datasets(overload_of(all), on_values.all_of_dataset)
any_ = operators._of_datasets(overload_of(any), on_values.any_of_dataset)


def max_(*args, **kwargs):
    """Returns the largest of several values, which may be scalar tensors, or of the elements of one."""
    return on_values.max_of_tensors(*args) if any(map(is_tensor, args)) else max(*args, **kwargs)


def min_(*args, **kwargs):
    """Returns the smallest of several values, which may be scalar tensors, or of the elements of one."""
    return on_values.min_of_tensors(*args) if any(map(is_tensor, args)) else min(*args, **kwargs)
