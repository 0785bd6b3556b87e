"""Datasets by the index of their elements: global shuffles, files in random order, elements made of others by index."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec
from runnel.data.dataset import AUTOTUNE, UNKNOWN_CARDINALITY, Dataset, _int64, _returned, seeds
from runnel.data.experimental import at
from runnel.eager.tracing import trace
from runnel.autograph.conversion import traceable
from runnel.ops import array_ops, math_ops, stateless_random

_IndexType = int  # what an index is: stock's Union of int and Tensor


def _global_shuffle(input_dataset, seed=None, reshuffle_each_iteration=True, name=None):
    """Shuffles a dataset with random access as a whole."""
    one, two = seeds(seed)
    return input_dataset._like(raw_ops.GlobalShuffleDataset(
        input_dataset=input_dataset._variant_tensor, seed=_int64(one), seed2=_int64(two), seed_generator=raw_ops.DummySeedGenerator(),
        reshuffle_each_iteration=reshuffle_each_iteration, **input_dataset._attrs))


def _weighted_flat_map(input_datasets, weights=None, name=None):
    """Takes elements from datasets with random access at random, with probabilities `weights`, by default equal ones."""
    weights = [1.0] * len(input_datasets) if weights is None else weights
    made = Dataset(None, input_datasets[0].element_spec, input_datasets)
    made._variant_tensor = raw_ops.WeightedFlatMapDataset(
        input_datasets=[one._variant_tensor for one in input_datasets], weights=[convert_to_tensor(w, dtypes.float64) for w in weights],
        **made._attrs)
    return made


def index_flat_map(input_dataset, map_func, index_map_func, *, output_cardinality=UNKNOWN_CARDINALITY, name=None):
    """Makes the rows of `map_func(element)` elements; `index_map_func(index)` returns the index of the element and the row in it."""
    f = input_dataset._trace(map_func, "Dataset.index_flat_map().map_func")
    specs, of_index = [], traceable(index_map_func)
    index = trace(lambda i: _returned(of_index(i), specs, "Dataset.index_flat_map().index_map_func"),
                  [(dtypes.int64, tensor_shape.TensorShape([]))], "Dataset_index_map_func", in_order=True)
    rows = f.element_spec
    if isinstance(rows, (list, tuple)):
        row = rows[0]
    else:
        row = TensorSpec(rows.shape[1:] if rows.shape.rank else rows.shape if rows.shape.rank is None else [], rows.dtype)
    made = input_dataset._like(None, row)
    made._traced = (f, index)
    made._variant_tensor = raw_ops.IndexFlatMapDataset(
        input_dataset=input_dataset._variant_tensor, map_func_other_args=f.captured, index_map_func_other_args=index.captured,
        output_cardinality=_int64(output_cardinality), map_func=f.attr, index_map_func=index.attr, **made._attrs)
    return made


def _read_ranges(file_infos):
    """Returns the names of files, how many of their elements are read, and what turns the number of one that is read into its index.

    The last is None if all are read. Otherwise it is two lists: an element whose number is at least `starts[i]`, and less than the next
    start, has the index number + `skipped[i]`.
    """
    names, starts, skipped, count, dropped, whole = [], [], [], 0, 0, True
    for info in file_infos:
        total = info["num_elements"]
        for key in ("skip", "take"):
            if info.get(key, 0) < -1:
                raise ValueError("`%s` should be greater than `-1` but got %s" % (key, info[key]))
        skip = info.get("skip", 0)
        skip = total if skip == -1 else min(skip, total)
        take = info.get("take", -1)
        take = total - skip if take == -1 else min(take, total - skip)
        names.append(info["path"])
        starts.append(count)
        skipped.append(dropped + skip)
        count, dropped, whole = count + take, dropped + total - take, whole and take == total
    return names, count, None if whole else (starts, skipped)


def index_shuffle(file_infos, reader_factory, seed=None, reshuffle_each_iteration=False, num_parallel_calls=AUTOTUNE):
    """Creates a dataset of the elements of files in a random order: it shuffles their indices and reads by index.

    `file_infos` are dicts with "path" and "num_elements", and perhaps "skip" and "take". `reader_factory(names)` returns the dataset of
    files, which must have random access.
    """
    names, count, ranges = _read_ranges(file_infos)

    def shuffled(seed_pair):
        source = reader_factory(names)

        def read(number):
            index = stateless_random.index_shuffle(number, seed_pair, count - 1)
            if ranges is not None:
                starts, skipped = (_int64(x) for x in ranges)
                file = math_ops.reduce_sum(math_ops.cast(starts <= index, dtypes.int64)) - 1
                index = index + array_ops.gather(skipped, file)
            return at(source, index)
        return Dataset.range(count).map(read, num_parallel_calls=num_parallel_calls)
    numbers = Dataset.random(seed=seed, rerandomize_each_iteration=reshuffle_each_iteration)
    return numbers.take(2).batch(2, drop_remainder=True).flat_map(shuffled)
