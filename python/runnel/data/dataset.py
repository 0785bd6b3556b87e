"""Dataset: input pipelines (tf.data)."""

import itertools
import os

from runnel import dtypes, nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor, executing_eagerly, get_default_graph
from runnel.core.type_spec import TensorSpec
from runnel.core.v2_switches import v2_behavior_enabled
from runnel.data.iterators import _flat_shapes, make_initializable_iterator, make_one_shot_iterator
from runnel.data.methods import ExperimentalMethods
from runnel.data.options import Options
from runnel.eager.tracing import trace
from runnel.ops import array_ops, math_ops

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def _int64(value, name=None):
    return convert_to_tensor(value, dtypes.int64, name=name)


# Libraries recognize datasets by this class's name and module, without importing TensorFlow.
_Recognized = type("DatasetV2", (), {"__module__": "tensorflow.python.data.ops.dataset_ops", "__doc__": "The base of datasets."})


class Dataset(_Recognized, ExperimentalMethods):  # type: ignore[misc, valid-type]
    """A sequence of elements, each a nested structure of tensors.

    from_tensors, from_tensor_slices, from_generator, range and the file datasets create datasets; the other methods
    transform them. Iterators return the elements.
    """

    _options = None  # those of with_options

    def __init__(self, variant, structure, types, shapes):
        self._variant_tensor = variant
        self._structure = structure  # the structure of an element; its leaves do not matter
        self._types = [dtypes.as_dtype(t) for t in types]
        self._shapes = [tensor_shape.as_shape(s) for s in shapes]

    # The structure of elements

    def _pack(self, flat):
        return nest.pack_sequence_as(self._structure, flat)

    @property
    def output_types(self):
        """The types of an element, in its structure."""
        return self._pack(self._types)

    @property
    def output_shapes(self):
        """The shapes of an element, in its structure."""
        return self._pack(self._shapes)

    @property
    def output_classes(self):
        return self._pack([Tensor] * len(self._types))

    @property
    def _attrs(self):
        return {"output_types": self._types, "output_shapes": self._shapes}

    def _as_variant_tensor(self):
        return self._variant_tensor

    def _like(self, variant, shapes=None):
        made = Dataset(variant, self._structure, self._types, self._shapes if shapes is None else shapes)
        made._options = self._options
        return made

    def __repr__(self):
        return "<Dataset shapes: %s, types: %s>" % (self.output_shapes, self.output_types)

    # Sources

    @staticmethod
    def from_tensors(tensors):
        """Creates a dataset of one element."""
        flat = [convert_to_tensor(x) for x in nest.flatten(_no_lists(tensors))]
        shapes = [x.shape for x in flat]
        variant = raw_ops.TensorDataset(components=flat, output_shapes=shapes)
        return Dataset(variant, _no_lists(tensors), [x.dtype for x in flat], shapes)

    @staticmethod
    def from_tensor_slices(tensors):
        """Creates a dataset of the rows of tensors, which may be ragged."""
        given = nest.flatten(_no_lists(tensors))
        if any(hasattr(x, "ragged_rank") for x in given):
            return _ragged_rows(_no_lists(tensors), given)
        flat = [convert_to_tensor(x) for x in given]
        for x in flat:
            if x.shape.ndims == 0:
                raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        counts = {x.shape.as_list()[0] for x in flat if x.shape.dims is not None} - {None}
        if len(counts) > 1:
            raise ValueError("Dimensions %s are not compatible" % " and ".join(
                str(c) for c in sorted(counts)))
        shapes = [x.shape[1:] for x in flat]
        variant = raw_ops.TensorSliceDataset(components=flat, output_shapes=shapes)
        return Dataset(variant, _no_lists(tensors), [x.dtype for x in flat], shapes)

    @staticmethod
    def range(*args):
        """Creates a dataset of the numbers of Python's range."""
        if not 1 <= len(args) <= 3:
            raise ValueError("Invalid `args`. The length of `args` should be between 1 and 3 but was "
                             "%d." % len(args))
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        variant = raw_ops.RangeDataset(start=_int64(start), stop=_int64(stop), step=_int64(step),
                                       output_types=[dtypes.int64],
                                       output_shapes=[tensor_shape.TensorShape([])])
        return Dataset(variant, None, [dtypes.int64], [[]])

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """Combines the elements of several datasets, in their structure; several arguments are a tuple."""
        datasets = datasets if datasets is not None else args[0] if len(args) == 1 else args
        flat = nest.flatten(datasets)
        types = [t for d in flat for t in d._types]
        shapes = [s for d in flat for s in d._shapes]
        variant = raw_ops.ZipDataset(input_datasets=[d._variant_tensor for d in flat],
                                     output_types=types, output_shapes=shapes)
        return Dataset(variant, nest.map_structure(lambda d: d._structure, datasets), types, shapes)

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None):
        """Creates a dataset of the names of files that match patterns, shuffled by default."""
        pattern = convert_to_tensor(file_pattern, dtypes.string, name="file_pattern")
        names = raw_ops.MatchingFiles(pattern=pattern)
        dataset = Dataset.from_tensor_slices(names)
        if shuffle is None or shuffle:
            count = raw_ops.Maximum(x=_int64(array_ops.size(names, out_type=dtypes.int64)), y=_int64(1))
            dataset = dataset.shuffle(count, seed=seed)
        return dataset

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """Creates a dataset of what a Python generator yields; each iterator calls `generator(*args)`.

        `output_signature`, a structure of TensorSpecs, says what an element is; so do `output_types` and `output_shapes`.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        if output_signature is not None:
            if output_types is not None or output_shapes is not None:
                raise TypeError("The `output_types` and `output_shapes` arguments can not be used together with the `output_signature` argument.")
            if any(not hasattr(spec, "_is_type_spec") for spec in nest.flatten(output_signature)):
                raise TypeError("`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found %s which is not." % (
                    next(type(s) for s in nest.flatten(output_signature) if not hasattr(s, "_is_type_spec")),))
            output_types = nest.map_structure(lambda spec: spec.dtype, output_signature)
            output_shapes = nest.map_structure(lambda spec: spec.shape, output_signature)
        if output_types is None:
            raise TypeError("Either `output_signature` or `output_types` must be specified.")
        if output_shapes is None:
            output_shapes = nest.map_structure(lambda _: tensor_shape.TensorShape(None), output_types)
        return _from_generator(generator, output_types, output_shapes, args or ())

    # Transformations

    def map(self, map_func, num_parallel_calls=None, deterministic=None):  # noqa: A003
        """Applies `map_func` to each element."""
        f = self._trace(map_func, "Dataset_map")
        attrs = {"f": f.attr, "output_types": f.dtypes, "output_shapes": f.shapes, "preserve_cardinality": v2_behavior_enabled()}
        if num_parallel_calls is None:
            variant = raw_ops.MapDataset(input_dataset=self._variant_tensor,
                                         other_arguments=f.captured, **attrs)
        else:
            variant = raw_ops.ParallelMapDatasetV2(
                input_dataset=self._variant_tensor, other_arguments=f.captured,
                num_parallel_calls=_int64(num_parallel_calls), **attrs)
        return Dataset(variant, f.structure, f.dtypes, f.shapes)

    def _trace(self, fn, stem, before=()):
        """Traces `fn`, a function of an element, as a library function of the element's components."""
        specs = list(before) + list(zip(self._types, self._shapes))
        fn = traceable(fn)

        def flat_fn(*flat):
            head, rest = flat[:len(before)], flat[len(before):]
            element = self._pack(list(rest))
            arguments = tuple(element) if isinstance(element, tuple) and not hasattr(
                element, "_fields") else (element,)
            return _no_lists(fn(*head, *arguments))
        return trace(flat_fn, specs, stem, in_order=True)

    def flat_map(self, map_func):
        """Applies `map_func`, which returns a dataset, to each element and concatenates the results."""
        f, inner = self._trace_dataset(map_func, "Dataset_flat_map")
        variant = raw_ops.FlatMapDataset(input_dataset=self._variant_tensor,
                                         other_arguments=f.captured, f=f.attr, **inner._attrs)
        return inner._like(variant)

    def interleave(self, map_func, cycle_length=AUTOTUNE, block_length=1, num_parallel_calls=None,
                   deterministic=None):
        """Like flat_map, taking `block_length` elements at a time from `cycle_length` datasets in turn."""
        f, inner = self._trace_dataset(map_func, "Dataset_interleave")
        cycle = 2 if cycle_length == AUTOTUNE else cycle_length
        arguments = {"input_dataset": self._variant_tensor, "other_arguments": f.captured,
                     "cycle_length": _int64(cycle), "block_length": _int64(block_length), "f": f.attr}
        if num_parallel_calls is None:
            variant = raw_ops.InterleaveDataset(**arguments, **inner._attrs)
        else:
            variant = raw_ops.ParallelInterleaveDatasetV2(
                **arguments, num_parallel_calls=_int64(num_parallel_calls), **inner._attrs)
        return inner._like(variant)

    def _trace_dataset(self, map_func, stem):
        made, map_func = [], traceable(map_func)

        def fn(*element):
            dataset = map_func(*element)
            if not isinstance(dataset, Dataset):
                raise TypeError("`map_func` must return a `Dataset` object. Got %s" % type(dataset))
            made.append(dataset)
            return dataset._variant_tensor
        return self._trace(fn, stem), made[0]

    def filter(self, predicate):  # noqa: A003
        """Keeps the elements for which `predicate` is true."""
        f = self._trace(predicate, "Dataset_filter")
        if len(f.dtypes) != 1 or f.dtypes[0] != dtypes.bool:
            raise ValueError("`predicate` must return a scalar boolean tensor.")
        return self._like(raw_ops.FilterDataset(input_dataset=self._variant_tensor,
                                                other_arguments=f.captured, predicate=f.attr,
                                                **self._attrs))

    filter_with_legacy_function = filter

    def reduce(self, initial_state, reduce_func):
        """Computes state = reduce_func(state, element) over all elements. Returns the last state."""
        state = nest.map_structure(convert_to_tensor, _no_lists(initial_state))
        flat = nest.flatten(state)
        reduce_func = traceable(reduce_func)

        def fn(*parts):
            before = nest.pack_sequence_as(state, list(parts[:len(flat)]))
            return reduce_func(before, self._pack(list(parts[len(flat):])))
        f = trace(fn, [(x.dtype, x.shape) for x in flat] + list(zip(self._types, self._shapes)),
                  "Dataset_reduce", in_order=True)
        results = raw_ops.ReduceDataset(input_dataset=self._variant_tensor, initial_state=flat,
                                        other_arguments=f.captured, f=f.attr, output_types=f.dtypes,
                                        output_shapes=f.shapes)
        return nest.pack_sequence_as(state, list(results))

    def batch(self, batch_size, drop_remainder=False, **_):
        """Stacks `batch_size` elements at a time; the last batch may be smaller."""
        from runnel.core.convert import constant_value
        size = _int64(batch_size, name="batch_size")
        known = constant_value(size) if drop_remainder is True else None
        first = None if known is None else int(known)
        shapes = [tensor_shape.TensorShape([first]).concatenate(s) for s in self._shapes]
        variant = raw_ops.BatchDatasetV2(
            input_dataset=self._variant_tensor, batch_size=size,
            drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool, name="drop_remainder"),
            output_types=self._types, output_shapes=shapes)
        return self._like(variant, shapes)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False):
        """Like batch, with elements padded to `padded_shapes` or to the largest of the batch."""
        if padded_shapes is None:
            shapes = self._shapes
        else:
            shapes = [_as_padded(s) for s in _flat_like(self._structure, padded_shapes)]
        values = (self._pack([None] * len(self._types)) if padding_values is None else padding_values)
        if padding_values is not None and not nest.is_nested(padding_values):
            values = self._pack([padding_values] * len(self._types))
        pads = [_padding_value(v, t) for v, t in zip(nest.flatten(values), self._types)]
        from runnel.core.convert import constant_value
        size = _int64(batch_size, name="batch_size")
        known = constant_value(size) if drop_remainder is True else None
        out = [tensor_shape.TensorShape([None if known is None else int(known)]).concatenate(
            s if isinstance(s, tensor_shape.TensorShape) else None) for s in shapes]
        variant = raw_ops.PaddedBatchDatasetV2(
            input_dataset=self._variant_tensor, batch_size=size,
            padded_shapes=[_shape_vector(s) for s in shapes], padding_values=pads,
            drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool), output_shapes=out)
        return self._like(variant, out)

    def unbatch(self):
        """Splits elements into their rows."""
        shapes = [s[1:] for s in self._shapes]
        return self._like(raw_ops.UnbatchDataset(input_dataset=self._variant_tensor,
                                                 output_types=self._types, output_shapes=shapes), shapes)

    def window(self, size, shift=None, stride=1, drop_remainder=False):
        """Returns a dataset of datasets of `size` elements, which begin `shift` elements apart."""
        variant = raw_ops.WindowDataset(
            input_dataset=self._variant_tensor, size=_int64(size),
            shift=_int64(size if shift is None else shift), stride=_int64(stride),
            drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool),
            output_types=[dtypes.variant] * len(self._types),
            output_shapes=[tensor_shape.TensorShape([])] * len(self._types))
        return _Windows(variant, self)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None):
        """Shuffles elements: each is drawn from a buffer of the next `buffer_size`."""
        from runnel.ops.random_ops import get_seed
        one, two = get_seed(seed)
        one, two = one or 0, two or 0
        if seed is not None and one == 0 and two == 0:
            two = 2 ** 31 - 1
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._like(raw_ops.ShuffleDataset(
            input_dataset=self._variant_tensor, buffer_size=_int64(buffer_size, name="buffer_size"),
            seed=_int64(one, name="seed"), seed2=_int64(two, name="seed2"),
            reshuffle_each_iteration=again, **self._attrs))

    def _counted(self, op, count):
        count = -1 if count is None else count
        return self._like(op(input_dataset=self._variant_tensor, count=_int64(count, name="count"),
                             **self._attrs))

    def repeat(self, count=None):
        """Repeats the dataset `count` times, by default forever."""
        return self._counted(raw_ops.RepeatDataset, count)

    def take(self, count):
        """Keeps the first `count` elements."""
        return self._counted(raw_ops.TakeDataset, count)

    def skip(self, count):
        """Drops the first `count` elements."""
        return self._counted(raw_ops.SkipDataset, count)

    def shard(self, num_shards, index):
        """Keeps every num_shards-th element, starting with element `index`."""
        return self._like(raw_ops.ShardDataset(
            input_dataset=self._variant_tensor, num_shards=_int64(num_shards), index=_int64(index),
            **self._attrs))

    def prefetch(self, buffer_size):
        """Computes elements ahead of time."""
        return self._like(raw_ops.PrefetchDataset(
            input_dataset=self._variant_tensor, buffer_size=_int64(buffer_size, name="buffer_size"),
            **self._attrs))

    def cache(self, filename=""):
        """Keeps the elements in memory, or in a file, after the first pass."""
        return self._like(raw_ops.CacheDataset(
            input_dataset=self._variant_tensor,
            filename=convert_to_tensor(filename, dtypes.string, name="filename"), **self._attrs))

    # Files, in stock's format

    @property
    def element_spec(self):
        """The structure of an element, of TensorSpecs."""
        return self._pack([TensorSpec(s, t) for s, t in zip(self._shapes, self._types)])

    def _sharding(self, shard_func):
        """Returns the function that maps an element to its shard; without `shard_func`, all go to the first."""
        return self._trace(shard_func or (lambda *_: convert_to_tensor(0, dtypes.int64)), "Dataset_shard_func")

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        """Writes all elements to a folder, for Dataset.load.

        `shard_func` maps an element to one of the folder's shards. In a graph, returns the operation that writes.
        """
        from runnel.saved_model import structured_value
        if checkpoint_args is not None:
            raise NotImplementedError("Dataset.save does not support checkpoint_args: it does not save its progress")
        path = os.fspath(path)
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, _SPEC_FILE), "wb") as file:
            file.write(structured_value.encode(self.element_spec).SerializeToString())
        f = self._sharding(shard_func)
        written = self._like(raw_ops.SaveDatasetV2(
            input_dataset=self._variant_tensor, path=convert_to_tensor(path, dtypes.string, name="path"), shard_func_other_args=f.captured,
            shard_func=f.attr, use_shard_func=shard_func is not None, compression=compression or "", **self._attrs))
        if not executing_eagerly():
            return written.reduce(convert_to_tensor(0, dtypes.int64), lambda count, *_: count + 1).op
        for _ in written:
            pass
        return None

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
        """Creates a dataset of the elements that `save` wrote. `reader_func` turns the dataset of shards into one dataset."""
        from runnel import errors
        from runnel.core.protobuf import message_class
        from runnel.saved_model import structured_value
        path = os.fspath(path)
        if element_spec is None:
            name = os.path.join(path, _SPEC_FILE)
            try:
                with open(name, "rb") as file:
                    element_spec = structured_value.decode(message_class("StructuredValue").FromString(file.read()))
            except FileNotFoundError:
                raise errors.NotFoundError(None, None, "tf.data snapshot element_spec file not found: %s." % name) from None
        specs = nest.flatten(element_spec)
        like = Dataset(None, element_spec, [s.dtype for s in specs], [s.shape for s in specs])
        f = _reading(reader_func, like)
        return like._like(raw_ops.LoadDataset(
            path=convert_to_tensor(path, dtypes.string, name="path"), reader_func_other_args=f.captured, reader_func=f.attr,
            compression=compression or "", **like._attrs))

    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None):
        """Writes the elements to files during the first full pass, and reads them from there afterwards."""
        reader, shard = _reading(reader_func, self), self._sharding(shard_func)
        return self._like(raw_ops.SnapshotDatasetV2(
            input_dataset=self._variant_tensor, path=convert_to_tensor(path, dtypes.string, name="path"),
            reader_func_other_args=reader.captured, shard_func_other_args=shard.captured, reader_func=reader.attr, shard_func=shard.attr,
            compression=compression or "", **self._attrs))

    def concatenate(self, dataset):
        """Appends the elements of another dataset."""
        if self._types != dataset._types:
            raise TypeError("Two datasets to concatenate have different types %s and %s" % (
                self.output_types, dataset.output_types))
        shapes = [a if a.is_compatible_with(b) and a.dims == b.dims else _common(a, b)
                  for a, b in zip(self._shapes, dataset._shapes)]
        return self._like(raw_ops.ConcatenateDataset(
            input_dataset=self._variant_tensor, another_dataset=dataset._variant_tensor,
            output_types=self._types, output_shapes=shapes), shapes)

    def enumerate(self, start=0):
        """Returns a dataset of (number, element)."""
        import sys
        return Dataset.zip((Dataset.range(start, sys.maxsize), self))

    def apply(self, transformation_func):
        """Returns the result of a function of the dataset."""
        return transformation_func(self)

    def with_options(self, options):
        """Returns the same dataset with options."""
        made = self._like(self._variant_tensor)
        made._options = self.options().merge(options)
        return made

    def options(self):
        """Returns the options of the dataset."""
        return self._options or Options()

    # Iterators

    def make_one_shot_iterator(self):
        """Returns an iterator that needs no initialization and goes through the dataset once."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name=None):
        """Returns an iterator that `initializer` starts, or restarts, each time it runs."""
        return make_initializable_iterator(self, shared_name)

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

    def as_numpy_iterator(self):
        """Returns an iterator over the elements, with arrays for tensors."""
        if not executing_eagerly():
            raise RuntimeError("`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.")
        return (nest.map_structure(_as_numpy, element) for element in self)

    def get_single_element(self, name=None):
        """Returns the only element of the dataset."""
        from runnel.data.experimental import get_single_element
        return get_single_element(self)

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Regroups the rows of batches into batches of `batch_size`, or of sizes taken in turn from a list of them."""
        sizes = _int64(batch_size, name="batch_sizes")
        if sizes._rank() == 0:
            return self.unbatch().batch(batch_size, drop_remainder)
        shapes = [tensor_shape.TensorShape([None]).concatenate(s[1:]) for s in self._shapes]
        return self._like(raw_ops.RebatchDatasetV2(
            input_dataset=self._variant_tensor, batch_sizes=sizes, drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool),
            output_types=self._types, output_shapes=shapes), shapes)

    def __iter__(self):
        if not executing_eagerly():
            raise RuntimeError("dataset.__iter__() is only supported when eager execution is enabled.")
        from runnel.data.owned_iterator import OwnedIterator
        return OwnedIterator(self)


DatasetV1 = DatasetV2 = Dataset
_SPEC_FILE = "dataset_spec.pb"


class _Shards(Dataset):
    """A dataset whose elements are datasets of one kind."""

    def __init__(self, variant, like):
        super().__init__(variant, 0, [dtypes.variant], [[]])
        self._inner = like

    def _pack(self, flat):
        return self._inner._like(flat[0]) if isinstance(flat[0], Tensor) else flat[0]

    def _like(self, variant, shapes=None):
        return _Shards(variant, self._inner)


def _reading(reader_func, like):
    """Returns the function from a dataset of shards to a dataset; by default it interleaves the shards."""
    read = reader_func or (lambda shards: shards.interleave(lambda shard: shard))
    return trace(lambda variant: read(_Shards(variant, like))._variant_tensor, [(dtypes.variant, tensor_shape.TensorShape([]))],
                 "Dataset_reader_func")


class _Windows(Dataset):
    """A dataset whose elements are datasets."""

    def __init__(self, variant, inner):
        super().__init__(variant, inner._structure, [dtypes.variant] * len(inner._types),
                         [[]] * len(inner._types))
        self._inner = inner

    def _pack(self, flat):
        like = self._inner
        parts = []
        for x, t, s in zip(flat, like._types, like._shapes):
            parts.append(Dataset(x, None, [t], [s]) if isinstance(x, Tensor) else x)
        return nest.pack_sequence_as(like._structure, parts)


def _ragged_rows(structure, given):
    """Creates a dataset of the rows of tensors, some of them ragged, by mapping each row number to the rows."""
    from runnel.ragged.ragged_tensor import as_ragged_or_tensor
    parts = [as_ragged_or_tensor(x) for x in given]
    if any(getattr(x, "ragged_rank", 1) > 1 for x in parts):
        raise NotImplementedError("Datasets of ragged tensors with more than one ragged dimension are not supported")
    first = parts[0]
    rows = first.nrows() if hasattr(first, "ragged_rank") else raw_ops.Shape(first, out_type=dtypes.int64)[0]
    return Dataset.range(rows).map(lambda i: nest.pack_sequence_as(structure, [x[i] for x in parts]))


def _as_numpy(value):
    """Returns the array of a tensor, read-only; composite tensors become values of arrays."""
    from runnel.core.composite import SparseTensor, SparseTensorValue
    if isinstance(value, SparseTensor):
        return SparseTensorValue(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
    if hasattr(value, "ragged_rank"):
        return value.numpy()
    if isinstance(value, Dataset):
        return value.as_numpy_iterator()
    return value.numpy()


def _no_lists(structure):
    """Converts lists to values; tuples are structure."""
    if isinstance(structure, list):
        return convert_to_tensor(structure)
    if isinstance(structure, dict):
        return type(structure)((key, _no_lists(value)) for key, value in structure.items())
    if isinstance(structure, tuple):
        parts = [_no_lists(x) for x in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, Dataset):
        return structure._variant_tensor
    return structure


def _flat_like(structure, shapes):
    if not nest.is_nested(structure):
        return [shapes]
    return nest.flatten_up_to(structure, shapes)


def _as_padded(shape):
    """Returns a TensorShape, or the tensor itself."""
    return shape if isinstance(shape, Tensor) else tensor_shape.as_shape(shape)


def _shape_vector(shape):
    if isinstance(shape, Tensor):
        return math_ops.cast(shape, dtypes.int64)
    return _int64([-1 if d is None else d for d in shape.as_list()])


def _padding_value(value, dtype):
    if value is None:
        value = b"" if dtype == dtypes.string else 0
    return convert_to_tensor(value, dtype)


def _common(a, b):
    """Returns the most specific shape that covers both."""
    if a.ndims is None or a.ndims != b.ndims:
        return tensor_shape.TensorShape(None)
    return tensor_shape.TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list())])


# Files


# Generators: states of Python generators by number, advanced by py_func.

_generator_numbers = itertools.count()


def _from_generator(generator, output_types, output_shapes, args):
    from runnel.ops.script_ops import py_func
    types = [dtypes.as_dtype(t) for t in nest.flatten(output_types)]
    shapes = _flat_shapes(output_types, output_shapes)
    states = {}
    args = [convert_to_tensor(x) for x in args]

    def start(*values):
        import numpy
        number = next(_generator_numbers)
        states[number] = iter(generator(*values))
        return numpy.int64(number)

    def advance(number):
        values = next(states[int(number)])  # StopIteration ends the dataset
        return _generated(values, output_types, types, shapes)

    def finish(number):
        import numpy
        states.pop(int(number), None)
        return numpy.int64(0)

    init = trace(lambda *values: py_func(start, list(values), dtypes.int64),
                 [(x.dtype, x.shape) for x in args], "generator_init")

    def next_fn(number):
        values = py_func(advance, [number], types)
        for value, shape in zip(values, shapes):
            value.set_shape(shape)
        return tuple(values)
    following = trace(next_fn, [(dtypes.int64, tensor_shape.TensorShape([]))], "generator_next")
    end = trace(lambda number: py_func(finish, [number], dtypes.int64),
                [(dtypes.int64, tensor_shape.TensorShape([]))], "generator_finalize")
    graph = get_default_graph()
    if graph is not None:
        graph._scopes.setdefault(__name__, []).append(states)
    variant = raw_ops.GeneratorDataset(
        init_func_other_args=args + init.captured, next_func_other_args=following.captured,
        finalize_func_other_args=end.captured, init_func=init.attr, next_func=following.attr,
        finalize_func=end.attr, output_types=types, output_shapes=shapes)
    return Dataset(variant, output_types, types, shapes)


def _generated(values, output_types, types, shapes):
    import numpy
    try:
        flat = nest.flatten_up_to(output_types, values) if nest.is_nested(output_types) else [values]
    except (TypeError, ValueError):
        raise TypeError("`generator` yielded an element that did not match the expected structure. "
                        "The expected structure was %s, but the yielded element was %s." % (
                            output_types, values)) from None
    arrays = []
    for value, kind, shape in zip(flat, types, shapes):
        if kind == dtypes.string:
            array = numpy.asarray(value, dtype=object)
        else:
            try:
                array = numpy.asarray(value, dtype=kind.as_numpy_dtype)
            except (TypeError, ValueError):
                raise TypeError("`generator` yielded an element that could not be converted to the "
                                "expected type. The expected type was %s, but the yielded element was "
                                "%s." % (kind.name, value)) from None
        if not shape.is_compatible_with(array.shape):
            raise ValueError("`generator` yielded an element of shape %s where an element of shape %s "
                             "was expected." % (array.shape, shape))
        arrays.append(array)
    return arrays


# Iterators
