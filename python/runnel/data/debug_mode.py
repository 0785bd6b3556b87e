"""tf.data.experimental.enable_debug_mode: the functions of pipelines run eagerly, so that a debugger can stop in them."""

from runnel.core import framework

_state = {"debug": False, "test": False}


def enable_debug_mode():
    """Makes the functions of pipelines run eagerly, one element at a time. Call it before datasets are made."""
    if not framework.executing_eagerly():
        raise ValueError("`enable_debug_mode() is only supported in eager mode.")
    toggle_debug_mode(True)


def toggle_debug_mode(debug_mode):
    """Turns the mode on or off."""
    _state["debug"] = debug_mode


def is_debug_mode():
    """Tells whether the functions of pipelines run eagerly."""
    return _state["debug"]


def toggle_test_mode(test_mode):
    """Notes whether TensorFlow's own tests run, which begin background work when an iterator is made."""
    _state["test"] = test_mode


def is_test_mode():
    """Tells whether TensorFlow's own tests run."""
    return _state["test"]


def in_debug_mode(traced, fn, specs):
    """Returns a function of tensors that calls `fn` eagerly; `traced` is the trace of `fn`, which knows the types of its results."""
    from runnel.eager.eager_script import py_function

    def call(*tensors):
        if not traced.dtypes or any(not _is_plain(dtype) for dtype in [*traced.dtypes, *(spec[0] for spec in specs)]):
            return fn(*tensors)
        results = py_function(lambda *values: fn(*values), list(tensors), list(traced.dtypes))
        for result, shape in zip(results, traced.shapes):
            result.set_shape(shape)
        return results
    return call


def _is_plain(dtype):
    from runnel import dtypes
    return dtype not in (dtypes.variant, dtypes.resource)
