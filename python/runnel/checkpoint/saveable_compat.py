"""Classes that changed from SaveableObjects to tensors: their values keep the names in checkpoints that they had."""

_LEGACY_SAVEABLE_NAME = "_LEGACY_SAVEABLE_NAME"
_state = {"convert": False}


def legacy_saveable_name(name):
    """A decorator of classes: in object graphs their values are one attribute of this name, which the keys begin with."""
    def decorate(cls_or_obj):
        setattr(cls_or_obj, _LEGACY_SAVEABLE_NAME, name)
        return cls_or_obj
    return decorate


def get_saveable_name(cls_or_obj):
    """Returns the name that legacy_saveable_name gave, or None."""
    return getattr(cls_or_obj, _LEGACY_SAVEABLE_NAME, None)


def force_checkpoint_conversion(value=True):
    """Makes new checkpoints describe each tensor of such classes as an attribute of its own."""
    _state["convert"] = value


def force_checkpoint_conversion_enabled():
    """Tells whether force_checkpoint_conversion is in effect."""
    return _state["convert"]


class CheckpointConversionError(Exception):
    """A class cannot be converted."""
