"""Graphs, operations and tensors, and the scopes in which new operations are created; `core.framework` has their names."""
