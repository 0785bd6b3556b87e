"""Iterators of eager execution: they own their place in a dataset, and functions take them as arguments."""

from runnel import dtypes, errors, nest, raw_ops
from runnel.checkpoint.saveable_compat import legacy_saveable_name
from runnel.core.framework import executing_eagerly
from runnel.core.composite_specs import RaggedTensorSpec, SparseTensorSpec
from runnel.core.trackable import Trackable
from runnel.core.type_spec import CompositeTensor, NoneTensorSpec, TensorSpec, TypeSpec, register
from runnel.data import optional, structure


_MOST_SYMBOLIC_CALLS = 32  # of next() in a graph, where no end is known


@legacy_saveable_name("ITERATOR")
class OwnedIterator(Trackable, CompositeTensor):
    """An iterator over a dataset.

    Args:
      dataset: the dataset. Without one, the iterator is that of a handle.
      handle: the iterator's handle, a tensor; `components` is a list of it.
      element_spec: the TypeSpecs of an element.
    """

    _counts_as_tensor = False

    def __init__(self, dataset=None, handle=None, element_spec=None, components=None):
        if dataset is not None and (element_spec is not None or components is not None):
            raise ValueError("When `dataset` is provided, `element_spec` and `components` must not be specified.")
        if dataset is None and handle is None and (element_spec is None or components is None):
            raise ValueError("When `dataset` is not provided, both `components` and `element_spec` must be specified.")
        handle = components[0] if components is not None else handle
        self._dataset = dataset  # kept while elements are read
        self._element_spec = element_spec if dataset is None else dataset.element_spec
        specs = structure.flat_specs(self._element_spec)
        self._attrs = {"output_types": [s.dtype for s in specs], "output_shapes": [s.shape for s in specs]}
        self._is_plain = all(isinstance(leaf, TensorSpec) for leaf in nest.flatten(self._element_spec))
        self._is_nested = nest.is_nested(self._element_spec)
        self._handle, self._symbolic_calls = handle, 0
        if handle is None:
            self._handle = raw_ops.AnonymousIteratorV3(**self._attrs)
            raw_ops.MakeIterator(dataset=dataset._variant_tensor, iterator=self._handle)

    element_spec = property(lambda self: self._element_spec)
    _type_spec = property(lambda self: IteratorSpec(self._element_spec))
    output_types = property(lambda self: structure.legacy_types(self._element_spec))
    output_shapes = property(lambda self: structure.legacy_shapes(self._element_spec))
    output_classes = property(lambda self: structure.legacy_classes(self._element_spec))
    _iterator_resource = property(lambda self: self._handle)

    def __iter__(self):
        return self

    def get_next(self, name=None):
        """Returns the next element. Raises OutOfRangeError after the last."""
        return self._packed(list(raw_ops.IteratorGetNext(iterator=self._handle, **self._attrs)))

    def _packed(self, tensors):
        if self._is_plain:
            return nest.pack_sequence_as(self._element_spec, tensors) if self._is_nested else tensors[0]
        return structure.from_compatible_tensor_list(self._element_spec, tensors)

    def get_next_as_optional(self, name=None):
        """Returns an Optional of the next element, empty after the last."""
        return optional.Optional(raw_ops.IteratorGetNextAsOptional(iterator=self._handle, **self._attrs), self._element_spec)

    def __next__(self):
        if not executing_eagerly():
            self._symbolic_calls += 1
            if self._symbolic_calls > _MOST_SYMBOLIC_CALLS:
                raise ValueError("An unusually high number of `tf.data.Iterator.get_next()` calls was detected. This suggests that the "
                                 "`for elem in dataset: ...` idiom is used within tf.function with AutoGraph disabled. This idiom is only "
                                 "supported when AutoGraph is enabled.")
        try:
            return self.get_next()
        except errors.OutOfRangeError:
            raise StopIteration from None

    next = __next__
    _next_internal = get_next

    def _serialize_to_tensors(self):
        return {"_STATE": self._save()}

    def _restore_from_tensors(self, restored_tensors):
        return self._restore(restored_tensors["_STATE"])

    def _save(self):
        """Returns the place in the dataset, a tensor for _restore."""
        return raw_ops.SerializeIterator(resource_handle=self._handle)

    def _restore(self, state):
        """Continues at the place that _save returned."""
        return raw_ops.DeserializeIterator(resource_handle=self._handle, serialized=state)


class NumpyIterator(Trackable):
    """An iterator over the elements of a dataset, with arrays for tensors."""

    def __init__(self, dataset):
        self._iterator = iter(dataset)

    @classmethod
    def over(cls, dataset):
        """Returns an iterator over a dataset. Raises TypeError if an element has parts that are no arrays."""
        for spec in nest.flatten(dataset.element_spec):
            if not isinstance(spec, (TensorSpec, RaggedTensorSpec, SparseTensorSpec, NoneTensorSpec)):
                raise TypeError("`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce values of type %s" % (
                    spec.value_type,))
        return cls(dataset)

    def __iter__(self):
        return self

    def __next__(self):
        return nest.map_structure(_as_numpy, next(self._iterator))

    next = __next__

    def save(self):
        """Returns the place in the dataset, for restore."""
        return self._iterator._save()

    def restore(self, state):
        """Continues at the place that save returned."""
        return self._iterator._restore(state)

    def __repr__(self):
        return "NumpyIterator(iterator=%r)" % (self._iterator,)

    _save, _restore = save, restore

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        return {"_iterator": self._iterator}


def _as_numpy(value):
    """Returns the array of a tensor, read-only; composite tensors become values of arrays."""
    from runnel.core.composite import SparseTensor, SparseTensorValue
    if isinstance(value, SparseTensor):
        return SparseTensorValue(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
    if value is None:
        return value
    array = value.numpy()
    if hasattr(array, "setflags"):
        array = array.view()
        array.setflags(write=False)
    return array


@register("tf.IteratorSpec")
class IteratorSpec(TypeSpec):
    """The TypeSpec of an iterator."""

    def __init__(self, element_spec):
        self._element_spec = element_spec

    value_type = property(lambda self: OwnedIterator)
    element_spec = property(lambda self: self._element_spec)

    @staticmethod
    def from_value(value):
        """Returns the description of an iterator."""
        return IteratorSpec(value.element_spec)

    def _serialize(self):
        return (self._element_spec,)

    @property
    def _component_specs(self):
        return [TensorSpec((), dtypes.resource)]

    def _to_components(self, value):
        return [value._handle]

    def _from_components(self, components):
        return OwnedIterator(handle=components[0], element_spec=self._element_spec)
