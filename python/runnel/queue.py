"""tf.queue: queues of tensors."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
)
