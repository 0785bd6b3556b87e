"""tensorflow.python.framework.auto_control_deps: the order of side effects for programs that build graphs themselves."""

from runnel import nest, raw_ops
from runnel.core import framework
from runnel.eager import effect_order
from runnel.eager.effect_order import ASYNC_STATEFUL_OPS, MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS, is_stateful  # noqa: F401


def op_is_stateful(op):
    """Tells whether the operation has a place in the order of side effects."""
    return op.type not in ASYNC_STATEFUL_OPS and is_stateful(op)


class AutomaticControlDependencies:
    """A context manager: side effects of what is built inside happen in program order.

    `mark_as_return` gives tensors that are available after all of them. In eager execution it does nothing.
    """

    def __init__(self):
        self._order = None
        self._returned = []

    def mark_as_return(self, tensor):
        """Returns a tensor, or composite tensor, like `tensor` that is available after the side effects."""
        def returned(value):
            made = raw_ops.Identity(value)
            self._returned.append(made)
            return made
        if self._order is None:
            return tensor
        return nest.map_structure(returned, tensor, expand_composites=True)

    def run_independently(self, op):
        """Lets an operation run without waiting for others, and others without waiting for it."""
        self._order.run_independently(op)

    @property
    def ops_which_must_run(self):
        """The operations with side effects or effects on which they depend: none of them is left out."""
        return set(self._order.ordered())

    def __enter__(self):
        if not framework.executing_eagerly():
            self._order = effect_order.EffectOrder(framework.get_default_graph())
            self._order.__enter__()
        return self

    def __exit__(self, kind, value, traceback):
        if self._order is not None:
            self._order.__exit__(kind, value, traceback)
            for tensor in self._returned:
                tensor.op._add_control_inputs([op for op in self._order.last if op is not tensor.op])


def automatic_control_dependencies(f):
    """A decorator: what the function returns is available after the side effects of the operations that it builds."""
    from runnel.alias.util.decorators import make_decorator

    def wrapper(*args, **kwargs):
        with AutomaticControlDependencies() as order:
            result = f(*args, **kwargs)
            return nest.map_structure(order.mark_as_return, result, expand_composites=True)
    return make_decorator(f, wrapper)
