"""Conditionals, loops and groups as nodes of a graph; `ops.control_flow` has their names."""
