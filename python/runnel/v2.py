"""TensorFlow 2: `import runnel.v2 as tf`.

Importing it turns on the behaviour of 2.x in this process: eager execution, resource variables, `==` that compares elements
and shapes of ints. The names are those of tf.compat.v2; tf.compat.v1 has those of 1.x. doc/python_names_v2.md lists them.
"""

import sys

from runnel.compat import v2 as _names
from runnel.compat.v2 import keras_of_v1
from runnel.core import v2_switches

v2_switches.enable_v2_behavior()
keras_of_v1.install()
sys.modules[__name__] = _names  # this module is the face itself
