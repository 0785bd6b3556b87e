"""tensorflow.python.framework.c_api_util: how languages present ops, which packages that read graphs ask for."""

from runnel.core import op_def_registry
from runnel.core.protobuf import message_class


class ApiDefMap:
    """The ApiDefs of all ops, as their OpDefs make them: nothing is renamed."""

    def op_names(self):
        """Returns the names of the ops."""
        return op_def_registry.get_registered_ops().keys()

    def get_op_def(self, op_name):
        """Returns the OpDef of an op."""
        definition = op_def_registry.get(op_name.decode() if isinstance(op_name, bytes) else op_name)
        if definition is None:
            raise ValueError("No op_def found for op name %s." % op_name)
        return definition

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
        return api
