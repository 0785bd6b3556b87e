"""tf.debugging.enable_check_numerics: an error for every operation that computes infinity or NaN."""

import threading

from runnel import _core, raw_ops
from runnel.eager import op_callbacks

# Control flow and calls, whose parts are checked.
_PARTS = frozenset("""Enter Exit Identity If LoopCond Merge NextIteration StatelessIf StatefulPartitionedCall PartitionedCall Switch While StatelessWhile
RemoteCall DestroyResourceOp CheckNumericsV2 CheckNumerics""".split())
# What these return was computed by another operation, or is a constant.
_SAFE = frozenset("""Concat ConcatV2 ExpandDims Fill Gather Maximum Minimum Reshape Slice Squeeze Stack StridedSlice StridedSliceGrad TensorListConcatV2
TensorListGather TensorListGetItem TensorListPopBack TensorListStack Transpose Unpack""".split())
# Statistics of an empty batch are NaN.
_UNCHECKED = {(op, slot) for op, count in (("FusedBatchNorm", 5), ("FusedBatchNormV2", 5), ("FusedBatchNormV3", 6)) for slot in range(1, count)}


class _State(threading.local):
    callback = None


_state = _State()


class CheckNumericsCallback:
    """Checks the outputs of operations."""

    def __init__(self, stack_height_limit, path_length_limit):
        self._height, self._length = stack_height_limit, path_length_limit

    def callback(self, op_type, inputs, attrs, outputs, op_name=None, graph=None):
        """For add_op_callback."""
        if op_type in _PARTS or op_type in _SAFE:
            return None
        found = []
        for slot, output in enumerate(outputs):
            is_checked = output.dtype.is_floating and (op_type, slot) not in _UNCHECKED
            if is_checked and graph is None:
                raw_ops.CheckNumericsV2(tensor=output, message=get_check_numerics_error_message(
                    slot, len(outputs), op_type, output, inputs, stack_height_limit=self._height, path_length_limit=self._length))
            elif is_checked:
                checked = raw_ops.CheckNumericsV2(tensor=output, message=get_check_numerics_error_message(
                    slot, len(outputs), op_type, output, inputs, graph=graph, traceback=output.op.traceback,
                    stack_height_limit=self._height, path_length_limit=self._length))
                # A function runs the check for its side effect; a session, only if something needs its result.
                output = output if graph._building_function or op_type.startswith("Placeholder") else checked
            found.append(output)
        return None if graph is None else found


def get_check_numerics_error_message(slot, num_outputs, op_type, tensor, inputs, graph=None, traceback=None, stack_height_limit=30,
                                     path_length_limit=50):
    """Returns the text of the error if an output is infinite or NaN."""
    text = ["\n\n!!! Detected Infinity or NaN in output %d of %s op \"%s\" (# of outputs: %d) !!!\n  dtype: %s\n  shape: %s\n" % (
        slot, "eagerly-executing" if graph is None else "graph", op_type, num_outputs, tensor.dtype, tensor.shape)]
    if graph is None:
        import numpy as np
        from runnel import dtypes
        values = np.asarray(raw_ops.Cast(x=tensor, DstT=dtypes.float64).numpy())
        for sign, count in (("-Inf", np.isneginf(values)), ("+Inf", np.isposinf(values)), ("+NaN", np.isnan(values))):
            if count.any():
                text.append("  # of %s elements: %d\n" % (sign, count.sum()))
    inputs = [_checked(one) for one in inputs]
    if len(inputs) > 1:
        text.append("\n  Input tensors (%d):\n" % len(inputs))
        text += ["         %d: %s\n" % row for row in enumerate(inputs)]
    elif inputs:
        text.append("\n  Input tensor: %s\n" % inputs[0])
    if graph is not None and getattr(graph, "name", None):
        text.append("  Graph name: \"%s\"\n" % graph.name)
    if traceback:
        text.append("\n  Stack trace of op's creation (\"->\": inferred user code):\n")
        for path, line, function, source in traceback[-stack_height_limit:] if stack_height_limit else traceback:
            text.append("    + %s (L%d) %s\n -> |   %s\n" % (limit_string_length(path, path_length_limit), line, function, source))
    return "".join(text) + "\n"


def _checked(tensor):
    """Returns the tensor that a check reads, or a tensor that is no result of a check unchanged."""
    return tensor.op.inputs[0] if tensor.op is not None and tensor.op.type == "CheckNumericsV2" else tensor


def limit_string_length(string, max_len=50):
    """Returns the end of a text, with dots before it if it is longer."""
    return string if max_len is None or len(string) <= max_len else "..." + string[len(string) - max_len:]


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """Makes operations of this thread raise InvalidArgumentError if they compute infinity or NaN, in eager execution and in graphs built later.

    Args:
      stack_height_limit: how many frames of the program the message of a graph's operation has at most.
      path_length_limit: how many characters of a file's path it has.
    """
    if _state.callback is None:
        _state.callback = CheckNumericsCallback(stack_height_limit, path_length_limit).callback
        op_callbacks.add_op_callback(_state.callback)


def disable_check_numerics():
    """Undoes enable_check_numerics. Graphs that were built meanwhile keep their checks."""
    if _state.callback is not None:
        if _state.callback in op_callbacks.callbacks():
            op_callbacks.remove_op_callback(_state.callback)
        _state.callback = None


def is_enabled():
    """Tells whether the operations of this thread are checked."""
    return _state.callback is not None and _core.intercepts_ops()
