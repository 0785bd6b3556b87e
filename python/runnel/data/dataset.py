"""Dataset: input pipelines (tf.data). `structure` says how an element travels through one."""

import functools

from runnel import dtypes, nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import tensor_shape
from runnel.core.convert import constant_value, convert_to_tensor, register_tensor_conversion_function
from runnel.core.framework import Tensor, executing_eagerly
from runnel.core.trackable import Trackable
from runnel.core.type_spec import CompositeTensor, TensorSpec, TypeSpec, register
from runnel.core.v2_switches import v2_behavior_enabled
from runnel.data import debug_mode, structure, structure_nest
from runnel.data.iterators import make_initializable_iterator, make_one_shot_iterator
from runnel.data.methods import ExperimentalMethods
from runnel.data.option_methods import OptionMethods
from runnel.data.saved_datasets import SavedMethods
from runnel.eager.tracing import trace
from runnel.ops import array_ops

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def _int64(value, name=None):
    return convert_to_tensor(value, dtypes.int64, name=name)


def _bool(value, name=None):
    return convert_to_tensor(value, dtypes.bool, name=name)


def _order(deterministic):
    """Returns the attribute that says whether parallel stages keep the order."""
    return "default" if deterministic is None else "true" if deterministic else "false"


# Libraries recognize datasets by this class's name and module, without importing TensorFlow.
_Recognized = type("DatasetV2", (), {"__module__": "tensorflow.python.data.ops.dataset_ops", "__doc__": "The base of datasets."})


class Dataset(_Recognized, SavedMethods, ExperimentalMethods, OptionMethods, Trackable, CompositeTensor):  # type: ignore[misc, valid-type]
    """A sequence of elements, each a nested structure of tensors and composite tensors.

    from_tensors, from_tensor_slices, from_generator, range and the file datasets create datasets; the other methods
    transform them. Iterators return the elements. A subclass may define the property `element_spec`.
    """

    _counts_as_tensor = False
    _sources: tuple = ()  # the datasets it reads
    _traced: tuple = ()  # the functions it calls
    _kind = ""  # how stock names such a dataset

    def __init__(self, variant_tensor, element_spec=None, sources=()):
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec
        self._sources = tuple(sources)
        self._take_options(self._sources)

    # The structure of elements

    @property
    def element_spec(self):
        """The structure of an element, of TypeSpecs."""
        return self._element_spec

    @property
    def _flat_specs(self):
        return structure.flat_specs(self.element_spec)

    @property
    def _types(self):
        return [spec.dtype for spec in self._flat_specs]

    @property
    def _shapes(self):
        return [spec.shape for spec in self._flat_specs]

    @property
    def _attrs(self):
        specs = self._flat_specs
        return {"output_types": [spec.dtype for spec in specs], "output_shapes": [spec.shape for spec in specs]}

    _flat_structure = _attrs
    _flat_shapes = _shapes
    _flat_types = _types

    def _pack(self, flat):
        """Returns the element for which tensors stand."""
        return structure.from_compatible_tensor_list(self.element_spec, flat)

    @property
    def output_types(self):
        """The types of an element, in its structure."""
        return structure.legacy_types(self.element_spec)

    @property
    def output_shapes(self):
        """The shapes of an element, in its structure."""
        return structure.legacy_shapes(self.element_spec)

    @property
    def output_classes(self):
        """The classes of the parts of an element, in its structure."""
        return structure.legacy_classes(self.element_spec)

    @property
    def _type_spec(self):
        return DatasetSpec(self.element_spec)

    def _inputs(self):
        """Returns the datasets that this one reads."""
        return list(self._sources)

    def _functions(self):
        """Returns the functions that it calls."""
        return list(self._traced)

    def _as_variant_tensor(self):
        return self._variant_tensor

    def _like(self, variant, element_spec=None):
        """Returns the dataset that `variant` makes of this one; without `element_spec`, elements keep their structure."""
        return Dataset(variant, self.element_spec if element_spec is None else element_spec, [self])

    def __repr__(self):
        return "<%s element_spec=%s>" % (self._kind or type(self).__name__, self.element_spec)

    # Sources

    @staticmethod
    def from_tensors(tensors, name=None):
        """Creates a dataset of one element."""
        element = structure.normalize_element(tensors)
        spec = structure.type_spec_from_value(element)
        flat = structure.to_tensor_list(spec, element)
        return Dataset(raw_ops.TensorDataset(components=flat, output_shapes=structure.get_flat_tensor_shapes(spec)), spec)

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """Creates a dataset of the rows of tensors."""
        element = structure.normalize_element(tensors)
        batched = structure.type_spec_from_value(element)
        if not nest.flatten(batched):
            raise ValueError("Invalid `tensors`. `tensors` must not be empty.")
        flat = structure.to_batched_tensor_list(batched, element)
        spec = structure.unbatched(batched)
        counts = {x.shape.as_list()[0] for x in flat if x.shape.dims is not None} - {None}
        if len(counts) > 1:
            raise ValueError("Dimensions %s are not compatible" % " and ".join(str(c) for c in sorted(counts)))
        return Dataset(raw_ops.TensorSliceDataset(components=flat, output_shapes=structure.get_flat_tensor_shapes(spec)), spec)

    @staticmethod
    def range(*args, **kwargs):
        """Creates a dataset of the numbers of Python's range, of the type `output_type`."""
        if not 1 <= len(args) <= 3:
            raise ValueError("Invalid `args`. The length of `args` should be between 1 and 3 but was %d." % len(args))
        kind = dtypes.as_dtype(kwargs.pop("output_type", dtypes.int64))
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        spec = TensorSpec([], kind)
        variant = raw_ops.RangeDataset(start=_int64(start), stop=_int64(stop), step=_int64(step),
                                       output_types=[kind], output_shapes=[spec.shape])
        return Dataset(variant, spec)

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """Combines the elements of several datasets, in their structure; several arguments are a tuple."""
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        datasets = datasets if datasets is not None else args[0] if len(args) == 1 else args
        flat = [leaf for part in structure_nest.flatten(datasets) for leaf in ([part] if isinstance(part, list) else nest.flatten(part))]
        for one in flat:
            if not isinstance(one, Dataset):
                if isinstance(one, list):
                    raise TypeError("Invalid `datasets`. `datasets` is expected to be a (nested) structure of `tf.data.Dataset` objects. Python "
                                    "`list` is not supported and you should use `tuple` instead.")
                raise TypeError("Invalid `datasets`. `datasets` is expected to be a (nested) structure of `tf.data.Dataset` objects but "
                                "encountered object of type %s." % type(one))
        spec = nest.map_structure(lambda d: d.element_spec, datasets)
        made = Dataset(None, spec, flat)
        made._variant_tensor = raw_ops.ZipDataset(input_datasets=[d._variant_tensor for d in flat], **made._attrs)
        return made

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """Creates a dataset of the names of files that match patterns, shuffled by default."""
        pattern = convert_to_tensor(file_pattern, dtypes.string, name="file_pattern")
        names = raw_ops.MatchingFiles(pattern=pattern)
        if v2_behavior_enabled():
            from runnel.core.framework import control_dependencies
            from runnel.ops import control_flow
            condition = raw_ops.Greater(x=array_ops.shape(names)[0], y=0)
            message = raw_ops.StringJoin(inputs=["No files matched pattern: ", _joined(pattern)])
            check = control_flow.Assert(condition, [message], summarize=1)
            with control_dependencies([] if check is None else [check]):
                names = array_ops.identity(names)
        dataset = Dataset.from_tensor_slices(names)
        if shuffle is None or shuffle:
            count = raw_ops.Maximum(x=_int64(array_ops.size(names, out_type=dtypes.int64)), y=_int64(1))
            dataset = dataset.shuffle(count, seed=seed)
        return dataset

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """Creates a dataset of what a Python generator yields; each iterator calls `generator(*args)`.

        `output_signature`, a structure of TypeSpecs, says what an element is; so do `output_types` and `output_shapes`.
        """
        from runnel.data import generators
        return generators.from_generator(generator, output_types, output_shapes, args, output_signature)

    # Transformations

    def _trace(self, fn, stem, before=()):
        """Traces `fn`, a function of an element, as a library function of the element's tensors.

        The result has `element_spec`, the TypeSpecs of what `fn` returns. `before` are (type, shape) of arguments before the element.
        """
        made, fn = [], traceable(fn)

        def flat_fn(*flat):
            element = self._pack(list(flat[len(before):]))
            arguments = element if type(element) is tuple else (element,)
            return _returned(fn(*flat[:len(before)], *arguments), made, stem)
        specs = [*before, *((spec.dtype, spec.shape) for spec in self._flat_specs)]
        traced = trace(flat_fn, specs, stem, in_order=True)
        if debug_mode.is_debug_mode():
            traced = trace(debug_mode.in_debug_mode(traced, flat_fn, specs), specs, stem, in_order=True)
        traced.element_spec = made[0]
        return traced

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None,  # noqa: A003
            use_unbounded_threadpool=False, name=None):
        """Applies `map_func` to each element."""
        f = self._trace(map_func, "Dataset_map")
        attrs = {"f": f.attr, "output_types": f.dtypes, "output_shapes": f.shapes, "preserve_cardinality": v2_behavior_enabled()}
        if synchronous and num_parallel_calls is not None:
            raise ValueError("`synchronous` is not supported with `num_parallel_calls`, but `num_parallel_calls` was set to %s." % num_parallel_calls)
        if num_parallel_calls is None:
            variant = raw_ops.MapDataset(input_dataset=self._variant_tensor, other_arguments=f.captured, force_synchronous=bool(synchronous), **attrs)
        else:
            variant = raw_ops.ParallelMapDatasetV2(
                input_dataset=self._variant_tensor, other_arguments=f.captured,
                num_parallel_calls=_int64(num_parallel_calls), deterministic=_order(deterministic), **attrs)
        return self._calling(variant, f)

    def _calling(self, variant, *functions):
        made = self._like(variant, functions[0].element_spec)
        made._traced = functions
        return made

    def flat_map(self, map_func, name=None):
        """Applies `map_func`, which returns a dataset, to each element and concatenates the results."""
        f, inner = self._trace_dataset(map_func, "Dataset_flat_map")
        made = self._like(None, inner.element_spec)
        made._variant_tensor = raw_ops.FlatMapDataset(input_dataset=self._variant_tensor, other_arguments=f.captured, f=f.attr, **made._attrs)
        return made

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
        """Like flat_map, taking `block_length` elements at a time from `cycle_length` datasets in turn."""
        block_length = 1 if block_length is None else block_length
        cycle_length = AUTOTUNE if cycle_length is None else cycle_length
        f, inner = self._trace_dataset(map_func, "Dataset_interleave")
        cycle = 2 if _is(cycle_length, AUTOTUNE) else cycle_length
        arguments = {"input_dataset": self._variant_tensor, "other_arguments": f.captured,
                     "cycle_length": _int64(cycle), "block_length": _int64(block_length), "f": f.attr}
        made = self._like(None, inner.element_spec)
        if num_parallel_calls is None:
            made._variant_tensor = raw_ops.InterleaveDataset(**arguments, **made._attrs)
        elif deterministic is None:
            made._variant_tensor = raw_ops.ParallelInterleaveDatasetV2(**arguments, num_parallel_calls=_int64(num_parallel_calls), **made._attrs)
        else:
            made._variant_tensor = raw_ops.ParallelInterleaveDatasetV4(
                **arguments, buffer_output_elements=_int64(AUTOTUNE), prefetch_input_elements=_int64(AUTOTUNE),
                num_parallel_calls=_int64(num_parallel_calls), deterministic=_order(deterministic), **made._attrs)
        return made

    def _trace_dataset(self, map_func, stem):
        """Traces a function that returns a dataset. Returns it, and a dataset of that structure."""
        made, map_func = [], traceable(map_func)

        def fn(*element):
            dataset = map_func(*element)
            if not isinstance(dataset, Dataset):
                raise TypeError("The `map_func` argument must return a `Dataset` object. Got %r." % type(dataset))
            made.append(dataset)
            return dataset
        return self._trace(fn, stem), made[-1]

    def filter(self, predicate, name=None):  # noqa: A003
        """Keeps the elements for which `predicate` is true."""
        f = self._trace(predicate, "Dataset_filter")
        if not structure.are_compatible(f.element_spec, TensorSpec([], dtypes.bool)):
            raise ValueError("Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is %s." % (
                f.element_spec,))
        return self._like(raw_ops.FilterDataset(input_dataset=self._variant_tensor, other_arguments=f.captured, predicate=f.attr,
                                                **self._attrs))

    filter_with_legacy_function = filter

    def reduce(self, initial_state, reduce_func, name=None):
        """Computes state = reduce_func(state, element) over all elements. Returns the last state."""
        from runnel.data import state_functions
        return state_functions.reduce(self, initial_state, reduce_func)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """Stacks `batch_size` elements at a time; the last batch may be smaller."""
        size, remainder = _int64(batch_size, name="batch_size"), _bool(drop_remainder, name="drop_remainder")
        known = constant_value(size) if _is(constant_value(remainder), True) else None
        made = self._like(None, structure.batched(self.element_spec, None if known is None else int(known)))
        if num_parallel_calls is None:
            made._variant_tensor = raw_ops.BatchDatasetV2(input_dataset=self._variant_tensor, batch_size=size, drop_remainder=remainder,
                                                          **made._attrs)
        else:
            made._variant_tensor = raw_ops.ParallelBatchDataset(
                input_dataset=self._variant_tensor, batch_size=size, num_parallel_calls=_int64(num_parallel_calls), drop_remainder=remainder,
                deterministic=_order(deterministic), **made._attrs)
        return made

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Like batch, with elements padded to `padded_shapes` or to the largest of the batch."""
        from runnel.data import padding
        return padding.padded_batch(self, batch_size, padded_shapes, padding_values, drop_remainder)

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype=dtypes.int64, name=None):
        """Like batch, with elements of different sizes stacked into ragged tensors."""
        from runnel.data import padding
        return padding.ragged_batch(self, batch_size, drop_remainder, row_splits_dtype)

    def unbatch(self, name=None):
        """Splits elements into their rows."""
        from runnel.data import padding
        return padding.unbatch(self)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Returns a dataset of datasets of `size` elements, which begin `shift` elements apart."""
        spec = nest.map_structure(DatasetSpec, self.element_spec)
        count = len(nest.flatten(spec))
        return self._like(raw_ops.WindowDataset(
            input_dataset=self._variant_tensor, size=_int64(size),
            shift=_int64(size if shift is None else shift), stride=_int64(stride), drop_remainder=_bool(drop_remainder),
            output_types=[dtypes.variant] * count, output_shapes=[tensor_shape.TensorShape([])] * count), spec)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None, name=None):
        """Shuffles elements: each is drawn from a buffer of the next `buffer_size`."""
        one, two = seeds(seed)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._like(raw_ops.ShuffleDataset(
            input_dataset=self._variant_tensor, buffer_size=_int64(buffer_size, name="buffer_size"),
            seed=_int64(one, name="seed"), seed2=_int64(two, name="seed2"),
            reshuffle_each_iteration=again, **self._attrs))

    def _counted(self, op, count):
        count = -1 if count is None else count
        return self._like(op(input_dataset=self._variant_tensor, count=_int64(count, name="count"), **self._attrs))

    def repeat(self, count=None, name=None):
        """Repeats the dataset `count` times, by default forever."""
        return self._counted(raw_ops.RepeatDataset, count)

    def take(self, count, name=None):
        """Keeps the first `count` elements."""
        return self._counted(raw_ops.TakeDataset, count)

    def skip(self, count, name=None):
        """Drops the first `count` elements."""
        return self._counted(raw_ops.SkipDataset, count)

    def shard(self, num_shards, index, name=None):
        """Keeps every num_shards-th element, starting with element `index`."""
        return self._like(raw_ops.ShardDataset(
            input_dataset=self._variant_tensor, num_shards=_int64(num_shards), index=_int64(index), **self._attrs))

    def prefetch(self, buffer_size, name=None):
        """Computes elements ahead of time."""
        size = AUTOTUNE if buffer_size is None else buffer_size
        return self._like(raw_ops.PrefetchDataset(
            input_dataset=self._variant_tensor, buffer_size=_int64(size, name="buffer_size"), **self._attrs))

    def cache(self, filename="", name=None):
        """Keeps the elements in memory, or in a file, after the first pass."""
        return self._like(raw_ops.CacheDataset(
            input_dataset=self._variant_tensor,
            filename=convert_to_tensor(filename, dtypes.string, name="filename"), **self._attrs))

    def concatenate(self, dataset, name=None):
        """Appends the elements of another dataset."""
        try:
            spec = structure.common(self.element_spec, dataset.element_spec)
        except (TypeError, ValueError):
            raise TypeError("Incompatible dataset elements:\n  %s vs.   %s" % (self.element_spec, dataset.element_spec)) from None
        made = Dataset(None, spec, [self, dataset])
        made._variant_tensor = raw_ops.ConcatenateDataset(input_dataset=self._variant_tensor, another_dataset=dataset._variant_tensor,
                                                          **made._attrs)
        return made

    def enumerate(self, start=0, name=None):
        """Returns a dataset of (number, element)."""
        import sys
        return Dataset.zip((Dataset.range(start, sys.maxsize), self))

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Regroups the rows of batches into batches of `batch_size`, or of sizes taken in turn from a list of them."""
        from runnel.data import padding
        return padding.rebatch(self, batch_size, drop_remainder)

    def apply(self, transformation_func):
        """Returns the result of a function of the dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, _Recognized):
            raise TypeError("`transformation_func` must return a `tf.data.Dataset` object. Got %r." % type(dataset))
        return dataset

    # Size

    def cardinality(self, name=None):
        """Returns the number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return raw_ops.DatasetCardinality(input_dataset=self._variant_tensor, name=name)

    def __len__(self):
        if not executing_eagerly():
            raise TypeError("`tf.data.Dataset` only supports `len` in eager mode. Use `tf.data.Dataset.cardinality()` instead.")
        count = int(self.cardinality())
        if count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self):
        return True

    __nonzero__ = __bool__

    # Iterators

    def make_one_shot_iterator(self):
        """Returns an iterator that needs no initialization and goes through the dataset once."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name=None):
        """Returns an iterator that `initializer` starts, or restarts, each time it runs."""
        return make_initializable_iterator(self, shared_name)

    _make_one_shot_iterator, _make_initializable_iterator = make_one_shot_iterator, make_initializable_iterator

    def as_numpy_iterator(self):
        """Returns an iterator over the elements, with arrays for tensors."""
        if not executing_eagerly():
            raise RuntimeError("`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.")
        from runnel.data.owned_iterator import NumpyIterator
        return NumpyIterator.over(self)

    def get_single_element(self, name=None):
        """Returns the only element of the dataset."""
        flat = raw_ops.DatasetToSingleElement(dataset=self._variant_tensor, **self._attrs)
        return self._pack(list(flat))

    def __iter__(self):
        from runnel.core.framework import get_default_graph
        if not executing_eagerly() and not get_default_graph()._building_function:
            raise RuntimeError("`tf.data.Dataset` only supports Python-style iteration in eager mode or within tf.function.")
        from runnel.data.owned_iterator import OwnedIterator
        return OwnedIterator(self)


DatasetV1 = DatasetV2 = DatasetV1Adapter = Dataset


def _naming(method, kind):
    """Returns a method of Dataset whose results are shown as a `kind`."""
    @functools.wraps(method)
    def call(*args, **kwargs):
        made = method(*args, **kwargs)
        if isinstance(made, Dataset):
            made._kind = kind
        return made
    return call


for _item in """batch:Batch map:Map flat_map:FlatMap filter:Filter repeat:Repeat take:Take skip:Skip shuffle:Shuffle cache:Cache
prefetch:Prefetch concatenate:Concatenate interleave:Interleave window:Window unbatch:Unbatch padded_batch:PaddedBatch shard:Shard
with_options:Options""".split():
    _method, _, _name = _item.partition(":")
    setattr(Dataset, _method, _naming(getattr(Dataset, _method), "_%sDataset" % _name))
for _item in "from_tensors:Tensor from_tensor_slices:TensorSlice range:Range zip:Zip".split():
    _method, _, _name = _item.partition(":")
    setattr(Dataset, _method, staticmethod(_naming(getattr(Dataset, _method), "_%sDataset" % _name)))


class UnaryDataset(Dataset):
    """The base of datasets of one other dataset."""

    def __init__(self, input_dataset, variant_tensor):
        self._input_dataset = input_dataset
        super().__init__(variant_tensor, None, [input_dataset])


class UnaryUnchangedStructureDataset(UnaryDataset):
    """The base of datasets whose elements have the structure of those of another dataset."""

    @property
    def element_spec(self):
        """The structure of an element, of TypeSpecs."""
        return self._input_dataset.element_spec


class DatasetSource(Dataset):
    """The base of datasets that read no other dataset."""


class _VariantDataset(Dataset):
    """The dataset of a variant tensor."""


class _NestedVariant(CompositeTensor):
    """Several datasets of one structure, in a tensor of variants."""

    def __init__(self, variant_tensor, element_spec, dataset_shape):
        self._variant_tensor, self._element_spec, self._dataset_shape = variant_tensor, element_spec, dataset_shape

    @classmethod
    def of(cls, datasets):
        """Returns the datasets of a list."""
        spec = functools.reduce(structure.common, [one.element_spec for one in datasets])
        return cls(array_ops.stack([one._variant_tensor for one in datasets]), spec, tensor_shape.TensorShape([len(datasets)]))

    @property
    def _type_spec(self):
        return DatasetSpec(self._element_spec, self._dataset_shape)


@register("tf.data.DatasetSpec")
class DatasetSpec(TypeSpec):
    """The TypeSpec of a dataset."""

    def __init__(self, element_spec, dataset_shape=()):
        self._element_spec, self._dataset_shape = element_spec, tensor_shape.as_shape(dataset_shape)

    value_type = property(lambda self: Dataset)
    element_spec = property(lambda self: self._element_spec)

    @staticmethod
    def from_value(value):
        """Returns the description of a dataset."""
        return DatasetSpec(value.element_spec)

    def _serialize(self):
        return self._element_spec, self._dataset_shape

    @property
    def _component_specs(self):
        return TensorSpec(self._dataset_shape, dtypes.variant)

    def _to_components(self, value):
        return value._variant_tensor

    def _from_components(self, components):
        if self._dataset_shape.rank == 0:
            return _VariantDataset(components, self._element_spec)
        return _NestedVariant(components, self._element_spec, self._dataset_shape)

    def _batch(self, size):
        return DatasetSpec(self._element_spec, tensor_shape.TensorShape([size]).concatenate(self._dataset_shape))

    def _unbatch(self):
        if self._dataset_shape.rank == 0:
            raise ValueError("Slicing dataset elements is not supported for rank 0.")
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])

    _to_legacy_output_types = _to_legacy_output_shapes = _to_legacy_output_classes = lambda self: self  # noqa: E731


def _as_tensor(dataset, dtype=None, name=None, as_ref=False):
    return dataset._variant_tensor


register_tensor_conversion_function(Dataset, _as_tensor)


def _returned(result, specs, stem):
    """Returns the tensors of what a function of a pipeline returned, and adds its TypeSpecs to `specs`."""
    if isinstance(result, list):
        result = tuple(result)
    try:
        element = structure.normalize_element(result)
        specs.append(structure.type_spec_from_value(element))
    except (TypeError, ValueError) as error:
        raise TypeError("Unsupported return value from function passed to %s: %s. (%s)" % (
            stem.replace("Dataset_", "Dataset.") + "()", result, error)) from error
    return structure.to_tensor_list(specs[-1], element)


def seeds(seed):
    """Returns the two seeds of a random dataset; both 0 mean a seed from the clock."""
    from runnel.ops.random_ops import get_seed
    one, two = get_seed(seed)
    one, two = 0 if one is None else one, 0 if two is None else two
    if seed is not None and not isinstance(one, Tensor) and not isinstance(two, Tensor) and one == 0 and two == 0:
        two = 2 ** 31 - 1
    return one, two


def _is(value, wanted):
    """Tells whether a value is a certain number; a tensor is none."""
    return value is not None and not isinstance(value, Tensor) and value == wanted


def _joined(pattern):
    return raw_ops.ReduceJoin(inputs=array_ops.reshape(pattern, [-1]), reduction_indices=0, separator=", ")
