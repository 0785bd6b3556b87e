"""Registration of classes, whose objects SavedModels make again, and of functions that save and restore objects in files of their own."""

import inspect
import re

_VALID_NAME = re.compile("^[a-zA-Z0-9._-]+$")


class _PredicateRegistry:
    """Names, each with a predicate that tells to which objects it belongs. The newest name that fits an object counts."""

    def __init__(self, name):
        self._name = name
        self._rows = {}  # registered name -> (predicate, what is registered)

    @property
    def name(self):
        return self._name

    def register(self, package, name, predicate, candidate):
        if not isinstance(package, str) or not isinstance(name, str):
            raise TypeError("The package and name registered to a %s must be strings, got: package=%s, name=%s" % (
                self._name, type(package), type(name)))
        if not callable(predicate):
            raise TypeError("The predicate registered to a %s must be callable, got: %s" % (self._name, type(predicate)))
        registered = package + "." + name
        if not _VALID_NAME.match(registered):
            raise ValueError("Invalid registered %s. Please check that the package and name follow the regex '%s': (package='%s', "
                             "name='%s')" % (self._name, _VALID_NAME.pattern, package, name))
        if registered in self._rows:
            raise ValueError("The name '%s' has already been registered to a %s. Found: %s" % (registered, self._name, self._rows[registered][1]))
        self._rows[registered] = predicate, candidate

    def _row(self, registered_name):
        if registered_name not in self._rows:
            raise LookupError("The %s registry does not have name '%s' registered." % (self._name, registered_name))
        return self._rows[registered_name]

    def name_lookup(self, registered_name):
        return self._row(registered_name)[1]

    def get_predicate(self, registered_name):
        return self._row(registered_name)[0]

    def lookup(self, obj):
        return self.name_lookup(self.get_registered_name(obj))

    def get_registered_name(self, obj):
        for name in reversed(self._rows):
            if self._rows[name][0](obj):
                return name
        raise LookupError("Could not find matching %s for %s." % (self._name, type(obj)))

    def get_registrations(self):
        return {name: predicate for name, (predicate, _) in self._rows.items()}


_class_registry = _PredicateRegistry("serializable class")
_saver_registry = _PredicateRegistry("checkpoint saver")


def _name_or_none(registry, obj):
    try:
        return registry.get_registered_name(obj)
    except LookupError:
        return None


def get_registered_class_name(obj):
    """Returns the name under which an object's class is registered, or None."""
    return _name_or_none(_class_registry, obj)


def get_registered_class(registered_name):
    """Returns the class of a name, or None."""
    try:
        return _class_registry.name_lookup(registered_name)
    except LookupError:
        return None


def register_serializable(package="Custom", name=None, predicate=None):
    """A decorator of classes: SavedModels make their objects again by _deserialize_from_proto.

    Args:
      package, name: the registered name is "package.name"; the name is the class's own by default.
      predicate: tells whether an object belongs to the name; by default the instances of the class do.
    """
    def decorate(cls):
        if not inspect.isclass(cls):
            raise TypeError("Registered serializable must be a class: %s" % (cls,))
        _class_registry.register(package, cls.__name__ if name is None else name,
                                 (lambda obj: isinstance(obj, cls)) if predicate is None else predicate, cls)
        return cls
    return decorate


def register_checkpoint_saver(package="Custom", name=None, predicate=None, save_fn=None, restore_fn=None, strict_predicate_restore=True):
    """Registers functions that save and restore objects in files of their own.

    Args:
      package, name: the registered name is "package.name".
      predicate: tells which objects they are for.
      save_fn: a function of (trackables, file_prefix), where `trackables` is {path: object}. Returns the prefixes of the files to be merged
        into the checkpoint, or None.
      restore_fn: a function of (trackables, merged_prefix).
      strict_predicate_restore: whether it is an error if an object to restore does not satisfy the predicate; else it is left as it is.
    """
    for what, function in (("save_fn", save_fn), ("restore_fn", restore_fn)):
        if not callable(function):
            raise TypeError("The %s must be callable, got: %s" % (what, type(function)))
    _saver_registry.register(package, name, predicate, (save_fn, restore_fn, strict_predicate_restore))


def get_registered_saver_name(trackable):
    """Returns the name of the saver of an object, or None."""
    return _name_or_none(_saver_registry, trackable)


def get_save_function(registered_name):
    """Returns the function of a registered saver that saves."""
    return _saver_registry.name_lookup(registered_name)[0]


def get_restore_function(registered_name):
    """Returns the function of a registered saver that restores."""
    return _saver_registry.name_lookup(registered_name)[1]


def get_strict_predicate_restore(registered_name):
    """Tells whether objects that do not satisfy a saver's predicate are errors."""
    try:
        return _saver_registry.name_lookup(registered_name)[2]
    except LookupError:
        from runnel import logging
        logging.warning("Registered saver %s was not found when restoring checkpoints.", registered_name)
        return False


def validate_restore_function(trackable, registered_name):
    """Raises an error if an object cannot be restored by a saver."""
    try:
        predicate = _saver_registry.get_predicate(registered_name)
    except LookupError:
        raise ValueError("Error when restoring object %s from checkpoint. This object was saved using a registered saver named '%s', but this "
                         "saver cannot be found in the current context." % (trackable, registered_name)) from None
    if not predicate(trackable):
        raise ValueError("Object %s was saved with the registered saver named '%s'. However, this saver cannot be used to restore the object "
                         "because the predicate does not pass." % (trackable, registered_name))


def register_tf_serializable(name=None, predicate=None):
    """register_serializable for the package "tf"."""
    return register_serializable("tf", name, predicate)


def register_tf_checkpoint_saver(name=None, predicate=None, save_fn=None, restore_fn=None, strict_predicate_restore=True):
    """register_checkpoint_saver for the package "tf"."""
    return register_checkpoint_saver("tf", name, predicate, save_fn, restore_fn, strict_predicate_restore)
