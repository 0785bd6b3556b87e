"""Names that only the package tensorflow_estimator imports from tensorflow.python."""

import itertools


def hide_attribute_from_api(obj):
    """A decorator that does nothing."""
    return obj


def internal_convert_to_tensor(value, dtype=None, name=None, as_ref=False, preferred_dtype=None, ctx=None):
    """The same as tf.convert_to_tensor."""
    from runnel.core.convert import convert_to_tensor
    return convert_to_tensor(value, dtype=dtype, name=name, preferred_dtype=preferred_dtype)


def get_name_scope():
    """Returns the current name scope of the default graph."""
    from runnel.core.framework import get_default_graph
    return get_default_graph().get_name_scope()


def get_to_proto_function(collection_name):
    """Returns the function from values of a collection to messages, or None."""
    from runnel.core import meta_graph
    return meta_graph._known(collection_name)[1]


def _to_proto_fn(v, export_scope=None):
    return v.to_proto(export_scope=export_scope)


def _from_proto_fn(v, import_scope=None):
    from runnel.ops.variables import Variable
    return Variable.from_proto(v, import_scope=import_scope)


_uids = itertools.count()


def uid():
    """Returns a new number at every call."""
    return next(_uids)


class _Cell:
    """The value of a gauge for some labels."""

    def __init__(self):
        self._value = None

    def set(self, value):
        self._value = value

    def value(self):
        return self._value


class BoolGauge:
    """A bool of the process, by labels."""

    def __init__(self, name, description, *labels):
        self.name, self.description, self._labels, self._cells = name, description, labels, {}

    def get_cell(self, *labels):
        if len(labels) != len(self._labels):
            raise ValueError("The %s expects taking %d labels" % (self.name, len(self._labels)))
        return self._cells.setdefault(labels, _Cell())


IntGauge = StringGauge = BoolGauge


class TensorTracer:
    """Not supported: traces on TPUs."""

    @staticmethod
    def is_enabled():
        return False


class _NotHere:
    """Stands for the classes that export estimators as functions, which is not supported."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("Exporting estimators as functions is not supported")


VariableHolder = WrappedGraph = _NotHere


def __getattr__(name):
    if name == "RMSProp":
        from runnel.keras.optimizers import RMSprop
        return RMSprop
    if name == "XLAControlFlowContext":
        from runnel.ops.control_flow import ControlFlowContext
        return type(name, (ControlFlowContext,), {"__doc__": "The base of contexts of compiled code."})
    raise AttributeError(name)
