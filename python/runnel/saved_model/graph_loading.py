"""SavedModels of graphs, without objects, in eager programs: signatures run in a session of their own."""

from runnel import dtypes
from runnel.core import convert


class _Signature:
    """A function from keyword arguments to a dict."""

    def __init__(self, session, definition):
        self._session = session
        self._inputs = {key: info.name for key, info in definition.inputs.items()}
        self._outputs = {key: info.name for key, info in definition.outputs.items()}

    def __call__(self, **kwargs):
        if set(kwargs) != set(self._inputs):
            raise TypeError("The signature takes the arguments %s, but got %s" % (sorted(self._inputs), sorted(kwargs)))
        feeds = {self._inputs[key]: value.numpy() if hasattr(value, "numpy") else value for key, value in kwargs.items()}
        values = self._session.run(self._outputs, feeds)
        return {key: convert.constant(value) for key, value in values.items()}


class GraphModel:
    """The result of tf.saved_model.load for a model that is a graph: `signatures`, `graph`."""

    def __init__(self, meta, folder):
        from runnel.core.framework import Graph
        from runnel.core.session import Session
        from runnel.saved_model import meta_graphs as saved_model
        self.graph = Graph()
        self._session = Session(graph=self.graph)
        saved_model.load(self._session, list(meta.meta_info_def.tags), folder)
        self.signatures = {
            key: _Signature(self._session, definition) for key, definition in meta.signature_def.items()
            if definition.outputs and not key.startswith("__") and all(
                info.WhichOneof("encoding") == "name" and dtypes.as_dtype(info.dtype) is not None
                for info in list(definition.inputs.values()) + list(definition.outputs.values()))}
