"""tf.keras: models of layers, trained by `fit`."""

import importlib as _importlib

_MODULES = frozenset("""activations backend callbacks constraints initializers layers losses metrics models
optimizers preprocessing regularizers utils""".split())
_NAMES = {"Sequential": "models", "Model": "models", "Input": "layers"}


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("runnel.keras." + name)
    if name in _NAMES:
        return getattr(_importlib.import_module("runnel.keras." + _NAMES[name]), name)
    raise AttributeError("tf.keras has no %r: see the table of names in doc/python.md" % name)


def __dir__():
    return sorted(_MODULES | set(_NAMES))
