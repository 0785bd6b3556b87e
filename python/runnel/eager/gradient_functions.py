"""Functions that differentiate functions, as in tf.contrib.eager: implicit_gradients, gradients_function and others.

Each takes a function and returns another.
"""

import functools
import inspect

from runnel import nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.eager.backprop import GradientTape


def implicit_value_and_gradients(f):
    """Returns a function that returns the result of `f` and [(gradient, variable)] of the trainable variables it read."""
    @functools.wraps(f)
    def both(*args, **kwargs):
        with GradientTape() as tape:
            value = f(*args, **kwargs)
            if value is None:
                raise ValueError("Cannot differentiate a function that returns None; did you forget to "
                                 "return a value from %s?" % getattr(f, "__name__", f))
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("No trainable variables were accessed while the function was being computed.")
        gradients = tape.gradient(value, list(variables))
        return value, list(zip(gradients, variables))
    return both


def implicit_gradients(f):
    """Returns a function that returns [(gradient, variable)] of the trainable variables that `f` read."""
    both = implicit_value_and_gradients(f)

    @functools.wraps(f)
    def gradients(*args, **kwargs):
        return both(*args, **kwargs)[1]
    return gradients


def _positions(f, params):
    """Returns the positions of the arguments that `params` gives by position or name; by default all."""
    try:
        names = [p.name for p in inspect.signature(f).parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    if params is None or params == []:
        return None
    if all(isinstance(p, str) for p in params):
        return [names.index(p) for p in params]
    if all(isinstance(p, int) for p in params):
        return list(params)
    raise ValueError("params must be all strings or all integers; got %s." % (params,))


def make_vjp(f, params=None, persistent=True):
    """Returns a function that returns the result of `f` and its vector-Jacobian product.

    The product is a function from the incoming gradient to the gradients of the arguments in `params`.
    """
    positions = _positions(f, params)

    def forward(*args, **kwargs):
        if kwargs:
            raise ValueError("The gradient can only be computed of positional arguments; got %s." % list(kwargs))
        places = list(range(len(args))) if positions is None else positions
        given = list(args)
        for i in places:  # copies, because one tensor may be passed for several arguments
            given[i] = raw_ops.Identity(input=convert_to_tensor(given[i]))
        sources = [given[i] for i in places]
        with GradientTape(persistent=persistent) as tape:
            tape.watch(sources)
            result = f(*given)
            if result is None:
                raise ValueError("Cannot differentiate a function that returns None; did you forget to "
                                 "return a value from %s?" % getattr(f, "__name__", f))
            flat = [raw_ops.Identity(input=convert_to_tensor(x)) for x in nest.flatten(result)]
            result = nest.pack_sequence_as(result, flat) if nest.is_nested(result) else flat[0]

        def backward(dy=None):
            arrived = None if dy is None else [convert_to_tensor(x) for x in nest.flatten(dy)]
            return tape.gradient(result, sources, output_gradients=arrived)
        return result, backward
    return forward


def value_and_gradients_function(f, params=None):
    """Returns a function that returns the result of `f` and the gradients of the arguments in `params`.

    Its keyword argument `dy` is the incoming gradient.
    """
    def both(*args, **kwargs):
        dy = kwargs.pop("dy", None)
        if dy is not None and not isinstance(dy, (list, tuple, Tensor)):
            dy = convert_to_tensor(dy)
        value, backward = make_vjp(f, params, persistent=False)(*args, **kwargs)
        return value, backward(dy=dy)
    return both


def gradients_function(f, params=None):
    """Returns a function that returns the gradients of the arguments of `f` in `params`."""
    both = value_and_gradients_function(f, params)

    def gradients(*args, **kwargs):
        return both(*args, **kwargs)[1]
    return gradients
