"""tf.data.experimental: more transformations of datasets, for Dataset.apply."""

from runnel import dtypes, nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, _int64  # noqa: F401
from runnel.eager.tracing import trace
from runnel.io.record_io import TFRecordWriter  # noqa: F401

_SCALAR = tensor_shape.TensorShape([])


def Counter(start=0, step=1, dtype=dtypes.int64):  # noqa: N802
    """Creates a dataset that counts forever."""
    dtype = dtypes.as_dtype(dtype)
    start, step = convert_to_tensor(start, dtype), convert_to_tensor(step, dtype)
    return Dataset.from_tensors(0).repeat().apply(scan(start, lambda state, _: (state + step, state)))


def RandomDataset(seed=None):  # noqa: N802
    """Creates a dataset of random numbers."""
    from runnel.ops.random_ops import get_seed
    one, two = get_seed(seed)
    one, two = one or 0, two or 0
    if seed is not None and one == 0 and two == 0:
        two = 2 ** 31 - 1
    return Dataset(raw_ops.RandomDataset(seed=_int64(one), seed2=_int64(two), output_types=[dtypes.int64], output_shapes=[_SCALAR]),
                   None, [dtypes.int64], [_SCALAR])


def cardinality(dataset):
    """Returns the number of elements as a tensor, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return raw_ops.DatasetCardinality(input_dataset=dataset._variant_tensor)


def assert_cardinality(expected_cardinality):
    """Checks that the dataset has exactly `expected_cardinality` elements."""
    return lambda dataset: dataset._like(raw_ops.AssertCardinalityDataset(
        input_dataset=dataset._variant_tensor, cardinality=_int64(expected_cardinality), **dataset._attrs))


def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False):
    """Takes elements from several datasets; `choice_dataset` has the index of the dataset for each."""
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    if choice_dataset._types != [dtypes.int64] or choice_dataset._shapes[0].ndims not in (0, None):
        raise TypeError("Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors.")
    return datasets[0]._like(raw_ops.DirectedInterleaveDataset(
        selector_input_dataset=choice_dataset._variant_tensor, data_input_datasets=[x._variant_tensor for x in datasets],
        stop_on_empty_dataset=stop_on_empty_dataset, **datasets[0]._attrs))


def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False):
    """Takes elements from several datasets at random, with probabilities `weights`."""
    import math
    weights = [1.0 / len(datasets)] * len(datasets) if weights is None else weights
    if len(weights) != len(datasets):
        raise ValueError("Invalid `weights`. The shape of `weights` should be compatible with `[len(datasets)]` but is %s." % len(weights))
    logits = convert_to_tensor([[math.log(x) if x > 0 else -math.inf for x in weights]], dtypes.float32)

    def draw(seeds):
        from runnel.ops.array_ops import squeeze
        return squeeze(raw_ops.StatelessMultinomial(logits=logits, num_samples=1, seed=seeds), axis=[0, 1])
    choice = RandomDataset(seed).batch(2).map(draw)
    return choose_from_datasets(datasets, choice, stop_on_empty_dataset)


def enumerate_dataset(start=0):
    """Returns a dataset of (number, element)."""
    return lambda dataset: dataset.enumerate(start)


def get_single_element(dataset):
    """Returns the element of a dataset that has exactly one."""
    return dataset._pack(list(raw_ops.DatasetToSingleElement(dataset=dataset._variant_tensor, **dataset._attrs)))


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
            made.append(reduce_func(key, dataset._like(variant)))
            return made[-1]._variant_tensor
        sizes = window_size_func or (lambda _: convert_to_tensor(window_size, dtypes.int64))
        keys = dataset._trace(key_func, "Dataset_key_func")
        size = trace(sizes, [(dtypes.int64, _SCALAR)], "Dataset_window_size_func", in_order=True)
        windows = trace(reduce, [(dtypes.int64, _SCALAR), (dtypes.variant, _SCALAR)], "Dataset_reduce_func", in_order=True)
        return made[0]._like(raw_ops.GroupByWindowDataset(
            input_dataset=dataset._variant_tensor, key_func_other_arguments=keys.captured, reduce_func_other_arguments=windows.captured,
            window_size_func_other_arguments=size.captured, key_func=keys.attr, reduce_func=windows.attr, window_size_func=size.attr,
            **made[0]._attrs))
    return apply


def bucket_by_sequence_length(element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None, padding_values=None,
                              pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False):
    """Batches elements of similar length."""
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)=%d` and "
                         "`len(bucket_boundaries)=%d`." % (len(bucket_batch_sizes), len(bucket_boundaries)))
    if pad_to_bucket_boundary:
        raise NotImplementedError("bucket_by_sequence_length does not support pad_to_bucket_boundary")
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
        return grouped.padded_batch(size(bucket), shapes, padding_values, drop_remainder=drop_remainder)
    return group_by_window(key, batch, window_size_func=size)


def ignore_errors(log_warning=False):
    """Skips elements that fail with an error."""
    return lambda dataset: dataset._like(raw_ops.IgnoreErrorsDataset(
        input_dataset=dataset._variant_tensor, log_warning=log_warning, **dataset._attrs))


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    """Applies map, then batch."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None):
    """Applies Dataset.interleave with several datasets at a time."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, num_parallel_calls=cycle_length)


def prefetch_to_device(device, buffer_size=None):
    """Computes elements ahead of time; there is only one kind of memory."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device, source_device="/cpu:0"):
    """Returns the same elements; there is only one kind of memory."""
    return lambda dataset: dataset


def scan(initial_state, scan_func):
    """Applies `scan_func(state, element)`, which returns (next state, element), to each element."""
    def apply(dataset):
        state = nest.map_structure(convert_to_tensor, initial_state)
        first, structure, function = nest.flatten(state), [], traceable(scan_func)

        def step(*parts):
            element = dataset._pack(list(parts[len(first):]))
            after, made = function(nest.pack_sequence_as(state, list(parts[:len(first)])), element)
            structure.append(nest.map_structure(convert_to_tensor, made))
            return nest.flatten(after) + nest.flatten(structure[-1])
        specs = [(x.dtype, x.shape) for x in first] + list(zip(dataset._types, dataset._shapes))
        f = trace(step, specs, "Dataset_scan", in_order=True)
        types, shapes = f.dtypes[len(first):], f.shapes[len(first):]
        return Dataset(raw_ops.ScanDataset(input_dataset=dataset._variant_tensor, initial_state=first, other_arguments=f.captured, f=f.attr,
                                           output_types=types, output_shapes=shapes), structure[-1], types, shapes)
    return apply


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    """Applies shuffle, then repeat."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


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
    """Returns the dataset of a variant tensor; `structure` has one TensorSpec per component of an element."""
    specs = nest.flatten(structure)
    return Dataset(variant, structure, [x.dtype for x in specs], [x.shape for x in specs])


def unbatch():
    """Splits elements into their rows."""
    return lambda dataset: dataset.unbatch()


def unique():
    """Drops elements that occurred before."""
    return lambda dataset: dataset._like(raw_ops.UniqueDataset(input_dataset=dataset._variant_tensor, **dataset._attrs))
