"""Datasets that functions of a SavedModel read: the model makes them again when it is loaded."""

from runnel import raw_ops
from runnel.core.protobuf import message_class
from runnel.core.trackable_resource import CapturableResource


class VariantTracker(CapturableResource):
    """Owns the tensor that stands for a dataset."""

    def __init__(self, variant_tensor):
        super().__init__(device="CPU")
        self._resource_handle = variant_tensor
        self._definition = message_class("GraphDef").FromString(raw_ops.DatasetToGraphV2(input_dataset=variant_tensor).numpy())
        result = next(node for node in self._definition.node if node.op == "_Retval")
        self._result = result.input[0] if ":" in result.input[0] else result.input[0] + ":0"
        self._definition.node.remove(result)

    def _create_resource(self):
        """Makes the dataset from its description, for another graph or process."""
        from runnel.eager.wrap_function import function_from_graph_def
        return function_from_graph_def(self._definition, [], self._result)()
