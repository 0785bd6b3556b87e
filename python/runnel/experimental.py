"""tf.experimental: what may still change in TensorFlow."""

from runnel.core.plugins import register_filesystem_plugin

__all__ = ["register_filesystem_plugin"]
