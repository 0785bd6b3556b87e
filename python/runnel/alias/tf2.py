"""tensorflow.python.tf2: whether 2.x behaviour is enabled, and the switch that says so."""

from runnel.core.v2_switches import _state, v2_behavior_enabled as enabled

__all__ = ["disable", "enable", "enabled", "is_enabled"]
is_enabled = enabled


def enable():
    """Makes `enabled` True, and changes nothing else."""
    _state["all"] = True


def disable():
    """Makes `enabled` False, and changes nothing else."""
    _state["all"] = False
