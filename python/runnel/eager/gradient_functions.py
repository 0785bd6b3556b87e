"""Functions of derivatives, as tf.contrib.eager had them before tapes: implicit_gradients,
gradients_function and their kin. Each takes a function and gives another."""

import functools
import inspect

from runnel import nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.eager.backprop import GradientTape


def implicit_value_and_gradients(f):
    """A function that gives what `f` does, and [(gradient, variable) ...] for the trainable variables
    that were read meanwhile."""
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
    """The same, without what `f` gives."""
    both = implicit_value_and_gradients(f)

    @functools.wraps(f)
    def gradients(*args, **kwargs):
        return both(*args, **kwargs)[1]
    return gradients


def _positions(f, params):
    """The numbers of the arguments that `params` names, by number or name; None: all of them."""
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
    """A function that gives what `f` does and a function from what arrives there to the gradients of
    the arguments that `params` names."""
    positions = _positions(f, params)

    def forward(*args, **kwargs):
        if kwargs:
            raise ValueError("The gradient can only be computed of positional arguments; got %s." % list(kwargs))
        places = list(range(len(args))) if positions is None else positions
        given = list(args)
        for i in places:  # one tensor may stand for several arguments
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
    """A function that gives what `f` does, and the gradients of the arguments that `params` names; dy:
    what arrives."""
    def both(*args, **kwargs):
        dy = kwargs.pop("dy", None)
        if dy is not None and not isinstance(dy, (list, tuple, Tensor)):
            dy = convert_to_tensor(dy)
        value, backward = make_vjp(f, params, persistent=False)(*args, **kwargs)
        return value, backward(dy=dy)
    return both


def gradients_function(f, params=None):
    """The same, without what `f` gives."""
    both = value_and_gradients_function(f, params)

    def gradients(*args, **kwargs):
        return both(*args, **kwargs)[1]
    return gradients
