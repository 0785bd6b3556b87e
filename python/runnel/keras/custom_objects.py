"""Custom classes and functions for loading models; conversion of objects to configs and back."""

import contextlib

_OBJECTS = {}  # name -> class or function; Keras defines one registry per process


def get_custom_objects():
    """Returns the dict of registered objects by name."""
    return _OBJECTS


@contextlib.contextmanager
def custom_object_scope(*args):
    """A context manager in which the objects of the given dicts are also known."""
    before = dict(_OBJECTS)
    for objects in args:
        _OBJECTS.update(objects or {})
    try:
        yield _OBJECTS
    finally:
        _OBJECTS.clear()
        _OBJECTS.update(before)


CustomObjectScope = custom_object_scope


def register_keras_serializable(package="Custom", name=None):
    """A decorator that registers a class or function as "package>name"."""
    def register(thing):
        label = "%s>%s" % (package, name or thing.__name__)
        thing._keras_api_names = (label,)
        _OBJECTS[label] = thing
        return thing
    return register


def get_registered_name(thing):
    """Returns the name under which a class or function is registered."""
    return getattr(thing, "_keras_api_names", (thing.__name__,))[0]


def get_registered_object(name, custom_objects=None, module_objects=None):
    """Returns the class or function of a name, or None."""
    for known in (_OBJECTS, custom_objects or {}, module_objects or {}):
        if name in known:
            return known[name]
    return None


def serialize_keras_object(instance):
    """Returns {"class_name": ..., "config": {...}} of an object, or the name of a function."""
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        return {"class_name": get_registered_name(type(instance)), "config": instance.get_config()}
    if hasattr(instance, "__name__"):
        return get_registered_name(instance)
    raise ValueError("Cannot serialize %s" % (instance,))


def deserialize_keras_object(identifier, module_objects=None, custom_objects=None, printable_module_name="object"):
    """Returns the object from the result of serialize_keras_object."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        if "class_name" not in identifier or "config" not in identifier:
            raise ValueError("Improper config format: %s" % (identifier,))
        cls = get_registered_object(identifier["class_name"], custom_objects, module_objects)
        if cls is None:
            raise ValueError("Unknown %s: %s" % (printable_module_name, identifier["class_name"]))
        with custom_object_scope(custom_objects):
            make = cls.from_config if hasattr(cls, "from_config") else lambda config: cls(**config)
            return make(identifier["config"])
    if isinstance(identifier, str):
        found = get_registered_object(identifier, custom_objects, module_objects)
        if found is None:
            raise ValueError("Unknown %s: %s" % (printable_module_name, identifier))
        return found() if isinstance(found, type) else found
    if callable(identifier):
        return identifier
    raise ValueError("Could not interpret serialized %s: %s" % (printable_module_name, identifier))
