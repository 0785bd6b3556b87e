"""tensorflow.python.tf2: whether 2.x behaviour is enabled."""

from runnel.core.v2_switches import v2_behavior_enabled as enabled

__all__ = ["enabled", "is_enabled"]
is_enabled = enabled
