"""tensorflow.python.autograph.operators.py_builtins: Python's functions as converted functions call them."""

import builtins
import sys

from runnel.autograph import branches, on_values
from runnel.core.framework import is_tensor


def overload_of(f):
    """Returns the function that stands for a function of Python in converted functions."""
    return branches.OVERLOADS.get(f, f)


abs_, enumerate_, filter_, map_, range_, sorted_, zip_ = (
    overload_of(getattr(builtins, name)) for name in ("abs", "enumerate", "filter", "map", "range", "sorted", "zip"))
next_ = on_values.next_of_iterator


def _of_tensors(builtin):
    """Returns what stands for a function, which takes eager tensors like those of a graph."""
    on_tensors = branches.ON_TENSORS[builtin]

    def run(*args):
        return on_tensors(*args) if args and is_tensor(args[0]) else overload_of(builtin)(*args)
    return run


float_, int_, _len_of_tensors = _of_tensors(float), _of_tensors(int), _of_tensors(len)


def len_(s):
    """Returns the length of a collection, a tensor, a tensor list, a TensorArray or a dataset."""
    return s.size() if hasattr(s, "stack") and hasattr(s, "size") and not is_tensor(s) and hasattr(s, "write") else _len_of_tensors(s)


def print_(*objects, **kwargs):
    """Prints objects, the values of tensors when the graph runs. Returns the operation that prints."""
    return branches.ON_TENSORS[print](*objects, **kwargs) if any(map(is_tensor, objects)) else print(*objects, **kwargs)


all_ = branches._of_datasets(overload_of(all), on_values.all_of_dataset)
any_ = branches._of_datasets(overload_of(any), on_values.any_of_dataset)


def max_(*args, **kwargs):
    """Returns the largest of several values, which may be scalar tensors, or of the elements of one."""
    return on_values.max_of_tensors(*args) if any(map(is_tensor, args)) else max(*args, **kwargs)


def min_(*args, **kwargs):
    """Returns the smallest of several values, which may be scalar tensors, or of the elements of one."""
    return on_values.min_of_tensors(*args) if any(map(is_tensor, args)) else min(*args, **kwargs)


# --- Functions of Python that look at their caller, called from generated code

def _frame(scope, innermost=True):
    """Returns the frame of a function in whose scope generated code runs: the innermost, or the outermost of several, one per inner function."""
    frame, found = sys._getframe(2), None
    while frame is not None:
        if frame.f_locals.get(scope.name) is scope:
            found = frame
            if innermost:
                break
        frame = frame.f_back
    if found is None:
        raise AssertionError("the scope %s is not that of a caller" % scope.name)
    return found


def locals_in_original_context(caller_fn_scope):
    """Returns what locals() returns in the function with this scope."""
    return _frame(caller_fn_scope).f_locals


def globals_in_original_context(caller_fn_scope):
    """Returns what globals() returns in the function with this scope."""
    return _frame(caller_fn_scope).f_globals


def eval_in_original_context(f, args, caller_fn_scope):
    """Returns f(*args), where f is eval, with the names of the function with this scope."""
    frame = _frame(caller_fn_scope)
    names = (args[1] if len(args) > 1 else frame.f_globals, args[2] if len(args) > 2 else frame.f_locals)
    return f(args[0], *names)


def super_in_original_context(f, args, caller_fn_scope):
    """Returns super(*args); without arguments that of the method with this scope."""
    if args:
        return f(*args)
    frame = _frame(caller_fn_scope, innermost=False)
    return f(frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]])
