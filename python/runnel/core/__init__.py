"""The base of the package: graphs, tensors, conversion of values, messages and sessions."""
