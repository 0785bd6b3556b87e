"""Runnel: TensorFlow's 1.x graph API.

    import runnel as tf

    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.reduce_sum(tf.square(x))
    with tf.Session() as sess:
        print(sess.run(y, {x: [[1, 2, 3]]}))

The guide is doc/python.md; doc/python_names.md lists the names that are here.
"""

import os as _os

_home = _os.path.dirname(_os.path.abspath(__file__))


def _find_build():
    """In the source tree, finds the C part in a build folder: $RUNNEL_BUILD or build/release."""
    if any(name.startswith("_core.") and not name.endswith(".pyi") for name in _os.listdir(_home)):
        return
    root = _os.path.dirname(_os.path.dirname(_home))
    chosen = _os.environ.get("RUNNEL_BUILD")
    for build in (chosen,) if chosen else (_os.path.join(root, "build", "release"),):
        folder = _os.path.join(build if _os.path.isabs(build) else _os.path.join(root, build),
                               "python", "runnel")
        if _os.path.isdir(folder):
            __path__.append(folder)


_find_build()
try:
    from runnel import _core
except ImportError as error:
    raise ImportError(
        "Runnel's C part is missing (%s). In the source tree, `make` builds it; set RUNNEL_BUILD if the build "
        "folder is not build/release." % error) from None
_core.register(package=_home + _os.sep)

from runnel import _submodules
_submodules.install()
from runnel import _names, dtypes, errors, raw_ops
from runnel.core import direct as _direct
from runnel.core.framework import *
from runnel.core.convert import *
from runnel.core.composite import *
from runnel.core.session import *
from runnel.dtypes import (
    DType, as_dtype, bfloat16, bool, complex64, complex128, double, float16, float32, float64, half,
    int8, int16, int32, int64, qint8, qint16, qint32, quint8, quint16, resource, string, uint8,
    uint16, uint32, uint64, variant, QUANTIZED_DTYPES)
from runnel.core.tensor_shape import Dimension, TensorShape, dimension_at_index, dimension_value
from runnel.core.device_spec import DeviceSpec
from runnel.errors import OpError
from runnel.ops.array_ops import *
from runnel.ops.math_ops import *

__version__ = "1.15.5"  # the version of the API; tf.runnel_version is Runnel's
VERSION = __version__
runnel_version = _core.version
GIT_VERSION = COMPILER_VERSION = __git_version__ = __compiler_version__ = "runnel-" + _core.version
newaxis = None

from runnel.core import plugins as _plugins
_plugins.load_installed()


def __getattr__(name):
    if name == "__all__":  # read by `from tensorflow import *`
        return [known for known in __dir__() if not known.startswith("_")]
    if name.startswith("__"):
        raise AttributeError(name)
    import importlib
    module = _names.LAZY.get(name)
    if module is not None:
        value = getattr(importlib.import_module("runnel." + module), name)
    elif name in _names.SUBMODULES:
        from runnel._namespace import explain_absence
        value = importlib.import_module("runnel." + name)
        explain_absence(value)
    else:
        value = _direct.function(name)
        if value is None:
            from runnel._namespace import absence
            raise AttributeError(absence("tf", name))
    globals()[name] = value
    return value


def _print(*inputs, **kwargs):
    """Returns an operation that prints tensors and strings; in eager execution, prints them."""
    from runnel.ops.special_ops import print_v2
    return print_v2(*inputs, **kwargs)


globals()["print"] = _print  # tf.print, without hiding Python's own in this file


def __dir__():
    return sorted(set(globals()) | set(_names.LAZY) | _names.SUBMODULES | set(_direct.NAMES))
