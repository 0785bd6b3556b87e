"""Datasets whose batches are divided among replicas."""

from runnel import _core, data, errors, nest
from runnel.core import framework
from runnel.core.type_spec import CompositeTensor, TypeSpec
from runnel.data import structure
from runnel.data.owned_iterator import IteratorSpec, OwnedIterator
from runnel.distribute import contexts, device_util
from runnel.distribute.options import InputReplicationMode
from runnel.distribute.values import PerReplica, PerReplicaSpec


class InputWorkers:
    """Which devices make the input of which: pairs of a device and those that it feeds."""

    def __init__(self, worker_device_pairs, canonicalize_devices=True):
        full = device_util.canonicalize if canonicalize_devices else device_util.canonicalize_without_job_and_task
        self._pairs, self._canonicalize_devices = tuple(worker_device_pairs), canonicalize_devices
        self.worker_devices = tuple(device for device, _ in self._pairs)
        self._fed = tuple(tuple(full(device) for device in fed) for _, fed in self._pairs)

    num_workers = property(lambda self: len(self.worker_devices))

    def compute_devices_for_worker(self, worker_index):
        """Returns the devices that a worker feeds."""
        return self._fed[worker_index]

    def serialize(self):
        """Returns the arguments that make such an object."""
        return self._pairs, self._canonicalize_devices

    def __eq__(self, other):
        return isinstance(other, InputWorkers) and self._fed == other._fed and self.worker_devices == other.worker_devices

    def __hash__(self):
        return hash(self._fed)

    def __repr__(self):
        return "%s:{\n%s}" % (type(self).__name__, ",\n".join("  %d %s: %s" % (i, device, fed) for i, (device, fed) in enumerate(
            zip(self.worker_devices, self._fed))))


class DistributedDataset:
    """The base of datasets that are divided among replicas."""


class DistributedIterator:
    """The base of iterators over such datasets."""


def is_per_replica(options):
    """Tells whether tf.distribute.InputOptions ask for a dataset per replica."""
    return options is not None and options.experimental_replication_mode is InputReplicationMode.PER_REPLICA


def check_mode(options, strategy):
    """Raises NotImplementedError if InputOptions ask for a dataset per replica of a strategy that has a single one."""
    if is_per_replica(options):
        raise NotImplementedError("InputReplicationMode.PER_REPLICA is only supported in `experimental_distribute_datasets_from_function` of "
                                  "tf.distribute.MirroredStrategy, and not in %s" % strategy)


def parts_of_batch(size, replicas):
    """Returns how many rows of a batch each replica gets: as many as the first, as long as there are some."""
    each = -(-size // replicas)
    return [max(min(each, size - each * i), 0) for i in range(replicas)]


class _Divided(CompositeTensor, DistributedDataset):
    """Datasets whose elements replicas get: parts of each (`is_divided`), or one after the other. There is one dataset, or one per replica."""

    def __init__(self, datasets, devices, is_divided, strategy=None):
        for dataset in datasets:
            if not isinstance(dataset, data.Dataset):
                raise ValueError("A strategy distributes a tf.data.Dataset, not %r" % (dataset,))
        self._datasets, self._devices, self._is_divided = tuple(datasets), tuple(devices), is_divided
        self._input_workers = InputWorkers([(device_util.get_host_for_device(devices[0]), self._devices)])
        self._enable_get_next_as_optional = _has_partial_batches(strategy, datasets[0])

    _counts_as_tensor = False
    _cloned_datasets = property(lambda self: list(self._datasets))
    _element_spec = property(lambda self: self.element_spec)

    @property
    def element_spec(self):
        """The TypeSpecs of an element."""
        return _specs(self._datasets[0].element_spec, len(self._devices), self._is_divided)

    @property
    def _type_spec(self):
        return DistributedDatasetSpec(tuple(dataset._type_spec for dataset in self._datasets), self._devices, self._is_divided,
                                      self._enable_get_next_as_optional)

    def __iter__(self):
        if not framework.executing_eagerly() and not _core.current().building_function:
            raise RuntimeError("__iter__() is only supported inside of tf.function or when eager execution is enabled.")
        made = _Iterator([iter(dataset) for dataset in self._datasets], self._devices, self._is_divided)
        made._enable_get_next_as_optional = self._enable_get_next_as_optional
        return made

    def __len__(self):
        count = len(self._datasets[0])
        return count if self._is_divided or len(self._datasets) > 1 else -(-count // len(self._devices))

    @property
    def cardinality(self):
        """The function that counts the elements."""
        return self._datasets[0].cardinality

    def reduce(self, initial_state, reduce_func):
        """Returns `reduce_func(... reduce_func(initial_state, first) ..., last)`."""
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state


def _has_partial_batches(strategy, dataset):
    """Tells whether a last batch may have fewer rows than there are replicas, and its replicas want to know."""
    from runnel.data import INFINITE_CARDINALITY
    extended = getattr(strategy, "extended", None)
    if not getattr(extended, "enable_partial_batch_handling", getattr(extended, "experimental_enable_get_next_as_optional", False)):
        return False
    if int(dataset.cardinality()) == INFINITE_CARDINALITY if framework.executing_eagerly() else False:
        return False
    return extended._in_multi_worker_mode() or not all(_has_rows(spec) for spec in nest.flatten(dataset.element_spec))


def _has_rows(spec):
    """Tells whether the number of rows of a tensor is known."""
    shape = getattr(spec, "shape", None)
    return shape is not None and (shape.rank == 0 or shape.rank is not None and shape.as_list()[0] is not None)


def _specs(spec, replicas, is_divided):
    def one(leaf):
        leaf = leaf._unbatch()._batch(None) if is_divided and replicas > 1 else leaf
        return leaf if replicas == 1 else PerReplicaSpec(*[leaf] * replicas)
    return nest.map_structure(one, spec)


class _Iterator(CompositeTensor, DistributedIterator):
    _counts_as_tensor = _enable_get_next_as_optional = False

    def __init__(self, iterators, devices, is_divided):
        self._iterators, self._devices, self._is_divided = tuple(iterators), tuple(devices), is_divided
        self._input_workers = InputWorkers([(device_util.get_host_for_device(devices[0]), self._devices)])

    @property
    def _type_spec(self):
        return DistributedIteratorSpec(tuple(iterator._type_spec for iterator in self._iterators), self._devices, self._is_divided)

    @property
    def element_spec(self):
        """The TypeSpecs of an element."""
        return _specs(self._iterators[0].element_spec, len(self._devices), self._is_divided)

    def __iter__(self):
        return self

    def __next__(self):
        replica = contexts.contexts.stack[-1][1] if contexts.contexts.stack else None
        if replica is not None and replica.strategy.extended._num_replicas_in_sync == len(self._devices):
            raise ValueError("next(iterator) should be called from outside of replica_fn. e.g. strategy.run(replica_fn, args=(next(iterator),))")
        try:
            return self.get_next()
        except errors.OutOfRangeError:
            raise StopIteration from None

    def get_next(self, name=None):
        """Returns the next values of the replicas. Raises OutOfRangeError after the last."""
        count = len(self._devices)
        if count == 1:
            return self._iterators[0].get_next()
        if self._is_divided:
            return nest.map_structure(self._divided, self._iterators[0].get_next())
        if len(self._iterators) > 1:
            return nest.map_structure(lambda *values: PerReplica(values), *[iterator.get_next() for iterator in self._iterators])
        return self._in_turn()

    def _in_turn(self):
        """Returns an element for each replica. After the last element, replicas get one without rows."""
        iterator = self._iterators[0]
        elements = [iterator.get_next()]
        for _ in self._devices[1:]:
            optional = iterator.get_next_as_optional()
            if framework.executing_eagerly():
                elements.append(optional.get_value() if bool(optional.has_value()) else without_rows(iterator.element_spec))
            else:
                elements.append(_value_or_no_rows(optional, iterator.element_spec))
        return nest.map_structure(lambda *values: PerReplica(values), *elements)

    def get_next_as_optional(self, name=None):
        """Returns an Optional of the next values of the replicas."""
        from runnel.data.optional import Optional
        from runnel.ops.control_flow import cond
        iterator = self._iterators[0]
        if len(self._devices) == 1:
            return iterator.get_next_as_optional()
        if self._is_divided:
            whole, divide = iterator.get_next_as_optional(), self._divided

            class Divided(Optional):
                """An Optional whose value is divided among the replicas."""

                def get_value(optional, name=None):
                    return nest.map_structure(divide, Optional.get_value(optional))
            return Divided(whole._variant_tensor, whole.element_spec)
        one_each = self._iterators if len(self._iterators) > 1 else [iterator] * len(self._devices)
        optionals = [one.get_next_as_optional() for one in one_each]
        any_has = optionals[0].has_value()
        spec = nest.map_structure(lambda leaf: PerReplicaSpec(*[leaf] * len(optionals)), iterator.element_spec)

        def together():
            values = [_value_or_no_rows(optional, iterator.element_spec) for optional in optionals]
            return Optional.from_value(nest.map_structure(lambda *parts: PerReplica(parts), *values))._variant_tensor
        return Optional(cond(any_has, together, lambda: Optional.empty(spec)._variant_tensor), spec)

    def _divided(self, value):
        from runnel.ops import array_ops
        replicas = len(self._devices)
        if isinstance(value, CompositeTensor):
            return _divided_composite(value, replicas)
        size = value.shape.as_list()[0] if value.shape.rank else None
        if size is not None:
            return PerReplica(array_ops.split(value, parts_of_batch(size, replicas), 0))
        rows = array_ops.shape(value)[0]
        each = (rows + replicas - 1) // replicas
        return PerReplica([value[each * i:each * (i + 1)] for i in range(replicas)])


def _divided_composite(value, replicas):
    """Returns the rows of a sparse or ragged tensor, divided among replicas."""
    from runnel.core.composite import SparseTensor
    from runnel.ops import math_ops, sparse_ops
    if not isinstance(value, SparseTensor):
        rows = value.nrows()
        each = (rows + replicas - 1) // replicas
        return PerReplica([value[each * i:each * (i + 1)] for i in range(replicas)])
    shape = value.dense_shape
    each = (shape[0] + replicas - 1) // replicas
    parts = []
    for i in range(replicas):
        start = math_ops.minimum(each * i, shape[0])
        count = math_ops.minimum(each, shape[0] - start)
        rest = shape[1:]
        from runnel.ops import array_ops
        parts.append(sparse_ops.sparse_slice(value, array_ops.concat([[start], array_ops.zeros_like(rest)], 0), array_ops.concat([[count], rest], 0)))
    return PerReplica(parts)


def without_rows(element_spec):
    """Returns an element whose tensors have no rows."""
    from runnel.ops import array_ops
    specs = structure.flat_specs(element_spec)
    return structure.from_compatible_tensor_list(element_spec, [
        array_ops.zeros([0, *[size or 0 for size in spec.shape.as_list()[1:]]] if spec.shape.rank else [], spec.dtype) for spec in specs])


def _value_or_no_rows(optional, element_spec):
    """Returns the value of an Optional in a graph, or an element without rows if it has none."""
    from runnel.ops.control_flow import cond
    tensors = cond(optional.has_value(), lambda: structure.to_tensor_list(element_spec, optional.get_value()),
                   lambda: structure.to_tensor_list(element_spec, without_rows(element_spec)))
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return structure.from_compatible_tensor_list(element_spec, tensors)


class DistributedIteratorSpec(TypeSpec):
    """The TypeSpec of an iterator over a distributed dataset."""

    def __init__(self, iterator_specs, devices, is_divided):
        self._iterator_specs, self._devices, self._is_divided = iterator_specs, devices, is_divided
        self._input_workers = InputWorkers([(device_util.get_host_for_device(devices[0]), devices)])

    value_type = property(lambda self: _Iterator)

    _element_spec = property(lambda self: _specs(self._iterator_specs[0]._element_spec, len(self._devices), self._is_divided))

    def _serialize(self):
        return self._iterator_specs, self._devices, self._is_divided

    @property
    def _component_specs(self):
        return self._iterator_specs

    def _to_components(self, value):
        return value._iterators

    def _from_components(self, components):
        return _Iterator(components, self._devices, self._is_divided)


class DistributedDatasetSpec(TypeSpec):
    """The TypeSpec of a distributed dataset."""

    def __init__(self, dataset_specs, devices, is_divided, has_partial_batches):
        self._dataset_specs, self._devices, self._is_divided = dataset_specs, devices, is_divided
        self._enable_get_next_as_optional = has_partial_batches
        self._input_workers = InputWorkers([(device_util.get_host_for_device(devices[0]), devices)])

    value_type = property(lambda self: _Divided)
    _component_specs = property(lambda self: self._dataset_specs)
    _element_spec = property(lambda self: _specs(self._dataset_specs[0].element_spec, len(self._devices), self._is_divided))

    def _serialize(self):
        return self._dataset_specs, self._devices, self._is_divided, self._enable_get_next_as_optional

    def _to_components(self, value):
        return value._datasets

    def _from_components(self, components):
        made = _Divided(components, self._devices, self._is_divided)
        made._enable_get_next_as_optional = self._enable_get_next_as_optional
        return made


def divided(dataset, devices, strategy):
    """Returns a dataset whose batches are divided among the replicas on some devices."""
    return _Divided([dataset], devices, True, strategy)


def per_replica(dataset, devices, strategy):
    """Returns a dataset of which each replica gets every n-th element."""
    return _Divided([dataset], devices, False, strategy)


def of_replicas(datasets, devices, strategy):
    """Returns a dataset of which each replica gets the elements of its own."""
    return _Divided(datasets, devices, False, strategy)


def of_one_device(dataset, device, strategy):
    """Returns the dataset of a strategy with one device."""
    return _Divided([dataset], [device], False, strategy)


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
        own, any_has = self._next()
        if not framework.executing_eagerly():
            return self._in_graph(own, any_has)
        if bool(own.has_value()):
            return own.get_value()
        return without_rows(self._element_spec) if bool(any_has) else super().get_next()  # which raises

    def get_next_as_optional(self, name=None):
        """Returns an Optional of the next element, empty after the last of all processes."""
        from runnel.data.optional import Optional
        from runnel.ops.control_flow import cond
        own, any_has = self._next()
        variant = cond(own.has_value(), lambda: own._variant_tensor, lambda: cond(
            any_has, lambda: Optional.from_value(without_rows(self._element_spec))._variant_tensor, lambda: own._variant_tensor))
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
            any_has, lambda: structure.to_tensor_list(self._element_spec, without_rows(self._element_spec)),
            lambda: structure.to_tensor_list(self._element_spec, super(SynchronizedIterator, self).get_next())))
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        for tensor, spec in zip(tensors, specs):
            tensor.set_shape(spec.shape)
        return structure.from_compatible_tensor_list(self._element_spec, tensors)


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


def synchronized(dataset, devices, strategy, group):
    """Returns a process's part of a dataset for its replicas, which ends when all processes have no more."""
    from runnel.data import INFINITE_CARDINALITY
    is_infinite = int(dataset.cardinality()) == INFINITE_CARDINALITY
    own = dataset if is_infinite else _Synchronized(dataset, group)
    return own if len(devices) == 1 else per_replica(own, devices, strategy)
