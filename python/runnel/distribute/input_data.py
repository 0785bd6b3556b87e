"""Datasets whose batches are divided among replicas."""

from runnel import errors, nest
from runnel.core.type_spec import CompositeTensor, TypeSpec
from runnel.distribute.values import PerReplica, PerReplicaSpec


class DistributedDataset:
    """The base of datasets that are divided among replicas."""


class DistributedIterator:
    """The base of iterators over such datasets."""


def parts_of_batch(size, replicas):
    """Returns how many rows of a batch each replica gets."""
    return [size // replicas + (i < size % replicas) for i in range(replicas)]


class _Divided(DistributedDataset):
    """A dataset; `divide` makes the values of the replicas of an iterator's next elements."""

    def __init__(self, dataset, replicas, is_divided):
        self._dataset, self._replicas, self._is_divided = dataset, replicas, is_divided

    @property
    def element_spec(self):
        """The TypeSpecs of an element."""
        return nest.map_structure(lambda spec: PerReplicaSpec(*[self._of_part(spec)] * self._replicas), self._dataset.element_spec)

    def _of_part(self, spec):
        return spec._unbatch()._batch(None) if self._is_divided else spec

    def __iter__(self):
        return _Iterator(iter(self._dataset), self._replicas, self._is_divided)

    def __len__(self):
        count = len(self._dataset)
        return count if self._is_divided else -(-count // self._replicas)

    @property
    def cardinality(self):
        """The function that counts the elements."""
        return self._dataset.cardinality

    def reduce(self, initial_state, reduce_func):
        """Returns `reduce_func(... reduce_func(initial_state, first) ..., last)`."""
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state


class _Iterator(CompositeTensor, DistributedIterator):
    _counts_as_tensor = False

    def __init__(self, iterator, replicas, is_divided):
        self._iterator, self._replicas, self._is_divided = iterator, replicas, is_divided

    @property
    def _type_spec(self):
        return DistributedIteratorSpec(self._iterator._type_spec, self._replicas, self._is_divided)

    element_spec = property(lambda self: self._iterator.element_spec)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.get_next()
        except errors.OutOfRangeError:
            raise StopIteration from None

    def get_next(self, name=None):
        """Returns the next values of the replicas. Raises OutOfRangeError after the last."""
        if not self._is_divided:
            elements = [self._iterator.get_next() for _ in range(self._replicas)]
            return nest.map_structure(lambda *values: PerReplica(values), *elements)
        return nest.map_structure(self._divided, self._iterator.get_next())

    def get_next_as_optional(self, name=None):
        """Returns an Optional of the next values of the replicas."""
        raise errors.UnimplementedError(None, None, "get_next_as_optional of a distributed iterator is not supported")

    def _divided(self, value):
        from runnel.ops import array_ops
        size = value.shape.as_list()[0] if value.shape.rank else None
        if size is not None:
            return PerReplica(array_ops.split(value, parts_of_batch(size, self._replicas), 0))
        rows, replicas = array_ops.shape(value)[0], self._replicas
        bounds = [rows // replicas * i + array_ops.where_v2(rows % replicas < i, rows % replicas, i) for i in range(replicas + 1)]
        return PerReplica([value[start:end] for start, end in zip(bounds, bounds[1:])])


class DistributedIteratorSpec(TypeSpec):
    """The TypeSpec of an iterator over a distributed dataset."""

    def __init__(self, iterator_spec, replicas, is_divided):
        self._iterator_spec, self._replicas, self._is_divided = iterator_spec, replicas, is_divided

    value_type = property(lambda self: _Iterator)

    def _serialize(self):
        return self._iterator_spec, self._replicas, self._is_divided

    @property
    def _component_specs(self):
        return self._iterator_spec

    def _to_components(self, value):
        return value._iterator

    def _from_components(self, components):
        return _Iterator(components, self._replicas, self._is_divided)


def divided(dataset, replicas):
    """Returns a dataset whose batches are divided among replicas."""
    return _Divided(dataset, replicas, True)


def per_replica(dataset, replicas):
    """Returns a dataset of which each replica gets every n-th element."""
    return _Divided(dataset, replicas, False)
