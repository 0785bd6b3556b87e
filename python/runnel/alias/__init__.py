"""Makes `import tensorflow` find Runnel, including tensorflow.python.*."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(__name__, "alias.finder: install")
