"""Being TensorFlow to a script: `import tensorflow` finds Runnel, down to tensorflow.python.*."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(__name__, "alias.finder: install")
