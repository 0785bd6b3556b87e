"""FuncGraph: the graph of a function under construction, as an object of its own."""

from runnel.core.framework import executing_eagerly, get_default_graph
from runnel.eager import tracing


class FuncGraph(tracing.Body):
    """A graph that captures tensors of the surrounding graph as arguments.

    Args:
      name: the function's name.
    """

    def __init__(self, name, collections=None, capture_by_value=None, structured_input_signature=None, structured_outputs=None):
        super().__init__(tracing._eager_library() if executing_eagerly() else get_default_graph())
        self.name = name
        self.inputs, self.outputs, self.control_outputs = [], [], []
        self.structured_input_signature, self.structured_outputs = structured_input_signature, structured_outputs
        for key, items in (collections or {}).items():
            self.get_collection_ref(key).extend(items)

    def capture(self, tensor, name=None, shape=None):
        """Returns the argument that stands for a tensor of the surrounding graph."""
        return self._take(tensor)

    @property
    def external_captures(self):
        """The captured tensors."""
        return list(self.captured)

    @property
    def internal_captures(self):
        """The arguments that stand for the captured tensors."""
        return list(self.standing)
