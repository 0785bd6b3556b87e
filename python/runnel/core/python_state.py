"""tf.train.experimental.PythonState: state of Python objects in checkpoints."""

import abc

from runnel.core.trackable import Trackable

PYTHON_STATE = "py_state"


class PythonState(Trackable, metaclass=abc.ABCMeta):
    """The base of objects whose state is a string."""

    @abc.abstractmethod
    def serialize(self):
        """Returns the state as a string."""

    @abc.abstractmethod
    def deserialize(self, string_value):
        """Restores the state from a string that `serialize` returned."""

    def _serialize_to_tensors(self):
        from runnel import dtypes
        from runnel.core import convert, framework
        with framework.init_scope():
            return {PYTHON_STATE: convert.constant(self.serialize(), dtype=dtypes.string)}
