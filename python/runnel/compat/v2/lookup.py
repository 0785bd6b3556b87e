"""Where the names of TensorFlow 2 are implemented.

A name is looked for in HOMES, then it is the name of 1.x: the same path, or that in ELSEWHERE, with the parameters of
signatures.py. Only the names of names.py exist.
"""

import importlib
import sys
import types

from runnel.compat.v2.names import NAMES
from runnel.compat.v2.signatures import PARAMETERS, with_parameters

VERSION = "2.21.0"  # of the API
PAGE = "doc/python_names_v2.md"

# Names of their own: "module: names"; "here=there" renames.
HOMES = {}
for _row in """
compat.v2.functions: name_scope ones_like zeros_like get_current_name_scope random_normal_initializer random_uniform_initializer
compat.v2.functions: zeros_initializer ones_initializer constant_initializer
compat.v2.variable: Variable
alias.type_spec: TypeSpec __internal__.CompositeTensor=CompositeTensor
alias.tf2: __internal__.tf2.enabled=enabled
compat.v2.lookup: __version__=VERSION version.VERSION=VERSION
""".strip().splitlines():
    _module, _, _names = _row.partition(": ")
    for _name in _names.split():
        _here, _, _there = _name.partition("=")
        HOMES[_here] = (_module, _there or _here.rpartition(".")[2])

# Names that are in another place in 1.x.
ELSEWHERE = dict(item.split("=") for item in """
where=where_v2 nn.avg_pool=nn.avg_pool_v2 nn.max_pool=nn.max_pool_v2 random.set_seed=set_random_seed
nn.softmax_cross_entropy_with_logits=nn.softmax_cross_entropy_with_logits_v2
nn.ctc_beam_search_decoder=nn.ctc_beam_search_decoder_v2 nn.ctc_loss=nn.ctc_loss_v2
autodiff.GradientTape=GradientTape
""".split())

# Packages of their own, and modules that both faces share.
_KERAS = frozenset("losses metrics optimizers initializers".split())
_SHARED = {"raw_ops": "runnel.raw_ops", "compat": "runnel.compat"}

SPACES = {""}  # every namespace, also those without names of their own
for _space in NAMES:
    _parts = _space.split(".")
    SPACES.update(".".join(_parts[:_i]) for _i in range(1, len(_parts) + 1))


def find(path):
    """Returns what "nn.dropout" is in 2.x. Raises AttributeError if it is absent."""
    if path in SPACES:
        return _namespace(path)
    if path in HOMES:
        module, name = HOMES[path]
        return getattr(importlib.import_module("runnel." + module), name)
    if path in _SHARED:
        return importlib.import_module(_SHARED[path])
    if path == "keras" or path in _KERAS:
        keras = _keras()
        return keras if path == "keras" else importlib.import_module("%s.%s" % (keras.__name__, path))
    space, _, name = path.rpartition(".")
    if name not in NAMES.get(space, ()):
        raise AttributeError(_why_absent(path))
    try:
        value = _of_v1(ELSEWHERE.get(path, path))
    except (AttributeError, ImportError):
        raise AttributeError("tf.%s of TensorFlow 2 is not in Runnel: %s lists the names" % (path, PAGE)) from None
    return with_parameters(value, name, PARAMETERS[path]) if path in PARAMETERS else value


def _of_v1(path):
    value = importlib.import_module("runnel")
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _why_absent(path):
    try:
        _of_v1(path)
    except (AttributeError, ImportError):
        return "TensorFlow 2 has no tf.%s: %s lists the names" % (path, PAGE)
    return "TensorFlow 2 has no tf.%s; tf.compat.v1.%s is of 1.x. %s lists the names" % (path, path, PAGE)


def _keras():
    """Returns Keras 3, which is a package of its own that imports tensorflow."""
    from runnel.alias import finder
    try:
        finder.install(is_v2=True)
        return importlib.import_module("keras._tf_keras.keras")
    except ModuleNotFoundError as error:
        raise ImportError("tf.keras is the package Keras 3 (pip install keras): %s" % error) from None


class _Namespace(types.ModuleType):
    """A module such as tf.nn."""

    def __init__(self, path):
        super().__init__("runnel.compat.v2." + path, "tf.%s of TensorFlow 2." % path)
        self.__path__ = []
        self._find, self._names = access(self, path)

    def __getattr__(self, name):
        return self._find(name)

    def __dir__(self):
        return self._names()


def _namespace(path):
    name = "runnel.compat.v2." + path
    if name not in sys.modules:
        sys.modules[name] = _Namespace(path)
    return sys.modules[name]


def access(module, space):
    """Returns (__getattr__, __dir__) of a module for the names of a namespace. Names that are found stay in the module."""
    prefix = space and space + "."
    inner = {s[len(prefix):] for s in SPACES if s.startswith(prefix) and s != space and "." not in s[len(prefix):]}
    more = {"keras", *_KERAS, *_SHARED} if not space else set()

    def __getattr__(name):
        if name == "__all__":
            return [known for known in __dir__() if not known.startswith("_")]
        if name.startswith("__") and name not in inner and prefix + name not in HOMES:
            raise AttributeError(name)
        value = find(prefix + name)
        setattr(module, name, value)
        return value

    def __dir__():
        return sorted(set(vars(module)) | NAMES.get(space, set()) | inner | more)

    return __getattr__, __dir__
