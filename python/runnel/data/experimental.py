"""tf.data.experimental: more transformations of datasets, for Dataset.apply."""

import functools
import inspect

from runnel import dtypes, nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import tensor_shape
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.composite_specs import SparseTensorSpec
from runnel.core.type_spec import TensorSpec
from runnel.data import state_functions, structure
from runnel.data.choices import choose_from_datasets, sample_from_datasets  # noqa: F401
from runnel.data.dataset import (  # noqa: F401
    AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, _bool, _int64, _returned, _VariantDataset, seeds)
from runnel.data.optional import Optional  # noqa: F401
from runnel.data.options import (  # noqa: F401
    AutoShardPolicy, AutotuneAlgorithm, AutotuneOptions, DistributeOptions, ExternalStatePolicy, OptimizationOptions, ServiceOptions,
    ThreadingOptions)
from runnel.data.readers import (  # noqa: F401
    CsvDataset, SqlDataset, make_batched_features_dataset, make_csv_dataset, parse_example_dataset)
from runnel.data.tables import DatasetInitializer, index_table_from_dataset, table_from_dataset  # noqa: F401
from runnel.eager.tracing import trace

_SCALAR = tensor_shape.TensorShape([])
SHARD_HINT = -1


def Counter(start=0, step=1, dtype=dtypes.int64):  # noqa: N802
    """Creates a dataset that counts forever."""
    dtype = dtypes.as_dtype(dtype)
    start, step = convert_to_tensor(start, dtype), convert_to_tensor(step, dtype)
    return Dataset.from_tensors(0).repeat().apply(scan(start, lambda state, _: (state + step, state)))


def RandomDataset(seed=None, rerandomize_each_iteration=None):  # noqa: N802
    """Creates a dataset of random numbers, other ones in each iteration if `rerandomize_each_iteration`."""
    one, two = seeds(seed)
    given = {"seed": _int64(one), "seed2": _int64(two), "output_types": [dtypes.int64], "output_shapes": [_SCALAR]}
    variant = raw_ops.RandomDataset(**given) if rerandomize_each_iteration is None else raw_ops.RandomDatasetV2(
        seed_generator=raw_ops.DummySeedGenerator(), rerandomize_each_iteration=rerandomize_each_iteration, **given)
    return Dataset(variant, TensorSpec([], dtypes.int64))


def from_list(elements, name=None):
    """Creates a dataset of the elements of a list, which have one structure."""
    if not isinstance(elements, list):
        raise ValueError("Invalid `elements`. `elements` must be a list.")
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty.")
    rows = [structure.normalize_element(x) for x in elements]
    specs = [structure.type_spec_from_value(x) for x in rows]
    for x in rows[1:]:
        nest.assert_same_structure(rows[0], x)
    if any([type(a) is type(b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0) for a, b in zip(nest.flatten(specs[0]), nest.flatten(x))].count(False)
           for x in specs):
        raise TypeError("The elements of the list have different types: %s" % (specs,))
    made = Dataset(None, functools.reduce(structure.common, specs))
    made._variant_tensor = raw_ops.ListDataset(tensors=[t for x in rows for t in structure.to_tensor_list(made.element_spec, x)], **made._attrs)
    return made


def at(dataset, index):
    """Returns the element of an index, for datasets that have random access."""
    return dataset._pack(list(raw_ops.GetElementAtIndex(dataset=dataset._variant_tensor, index=_int64(index), **dataset._attrs)))


class TFRecordWriter:
    """Writes the strings of a dataset to a TFRecord file."""

    def __init__(self, filename, compression_type=None):
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression_type = convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")

    def write(self, dataset):
        """Returns the operation that writes all elements; with eager execution, writes them."""
        if not isinstance(dataset, Dataset):
            raise TypeError("Invalid `dataset.` Expected a `tf.data.Dataset` object but got %s." % type(dataset))
        if dataset._types != [dtypes.string] or dataset._shapes[0].ndims not in (0, None):
            raise TypeError("Invalid `dataset`. `dataset` must produce scalar `DT_STRING` tensors whereas it produces shape %s and types %s" % (
                dataset.output_shapes, dataset.output_types))
        return raw_ops.DatasetToTFRecord(input_dataset=dataset._variant_tensor, filename=self._filename,
                                         compression_type=self._compression_type)


def cardinality(dataset):
    """Returns the number of elements as a tensor, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return raw_ops.DatasetCardinality(input_dataset=dataset._variant_tensor)


def assert_cardinality(expected_cardinality):
    """Checks that the dataset has exactly `expected_cardinality` elements."""
    return lambda dataset: dataset._like(raw_ops.AssertCardinalityDataset(
        input_dataset=dataset._variant_tensor, cardinality=_int64(expected_cardinality), **dataset._attrs))


def enumerate_dataset(start=0):
    """Returns a dataset of (number, element)."""
    return lambda dataset: dataset.enumerate(start)


def get_single_element(dataset):
    """Returns the only element of a dataset."""
    return dataset.get_single_element()


def get_next_as_optional(iterator):
    """Returns an Optional of the next element of an iterator."""
    return iterator.get_next_as_optional()


def make_saveable_from_iterator(iterator, external_state_policy=None):
    """Returns what tf.train.Saver needs to save the place of an iterator."""
    from runnel.train.saver import SaveableObject, SaveSpec
    resource = iterator._iterator_resource
    policy = external_state_policy or "warn"
    policy = policy.name.lower() if isinstance(policy, ExternalStatePolicy) else policy
    number = {"warn": 0, "ignore": 1, "fail": 2}.get(policy)
    if number is None:
        raise ValueError("Invalid `external_state_policy`. Supported values include 'warn', 'ignore', and 'fail'. Received %s." % policy)

    class IteratorSaveable(SaveableObject):
        def restore(self, restored_tensors, restored_shapes):
            return raw_ops.DeserializeIterator(resource_handle=resource, serialized=restored_tensors[0])
    state = raw_ops.SerializeIterator(resource_handle=resource, external_state_policy=number)
    name = resource.op.name if resource.op is not None else "iterator"
    return IteratorSaveable(resource, [SaveSpec(state, "", name + "-state")], name)


def TensorStructure(dtype, shape):  # noqa: N802
    """Returns the TypeSpec of a tensor."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype, shape):  # noqa: N802
    """Returns the TypeSpec of a sparse tensor."""
    return SparseTensorSpec(shape, dtype)


def get_structure(dataset_or_iterator):
    """Returns the structure of an element, of TensorSpecs."""
    return dataset_or_iterator.element_spec


def group_by_window(key_func, reduce_func, window_size=None, window_size_func=None):
    """Groups elements by key into windows, and applies `reduce_func(key, dataset)` to each window."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Either the `window_size` argument or the `window_size_func` argument must be specified.")

    def apply(dataset):
        made = []

        def reduce(key, variant):
            result = reduce_func(key, Dataset(variant, dataset.element_spec))
            if not isinstance(result, Dataset):
                raise TypeError("Invalid `reduce_func`. `reduce_func` must return a `tf.data.Dataset` object but its return type is %s." % type(result))
            made.append(result)
            return result._variant_tensor
        key = traceable(key_func)
        keys = dataset._trace(lambda *element: convert_to_tensor(key(*element), dtypes.int64), "Dataset_key_func")
        if not structure.are_compatible(keys.element_spec, TensorSpec([], dtypes.int64)):
            raise ValueError("Invalid `key_func`. `key_func` must return a single `tf.int64` scalar tensor but its return type is %s." % (
                keys.element_spec,))
        sizes = traceable(window_size_func) if window_size_func else (lambda _: convert_to_tensor(window_size, dtypes.int64))
        size = trace(lambda key: convert_to_tensor(sizes(key), dtypes.int64), [(dtypes.int64, _SCALAR)], "Dataset_window_size_func", in_order=True)
        if size.dtypes != [dtypes.int64] or size.shapes[0].rank not in (0, None):
            raise ValueError("Invalid `window_size_func`. `window_size_func` must return a single `tf.int64` scalar tensor.")
        windows = trace(reduce, [(dtypes.int64, _SCALAR), (dtypes.variant, _SCALAR)], "Dataset_reduce_func", in_order=True)
        grouped = dataset._like(None, made[-1].element_spec)
        grouped._variant_tensor = raw_ops.GroupByWindowDataset(
            input_dataset=dataset._variant_tensor, key_func_other_arguments=keys.captured, reduce_func_other_arguments=windows.captured,
            window_size_func_other_arguments=size.captured, key_func=keys.attr, reduce_func=windows.attr, window_size_func=size.attr,
            **grouped._attrs)
        return grouped
    return apply


def _to_boundary(shapes, bucket, boundaries):
    """Returns shapes whose unknown dimensions are the longest length of a bucket; the last bucket has none."""
    from runnel.core.framework import control_dependencies
    from runnel.ops import array_ops, control_flow
    check = control_flow.Assert(bucket < len(boundaries), [
        b"When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."])
    with control_dependencies([check]):
        longest = array_ops.gather(convert_to_tensor([x - 1 for x in boundaries], dtypes.int64), bucket)

    def one(shape):
        dims = tensor_shape.as_shape(shape).as_list()
        return array_ops.stack([longest if d is None else convert_to_tensor(d, dtypes.int64) for d in dims]) if dims else shape
    return nest.map_structure(one, shapes)


def bucket_by_sequence_length(element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None, padding_values=None,
                              pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False):
    """Batches elements of similar length."""
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)=%d` and "
                         "`len(bucket_boundaries)=%d`." % (len(bucket_batch_sizes), len(bucket_boundaries)))
    sizes = convert_to_tensor(bucket_batch_sizes, dtypes.int64)

    def key(*element):
        from runnel.ops import math_ops
        length = math_ops.cast(element_length_func(*element), dtypes.int32)
        return math_ops.reduce_sum(math_ops.cast(length >= convert_to_tensor(bucket_boundaries, dtypes.int32), dtypes.int64))

    def size(bucket):
        from runnel.ops.array_ops import gather
        return gather(sizes, bucket)

    def batch(bucket, grouped):
        if no_padding:
            return grouped.batch(size(bucket), drop_remainder=drop_remainder)
        shapes = nest.map_structure(lambda x: x, grouped.output_shapes) if padded_shapes is None else padded_shapes
        if pad_to_bucket_boundary:
            shapes = _to_boundary(shapes, bucket, bucket_boundaries)
        return grouped.padded_batch(size(bucket), shapes, padding_values, drop_remainder=drop_remainder)
    return group_by_window(key, batch, window_size_func=size)


class Reducer:
    """Three functions: the state of a new key, the state after an element, and the result of the last state."""

    def __init__(self, init_func, reduce_func, finalize_func):
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func, reducer):
    """Groups elements by key and reduces the elements of each group to one."""
    def apply(dataset):
        keys = dataset._trace(key_func, "Dataset_key_func")
        if not structure.are_compatible(keys.element_spec, TensorSpec([], dtypes.int64)):
            raise ValueError("Invalid `key_func`. Expected `key_func` to return a scalar tf.int64 tensor, but instead `key_func` has output "
                             "type %s." % (keys.element_spec,))
        specs, results = [], []
        first = trace(lambda key: _returned(reducer.init_func(key), specs, "init_func"), [(dtypes.int64, _SCALAR)], "Dataset_init_func",
                      in_order=True)
        step, state, _ = state_functions._traced(
            dataset, specs[-1], lambda state, element: (_called(reducer.reduce_func, state, element), None), "Dataset_reduce_func")
        flat = [(spec.dtype, spec.shape) for spec in structure.flat_specs(state)]

        def finalize(*parts):
            packed = structure.from_compatible_tensor_list(state, list(parts))
            result = reducer.finalize_func(*packed) if type(packed) is tuple else reducer.finalize_func(packed)
            return _returned(result, results, "finalize_func")
        last = trace(finalize, flat, "Dataset_finalize_func", in_order=True)
        made = dataset._like(None, results[-1])
        made._variant_tensor = raw_ops.GroupByReducerDataset(
            input_dataset=dataset._variant_tensor, key_func_other_arguments=keys.captured, init_func_other_arguments=first.captured,
            reduce_func_other_arguments=step.captured, finalize_func_other_arguments=last.captured, key_func=keys.attr,
            init_func=first.attr, reduce_func=step.attr, finalize_func=last.attr, **made._attrs)
        return made
    return apply


def _called(reduce_func, state, element):
    return reduce_func(state, *element) if type(element) is tuple and _takes_parts(reduce_func) else reduce_func(state, element)


def _takes_parts(function):
    """Tells whether a function of a state and an element takes the parts of the element as arguments of their own."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    return len(parameters) > 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def dense_to_sparse_batch(batch_size, row_shape):
    """Stacks elements of different sizes into sparse tensors of the shape [batch_size, *row_shape]."""
    def apply(dataset):
        if not isinstance(dataset.element_spec, TensorSpec):
            raise TypeError("`dense_to_sparse_batch` requires an input dataset whose elements have a single component, but the given dataset "
                            "has the following component types: %s." % (dataset.output_types,))
        row = tensor_shape.as_shape(row_shape)
        sizes = _int64([-1 if d is None else d for d in row.as_list()])
        made = dataset._like(None, SparseTensorSpec(tensor_shape.TensorShape([None]).concatenate(row), dataset.element_spec.dtype))
        made._variant_tensor = raw_ops.DenseToSparseBatchDataset(
            input_dataset=dataset._variant_tensor, batch_size=_int64(batch_size), row_shape=sizes, **made._attrs)
        return made
    return apply


def dense_to_ragged_batch(batch_size, drop_remainder=False, row_splits_dtype=dtypes.int64):
    """Stacks elements of different sizes into ragged tensors."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def pad_to_cardinality(cardinality, mask_key="valid"):
    """Adds empty elements up to a number of elements; the boolean `mask_key` of an element says whether it is a real one."""
    def apply(dataset):
        from runnel.core.framework import executing_eagerly
        from runnel.ops import array_ops
        known = int(dataset.cardinality()) if executing_eagerly() else 0
        if known < 0:
            raise ValueError("The dataset passed into `pad_to_cardinality` must have a known cardinalty, but has cardinality %d" % known)
        if known > cardinality:
            raise ValueError("The dataset passed into `pad_to_cardinality` must have a cardinalty less than the target cardinality "
                             "(%d), but has cardinality %d" % (cardinality, known))
        if not isinstance(dataset.element_spec, dict):
            raise ValueError("`pad_to_cardinality` requires its input dataset to be a dictionary.")
        real = dataset.map(lambda x: dict(x, **{mask_key: convert_to_tensor(True)}))
        empty = {key: convert_to_tensor(b"", spec.dtype) if spec.dtype == dtypes.string else array_ops.zeros(spec.shape, spec.dtype)
                 for key, spec in dataset.element_spec.items()}
        filler = Dataset.from_tensors(dict(empty, **{mask_key: convert_to_tensor(False)})).repeat()
        return real.concatenate(filler).take(cardinality).apply(assert_cardinality(cardinality))
    return apply


def rejection_resample(class_func, target_dist, initial_dist=None, seed=None):
    """Drops elements so that their classes have the distribution `target_dist`; elements are (class, element).

    `initial_dist` is the distribution before; without it, it is estimated from the elements so far.
    """
    def apply(dataset):
        from runnel.ops import array_ops, math_ops, random_ops
        target = math_ops.cast(convert_to_tensor(target_dist), dtypes.float32)
        classed = dataset.map(lambda *x: (math_ops.cast(class_func(*x), dtypes.int64), x if len(x) > 1 else x[0]))
        count = int(target.shape[0])

        def shares(counts):
            return math_ops.cast(counts, dtypes.float32) / math_ops.cast(math_ops.reduce_sum(counts), dtypes.float32)

        def add(counts, element):
            after = counts + array_ops.one_hot(element[0], count, dtype=dtypes.int64)
            return after, (shares(after), element[0], element[1])
        if initial_dist is None:
            known = classed.apply(scan(array_ops.ones([count], dtypes.int64), add))
        else:
            first = math_ops.cast(convert_to_tensor(initial_dist), dtypes.float32)
            known = classed.map(lambda kind, x: (first, kind, x))

        def keeps(before, kind, *_):
            tiny = 1.1754943508222875e-38
            ratio = target / raw_ops.Maximum(x=before, y=convert_to_tensor(tiny, dtypes.float32))
            chance = ratio[kind] / math_ops.reduce_max(ratio)
            return random_ops.random_uniform([], seed=seed, dtype=dtypes.float32) < chance
        return known.filter(keeps).map(lambda _, kind, x: (kind, x))
    return apply


def snapshot(path, compression="AUTO", reader_func=None, shard_func=None):
    """Writes the elements to files during the first full pass, and reads them from there afterwards."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def save(dataset, path, compression=None, shard_func=None, checkpoint_args=None):
    """Writes all elements of a dataset to a folder, for load."""
    return dataset.save(path, compression, shard_func, checkpoint_args)


def load(path, element_spec=None, compression=None, reader_func=None):
    """Creates a dataset of the elements that `save` wrote."""
    return Dataset.load(path, element_spec, compression, reader_func)


def get_model_proto(iterator):
    """Returns the datasets that an iterator reads, as a serialized ModelProto."""
    return raw_ops.IteratorGetModelProto(iterator=iterator._handle).numpy()


def ignore_errors(log_warning=False):
    """Skips elements that fail with an error."""
    return lambda dataset: dataset._like(raw_ops.IgnoreErrorsDataset(
        input_dataset=dataset._variant_tensor, log_warning=log_warning, **dataset._attrs))


def map_and_batch_with_legacy_function(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    """Applies map, then batch."""
    return map_and_batch(map_func, batch_size, num_parallel_batches, drop_remainder, num_parallel_calls)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    """Applies map, then batch, in one dataset that computes several elements at a time."""
    if num_parallel_batches is None and num_parallel_calls is None:
        num_parallel_calls = batch_size
    elif num_parallel_batches is not None and num_parallel_calls is None:
        num_parallel_calls = batch_size * num_parallel_batches
    elif num_parallel_batches is not None:
        raise ValueError("`map_and_batch` allows only one of `num_parallel_batches` and `num_parallel_calls` to be set, but "
                         "`num_parallel_batches` was set to %s and `num_parallel_calls` as set to %s." % (num_parallel_batches, num_parallel_calls))

    def apply(dataset):
        f = dataset._trace(map_func, "tf.data.experimental.map_and_batch()")
        known = constant_value(_int64(batch_size)) if drop_remainder is True else None
        made = dataset._like(None, structure.batched(f.element_spec, None if known is None else int(known)))
        made._traced = (f,)
        made._variant_tensor = raw_ops.MapAndBatchDataset(
            input_dataset=dataset._variant_tensor, other_arguments=f.captured, f=f.attr, batch_size=_int64(batch_size, name="batch_size"),
            num_parallel_calls=_int64(num_parallel_calls), drop_remainder=_bool(drop_remainder), preserve_cardinality=True, **made._attrs)
        return made
    return apply


def parallel_interleave(map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None):
    """Like Dataset.interleave, with each of `cycle_length` datasets read ahead; a `sloppy` one skips those that have nothing yet."""
    def apply(dataset):
        f, inner = dataset._trace_dataset(map_func, "tf.data.experimental.parallel_interleave()")
        made = dataset._like(None, inner.element_spec)
        made._traced = (f,)
        ahead = 2 * block_length if buffer_output_elements is None else buffer_output_elements
        more = 2 * cycle_length if prefetch_input_elements is None else prefetch_input_elements
        made._variant_tensor = raw_ops.LegacyParallelInterleaveDatasetV2(
            input_dataset=dataset._variant_tensor, other_arguments=f.captured, f=f.attr, cycle_length=_int64(cycle_length),
            block_length=_int64(block_length), buffer_output_elements=_int64(ahead), prefetch_input_elements=_int64(more),
            deterministic="default" if sloppy is None else "false" if sloppy else "true", **made._attrs)
        return made
    return apply


def prefetch_to_device(device, buffer_size=None):
    """Computes elements ahead of time; there is only one kind of memory."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device, source_device="/cpu:0"):
    """Returns the same elements; there is only one kind of memory."""
    return lambda dataset: dataset


def scan(initial_state, scan_func):
    """Applies `scan_func(state, element)`, which returns (next state, element), to each element."""
    return lambda dataset: state_functions.scan(dataset, initial_state, scan_func)


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    """Applies shuffle, then repeat, in one dataset."""
    def apply(dataset):
        one, two = seeds(seed)
        return dataset._like(raw_ops.ShuffleAndRepeatDataset(
            input_dataset=dataset._variant_tensor, buffer_size=_int64(buffer_size, name="buffer_size"), seed=_int64(one), seed2=_int64(two),
            count=_int64(-1 if count is None else count, name="count"), **dataset._attrs))
    return apply


def take_while(predicate):
    """Keeps the elements before the first for which `predicate` is false."""
    def apply(dataset):
        f = dataset._trace(predicate, "Dataset_take_while")
        return dataset._like(raw_ops.TakeWhileDataset(input_dataset=dataset._variant_tensor, other_arguments=f.captured, predicate=f.attr,
                                                      **dataset._attrs))
    return apply


def to_variant(dataset):
    """Returns the dataset as a variant tensor."""
    return dataset._variant_tensor


def from_variant(variant, structure):
    """Returns the dataset of a variant tensor; `structure` has the TypeSpecs of an element."""
    return _VariantDataset(variant, structure)


def unbatch():
    """Splits elements into their rows."""
    return lambda dataset: dataset.unbatch()


def unique():
    """Drops elements that occurred before."""
    def apply(dataset):
        for kind in nest.flatten(structure.legacy_types(dataset.element_spec)):
            if kind not in (dtypes.int32, dtypes.int64, dtypes.string):
                raise TypeError("`tf.data.Dataset.unique` does not support type %s -- only `tf.int32`, `tf.int64`, and `tf.string` are supported." % (
                    kind,))
        return dataset._like(raw_ops.UniqueDataset(input_dataset=dataset._variant_tensor, **dataset._attrs))
    return apply
