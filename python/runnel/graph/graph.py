"""Graphs: operations and tensors by name, collections, finalization. The type is C (python/ext/graph.c)."""

import re

from runnel import _core
from runnel.core import attr_values
from runnel.graph.graph_scopes import GraphScopes
from runnel.graph.graph_stack import _DefaultGraph
from runnel.graph.graph_tensor import Tensor
from runnel.graph.operation import Operation


class Graph(GraphScopes, _core.Graph):
    """A dataflow graph.

    Operations are created in the default graph, which is this one inside `with g.as_default():`.
    """

    _begins_per_thread = False  # v2_switches sets it

    def __init__(self):
        self.seed = None
        self._collections = {}
        self._control_flow_context = None
        self._container = ""
        self._unfeedable = set()
        self._unfetchable = set()
        self._building_function = False
        self._gradient_overrides = {}
        self._scopes = {}  # state of other modules for this graph, by module name
        self._observers = []
        self._graph_outside = None  # of a function inside another function
        self._seeds_given = 0
        if self._begins_per_thread:
            self._share_no_scopes()

    # The default graph

    def as_default(self):
        """A context manager that makes this the default graph."""
        return _DefaultGraph(self)

    def switch_to_thread_local(self):
        """Gives each thread devices, colocation and control dependencies of its own, which begin with the current ones.

        Graphs of TensorFlow 2 have them from the start. Name scopes always belong to a thread.
        """
        self._share_no_scopes()

    @property
    def experimental_acd_manager(self):
        """What orders the side effects of operations that are built in this graph, or None."""
        return next((one for one in self._observers if hasattr(one, "run_independently")), None)

    # Operations and tensors by name

    def as_graph_def(self, from_version=None, add_shapes=False):
        """Returns the GraphDef. With `add_shapes`, nodes get the attribute `_output_shapes`."""
        from runnel.core.protobuf import message_class
        graph_def = message_class("GraphDef").FromString(_core.to_graph_def(self))
        if from_version is not None:
            del graph_def.node[:from_version]
        if not graph_def.library.function:
            graph_def.ClearField("library")
        if add_shapes:
            for node in graph_def.node:
                shapes = node.attr["_output_shapes"].list
                shapes.SetInParent()
                for tensor in self._find(node.name).outputs:
                    shapes.shape.append(tensor.shape.as_proto())
        return graph_def

    @property
    def graph_def_versions(self):
        """The VersionDef of the graph."""
        return self.as_graph_def().versions

    @property
    def version(self):
        """A number that grows with the graph."""
        return self._last_id

    @property
    def building_function(self):
        """Whether this is the graph of a function."""
        return self._building_function

    def get_operation_by_name(self, name):
        """Returns the operation of that name. Raises KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError("Operation names are strings (or similar), not %s." % type(name).__name__)
        return self.as_graph_element(name, allow_tensor=False)

    def get_tensor_by_name(self, name):
        """Returns the tensor "operation:index". Raises KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError("Tensor names are strings (or similar), not %s." % type(name).__name__)
        return self.as_graph_element(name, allow_operation=False)

    def _get_operation_by_name(self, name):
        return self.get_operation_by_name(name)

    def as_graph_element(self, obj, allow_tensor=True, allow_operation=True):
        """Returns the tensor or operation that `obj` names or stands for."""
        if isinstance(obj, Tensor) and obj.op is not None:
            if not allow_tensor:
                raise TypeError("Can not convert a Tensor into an Operation.")
            if obj.graph is not self:
                raise ValueError("Tensor %s is not an element of this graph." % obj)
            return obj
        if isinstance(obj, Operation):
            if not allow_operation:
                raise TypeError("Can not convert a Operation into a Tensor.")
            if obj.graph is not self:
                raise ValueError("Operation %r is not an element of this graph." % obj)
            return obj
        element = getattr(obj, "_as_graph_element", None)
        if element is not None and not isinstance(obj, _core.EagerTensor):
            return self.as_graph_element(element(), allow_tensor, allow_operation)
        if isinstance(obj, bytes):
            obj = obj.decode()
        if not isinstance(obj, str):
            what = " or ".join(w for w, ok in (("Tensor", allow_tensor),
                                               ("Operation", allow_operation)) if ok)
            raise TypeError("Can not convert a %s into a %s." % (type(obj).__name__, what))
        if ":" in obj:
            return self._tensor_named(obj, allow_tensor)
        op = self._find(obj)
        if not allow_operation:
            raise ValueError(
                "The name %r %s. Tensor names must be of the form \"<op_name>:<output_index>\"." % (
                    obj, "looks like an (invalid) Operation name, not a Tensor" if op is None else
                    "refers to an Operation, not a Tensor"))
        if op is None:
            raise KeyError("The name %r refers to an Operation not in the graph." % obj)
        return op

    def _tensor_named(self, name, allow_tensor):
        if not allow_tensor:
            raise ValueError("Name %r appears to refer to a Tensor, not a Operation." % name)
        op_name, _, index = name.rpartition(":")
        if not index.isdigit() or ":" in op_name:
            raise ValueError("The name %r looks a like a Tensor name, but is not a valid one. Tensor "
                             "names must be of the form \"<op_name>:<output_index>\"." % name)
        op = self._find(op_name)
        if op is None:
            raise KeyError("The name %r refers to a Tensor which does not exist. The operation, %r, "
                           "does not exist in the graph." % (name, op_name))
        outputs = op.outputs
        if int(index) >= len(outputs):
            raise KeyError("The name %r refers to a Tensor which does not exist. The operation, %r, "
                           "exists but only has %d outputs." % (name, op_name, len(outputs)))
        return outputs[int(index)]

    def is_feedable(self, tensor):
        """Tells whether a tensor may be fed."""
        return tensor not in self._unfeedable

    def prevent_feeding(self, tensor):
        """Makes it an error to feed a tensor."""
        self._unfeedable.add(tensor)

    def is_fetchable(self, tensor_or_op):
        """Tells whether a tensor or operation may be fetched."""
        return getattr(tensor_or_op, "op", tensor_or_op) not in self._unfetchable

    def prevent_fetching(self, op):
        """Makes it an error to fetch an operation or its outputs."""
        self._unfetchable.add(op)

    @property
    def _c_graph(self):
        return self

    def finalize(self):
        """Makes the graph read-only."""
        self._finalized = True

    @property
    def finalized(self):
        """Whether the graph is read-only."""
        return self._finalized

    def _unsafe_unfinalize(self):
        self._finalized = False

    def _check_not_finalized(self):
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    # Creating operations

    def create_op(self, op_type, inputs, dtypes=None, input_types=None, name=None, attrs=None,
                  op_def=None, compute_shapes=True, compute_device=True):
        """Creates an operation from a flat list of inputs, and attributes as values or AttrValues."""
        from runnel import raw_ops
        values = {}
        for key, value in (attrs or {}).items():
            values[key] = attr_values.plain(value)
        return getattr(raw_ops, op_type)._create(self, list(inputs), values, name or op_type)

    def _create_op_from_tf_operation(self, c_op, compute_device=True):
        """Returns what create_c_op of tf.__internal__ has made: an Operation already."""
        return c_op

    # Collections

    def add_to_collection(self, name, value):
        """Appends a value to a collection of this graph."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names, value):
        """Appends a value to several collections of this graph."""
        names = (names,) if isinstance(names, str) else dict.fromkeys(names)
        for name in names:
            self.add_to_collection(name, value)

    @property
    def _resource_creator_stack(self):
        from runnel.core.trackable_resource import resource_creator_stack
        return resource_creator_stack(self)

    def get_collection_ref(self, name):
        """Returns the collection's list itself."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name, scope=None):
        """Returns a copy of a collection. `scope` is a regular expression that names must begin with."""
        values = self._collections.get(name, [])
        if scope is None:
            return list(values)
        pattern = re.compile(scope)
        return [v for v in values if hasattr(v, "name") and pattern.match(v.name)]

    def get_all_collection_keys(self):
        """Returns the names of all collections."""
        return [name for name in self._collections if isinstance(name, str)]

    @property
    def collections(self):
        """The names of all collections."""
        return self.get_all_collection_keys()

    def clear_collection(self, name):
        """Empties a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    def _next_seed(self):
        """Returns the seed of the next random operation that has no seed of its own."""
        self._seeds_given += 1
        return self._seeds_given - 1

    @property
    def _functions(self):
        """The functions of the graph by name, in the order in which they were added; `definition` is the FunctionDef of each."""
        import types
        from runnel.core.protobuf import message_class
        made = {name: message_class("FunctionDef").FromString(data) for name, data in _core.functions_of(self).items()}
        return {name: types.SimpleNamespace(name=name.encode(), definition=one, cached_definition=one) for name, one in made.items()}

    def _remove_function(self, name):
        """Removes a function from the graph's library."""
        if not self._is_function(name):
            raise ValueError("Function %r is not found in %r." % (name, self))
        _core.remove_function(self, name)

    def _is_function(self, name):
        return name in _core.functions_of(self)

    def __repr__(self):
        return "<tf.Graph of %d operations>" % self._last_id

    def _repr_svg_(self):
        from runnel.core import graph_svg
        return graph_svg.draw(self)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other
