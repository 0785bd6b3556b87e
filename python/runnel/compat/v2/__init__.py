"""tf.compat.v2: the names of TensorFlow 2.

names.py lists them; places.py says where each is implemented. Importing this module does not change how programs execute;
`import runnel.v2` does.
"""

import sys

from runnel import _core
from runnel.compat.v2 import places as _places

__version__ = _places.VERSION
__git_version__ = __compiler_version__ = "runnel-" + _core.version
__getattr__, __dir__ = _places.access(sys.modules[__name__], "")


