"""Operations: nodes of a graph. The type is C (python/ext/graph.c); this adds text forms and messages."""

from runnel import _core
from runnel.core import device_spec as device_lib


class Operation(_core.Operation):
    """A node of a graph: `name`, `type`, `inputs`, `outputs`, `control_inputs`, `device`, `graph`.

    The functions that build graphs create operations.
    """

    _original_op = None  # of a copy, the operation that it copies; nothing here copies operations

    def __repr__(self):
        return "<tf.Operation '%s' type=%s>" % (self.name, self.type)

    def __str__(self):
        return str(self.node_def)

    @classmethod
    def from_node_def(cls, node_def, g, inputs=(), output_types=None, control_inputs=(), input_types=None, original_op=None, op_def=None):
        """Adds the operation of a NodeDef to the graph `g`. Returns it."""
        from runnel.graph import node_defs
        return node_defs.from_node_def(node_def, g, inputs, output_types, control_inputs, input_types, original_op, op_def)

    @property
    def node_def(self):
        """The NodeDef."""
        from runnel.core.protobuf import message_class
        return message_class("NodeDef").FromString(self._node_def())

    @property
    def op_def(self):
        """The OpDef."""
        from runnel.core.protobuf import message_class
        definition = _core.op_def(self.type)
        if definition is None:  # a call of a function of the graph
            function = _core.functions_of(self.graph).get(self.type)
            return message_class("FunctionDef").FromString(function).signature if function else message_class("OpDef")()
        return message_class("OpDef").FromString(definition)

    @property
    def traceback(self):
        """The program's calls that created it, as a StackTrace."""
        from runnel.graph import stack_trace
        return stack_trace.from_rows(self._calls)

    @property
    def values(self):
        """Returns the outputs as a tuple."""
        return lambda: tuple(self.outputs)

    def get_attr(self, name):
        """Returns the value of an attribute."""
        value = self._get_attr(name)
        if type(value) is not tuple:
            return value
        from runnel.core.protobuf import message_class
        attr = message_class("AttrValue").FromString(value[0])
        field = attr.WhichOneof("value")
        if field == "list":
            for row in attr.list.ListFields():
                return list(row[1])
            return []
        return getattr(attr, field)

    def _control_flow_post_processing(self, input_tensors=None):
        """For libraries that create operations from NodeDefs; the graph has told the contexts of loops already."""

    def _set_attr(self, name, attr_value):
        self._set_attr_bytes(name, attr_value.SerializeToString())

    def _set_device(self, device):
        self._set_device_string(device_lib.canonical_name(device))

    def _add_control_inputs(self, ops):
        for op in ops:
            self._add_control_input(op)

    def colocation_groups(self):
        """Returns the colocation groups, such as [b"loc:@name"]."""
        try:
            groups = [group for group in self.get_attr("_class") if group.startswith(b"loc:@")]
        except ValueError:
            groups = []
        return groups or [b"loc:@" + self.name.encode()]

    def run(self, feed_dict=None, session=None):
        """Runs the operation in a session, by default the default one."""
        _session_for(self.graph, session).run(self, feed_dict)

    def _get_control_flow_context(self):
        return self.__dict__.get("_control_flow_context")

    def _set_control_flow_context(self, context):
        self._control_flow_context = context

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


def _session_for(graph, session):
    if session is None:
        from runnel.core import session as session_lib
        session = session_lib.get_default_session()
        if session is None:
            raise ValueError("Cannot evaluate tensor using `eval()` or `run()`: No default session "
                             "is registered. Use `with sess.as_default()` or pass an explicit "
                             "session")
    if session.graph is not graph:
        raise ValueError("Cannot use the given session to evaluate the tensor or operation: it is "
                         "in another graph than the session's")
    return session
