"""tf.queue."""

from runnel._namespace import namespace

__getattr__, __dir__ = namespace(
    __name__,
    "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
)
