"""Functions that are called once for the arguments of several steps: tf.nondifferentiable_batch_function."""

from runnel import nest, raw_ops as _ops
from runnel.core import framework
from runnel.core.framework import name_scope


def nondifferentiable_batch_function(num_batch_threads, max_batch_size, batch_timeout_micros, allowed_batch_sizes=None, max_enqueued_batches=10,
                                     autograph=True, enable_large_batch_splitting=True):
    """Makes a decorator of functions of tensors. Calls by several steps are joined along the first dimension, and run together.

    Args:
      num_batch_threads: how many batches run at once.
      max_batch_size: the most rows of a batch.
      batch_timeout_micros: how long a batch that is not full waits for more rows.
      allowed_batch_sizes: sizes to which batches are padded, in ascending order; the last one is `max_batch_size`.
      max_enqueued_batches: how many batches may wait.
      autograph: whether Python's control flow over tensors becomes part of the graph.
      enable_large_batch_splitting: whether a call with more rows than a batch may be divided.
    """
    def decorator(fn):
        def decorated(*args):
            from runnel.autograph.conversion import traceable
            from runnel.eager import tracing
            for value in args:
                if not isinstance(value, framework.Tensor):
                    raise ValueError("All arguments to functions decorated with `batch_function`  are supposed to be Tensors; found %r." % (value,))
            names = ["batch_%d" % i for i in range(len(args))]
            traced = tracing.trace(traceable(fn, autograph), [(x.dtype, x.shape) for x in args], "__inference_%s" % getattr(fn, "__name__", "computation"),
                                   in_order=True, names=names)
            captured = traced.captured + [x for one in traced.deferred for x in (one() if callable(one) else one.now())]
            with name_scope("batch") as scope:
                out = _ops.BatchFunction(
                    in_tensors=list(args), captured_tensors=captured, f=traced.name, num_batch_threads=num_batch_threads,
                    max_batch_size=max_batch_size, batch_timeout_micros=batch_timeout_micros, max_enqueued_batches=max_enqueued_batches,
                    allowed_batch_sizes=allowed_batch_sizes or [], shared_name=scope, enable_large_batch_splitting=enable_large_batch_splitting,
                    Tout=traced.dtypes)
            return nest.pack_sequence_as(traced.structure, list(out))

        return decorated

    return decorator
