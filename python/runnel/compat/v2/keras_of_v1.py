"""tf.compat.v1.keras in a process of TensorFlow 2: tf_keras's API of 1.x, if tf.keras is tf_keras."""

import importlib
import sys
import types

from runnel.compat.v2 import places


class _Face(types.ModuleType):
    """The module `runnel` once `runnel.v2` was imported. Importing runnel.keras also sets the name, hence the setter."""

    @property
    def keras(self):
        return places.keras_package("v1") if places.is_keras_legacy() else vars(self).get("keras") or importlib.import_module("runnel.keras")

    @keras.setter
    def keras(self, module):
        vars(self)["keras"] = module


def install():
    """Makes `tf.compat.v1.keras` depend on TF_USE_LEGACY_KERAS."""
    sys.modules["runnel"].__class__ = _Face
