"""Graphs, operations and tensors, and the scopes in which new operations are created: what most modules import.

The types themselves are C (python/ext/graph.c). The files named here add what is not needed for every node:
collections, stacks of scopes, text forms.
"""

from runnel.graph.default_graph import (  # noqa: F401
    _get_graph_from_inputs, executing_eagerly, get_default_graph, has_default_graph, reset_default_graph)
from runnel.graph.default_scopes import (  # noqa: F401
    _graph_of, add_to_collection, add_to_collections, colocate_with, container, control_dependencies, device, eager_scope,
    get_collection, get_collection_ref, init_scope, name_scope, op_scope, prepend_name_scope, strip_name_scope)
from runnel.graph.graph import Graph
from runnel.graph.graph_keys import GraphKeys
from runnel.graph.graph_scopes import _to_operation  # noqa: F401
from runnel.graph.graph_stack import _DefaultGraph  # noqa: F401
from runnel.graph.graph_tensor import (  # noqa: F401
    RecognizedTensor, Tensor, _how_to_get_values, _tensor_like, is_dense_tensor_like, is_tensor,
    register_dense_tensor_like_type)
from runnel.graph.operation import Operation, _session_for  # noqa: F401

_TensorLike = Tensor
__all__ = ["Graph", "GraphKeys", "Operation", "Tensor", "add_to_collection", "add_to_collections",
           "colocate_with", "container", "control_dependencies", "device", "executing_eagerly",
           "get_collection", "get_collection_ref", "get_default_graph", "init_scope", "is_tensor",
           "name_scope", "op_scope", "reset_default_graph"]
