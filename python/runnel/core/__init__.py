"""Graphs, tensors, types, messages and sessions: what everything else stands on."""
