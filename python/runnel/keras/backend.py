"""tf.keras.backend: the session of a graph, the learning phase, and functions of tensors."""

from runnel import dtypes
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import executing_eagerly, get_default_graph, reset_default_graph
from runnel.nn import nn_ops
from runnel.ops import array_ops, math_ops

_floatx = "float32"
_epsilon = 1e-7
_eager_phase = False
_manual = False  # whether the program, instead of the model, initializes variables


class _State:
    """The state kept per graph."""

    def __init__(self):
        self.session = None
        self.phase = None
        self.ready = set()  # variables that have a value
        self.counts = {}  # prefix of layer names -> the last number used


def _state():
    scopes = get_default_graph()._scopes
    if __name__ not in scopes:
        scopes[__name__] = _State()
    return scopes[__name__]


def get_session():
    """Returns the session for models of the default graph, with initialized variables."""
    from runnel.core.session import Session, get_default_session
    state = _state()
    session = get_default_session()
    if session is None or session.graph is not get_default_graph():
        if state.session is None:
            state.session = Session()
        session = state.session
    if not _manual:
        _initialize(session, state)
    return session


def set_session(session):
    """Makes models run in the given session."""
    _state().session = session


def _initialize(session, state):
    from runnel.ops.variables import global_variables, is_variable_initialized, local_variables
    new = [v for v in global_variables() + local_variables() if v not in state.ready]
    if not new:
        return
    known = session.run([is_variable_initialized(v) for v in new])
    session.run([v.initializer for v, is_known in zip(new, known) if not is_known])
    state.ready.update(new)


def clear_session():
    """Forgets all models, and creates a new default graph."""
    state = _state()
    if state.session is not None:
        state.session.close()
    reset_default_graph()


def learning_phase():
    """Returns a scalar bool: whether the step trains. `fit` feeds True; in eager execution it passes `training` to each layer."""
    if executing_eagerly():
        return _eager_phase
    state = _state()
    if state.phase is None:
        state.phase = array_ops.placeholder_with_default(False, shape=(), name="keras_learning_phase")
    return state.phase


def floatx():
    """Returns the default floating-point type."""
    return _floatx


def set_floatx(value):
    """Sets the default floating-point type."""
    global _floatx
    _floatx = dtypes.as_dtype(value).name


def epsilon():
    """Returns the small number that losses add."""
    return _epsilon


def set_epsilon(value):
    """Sets the small number that losses add."""
    global _epsilon
    _epsilon = value


def get_value(x):
    """Returns the value of a variable."""
    return x.numpy() if executing_eagerly() else get_session().run(x)


def set_value(x, value):
    """Sets the value of a variable."""
    if executing_eagerly():
        x.assign(value)
    else:
        x.load(value, get_session())


def set_learning_phase(value):
    """Fixes whether steps train: 0 or 1."""
    global _eager_phase
    if executing_eagerly():
        _eager_phase = bool(value)
    else:
        _state().phase = convert_to_tensor(bool(value))


def variable(value, dtype=None, name=None, constraint=None):
    """Creates a variable."""
    from runnel.ops.variables import Variable
    return Variable(value, dtype=dtypes.as_dtype(dtype or _floatx), name=name, constraint=constraint,
                    use_resource=True)


def int_shape(x):
    """Returns the static shape as a tuple."""
    return tuple(x.shape.as_list()) if x.shape.dims is not None else None


def mean(x, axis=None, keepdims=False):
    """Returns the mean over dimensions."""
    x = convert_to_tensor(x)
    if x.dtype == dtypes.bool:
        x = math_ops.cast(x, _floatx)
    return math_ops.reduce_mean(x, axis, keepdims=keepdims)


def sum(x, axis=None, keepdims=False):  # noqa: A001
    """Returns the sum over dimensions."""
    return math_ops.reduce_sum(x, axis, keepdims=keepdims)


def max(x, axis=None, keepdims=False):  # noqa: A001
    """Returns the maximum over dimensions."""
    return math_ops.reduce_max(x, axis, keepdims=keepdims)


def square(x):
    """Returns x * x."""
    return convert_to_tensor(x) * x


def sqrt(x):
    """Returns the square root; negative values count as 0."""
    from runnel import raw_ops
    return raw_ops.Sqrt(x=raw_ops.Maximum(x=x, y=convert_to_tensor(0, convert_to_tensor(x).dtype)))


def abs(x):  # noqa: A001
    """Returns the absolute value."""
    return math_ops.abs(x)


def exp(x):
    """Returns exp(x)."""
    from runnel import raw_ops
    return raw_ops.Exp(x=x)


def log(x):
    """Returns the logarithm."""
    from runnel import raw_ops
    return raw_ops.Log(x=x)


def clip(x, min_value, max_value):
    """Clips values to [min_value, max_value]."""
    from runnel.ops.math_ops import clip_by_value
    return clip_by_value(x, min_value, max_value)


def dot(x, y):
    """Multiplies tensors along the last dimension of x and the second to last of y."""
    return math_ops.matmul(x, y)


def softmax(x, axis=-1):
    """Returns the softmax along an axis."""
    return nn_ops.softmax(x, axis)


def cast(x, dtype):
    """Converts a tensor to another type."""
    return math_ops.cast(x, dtype)


def concatenate(tensors, axis=-1):
    """Joins tensors along an axis."""
    return array_ops.concat(tensors, axis)


def reshape(x, shape):
    """Returns the elements in another shape."""
    return array_ops.reshape(x, shape)


def argmax(x, axis=-1):
    """Returns the index of the largest element along an axis."""
    return math_ops.argmax(x, axis)


def equal(x, y):
    """Returns x == y element-wise."""
    return math_ops.equal(x, y)


def zeros_like(x):
    """Returns zeros with the shape of x."""
    return array_ops.zeros_like(x)


def ones_like(x):
    """Returns ones with the shape of x."""
    return array_ops.ones_like(x)


def shape(x):
    """Returns the shape as a tensor."""
    return array_ops.shape(x)


def ndim(x):
    """Returns the rank."""
    return x.shape.ndims


def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Returns random values from a normal distribution."""
    from runnel.ops import random_ops
    return random_ops.random_normal(shape, mean, stddev, dtypes.as_dtype(dtype or _floatx), seed)


def function(inputs, outputs, updates=None, name=None, **kwargs):
    """Returns a Python function that feeds `inputs`, returns `outputs`, and then runs the updates."""
    from runnel.core.framework import control_dependencies
    from runnel.ops.state_ops import assign
    listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    with control_dependencies([x for x in listed if hasattr(x, "op")]):
        updates = [assign(*update) if isinstance(update, tuple) else update for update in updates or []]
    feeds = dict(kwargs.get("feed_dict") or {})
    fetches = (outputs, updates, kwargs.get("fetches") or [])

    def run(values):
        given = feeds | {key: value for key, value in zip(inputs, values) if value is not None}
        return get_session().run(fetches, given, options=kwargs.get("options"),
                                 run_metadata=kwargs.get("run_metadata"))[0]
    return run


def __getattr__(name):
    if not name.startswith("__"):
        from runnel.keras import backend_ops
        found = backend_ops.same(name)
        if found is None and name not in ("SAME", "same", "tf", "K"):
            found = vars(backend_ops).get(name)
        if found is not None:
            return found
    raise AttributeError("tf.keras.backend has no %r: see doc/python_names.md" % name)
