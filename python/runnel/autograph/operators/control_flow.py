"""tensorflow.python.autograph.operators.control_flow: if, while and for."""

from runnel.autograph import branches, loops


def if_stmt(cond, body, orelse, get_state, set_state, symbol_names, nouts):
    """Runs one of two blocks; on a tensor, builds both."""
    branches.if_statement(cond, body, orelse, get_state or (lambda: ()), set_state or (lambda values: None), symbol_names)


def while_stmt(test, body, get_state, set_state, symbol_names, opts):
    """Runs a block while a test holds."""
    loops.while_statement(test, body, get_state or (lambda: ()), set_state or (lambda values: None), symbol_names, lambda: _settings(opts))


def for_stmt(iter_, extra_test, body, get_state, set_state, symbol_names, opts):
    """Runs a block for each item, as long as `extra_test` holds, which may be None."""
    loops.for_statement(iter_, extra_test, body, get_state or (lambda: ()), set_state or (lambda values: None), symbol_names, lambda: _settings(opts))


def _settings(opts):
    return {key: value for key, value in (opts or {}).items() if key != "iterate_names"}
