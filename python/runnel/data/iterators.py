"""Iterators over datasets (tf.data)."""

from runnel import dtypes, nest, raw_ops
from runnel.checkpoint.saveable_compat import legacy_saveable_name
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor, colocate_with, executing_eagerly
from runnel.core.trackable import Trackable
from runnel.data import structure
from runnel.eager.tracing import trace


@legacy_saveable_name("ITERATOR")
class Iterator(Trackable):
    """Returns the elements of a dataset, one each time `get_next()` runs."""

    def __init__(self, resource, initializer, element_spec):
        self._iterator_resource = resource
        self._initializer = initializer
        self._element_spec = element_spec
        self._string_handle = None

    @staticmethod
    def from_structure(output_types, output_shapes=None, shared_name=None, output_classes=None):
        """Creates an iterator for any dataset with such elements: see make_initializer."""
        spec = _legacy_spec(output_types, output_shapes, output_classes)
        return Iterator(_new_iterator(spec, shared_name), None, spec)

    @staticmethod
    def from_string_handle(string_handle, output_types, output_shapes=None, output_classes=None):
        """Creates an iterator that stands for the one whose handle is fed: see string_handle."""
        spec = _legacy_spec(output_types, output_shapes, output_classes)
        handle = convert_to_tensor(string_handle, dtypes.string)
        return Iterator(raw_ops.IteratorFromStringHandleV2(string_handle=handle, **_attrs(spec)), None, spec)

    @property
    def initializer(self):
        """The operation that starts the iterator."""
        if self._initializer is None:
            raise ValueError("The iterator does not have an initializer. This means it was likely created using "
                             "`tf.data.Dataset.make_one_shot_iterator()`. For an initializable iterator, use "
                             "`tf.data.Dataset.make_initializable_iterator()` instead.")
        return self._initializer

    def make_initializer(self, dataset, name=None):
        """Returns an operation that starts the iterator on `dataset`."""
        for mine, theirs, what in ((self.output_types, dataset.output_types, "types"), (self.output_classes, dataset.output_classes, "classes")):
            nest.assert_same_structure(mine, theirs)
            for a, b in zip(nest.flatten(mine), nest.flatten(theirs)):
                if a != b:
                    raise TypeError("Expected output %s %r but got dataset with output %s %r." % (what, mine, what, theirs))
        for a, b in zip(nest.flatten(self._element_spec), nest.flatten(dataset.element_spec)):
            if not a.is_compatible_with(b):
                raise TypeError("Expected output shapes compatible with %r but got dataset with output shapes %r." % (
                    self.output_shapes, dataset.output_shapes))
        with colocate_with(self._iterator_resource):
            return raw_ops.MakeIterator(dataset=dataset._variant_tensor, iterator=self._iterator_resource, name=name)

    def get_next(self, name=None):
        """Returns the next element, in its structure."""
        flat = raw_ops.IteratorGetNext(iterator=self._iterator_resource, name=name, **_attrs(self._element_spec))
        return structure.from_compatible_tensor_list(self._element_spec, list(flat))

    def get_next_as_optional(self, name=None):
        """Returns an Optional of the next element, empty after the last."""
        from runnel.data.optional import Optional
        return Optional(raw_ops.IteratorGetNextAsOptional(iterator=self._iterator_resource, **_attrs(self._element_spec)), self._element_spec)

    def _serialize_to_tensors(self):
        return {"_STATE": raw_ops.SerializeIterator(resource_handle=self._iterator_resource)}

    def _restore_from_tensors(self, restored_tensors):
        return raw_ops.DeserializeIterator(resource_handle=self._iterator_resource, serialized=restored_tensors["_STATE"])

    def string_handle(self, name=None):
        """Returns a scalar string that stands for the iterator."""
        if name is None and self._string_handle is not None:
            return self._string_handle
        self._string_handle = raw_ops.IteratorToStringHandle(resource_handle=self._iterator_resource, name=name)
        return self._string_handle

    element_spec = property(lambda self: self._element_spec)

    @property
    def output_types(self):
        """The types of an element, in its structure."""
        return structure.legacy_types(self._element_spec)

    @property
    def output_shapes(self):
        """The shapes of an element, in its structure."""
        return structure.legacy_shapes(self._element_spec)

    @property
    def output_classes(self):
        """The classes of the parts of an element, in its structure."""
        return structure.legacy_classes(self._element_spec)


def _legacy_spec(output_types, output_shapes, output_classes):
    types = nest.map_structure(dtypes.as_dtype, output_types)
    if output_shapes is None:
        output_shapes = nest.map_structure(lambda _: tensor_shape.TensorShape(None), types)
    if output_classes is None:
        output_classes = nest.map_structure(lambda _: Tensor, types)
    return structure.convert_legacy_structure(types, output_shapes, output_classes)


def _attrs(element_spec):
    specs = structure.flat_specs(element_spec)
    return {"output_types": [s.dtype for s in specs], "output_shapes": [s.shape for s in specs]}


def _new_iterator(element_spec, shared_name):
    return raw_ops.IteratorV2(container="", shared_name=shared_name or "", **_attrs(element_spec))


def make_initializable_iterator(dataset, shared_name=None):
    """Returns an iterator that `initializer` starts, or restarts, each time it runs."""
    if executing_eagerly():
        raise RuntimeError("dataset.make_initializable_iterator is not supported when eager execution "
                           "is enabled. Use `for element in dataset` instead.")
    with colocate_with(dataset._variant_tensor):
        resource = _new_iterator(dataset.element_spec, shared_name)
    with colocate_with(resource):
        initializer = raw_ops.MakeIterator(dataset=dataset._variant_tensor, iterator=resource)
    return Iterator(resource, initializer, dataset.element_spec)


_NOT_BY_VALUE = frozenset(("Placeholder", "PlaceholderV2", "VariableV2", "Variable", "VarHandleOp",
                           "HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2"))


def make_one_shot_iterator(dataset):
    """Returns an iterator that needs no initialization and goes through the dataset once."""
    if executing_eagerly():
        return iter(dataset)

    def factory():
        return _copied(dataset._variant_tensor)
    f = trace(factory, [], "one_shot_dataset")
    if f.captured:
        raise ValueError("Failed to create a one-shot iterator for a dataset. `Dataset."
                         "make_one_shot_iterator()` does not support datasets that capture stateful "
                         "objects. In these cases, use `Dataset.make_initializable_iterator()`.")
    resource = raw_ops.OneShotIterator(dataset_factory=f.attr, **dataset._attrs)
    return Iterator(resource, None, dataset.element_spec)


def _copied(tensor):
    """Copies a tensor of another graph, with everything it depends on, into the current graph."""
    from runnel.core.graph_io import import_graph_def
    from runnel.core.protobuf import message_class
    graph_def = message_class("GraphDef")()
    seen, order, stack = set(), [], [tensor.op]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in _NOT_BY_VALUE:
            raise ValueError("Failed to create a one-shot iterator for a dataset: it reads %s (%s), "
                             "which cannot be copied. Use `Dataset.make_initializable_iterator()`." % (
                                 op.name, op.type))
        order.append(op)
        stack.extend(x.op for x in op.inputs)
        stack.extend(op.control_inputs)
    for op in sorted(order, key=lambda op: op._id):
        graph_def.node.add().CopyFrom(op.node_def)
    result, = import_graph_def(graph_def, return_elements=[tensor.name], name="")
    return result


def get_output_types(dataset_or_iterator):
    """Returns the types of the elements."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator):
    """Returns the shapes of the elements."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator):
    """Returns the classes of the elements."""
    return dataset_or_iterator.output_classes
