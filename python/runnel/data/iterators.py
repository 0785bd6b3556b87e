"""Iterators over datasets (tf.data)."""

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor, colocate_with, executing_eagerly
from runnel.eager.tracing import trace


def _flat_shapes(structure, shapes):
    """Returns a list of shapes, from a nest like `structure` or one shape for all."""
    flat = nest.flatten_up_to(structure, shapes) if nest.is_nested(structure) else [shapes]
    return [tensor_shape.as_shape(s) for s in flat]


class Iterator:
    """Returns the elements of a dataset, one each time `get_next()` runs."""

    def __init__(self, resource, initializer, structure, types, shapes, pack=None):
        self._iterator_resource = resource
        self._initializer = initializer
        self._structure, self._types, self._shapes = structure, types, shapes
        self._string_handle = None
        self._pack = pack or (lambda flat: nest.pack_sequence_as(structure, flat))  # makes an element of its parts

    @staticmethod
    def from_structure(output_types, output_shapes=None, shared_name=None, output_classes=None):
        """Creates an iterator for any dataset with such elements: see make_initializer."""
        types = [dtypes.as_dtype(t) for t in nest.flatten(output_types)]
        if output_shapes is None:
            shapes = [tensor_shape.TensorShape(None)] * len(types)
        else:
            shapes = _flat_shapes(output_types, output_shapes)
        resource = _new_iterator(types, shapes, shared_name)
        return Iterator(resource, None, output_types, types, shapes)

    @staticmethod
    def from_string_handle(string_handle, output_types, output_shapes=None, output_classes=None):
        """Creates an iterator that stands for the one whose handle is fed: see string_handle."""
        types = [dtypes.as_dtype(t) for t in nest.flatten(output_types)]
        if output_shapes is None:
            shapes = [tensor_shape.TensorShape(None)] * len(types)
        else:
            shapes = _flat_shapes(output_types, output_shapes)
        handle = convert_to_tensor(string_handle, dtypes.string)
        resource = raw_ops.IteratorFromStringHandleV2(string_handle=handle, output_types=types,
                                                      output_shapes=shapes)
        return Iterator(resource, None, output_types, types, shapes)

    @property
    def initializer(self):
        """The operation that starts the iterator."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset, name=None):
        """Returns an operation that starts the iterator on `dataset`."""
        if self._types != dataset._types:
            raise TypeError("Expected output types %s but got dataset with output types %s." % (
                self.output_types, dataset.output_types))
        for mine, theirs in zip(self._shapes, dataset._shapes):
            if not mine.is_compatible_with(theirs):
                raise TypeError("Expected output shapes compatible with %s but got dataset with output "
                                "shapes %s." % (self.output_shapes, dataset.output_shapes))
        with colocate_with(self._iterator_resource):
            return raw_ops.MakeIterator(dataset=dataset._variant_tensor,
                                        iterator=self._iterator_resource, name=name)

    def get_next(self, name=None):
        """Returns the next element, in its structure."""
        flat = raw_ops.IteratorGetNext(iterator=self._iterator_resource, output_types=self._types,
                                       output_shapes=self._shapes, name=name)
        return self._pack(list(flat))

    def _saveable(self):
        from runnel.train.saveable import of_iterator
        return of_iterator(self, self._iterator_resource)

    def string_handle(self, name=None):
        """Returns a scalar string that stands for the iterator."""
        if name is None and self._string_handle is not None:
            return self._string_handle
        self._string_handle = raw_ops.IteratorToStringHandle(resource_handle=self._iterator_resource,
                                                             name=name)
        return self._string_handle

    @property
    def output_types(self):
        return self._pack(self._types)

    @property
    def output_shapes(self):
        return self._pack(self._shapes)

    @property
    def output_classes(self):
        return self._pack([Tensor] * len(self._types))


def _new_iterator(types, shapes, shared_name):
    return raw_ops.IteratorV2(container="", shared_name=shared_name or "", output_types=types,
                              output_shapes=shapes)


def make_initializable_iterator(dataset, shared_name=None):
    """Returns an iterator that `initializer` starts, or restarts, each time it runs."""
    if executing_eagerly():
        raise RuntimeError("dataset.make_initializable_iterator is not supported when eager execution "
                           "is enabled. Use `for element in dataset` instead.")
    with colocate_with(dataset._variant_tensor):
        resource = _new_iterator(dataset._types, dataset._shapes, shared_name)
    with colocate_with(resource):
        initializer = raw_ops.MakeIterator(dataset=dataset._variant_tensor, iterator=resource)
    return Iterator(resource, initializer, dataset._structure, dataset._types, dataset._shapes, dataset._pack)


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
    resource = raw_ops.OneShotIterator(dataset_factory=f.attr, output_types=dataset._types,
                                       output_shapes=dataset._shapes)
    return Iterator(resource, None, dataset._structure, dataset._types, dataset._shapes, dataset._pack)


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
    """Returns the classes of the elements: tensors."""
    return dataset_or_iterator.output_classes
