"""tensorflow.python.autograph.utils.type_registry: values that belong to classes."""


class TypeRegistry:
    """{class: value}, where an object has the value of the first class of its own that is known."""

    def __init__(self):
        self._values = {}

    def register(self, obj, value):
        """Adds a class. Raises KeyError if it is known already."""
        if obj in self._values:
            raise KeyError("%s has been registered already" % obj)
        self._values[obj] = value

    def lookup(self, obj):
        """Returns the value for an object. Raises LookupError if none of its classes is known."""
        for known, value in self._values.items():
            if isinstance(obj, known):
                return value
        raise LookupError("no class of %r has been registered" % (obj,))
