"""tensorflow.python.framework.ops._gradient_registry: the gradients of types of operations, which libraries replace for a while.

SHAP, for one, replaces those of activations and products by its own rules. A replaced type is noted at the operations of a graph
when gradients are built in it, so that they ask the replacement.
"""

from runnel import raw_ops

_replaced: dict = {}  # type of operation -> function


class _Entry(dict):
    """{"type": the gradient function, "location": where it is registered}."""

    def __init__(self, op_type):
        super().__init__(type=_Default(op_type), location=("UNKNOWN",) * 5)
        self._op_type = op_type

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if key == "type":
            if isinstance(value, _Default):
                _replaced.pop(self._op_type, None)
            else:
                _replaced[self._op_type] = value


class _Default:
    """The gradient function of a type that Runnel has: builds the gradients of one operation."""

    def __init__(self, op_type):
        self._op_type = op_type

    def __call__(self, op, *grads):
        from runnel.core.gradients_impl import gradients
        kept = _replaced.pop(self._op_type, None)
        try:  # the operation asks the replacement, so the gradients are those of a copy
            inputs = list(op.inputs)
            attributes = {key: value for key, value in op.node_def.attr.items() if not key.startswith("_")}
            copy = op.graph.create_op(op.type, inputs, attrs=attributes)
            found = gradients(list(copy.outputs), inputs, list(grads), stop_gradients=inputs)
            return found[0] if len(found) == 1 else found
        finally:
            if kept is not None:
                _replaced[self._op_type] = kept


class _Types(dict):
    """{type of operation: entry}. Every op is in it."""

    def __contains__(self, name):
        return dict.__contains__(self, name) or hasattr(raw_ops, name)

    def __missing__(self, name):
        if not hasattr(raw_ops, name):
            raise KeyError(name)
        self[name] = made = _Entry(name)
        return made


class _Registry:
    """The registry, with the one attribute that libraries use."""

    def __init__(self):
        self._registry = _Types()


_gradient_registry = _Registry()


def note(graph):
    """Notes the replaced types at the operations of a graph that have no other note."""
    from runnel.core.gradients_impl import RegisterGradient, registered
    from runnel.core.protobuf import message_class
    for op in graph.get_operations() if _replaced else ():
        if op.type not in _replaced or "_gradient_op_type" in op.node_def.attr:
            continue
        name = "ReplacedGradientOf" + op.type
        if name not in registered:
            RegisterGradient(name)(lambda op, *grads: _replaced.get(op.type, _Default(op.type))(op, *grads))
        op._set_attr("_gradient_op_type", message_class("AttrValue")(s=name.encode()))
