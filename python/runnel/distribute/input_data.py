"""Datasets whose batches are divided among replicas."""

from runnel import errors, nest
from runnel.core.type_spec import CompositeTensor, TypeSpec
from runnel.data import structure
from runnel.data.owned_iterator import IteratorSpec, OwnedIterator
from runnel.distribute.values import PerReplica, PerReplicaSpec


class DistributedDataset:
    """The base of datasets that are divided among replicas."""


class DistributedIterator:
    """The base of iterators over such datasets."""


def parts_of_batch(size, replicas):
    """Returns how many rows of a batch each replica gets: as many as the first, as long as there are some."""
    each = -(-size // replicas)
    return [max(min(each, size - each * i), 0) for i in range(replicas)]


class _Divided(DistributedDataset):
    """A dataset whose elements are divided among replicas, or of which each replica gets one in turn."""

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
        from runnel.data.optional import Optional
        if not self._is_divided:
            raise errors.UnimplementedError(None, None, "get_next_as_optional of an iterator with a dataset per replica is not supported")
        whole = self._iterator.get_next_as_optional()

        class Divided(Optional):
            """An Optional whose value is divided among the replicas."""

            def get_value(optional, name=None):
                return nest.map_structure(self._divided, Optional.get_value(optional))
        return Divided(whole._variant_tensor, whole.element_spec)

    def _divided(self, value):
        from runnel.ops import array_ops
        size = value.shape.as_list()[0] if value.shape.rank else None
        if size is not None:
            return PerReplica(array_ops.split(value, parts_of_batch(size, self._replicas), 0))
        rows, replicas = array_ops.shape(value)[0], self._replicas
        each = (rows + replicas - 1) // replicas
        return PerReplica([value[each * i:each * (i + 1)] for i in range(replicas)])


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


# --- Several processes

def of_process(dataset, replicas, processes, rank):
    """Returns a process's part of a dataset: batches for its replicas, of which all processes together have `replicas`."""
    from runnel import raw_ops
    pieces = dataset._like(None, structure.batched(structure.unbatched(dataset.element_spec), None))
    pieces._variant_tensor = raw_ops.RebatchDataset(input_dataset=dataset._variant_tensor, num_replicas=_int64(replicas), **pieces._attrs)
    options = dataset.options()
    return pieces._like(raw_ops.AutoShardDataset(
        input_dataset=pieces._variant_tensor, num_workers=_int64(processes), index=_int64(rank), num_replicas=replicas,
        auto_shard_policy=options.experimental_distribute.auto_shard_policy.value, **pieces._attrs))


def _int64(value):
    from runnel import dtypes
    from runnel.core.convert import convert_to_tensor
    return convert_to_tensor(value, dtypes.int64)


class _Synchronized(DistributedDataset):
    """A process's part of a dataset, whose iterators end when those of all processes have."""

    def __init__(self, dataset, group):
        self._dataset, self._group = dataset, group

    element_spec = property(lambda self: self._dataset.element_spec)
    cardinality = property(lambda self: self._dataset.cardinality)

    def __len__(self):
        return len(self._dataset)

    def __iter__(self):
        return SynchronizedIterator(self._dataset, group=self._group)

    reduce = _Divided.reduce


class SynchronizedIterator(OwnedIterator, DistributedIterator):
    """An iterator that has ended when those of all processes have; before that, it gives batches without rows."""

    def __init__(self, dataset=None, handle=None, element_spec=None, group=None):
        super().__init__(dataset, handle, element_spec)
        self._group = group

    _type_spec = property(lambda self: SynchronizedIteratorSpec(self._element_spec, self._group))

    def get_next(self, name=None):
        """Returns the next element. Raises OutOfRangeError after the last of all processes."""
        from runnel.core import framework
        own, any_has = self._next()
        if not framework.executing_eagerly():
            return self._in_graph(own, any_has)
        if bool(own.has_value()):
            return own.get_value()
        return self._without_rows() if bool(any_has) else super().get_next()  # which raises

    def get_next_as_optional(self, name=None):
        """Returns an Optional of the next element, empty after the last of all processes."""
        from runnel.data.optional import Optional
        from runnel.ops.control_flow import cond
        own, any_has = self._next()
        variant = cond(own.has_value(), lambda: own._variant_tensor, lambda: cond(
            any_has, lambda: Optional.from_value(self._without_rows())._variant_tensor, lambda: own._variant_tensor))
        return Optional(variant, self._element_spec)

    def _next(self):
        """Returns the own next element as an Optional, and whether a process has one."""
        from runnel import dtypes
        from runnel.ops import math_ops
        own = super().get_next_as_optional()
        return own, self._group.sum(math_ops.cast(own.has_value(), dtypes.int32)) > 0

    def _in_graph(self, own, any_has):
        from runnel.ops.control_flow import cond
        specs = structure.flat_specs(self._element_spec)
        tensors = cond(own.has_value(), lambda: structure.to_tensor_list(self._element_spec, own.get_value()), lambda: cond(
            any_has, lambda: structure.to_tensor_list(self._element_spec, self._without_rows()),
            lambda: structure.to_tensor_list(self._element_spec, super(SynchronizedIterator, self).get_next())))
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        for tensor, spec in zip(tensors, specs):
            tensor.set_shape(spec.shape)
        return structure.from_compatible_tensor_list(self._element_spec, tensors)

    def _without_rows(self):
        from runnel.ops import array_ops
        specs = structure.flat_specs(self._element_spec)
        return structure.from_compatible_tensor_list(self._element_spec, [
            array_ops.zeros([0, *[size or 0 for size in spec.shape.as_list()[1:]]] if spec.shape.rank else [], spec.dtype) for spec in specs])


class SynchronizedIteratorSpec(IteratorSpec):
    """The TypeSpec of such an iterator."""

    def __init__(self, element_spec, group):
        super().__init__(element_spec)
        self._group = group

    value_type = property(lambda self: SynchronizedIterator)

    def _serialize(self):
        return self._element_spec, (self._group.size, self._group.rank)

    def _from_components(self, components):
        return SynchronizedIterator(handle=components[0], element_spec=self._element_spec, group=self._group)


def synchronized(dataset, replicas, group):
    """Returns a process's part of a dataset for its replicas, which ends when all processes have no more."""
    from runnel.data import INFINITE_CARDINALITY
    is_infinite = int(dataset.cardinality()) == INFINITE_CARDINALITY
    own = dataset if is_infinite else _Synchronized(dataset, group)
    return own if replicas == 1 else per_replica(own, replicas)
