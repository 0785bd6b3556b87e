"""tensorflow.python.framework.c_api_util: how languages present ops, which packages that read graphs ask for."""

import contextlib
import json
import re

from runnel.core import op_def_registry
from runnel.core.protobuf import message_class


class ApiDefMap:
    """The ApiDefs of all ops, as their OpDefs make them: nothing is renamed."""

    def __init__(self):
        self._given = {}  # op -> what put_api_def said

    def op_names(self):
        """Returns the names of the ops."""
        return op_def_registry.get_registered_ops().keys()

    def get_op_def(self, op_name):
        """Returns the OpDef of an op."""
        definition = op_def_registry.get(op_name.decode() if isinstance(op_name, bytes) else op_name)
        if definition is None:
            raise ValueError("No op_def found for op name %s." % op_name)
        return definition

    def put_api_def(self, text):
        """Replaces parts of the ApiDefs that a text of ApiDefs names."""
        from runnel.core import text_format
        plain = re.sub(r"<<(\w+)\n(.*?)\n\1(?=\n)", lambda found: json.dumps(found.group(2)), text, flags=re.DOTALL)
        for given in text_format.Parse(plain, message_class("ApiDefs")()).op:
            self._given[given.graph_op_name] = given

    def get_api_def(self, op_name):
        """Returns the ApiDef of an op."""
        definition = self.get_op_def(op_name)
        api = message_class("ApiDef")(graph_op_name=definition.name, visibility=1)
        api.endpoint.add(name=definition.name)
        for rows, arguments in ((api.in_arg, definition.input_arg), (api.out_arg, definition.output_arg)):
            for argument in arguments:
                rows.add(name=argument.name, rename_to=argument.name)
        for attribute in definition.attr:
            row = api.attr.add(name=attribute.name, rename_to=attribute.name)
            if attribute.HasField("default_value"):
                row.default_value.CopyFrom(attribute.default_value)
        api.arg_order.extend(argument.name for argument in definition.input_arg)
        if definition.name in self._given:
            api.MergeFrom(self._given[definition.name])
        return api


class AlreadyGarbageCollectedError(Exception):
    """An object is used after its owner has deleted it."""

    def __init__(self, name, obj_type):
        super().__init__("%s of type %s has already been garbage collected and cannot be called." % (name, obj_type))


class UniquePtr:
    """The only owner of an object: deletes it with itself, but not while `get` lends it."""

    __slots__ = ("_name", "_deleter", "_obj", "_type_name", "__weakref__")

    def __init__(self, name, obj, deleter):
        self._name, self._obj, self._deleter, self._type_name = name, obj, deleter, str(type(obj))

    @contextlib.contextmanager
    def get(self):
        """A context manager that gives the object."""
        if self._obj is None:
            raise AlreadyGarbageCollectedError(self._name, self._type_name)
        yield self._obj

    def __del__(self):
        obj, self._obj = self._obj, None
        if obj is not None:
            self._deleter(obj)
