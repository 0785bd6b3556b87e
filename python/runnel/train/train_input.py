"""Input queues: producers of file names and numbers, batches and shuffled batches."""

from runnel import _core, dtypes, raw_ops
from runnel.core import convert, framework, tensor_shape
from runnel.core.composite import SparseTensor
from runnel.core.framework import GraphKeys, Tensor
from runnel.ops import control_flow, data_flow, variables
from runnel.train import queue_runner


def _check_graph():
    if _core.current() is None:
        raise RuntimeError("Input pipelines based on Queues are not supported when eager execution is "
                           "enabled. Please use tf.data to ingest data into your model instead.")


def match_filenames_once(pattern, name=None):
    """Returns the names of the files that match, kept in a local variable."""
    with framework.name_scope(name, "matching_filenames", [pattern]) as scope:
        return variables.Variable(name=scope, initial_value=raw_ops.MatchingFiles(pattern=pattern),
                                  trainable=False, validate_shape=False,
                                  collections=[GraphKeys.LOCAL_VARIABLES])


def limit_epochs(tensor, num_epochs=None, name=None):
    """Returns `tensor` for `num_epochs` steps, then fails with OutOfRangeError."""
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError("num_epochs must be > 0 not %d." % num_epochs)
    with framework.name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = convert.constant(0, dtype=dtypes.int64)
        epochs = variables.Variable(zero, name="epochs", trainable=False,
                                    collections=[GraphKeys.LOCAL_VARIABLES])
        with framework.control_dependencies([epochs.count_up_to(num_epochs)]):
            return raw_ops.Identity(input=tensor, name=scope)


def _summarize(name, value):
    """Adds a summary of how full a queue is."""
    with framework.name_scope(name, None, [value]) as scope:
        made = raw_ops.ScalarSummary(tags=scope[:-1], values=value, name=scope)
    framework.add_to_collection(GraphKeys.SUMMARIES, made)


def _fraction(queue, capacity):
    from runnel.ops import math_ops
    return math_ops.cast(queue.size(), dtypes.float32) * (1.0 / capacity)


def input_producer(input_tensor, element_shape=None, num_epochs=None, shuffle=True, seed=None,
                   capacity=32, shared_name=None, summary_name=None, name=None, cancel_op=None):
    """Returns a queue of the rows of a tensor, repeated; with `shuffle`, in a new order each time."""
    _check_graph()
    with framework.name_scope(name, "input_producer", [input_tensor]):
        input_tensor = convert.convert_to_tensor(input_tensor, name="input_tensor")
        element_shape = input_tensor.shape[1:].merge_with(element_shape)
        if not element_shape.is_fully_defined():
            raise ValueError("Either `input_tensor` must have a fully defined shape or `element_shape` "
                             "must be specified")
        if shuffle:
            from runnel.ops import random_ops
            input_tensor = random_ops.random_shuffle(input_tensor, seed=seed)
        input_tensor = limit_epochs(input_tensor, num_epochs)
        queue = data_flow.FIFOQueue(capacity=capacity, dtypes=[input_tensor.dtype.base_dtype],
                                    shapes=[element_shape], shared_name=shared_name, name=name)
        enqueue = queue.enqueue_many([input_tensor])
        queue_runner.add_queue_runner(queue_runner.QueueRunner(queue, [enqueue],
                                                               cancel_op=cancel_op))
        if summary_name is not None:
            _summarize(summary_name, _fraction(queue, capacity))
        return queue


def string_input_producer(string_tensor, num_epochs=None, shuffle=True, seed=None, capacity=32,
                          shared_name=None, name=None, cancel_op=None):
    """Returns a queue of strings, such as file names."""
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, (Tensor, variables.Variable)) and not len(string_tensor):
        raise ValueError(empty)
    _check_graph()
    with framework.name_scope(name, "input_producer", [string_tensor]) as scope:
        string_tensor = convert.convert_to_tensor(string_tensor, dtype=dtypes.string)
        from runnel.ops import array_ops
        check = control_flow.Assert(raw_ops.Greater(x=array_ops.size(string_tensor), y=0), [empty])
        with framework.control_dependencies([check]):
            string_tensor = raw_ops.Identity(input=string_tensor)
        return input_producer(string_tensor, [], num_epochs, shuffle, seed, capacity, shared_name,
                              "fraction_of_%d_full" % capacity, scope, cancel_op)


def range_input_producer(limit, num_epochs=None, shuffle=True, seed=None, capacity=32,
                         shared_name=None, name=None):
    """Returns a queue of the numbers below `limit`."""
    from runnel.ops import math_ops
    _check_graph()
    with framework.name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(math_ops.range(limit), [], num_epochs, shuffle, seed, capacity,
                              shared_name, "fraction_of_%d_full" % capacity, scope)


def slice_input_producer(tensor_list, num_epochs=None, shuffle=True, seed=None, capacity=32,
                         shared_name=None, name=None):
    """Returns one row of each tensor per step."""
    from runnel.ops import array_ops
    _check_graph()
    with framework.name_scope(name, "input_producer", tensor_list):
        tensors = [convert.convert_to_tensor(t) for t in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        queue = range_input_producer(array_ops.shape(tensors[0])[0], num_epochs, shuffle, seed,
                                     capacity, shared_name)
        index = queue.dequeue()
        return [array_ops.gather(t, index) for t in tensors]


# --- Sparse tensors: a map stores them, and the queue holds their handles

class _Sparse:
    """How a sparse tensor was stored in the queue."""

    def __init__(self, map_op, rank):
        self.map_op, self.rank = map_op, rank


def _store(tensors, enqueue_many, keep, shared):
    """Returns (tensors for the queue, [_Sparse or None])."""
    out, infos = [], []
    for tensor, before in zip(tensors, shared or [None] * len(tensors)):
        if not isinstance(tensor, SparseTensor):
            out.append(tensor)
            infos.append(None)
            continue
        op = "AddManySparseToTensorsMap" if enqueue_many else "AddSparseToTensorsMap"

        def store(tensor=tensor, before=before, op=op):
            return getattr(raw_ops, op)(
                sparse_indices=tensor.indices, sparse_values=tensor.values,
                sparse_shape=tensor.dense_shape,
                shared_name=before.map_op.name if before else "")

        def nothing(tensor=tensor):
            from runnel.ops import array_ops
            if not enqueue_many:
                return convert.constant(-1, dtypes.int64)
            return -1 * array_ops.ones(tensor.dense_shape[0:1], dtypes.int64)

        if keep.shape.ndims == 1:  # all rows get a handle, and only those of the rows to keep are enqueued
            from runnel.ops import array_ops, sparse_ops
            tensor = sparse_ops.sparse_retain(tensor, array_ops.gather(keep, tensor.indices[:, 0]))
            stored = store(tensor)
        else:
            stored = control_flow.smart_cond(keep, store, nothing)
        if enqueue_many:
            stored.set_shape([None])
        op = next((t.op for t in stored.op.inputs if t.op.type.startswith("Add")), stored.op)
        rank = tensor.dense_shape.shape.as_list()[0] if tensor.dense_shape.shape.ndims is not None else None
        if rank is not None and enqueue_many:
            rank -= 1
        infos.append(before or _Sparse(op, rank))
        out.append(raw_ops.ExpandDims(input=stored, axis=[-1]))
    return out, infos


def _take(tensors, infos):
    """Replaces dequeued handles by the sparse tensors that they stand for."""
    if not any(infos):
        return tensors
    is_list = isinstance(tensors, (list, tuple))
    parts = []
    for tensor, info in zip(tensors if is_list else [tensors], infos):
        if info is None:
            parts.append(tensor)
            continue
        op = info.map_op
        taken = raw_ops.TakeManySparseFromTensorsMap(
            sparse_handles=raw_ops.Squeeze(input=tensor, axis=[1]), dtype=op.get_attr("T"),
            container=op.get_attr("container"),
            shared_name=op.get_attr("shared_name") or op.name)
        rank = None if info.rank is None else info.rank + 1
        taken.sparse_indices.set_shape([None, rank])
        taken.sparse_shape.set_shape([rank])
        parts.append(SparseTensor(taken.sparse_indices, taken.sparse_values, taken.sparse_shape))
    # Take from all maps even if the program uses only one of the tensors.
    after = [p.values if isinstance(p, SparseTensor) else p for p in parts]

    def behind(tensor):
        return control_flow.with_dependencies(after, tensor)

    parts = [SparseTensor(behind(p.indices), behind(p.values), behind(p.dense_shape))
             if isinstance(p, SparseTensor) else behind(p) for p in parts]
    return parts if is_list else parts[0]


# --- Batches

def _as_list(tensors):
    return [tensors[key] for key in sorted(tensors, key=str)] if isinstance(tensors, dict) else list(
        tensors)


def _like(original, tensors):
    if not isinstance(original, dict):
        return tensors
    tensors = tensors if len(original) > 1 else [tensors]
    return {key: tensors[i] for i, key in enumerate(sorted(original, key=str))}


def _common_shapes(lists, shapes, enqueue_many):
    if shapes is not None:
        return shapes
    out = []
    for column in zip(*lists):
        found = None
        for tensor in column:
            shape = tensor.shape
            if shape.ndims is None:
                raise ValueError("Cannot infer Tensor's rank: %s" % tensor)
            if enqueue_many:
                shape = shape.with_rank_at_least(1)[1:]
            found = shape if found is None else found.merge_with(shape)
        out.append(tensor_shape.TensorShape(found.as_list()))
    return out


def _as_tensor_list(tensors):
    return [tensors[key] for key in sorted(tensors, key=str)] if isinstance(tensors, dict) else tensors


def _as_tensor_list_list(tensors_list):
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    if isinstance(tensors_list[0], dict) and any(set(tensors) != set(tensors_list[0]) for tensors in tensors_list):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [_as_tensor_list(tensors) for tensors in tensors_list]


def _as_original_type(original_tensors, tensor_list):
    if not isinstance(original_tensors, dict):
        return tensor_list
    rows = [tensor_list] if len(original_tensors) == 1 else tensor_list
    return dict(zip(sorted(original_tensors, key=str), rows))


def _keep(keep_input, enqueue_many):
    keep_input = convert.convert_to_tensor(keep_input)
    rank = keep_input.shape.ndims
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and rank == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep_input


def _add_enqueue(queue, lists, threads, enqueue_many, keep):
    from runnel.ops import math_ops
    enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
    ops = []
    for tensors in lists:
        if keep.shape.ndims == 1:
            chosen = math_ops.cast(keep, dtypes.int32)
            ops.append(enqueue([raw_ops.DynamicPartition(data=t, partitions=chosen,
                                                         num_partitions=2)[1] for t in tensors]))
        else:
            ops.append(control_flow.smart_cond(keep, lambda t=tensors: enqueue(t),
                                               control_flow.no_op))
    queue_runner.add_queue_runner(queue_runner.QueueRunner(queue, ops * threads))


def _batches(lists, original, scope_name, name, batch_size, keep_input, threads, capacity,
             enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name,
             min_after_dequeue=None, seed=None):
    from runnel.ops import math_ops
    _check_graph()
    lists = [_as_list(tensors) for tensors in lists]
    flat = [tensor for tensors in lists for tensor in tensors]
    with framework.name_scope(name, scope_name, flat + [keep_input]) as scope:
        if min_after_dequeue is not None and capacity <= min_after_dequeue:
            raise ValueError("capacity %d must be bigger than min_after_dequeue %d." % (
                capacity, min_after_dequeue))
        if not flat:
            raise ValueError("Expected at least one tensor in batch().")
        lists = [[t if isinstance(t, SparseTensor) else convert.convert_to_tensor(t) for t in tensors]
                 for tensors in lists]
        keep = _keep(keep_input, enqueue_many)
        infos, stored = None, []
        for tensors in lists:
            tensors, infos = _store(tensors, enqueue_many, keep, infos)
            stored.append(tensors)
        types = [t.dtype.base_dtype for t in stored[0]]
        for tensors in stored[1:]:
            if [t.dtype.base_dtype for t in tensors] != types:
                raise TypeError("Expected types to be consistent: %s vs. %s." % (
                    ", ".join(t.name for t in types), ", ".join(t.dtype.name for t in tensors)))
        shapes = _common_shapes(stored, shapes, enqueue_many)
        if min_after_dequeue is None:
            make = data_flow.PaddingFIFOQueue if dynamic_pad else data_flow.FIFOQueue
            queue = make(capacity=capacity, dtypes=types, shapes=shapes, shared_name=shared_name)
        else:
            queue = data_flow.RandomShuffleQueue(
                capacity=capacity, min_after_dequeue=min_after_dequeue, seed=seed, dtypes=types,
                shapes=shapes, shared_name=shared_name)
        _add_enqueue(queue, stored, threads, enqueue_many, keep)
        if min_after_dequeue is None:
            _summarize("fraction_of_%d_full" % capacity, _fraction(queue, capacity))
        else:
            room = capacity - min_after_dequeue
            over = raw_ops.Maximum(x=0, y=queue.size() - min_after_dequeue)
            _summarize("fraction_over_%d_of_%d_full" % (min_after_dequeue, room),
                       math_ops.cast(over, dtypes.float32) * (1.0 / room))
        take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        return _like(original, _take(take(batch_size, name=scope), infos))


def batch(tensors, batch_size, num_threads=1, capacity=32, enqueue_many=False, shapes=None,
          dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None):
    """Collects the values of `tensors` of consecutive steps into batches."""
    return maybe_batch(tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes,
                       dynamic_pad, allow_smaller_final_batch, shared_name, name)


def maybe_batch(tensors, keep_input, batch_size, num_threads=1, capacity=32, enqueue_many=False,
                shapes=None, dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None,
                name=None):
    """Like batch, for the steps in which `keep_input` is true."""
    return _batches([tensors], tensors, "batch", name, batch_size, keep_input, num_threads, capacity,
                    enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name)


def _joined(tensors_list):
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    if isinstance(tensors_list[0], dict) and any(
            set(tensors) != set(tensors_list[0]) for tensors in tensors_list):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return tensors_list


def batch_join(tensors_list, batch_size, capacity=32, enqueue_many=False, shapes=None,
               dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None):
    """Collects batches from several sources, each with a thread of its own."""
    return maybe_batch_join(tensors_list, True, batch_size, capacity, enqueue_many, shapes,
                            dynamic_pad, allow_smaller_final_batch, shared_name, name)


def maybe_batch_join(tensors_list, keep_input, batch_size, capacity=32, enqueue_many=False,
                     shapes=None, dynamic_pad=False, allow_smaller_final_batch=False,
                     shared_name=None, name=None):
    """Like batch_join, for the steps in which `keep_input` is true."""
    return _batches(_joined(tensors_list), tensors_list[0], "batch_join", name, batch_size,
                    keep_input, 1, capacity, enqueue_many, shapes, dynamic_pad,
                    allow_smaller_final_batch, shared_name)


def shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, num_threads=1, seed=None,
                  enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None,
                  name=None):
    """Collects batches in random order."""
    return maybe_shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, True, num_threads,
                               seed, enqueue_many, shapes, allow_smaller_final_batch, shared_name,
                               name)


def maybe_shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, keep_input, num_threads=1,
                        seed=None, enqueue_many=False, shapes=None, allow_smaller_final_batch=False,
                        shared_name=None, name=None):
    """Like shuffle_batch, for the steps in which `keep_input` is true."""
    return _batches([tensors], tensors, "shuffle_batch", name, batch_size, keep_input, num_threads,
                    capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name,
                    min_after_dequeue, seed)


def shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, seed=None,
                       enqueue_many=False, shapes=None, allow_smaller_final_batch=False,
                       shared_name=None, name=None):
    """Collects batches in random order from several sources."""
    return maybe_shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, True, seed,
                                    enqueue_many, shapes, allow_smaller_final_batch, shared_name,
                                    name)


def maybe_shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, keep_input,
                             seed=None, enqueue_many=False, shapes=None,
                             allow_smaller_final_batch=False, shared_name=None, name=None):
    """Like shuffle_batch_join, for the steps in which `keep_input` is true."""
    return _batches(_joined(tensors_list), tensors_list[0], "shuffle_batch_join", name, batch_size,
                    keep_input, 1, capacity, enqueue_many, shapes, False, allow_smaller_final_batch,
                    shared_name, min_after_dequeue, seed)
