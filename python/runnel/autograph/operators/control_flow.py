"""tensorflow.python.autograph.operators.control_flow: if, while and for."""

from runnel.autograph import ag_logging, branches, loops, state
from runnel.core import framework

PYTHON_MAX_ITERATIONS = 100000000  # a loop in Python of more iterations is taken to be infinite
WARN_INEFFICIENT_UNROLL = True
INEFFICIENT_UNROLL_MIN_ITERATIONS = 50000
INEFFICIENT_UNROLL_MIN_OPS = 1


class _Unrolled:
    """Counts the iterations of a loop that Python runs, and looks at what a late one adds to the graph."""

    def __init__(self, body):
        self._body, self._count, self._known = body, 0, None

    def __call__(self, *item):
        self._count += 1
        if self._count > PYTHON_MAX_ITERATIONS:
            raise ValueError("iteration limit exceeded: a loop in Python ran %d times" % PYTHON_MAX_ITERATIONS)
        if WARN_INEFFICIENT_UNROLL and self._count in (INEFFICIENT_UNROLL_MIN_ITERATIONS, INEFFICIENT_UNROLL_MIN_ITERATIONS + 1):
            self._check()
        self._body(*item)

    def _check(self):
        if framework.executing_eagerly():
            return
        operations = framework.get_default_graph().get_operations()
        if self._known is None:
            self._known = len(operations)
        elif len(operations) - self._known >= INEFFICIENT_UNROLL_MIN_OPS:
            ag_logging.warning("Large unrolled loop detected. A loop over tensors becomes one loop of the graph. Iteration %d added these operations: %s",
                               self._count, ", ".join(op.type for op in operations[self._known:]))


def _state(get_state, set_state):
    return get_state or (lambda: ()), set_state or (lambda values: None)


def if_stmt(cond, body, orelse, get_state, set_state, symbol_names, nouts):
    """Runs one of two blocks; on a tensor, builds both. Only the first |nouts| values of the state keep what a block gives them then."""
    read, write = _state(get_state, set_state)
    if nouts == len(symbol_names) or not (state.is_tensor(cond) and state.builds_graph()):
        branches.if_statement(cond, body, orelse, read, write, symbol_names)
        return
    rest = tuple(read())[nouts:]
    branches.if_statement(cond, body, orelse, lambda: tuple(read())[:nouts], lambda values: write((*values, *rest)), symbol_names[:nouts])


def while_stmt(test, body, get_state, set_state, symbol_names, opts):
    """Runs a block while a test holds."""
    loops.while_statement(test, _Unrolled(body), *_state(get_state, set_state), symbol_names, lambda: _settings(opts))


def for_stmt(iter_, extra_test, body, get_state, set_state, symbol_names, opts):
    """Runs a block for each item, as long as `extra_test` holds, which may be None."""
    loops.for_statement(iter_, extra_test, _Unrolled(body), *_state(get_state, set_state), symbol_names, lambda: _settings(opts))


def _settings(opts):
    return {key: value for key, value in (opts or {}).items() if key != "iterate_names"}
