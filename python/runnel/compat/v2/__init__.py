"""tf.compat.v2: the names of TensorFlow 2.

names.py lists them; lookup.py says where each is implemented. Importing this module does not change how programs execute;
`import runnel.v2` does.
"""

import sys

from runnel.compat.v2 import lookup as _lookup

__version__ = _lookup.VERSION
__getattr__, __dir__ = _lookup.access(sys.modules[__name__], "")


