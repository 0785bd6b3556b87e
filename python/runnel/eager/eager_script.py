"""py_function: a Python function of eager tensors as an operation, with gradients."""

from runnel import dtypes, nest, raw_ops as _ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.gradients_impl import RegisterGradient
from runnel.eager import context as eager
from runnel.ops.script_ops import _register

_functions: dict = {}  # token -> (function, types of its results)


def _in_eager_mode(function):
    """Returns the function that the kernel calls: it converts arrays to eager tensors and back."""
    def call(arrays):
        with framework._DefaultGraph(None):
            return [x.numpy() for x in function([eager.constant(array) for array in arrays])]
    return call


def _results(func, types, inputs):
    answer = func(*inputs)
    is_complete = isinstance(answer, (list, tuple)) and len(answer) == len(types)  # nested lists then are values
    leaves = list(answer) if is_complete else [] if answer is None else nest.flatten(answer)
    if len(leaves) != len(types):
        raise ValueError("The function returned %d values, but %d were expected" % (len(leaves), len(types)))
    return [convert_to_tensor(x, dtype=t) for x, t in zip(leaves, types)]


def _node(function, inputs, types, name):
    eager.start()
    token = _register(_in_eager_mode(function), framework.get_default_graph())
    return token, _ops.EagerPyFunc(inputs, token=token, Tout=types, name=name)


def py_function(func=None, inp=None, Tout=None, name=None):
    """Returns an operation that calls a Python function with eager tensors and can be differentiated.

    Args:
      func: takes one eager tensor per tensor of `inp` and returns tensors or values of the types `Tout`. Without it, returns a decorator
        that makes such operations of its calls.
      inp: a list of tensors.
      Tout: the type of the result, a list of types, or [] for no result.
      name: name of the operation.
    """
    if func is None:
        return lambda decorated: lambda *args: py_function(decorated, list(args), Tout, name)
    is_list = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t) for t in Tout] if is_list else [dtypes.as_dtype(Tout)]
    if framework.executing_eagerly():
        results = _results(func, types, [convert_to_tensor(x) for x in inp])
    else:
        token, results = _node(lambda inputs: _results(func, types, inputs), list(inp), types, name)
        _functions[token] = (func, types)
    return results if is_list or not types else results[0]


@RegisterGradient("EagerPyFunc")
def _gradient(op, *dys):
    """Runs the function again on a tape."""
    func, types = _functions[op.get_attr("token").decode()]
    count = len(op.inputs)
    places = [i for i, x in enumerate(op.inputs) if x.dtype.is_floating or x.dtype.is_complex]

    def backward(values):
        from runnel.eager.backprop import GradientTape
        inputs, arrived = values[:count], values[count:]
        with GradientTape() as tape:
            tape.watch([inputs[i] for i in places])
            again = _results(func, types, inputs)
        grads = tape.gradient(again, [inputs[i] for i in places], output_gradients=list(arrived))
        return [_ops.ZerosLike(inputs[i]) if g is None else convert_to_tensor(g) for i, g in zip(places, grads)]

    _, results = _node(backward, list(op.inputs) + list(dys), [op.inputs[i].dtype for i in places], None)
    found = [None] * count
    for place, gradient in zip(places, results):
        gradient.set_shape(op.inputs[place].shape)
        found[place] = gradient
    return found
