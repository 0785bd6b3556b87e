"""Queues, barriers, accumulators and staging areas."""

import hashlib

from runnel import _core, dtypes as dtypes_lib, raw_ops
from runnel.core import convert, framework, tensor_shape


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _types(dtypes):
    return [dtypes_lib.as_dtype(dtype) for dtype in _list(dtypes)]


def _shapes(shapes, partial=False):
    if partial and (not isinstance(shapes, (list, tuple)) or not shapes or any(
            shape is None or isinstance(shape, int) for shape in shapes)):
        raise ValueError("When providing partial shapes, a list of shapes must be provided.")
    if shapes is None:
        return None
    if isinstance(shapes, tensor_shape.TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (list, tuple)):
        raise TypeError("Shapes must be a TensorShape or a list or tuple of TensorShapes, got %s "
                        "instead." % type(shapes))
    if all(shape is None or isinstance(shape, int) for shape in shapes):
        shapes = [shapes]
    shapes = [tensor_shape.as_shape(shape) for shape in shapes]
    if not partial and any(not shape.is_fully_defined() for shape in shapes):
        raise ValueError("All shapes must be fully defined: %s" % shapes)
    if any(shape.ndims is None for shape in shapes):
        raise ValueError("All shapes must have a defined rank: %s" % shapes)
    return shapes


def _names(names, dtypes):
    if names is None:
        return None
    names = _list(names)
    if len(names) != len(dtypes):
        raise ValueError("List of names must have the same length as the list of dtypes, received "
                         "len(names)=%d,len(dtypes)=%d" % (len(names), len(dtypes)))
    return names


def _common(one, two):
    if one.ndims is None or one.ndims != two.ndims:
        return tensor_shape.unknown_shape()
    return tensor_shape.TensorShape([a if a == b else None
                                     for a, b in zip(one.as_list(), two.as_list())])


class QueueBase:
    """The base of queues. An element of a queue is a tuple of tensors."""

    def __init__(self, dtypes, shapes, names, queue_ref):
        self._dtypes = dtypes
        if shapes is not None and len(shapes) != len(dtypes):
            raise ValueError("Queue shapes must have the same length as dtypes, received "
                             "len(shapes)=%d, len(dtypes)=%d" % (len(shapes), len(dtypes)))
        self._shapes = ([tensor_shape.unknown_shape() for _ in dtypes] if shapes is None else
                        [tensor_shape.TensorShape(shape) for shape in shapes])
        self._names = names
        self._queue_ref = queue_ref
        self._name = "Empty" if queue_ref.op is None else queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index, queues):
        """Returns the queue of `queues` that the tensor `index` selects."""
        from runnel.ops import array_ops
        if not isinstance(queues, list) or not queues or not all(
                isinstance(queue, QueueBase) for queue in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(queue.dtypes != first.dtypes for queue in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(queue.names != first.names for queue in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = first.shapes
        for queue in queues[1:]:
            shapes = [_common(a, b) for a, b in zip(shapes, queue.shapes)]
        chosen = array_ops.gather(array_ops.stack([queue.queue_ref for queue in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    @property
    def queue_ref(self):
        """The queue's handle."""
        return self._queue_ref

    @property
    def name(self):
        """The queue's name."""
        return self._name if self._queue_ref.op is None else self._queue_ref.op.name

    @property
    def dtypes(self):
        """The types of an element's components."""
        return self._dtypes

    @property
    def shapes(self):
        """The shapes of an element's components."""
        return self._shapes

    @property
    def names(self):
        """The names of an element's components, or None."""
        return self._names

    def _components(self, vals):
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(vals, key=str):
                raise ValueError("Keys in dictionary to enqueue do not match names of Queue.  "
                                 "Dictionary: %s,Queue: %s" % (sorted(vals), sorted(self._names)))
            vals = [vals[name] for name in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        return [convert.convert_to_tensor(value, dtype, name="component_%d" % i)
                for i, (value, dtype) in enumerate(zip(_list(vals), self._dtypes))]

    def _scope(self, name, default, vals):
        vals = list(vals.values()) if isinstance(vals, dict) else _list(vals)
        return framework.name_scope(name, "%s_%s" % (self._name, default), vals)

    def enqueue(self, vals, name=None):
        """Returns an operation that adds one element. It waits while the queue is full."""
        with self._scope(name, "enqueue", vals) as scope:
            vals = self._components(vals)
            for value, shape in zip(vals, self._shapes):
                value.shape.assert_is_compatible_with(shape)
            return raw_ops.QueueEnqueueV2(handle=self._queue_ref, components=vals, name=scope)

    def enqueue_many(self, vals, name=None):
        """Returns an operation that adds one element per row of the tensors."""
        with self._scope(name, "EnqueueMany", vals) as scope:
            vals = self._components(vals)
            count = tensor_shape.Dimension(None)
            for value, shape in zip(vals, self._shapes):
                found = value.shape.with_rank_at_least(1)
                count = count.merge_with(tensor_shape.dimension_value(found[0]))
                value.shape[1:].assert_is_compatible_with(shape)
            return raw_ops.QueueEnqueueManyV2(handle=self._queue_ref, components=vals, name=scope)

    def _result(self, tensors, count):
        """Returns dequeued tensors as a dict, a single tensor or a list. `count` is False if there is no batch."""
        if tensors and tensors[0].op is not None:
            batch = tensor_shape.TensorShape([count] if count is not False else [])
            for tensor, shape in zip(tensors, self._shapes):
                tensor.set_shape(batch.concatenate(shape))
        if self._names:
            return dict(zip(self._names, tensors))
        return tensors[0] if len(tensors) == 1 else tensors

    def dequeue(self, name=None):
        """Removes one element, waiting for it. Fails with OutOfRangeError if the queue is closed and empty."""
        out = raw_ops.QueueDequeueV2(handle=self._queue_ref, component_types=self._dtypes,
                                     name=name or "%s_Dequeue" % self._name)
        return self._result(out, False)

    def dequeue_many(self, n, name=None):
        """Removes `n` elements and stacks them along a new first dimension."""
        out = raw_ops.QueueDequeueManyV2(handle=self._queue_ref, n=n, component_types=self._dtypes,
                                         name=name or "%s_DequeueMany" % self._name)
        count = None
        if out[0].op is not None:
            count = convert.constant_value(out[0].op.inputs[1])
        return self._result(out, None if count is None else int(count))

    def dequeue_up_to(self, n, name=None):
        """Like dequeue_many, but returns what is left in a closed queue."""
        out = raw_ops.QueueDequeueUpToV2(handle=self._queue_ref, n=n, component_types=self._dtypes,
                                         name=name or "%s_DequeueUpTo" % self._name)
        return self._result(out, None)

    def close(self, cancel_pending_enqueues=False, name=None):
        """Returns an operation that closes the queue: no element can be added afterwards."""
        return raw_ops.QueueCloseV2(handle=self._queue_ref, name=name or "%s_Close" % self._name,
                                    cancel_pending_enqueues=cancel_pending_enqueues)

    def is_closed(self, name=None):
        """Returns a bool tensor: whether the queue is closed."""
        return raw_ops.QueueIsClosedV2(handle=self._queue_ref,
                                       name=name or "%s_Is_Closed" % self._name)

    def size(self, name=None):
        """Returns the number of elements as a tensor."""
        return raw_ops.QueueSizeV2(handle=self._queue_ref, name=name or "%s_Size" % self._name)


def _shared(shared_name):
    if _core.current() is None:
        import uuid
        return uuid.uuid4().hex
    return shared_name or ""


class FIFOQueue(QueueBase):
    """A queue that returns elements in the order in which they were added."""

    def __init__(self, capacity, dtypes, shapes=None, names=None, shared_name=None, name="fifo_queue"):
        dtypes, shapes = _types(dtypes), _shapes(shapes)
        names = _names(names, dtypes)
        with framework.init_scope(), framework.device("CPU"):
            ref = raw_ops.FIFOQueueV2(component_types=dtypes, shapes=shapes or [], capacity=capacity,
                                      shared_name=_shared(shared_name), name=name)
        super().__init__(dtypes, shapes, names, ref)


class RandomShuffleQueue(QueueBase):
    """A queue that returns elements in random order. It keeps `min_after_dequeue` elements until it is closed."""

    def __init__(self, capacity, min_after_dequeue, dtypes, shapes=None, names=None, seed=None,
                 shared_name=None, name="random_shuffle_queue"):
        from runnel.ops.random_ops import get_seed
        dtypes, shapes = _types(dtypes), _shapes(shapes)
        names = _names(names, dtypes)
        first, second = get_seed(seed)
        if first is None and second is None:
            first, second = 0, 0
        elif seed is None and shared_name is not None:
            # Processes that share a queue by name must agree on its seed.
            text = (str(first) + shared_name).encode()
            second = int(hashlib.md5(text).hexdigest()[:8], 16) & 0x7FFFFFFF
        ref = raw_ops.RandomShuffleQueueV2(
            component_types=dtypes, shapes=shapes or [], capacity=capacity,
            min_after_dequeue=min_after_dequeue, seed=first or 0, seed2=second or 0,
            shared_name=_shared(shared_name), name=name)
        super().__init__(dtypes, shapes, names, ref)


class PaddingFIFOQueue(QueueBase):
    """A FIFO queue whose elements may differ in size: dequeue_many pads them."""

    def __init__(self, capacity, dtypes, shapes, names=None, shared_name=None,
                 name="padding_fifo_queue"):
        dtypes, shapes = _types(dtypes), _shapes(shapes, partial=True)
        names = _names(names, dtypes)
        if len(dtypes) != len(shapes):
            raise ValueError("Shapes must be provided for all components, but received %d dtypes and "
                             "%d shapes." % (len(dtypes), len(shapes)))
        ref = raw_ops.PaddingFIFOQueueV2(component_types=dtypes, shapes=shapes, capacity=capacity,
                                         shared_name=_shared(shared_name), name=name)
        super().__init__(dtypes, shapes, names, ref)


class PriorityQueue(QueueBase):
    """A queue that returns the element with the smallest first component, an int64, first."""

    def __init__(self, capacity, types, shapes=None, names=None, shared_name=None,
                 name="priority_queue"):
        types, shapes = _types(types), _shapes(shapes)
        ref = raw_ops.PriorityQueueV2(component_types=types, shapes=shapes or [], capacity=capacity,
                                      shared_name=_shared(shared_name), name=name)
        super().__init__([dtypes_lib.int64] + types, [()] + shapes if shapes else shapes, names, ref)


class Barrier:
    """Assembles elements by key from components that arrive one at a time."""

    def __init__(self, types, shapes=None, shared_name=None, name="barrier"):
        self._types = _types(types)
        shapes = _shapes(shapes)
        for i, shape in enumerate(shapes or ()):
            if shape.num_elements() == 0:
                raise ValueError("Empty tensors are not supported, but received shape '%s' at index %d" % (
                    shape, i))
        self._shapes = shapes or [tensor_shape.unknown_shape() for _ in self._types]
        self._barrier_ref = raw_ops.Barrier(component_types=self._types, shapes=shapes or [],
                                            shared_name=_shared(shared_name), name=name)
        self._name = self._barrier_ref.op.name.split("/")[-1]

    @property
    def barrier_ref(self):
        """The barrier's handle."""
        return self._barrier_ref

    @property
    def name(self):
        """The barrier's name."""
        return self._barrier_ref.op.name

    def insert_many(self, component_index, keys, values, name=None):
        """Returns an operation that inserts one component for each key."""
        return raw_ops.BarrierInsertMany(
            handle=self._barrier_ref, keys=keys, values=values, component_index=component_index,
            name=name or "%s_BarrierInsertMany" % self._name)

    def take_many(self, num_elements, allow_small_batch=False, timeout=None, name=None):
        """Returns (indices, keys, values) of complete elements."""
        out = raw_ops.BarrierTakeMany(
            handle=self._barrier_ref, num_elements=num_elements, component_types=self._types,
            allow_small_batch=allow_small_batch, timeout_ms=-1 if timeout is None else timeout,
            name=name or "%s_BarrierTakeMany" % self._name)
        op = out[0].op
        count = None if allow_small_batch else convert.constant_value(op.inputs[1])
        batch = tensor_shape.TensorShape([None if count is None else int(count)])
        op.outputs[0].set_shape(batch)
        op.outputs[1].set_shape(batch)
        for tensor, shape in zip(op.outputs[2:], self._shapes):
            tensor.set_shape(batch.concatenate(shape))
        return out

    def close(self, cancel_pending_enqueues=False, name=None):
        """Returns an operation that closes the barrier."""
        return raw_ops.BarrierClose(handle=self._barrier_ref,
                                    cancel_pending_enqueues=cancel_pending_enqueues,
                                    name=name or "%s_BarrierClose" % self._name)

    def ready_size(self, name=None):
        """Returns the number of complete elements."""
        return raw_ops.BarrierReadySize(handle=self._barrier_ref,
                                        name=name or "%s_BarrierReadySize" % self._name)

    def incomplete_size(self, name=None):
        """Returns the number of incomplete elements."""
        return raw_ops.BarrierIncompleteSize(handle=self._barrier_ref,
                                             name=name or "%s_BarrierIncompleteSize" % self._name)


class ConditionalAccumulatorBase:
    """Accumulates gradients until enough have arrived."""

    def __init__(self, dtype, shape, accumulator_ref):
        self._dtype = dtypes_lib.as_dtype(dtype)
        self._shape = tensor_shape.as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self):
        """The accumulator's handle."""
        return self._accumulator_ref

    @property
    def name(self):
        """The accumulator's name."""
        return self._name

    @property
    def dtype(self):
        """The type of the gradients."""
        return self._dtype

    def num_accumulated(self, name=None):
        """Returns the number of accumulated gradients as a tensor."""
        return self._op("NumAccumulated", name=name or "%s_NumAccumulated" % self._name)

    def set_global_step(self, new_global_step, name=None):
        """Returns an operation that sets the step; gradients of earlier steps are dropped from then on."""
        from runnel.ops import math_ops
        step = math_ops.cast(convert.convert_to_tensor(new_global_step), dtypes_lib.int64)
        return self._op("SetGlobalStep", new_global_step=step, name=name)

    _prefix = "Accumulator"

    def _op(self, what, **inputs):
        return getattr(raw_ops, self._prefix + what)(handle=self._accumulator_ref, **inputs)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates dense gradients."""

    def __init__(self, dtype, shape=None, shared_name=None, name="conditional_accumulator",
                 reduction_type="MEAN"):
        self._prefix = "ResourceAccumulator"
        make = raw_ops.function("ResourceConditionalAccumulator")
        if make is None:
            self._prefix, make = "Accumulator", raw_ops.ConditionalAccumulator
        super().__init__(dtype, shape, make(
            dtype=dtype, shape=tensor_shape.as_shape(shape), shared_name=_shared(shared_name), name=name,
            reduction_type=reduction_type))

    def apply_grad(self, grad, local_step=0, name=None):
        """Returns an operation that adds a gradient, unless its step is too old."""
        from runnel.ops import math_ops
        grad = convert.convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        step = math_ops.cast(convert.convert_to_tensor(local_step), dtypes_lib.int64)
        return self._op("ApplyGradient", local_step=step, gradient=grad, name=name)

    def take_grad(self, num_required, name=None):
        """Returns the mean (or the sum) of the gradients once `num_required` have arrived."""
        out = self._op("TakeGradient", num_required=num_required, dtype=self._dtype, name=name)
        out.set_shape(self._shape)
        return out


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates gradients that are IndexedSlices."""

    def __init__(self, dtype, shape=None, shared_name=None, name="sparse_conditional_accumulator",
                 reduction_type="MEAN"):
        super().__init__(dtype, shape, raw_ops.SparseConditionalAccumulator(
            dtype=dtype, shape=tensor_shape.as_shape(shape), shared_name=_shared(shared_name), name=name,
            reduction_type=reduction_type))

    def apply_indexed_slices_grad(self, grad, local_step=0, name=None):
        """Returns an operation that adds an IndexedSlices, unless its step is too old."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(self, grad_indices, grad_values, grad_shape=None, local_step=0, name=None):
        """Returns an operation that adds a gradient given by its parts, unless its step is too old."""
        from runnel.ops import math_ops
        step = math_ops.cast(convert.convert_to_tensor(local_step), dtypes_lib.int64)
        return raw_ops.SparseAccumulatorApplyGradient(
            handle=self._accumulator_ref, local_step=step,
            gradient_indices=math_ops.cast(grad_indices, dtypes_lib.int64),
            gradient_values=grad_values,
            gradient_shape=math_ops.cast([] if grad_shape is None else grad_shape, dtypes_lib.int64),
            has_known_shape=grad_shape is not None, name=name)

    def take_grad(self, num_required, name=None):
        """Returns (indices, values, shape) of the mean or sum once `num_required` gradients have arrived."""
        return raw_ops.SparseAccumulatorTakeGradient(
            handle=self._accumulator_ref, num_required=num_required, dtype=self._dtype, name=name)

    def take_indexed_slices_grad(self, num_required, name=None):
        """Like take_grad, but returns an IndexedSlices."""
        from runnel.core.composite import IndexedSlices
        out = self.take_grad(num_required, name)
        return IndexedSlices(out.values, out.indices, out.shape)


class StagingArea:
    """Keeps values on a device between steps."""

    def __init__(self, dtypes, shapes=None, names=None, shared_name=None, capacity=0, memory_limit=0):
        self._dtypes = _types(dtypes)
        self._shapes = ([tensor_shape.unknown_shape() for _ in self._dtypes] if shapes is None else
                        [tensor_shape.as_shape(shape) for shape in shapes])
        self._names = _names(names, self._dtypes)
        with framework.name_scope("StagingArea_root"):
            graph = framework.get_default_graph()
            self._name = graph.unique_name("StagingArea")
        self._limits = dict(dtypes=self._dtypes, shared_name=shared_name or self._name,
                            capacity=capacity, memory_limit=memory_limit)

    def put(self, values, name=None):
        """Returns an operation that stores values."""
        if isinstance(values, dict):
            values = [values[key] for key in self._names]
        values = [convert.convert_to_tensor(v, d) for v, d in zip(_list(values), self._dtypes)]
        return raw_ops.Stage(values=values, name=name or "%s_put" % self._name.split("/")[-1],
                             **self._limits)

    def get(self, name=None):
        """Removes and returns the values that were stored first."""
        out = raw_ops.Unstage(name=name or "%s_get" % self._name.split("/")[-1], **self._limits)
        for tensor, shape in zip(out, self._shapes):
            tensor.set_shape(shape)
        return dict(zip(self._names, out)) if self._names else list(out)

    def size(self, name=None):
        """Returns the number of stored values."""
        return raw_ops.StageSize(name=name, **self._limits)

    def clear(self, name=None):
        """Returns an operation that removes all values."""
        return raw_ops.StageClear(name=name, **self._limits)
