"""Whether a model is being saved in this thread, and with which options."""

import contextlib
import sys
import threading

from runnel.eager.tracing import traces_apart


class _State(threading.local):
    is_saving, options = False, None


_state = _State()


@contextlib.contextmanager
def save_context(options):
    """A context manager: a model is being saved with `options`."""
    if _state.is_saving:
        raise ValueError("Already in a SaveContext.")
    _state.is_saving, _state.options = True, options
    # Variables of strategies are different ones in a model: functions that use them are traced for it.
    has_strategies = "runnel.distribute.variable" in sys.modules
    try:
        with traces_apart(("saving", options.experimental_variable_policy)) if has_strategies else contextlib.nullcontext():
            yield
    finally:
        _state.is_saving, _state.options = False, None


def in_save_context():
    """Tells whether a model is being saved."""
    return _state.is_saving


def get_save_options():
    """Returns the options with which a model is being saved."""
    if not _state.is_saving:
        raise ValueError("Not in a SaveContext.")
    return _state.options


def is_saving_non_distributed():
    """Tells whether a model is being saved in which variables of strategies are ordinary ones."""
    return _state.is_saving and not _state.options.experimental_variable_policy._expand_distributed_variables()
