"""tf.experimental.enable_strict_mode: what is deprecated raises an error."""

_state = {"strict": False}


def enable_strict_mode():
    """From now on, using what is deprecated raises RuntimeError."""
    _state["strict"] = True


def is_strict():
    """Tells whether `enable_strict_mode` was called."""
    return _state["strict"]
