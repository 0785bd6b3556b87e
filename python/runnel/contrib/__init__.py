"""tf.contrib: the part of TensorFlow 1.x's extras that published programs lean on.

Modules are loaded at first use. What is absent raises AttributeError with the page that lists it
(doc/python.md).
"""

import importlib

_MODULES = frozenset(
    "crf data distributions eager framework layers legacy_seq2seq lookup losses metrics opt rnn "
    "seq2seq slim tpu training util".split())


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module("runnel.contrib." + name)
    raise AttributeError("tf.contrib has no %r: see the table of names in doc/python.md" % name)


def __dir__():
    return sorted(_MODULES)
