"""Modules behind the paths of tensorflow.python.autograph."""
