"""Recurrent networks over sequences (tf.nn.dynamic_rnn and others)."""

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import executing_eagerly, name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import cond, while_loop
from runnel.ops.tensor_array import TensorArray


def _transposed(x):
    """Swaps batch and time."""
    x = convert_to_tensor(x)
    if x.shape.ndims is not None and x.shape.ndims < 2:
        raise ValueError("Expected input tensor %s to have rank at least 2, but saw shape: %s" % (
            x, x.shape))
    order = array_ops.concat(([1, 0], math_ops.range(2, array_ops.rank(x))), 0)
    result = array_ops.transpose(x, order)
    if x.shape.dims is not None:
        dims = x.shape.as_list()
        result.set_shape([dims[1], dims[0]] + dims[2:])
    return result


def _shape_before(batch, size):
    return [batch] + tensor_shape.as_shape(size).as_list()


def _checked_length(sequence_length, batch_size):
    if sequence_length is None:
        return None
    length = convert_to_tensor(sequence_length)
    if length.shape.ndims not in (None, 1):
        raise ValueError("sequence_length must be a vector of length batch_size, but saw shape: %s" %
                         length.shape)
    return array_ops.identity(math_ops.cast(length, dtypes.int32), name="sequence_length")


def _initial(cell, initial_state, batch_size, dtype):
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(batch_size, dtype)


def _step_by_length(time, length, shortest, longest, zero_output, state, call, output_size,
                    skip_conditionals):
    """Computes one step; sequences that have ended output zeros and keep their state."""
    flat_state = nest.flatten(state)
    flat_zero = nest.flatten(zero_output)

    def choose(new, old):
        if isinstance(old, TensorArray) or new.shape.ndims == 0:
            return new
        done = time >= length
        return raw_ops.Select(condition=done, x=old, y=new)

    def run():
        output, new_state = call()
        nest.assert_same_structure(state, new_state)
        outputs = [choose(n, z) for n, z in zip(nest.flatten(output), flat_zero)]
        states = [choose(n, o) for n, o in zip(nest.flatten(new_state), flat_state)]
        return outputs + states

    def maybe_copy():
        output, new_state = call()
        nest.assert_same_structure(state, new_state)
        new = nest.flatten(output) + nest.flatten(new_state)
        return cond(time < shortest, lambda: new,
                    lambda: [choose(n, o) for n, o in zip(new, flat_zero + flat_state)], strict=True)

    if skip_conditionals:
        results = run()
    else:
        results = cond(time >= longest, lambda: flat_zero + flat_state, maybe_copy, strict=True)
    outputs, states = results[:len(flat_zero)], results[len(flat_zero):]
    for value, like in zip(outputs, flat_zero):
        value.set_shape(like.shape)
    for value, like in zip(states, flat_state):
        value.set_shape(like.shape)
    return (nest.pack_sequence_as(zero_output, outputs), nest.pack_sequence_as(state, states))


def dynamic_rnn(cell, inputs, sequence_length=None, initial_state=None, dtype=None,
                parallel_iterations=None, swap_memory=False, time_major=False, scope=None):
    """Runs a cell over sequences of any length in a loop. Returns (outputs, last state).

    Args:
      cell: an RNNCell.
      inputs: [batch, time, ...], nested; with `time_major` [time, batch, ...].
      sequence_length: [batch], the lengths; beyond them, outputs are zeros and states stay.
      initial_state: the first state; by default zeros of type `dtype`.
      parallel_iterations, swap_memory: as for while_loop.
      scope: scope of the variables; by default "rnn".
    """
    from runnel.ops.variable_scopes import variable_scope
    with variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(x) for x in nest.flatten(inputs)]
        if not time_major:
            flat = [_transposed(x) for x in flat]
        steps_static, batch_static = flat[0].shape.as_list()[:2] if flat[0].shape.dims is not None \
            else (None, None)
        batch = batch_static if batch_static is not None else array_ops.shape(flat[0])[1]
        length = _checked_length(sequence_length, batch)
        state = _initial(cell, initial_state, batch, dtype)
        inputs = nest.pack_sequence_as(inputs, flat)
        outputs, last = _loop(cell, inputs, state, 32 if parallel_iterations is None
                              else parallel_iterations, swap_memory, length, dtype, batch)
        if not time_major:
            outputs = nest.map_structure(_transposed, outputs)
        return outputs, last


def _loop(cell, inputs, state, parallel_iterations, swap_memory, length, dtype, batch):
    flat_input = nest.flatten(inputs)
    shape = array_ops.shape(flat_input[0])
    steps = shape[0]
    known = flat_input[0].shape.as_list()
    for x in flat_input:
        if x.shape.dims is not None and x.shape.as_list()[2:] != [] and x.shape.as_list()[-1] is None:
            raise ValueError("Input size (depth of inputs) must be accessible via shape inference, but "
                             "saw value None.")
    flat_state = [convert_to_tensor(s) if not isinstance(s, TensorArray) else s
                  for s in nest.flatten(state)]
    state = nest.pack_sequence_as(state, flat_state)
    sizes = nest.flatten(cell.output_size)

    def zeros(size):
        dims = _shape_before(batch, size)
        kind = _output_type(dtype, flat_state, flat_input)
        return array_ops.zeros(array_ops.stack(dims) if hasattr(batch, "op") else dims, kind)
    zero_output = nest.pack_sequence_as(cell.output_size, [zeros(s) for s in sizes])
    shortest = longest = None
    if length is not None:
        shortest, longest = math_ops.reduce_min(length), math_ops.reduce_max(length)
    else:
        longest = steps
    time = constant(0, dtype=dtypes.int32, name="time")
    with name_scope("dynamic_rnn") as base:
        def array(name, size, kind):
            return TensorArray(kind, size=steps, element_shape=size, tensor_array_name=base + name)
        in_memory = not executing_eagerly()
        kinds = [_output_type(dtype, flat_state, flat_input)] * len(sizes)
        outputs = [array("output_%d" % i, tensor_shape.TensorShape(
            [known[1]] + tensor_shape.as_shape(s).as_list()), k)
            for i, (s, k) in enumerate(zip(sizes, kinds))]
        rows = [array("input_%d" % i, tensor_shape.TensorShape(x.shape.as_list()[1:]), x.dtype)
                .unstack(x) for i, x in enumerate(flat_input)]
        bound = raw_ops.Minimum(steps, raw_ops.Maximum(1, longest)) if in_memory else steps

        def step(time, arrays, state):
            step_input = nest.pack_sequence_as(inputs, [row.read(time) for row in rows])
            for value, x in zip(nest.flatten(step_input), flat_input):
                value.set_shape(x.shape.as_list()[1:])

            def call():
                return cell(step_input, state)
            if length is not None:
                output, new_state = _step_by_length(time, length, shortest, longest, zero_output,
                                                    state, call, cell.output_size, False)
            else:
                output, new_state = call()
            arrays = [a.write(time, o) for a, o in zip(arrays, nest.flatten(output))]
            return time + 1, arrays, new_state

        _, arrays, last = while_loop(lambda time, *_: time < bound, step, (time, outputs, state),
                                     parallel_iterations=parallel_iterations, swap_memory=swap_memory,
                                     maximum_iterations=steps)
        finals = [a.stack() for a in arrays]
        for value, size in zip(finals, sizes):
            value.set_shape([known[0], known[1]] + tensor_shape.as_shape(size).as_list())
        return nest.pack_sequence_as(cell.output_size, finals), last


def _output_type(dtype, flat_state, flat_input):
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    return flat_state[0].dtype if flat_state else flat_input[0].dtype


def _reverse(x, length, batch_axis, time_axis):
    if length is None:
        return array_ops.reverse(x, [time_axis])
    return raw_ops.ReverseSequence(input=x, seq_lengths=length, seq_dim=time_axis,
                                   batch_dim=batch_axis)


def bidirectional_dynamic_rnn(cell_fw, cell_bw, inputs, sequence_length=None, initial_state_fw=None,
                              initial_state_bw=None, dtype=None, parallel_iterations=None,
                              swap_memory=False, time_major=False, scope=None):
    """Runs two cells over sequences in both directions. Returns ((outputs forward, backward), (states forward, backward))."""
    from runnel.ops.variable_scopes import variable_scope
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            output_fw, state_fw = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw, dtype,
                                              parallel_iterations, swap_memory, time_major, fw)
        time_axis, batch_axis = (0, 1) if time_major else (1, 0)

        def turned(structure):
            return nest.map_structure(
                lambda x: _reverse(convert_to_tensor(x), sequence_length, batch_axis, time_axis),
                structure)
        with variable_scope("bw") as bw:
            backward, state_bw = dynamic_rnn(cell_bw, turned(inputs), sequence_length,
                                             initial_state_bw, dtype, parallel_iterations,
                                             swap_memory, time_major, bw)
        return (output_fw, turned(backward)), (state_fw, state_bw)


def static_rnn(cell, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
    """Unrolls a cell over a list of inputs. Returns (list of outputs, last state)."""
    from runnel.ops.variable_scopes import get_variable_scope, variable_scope
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs = []
    with variable_scope(scope or "rnn"):
        first = convert_to_tensor(nest.flatten(inputs[0])[0])
        static = first.shape.as_list()[0] if first.shape.dims is not None else None
        batch = static if static is not None else array_ops.shape(first)[0]
        state = _initial(cell, initial_state, batch, dtype)
        shortest = longest = zero_output = None
        if sequence_length is not None:
            sequence_length = math_ops.cast(_checked_length(sequence_length, batch), dtypes.int32)

            def zeros(size):
                dims = _shape_before(batch, size)
                return array_ops.zeros(array_ops.stack(dims) if static is None else dims,
                                       dtype or nest.flatten(state)[0].dtype)
            zero_output = nest.map_structure(zeros, cell.output_size)
            shortest = math_ops.reduce_min(sequence_length)
            longest = math_ops.reduce_max(sequence_length)
        for time, step_input in enumerate(inputs):
            if time > 0:
                get_variable_scope().reuse_variables()

            def call(step_input=step_input, state=state):
                return cell(step_input, state)
            if sequence_length is None:
                output, state = call()
            else:
                output, state = _step_by_length(constant(time, dtypes.int32), sequence_length, shortest,
                                                longest, zero_output, state, call, cell.output_size,
                                                True)
            outputs.append(output)
    return outputs, state


def static_state_saving_rnn(cell, inputs, state_saver, state_name, sequence_length=None, scope=None):
    """Like static_rnn, with a state that `state_saver` keeps from batch to batch."""
    names = nest.flatten(state_name)
    initial = nest.pack_sequence_as(cell.state_size, [state_saver.state(n) for n in names])
    outputs, state = static_rnn(cell, inputs, initial, sequence_length=sequence_length, scope=scope)
    saves = [state_saver.save_state(n, s) for n, s in zip(names, nest.flatten(state))]
    from runnel.core.framework import control_dependencies
    with control_dependencies(saves):
        outputs[-1] = nest.map_structure(array_ops.identity, outputs[-1])
    return outputs, state


def static_bidirectional_rnn(cell_fw, cell_bw, inputs, initial_state_fw=None, initial_state_bw=None,
                             dtype=None, sequence_length=None, scope=None):
    """Unrolls two cells in both directions. Returns (concatenated outputs, state forward, state backward)."""
    from runnel.ops.variable_scopes import variable_scope
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            forward, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length,
                                           scope=fw)

        def turned(items):
            if sequence_length is None:
                return list(reversed(items))
            stacked = array_ops.stack(items, axis=0)
            return array_ops.unstack(_reverse(stacked, sequence_length, 1, 0), len(items))
        with variable_scope("bw") as bw:
            backward, state_bw = static_rnn(cell_bw, turned(list(inputs)), initial_state_bw, dtype,
                                            sequence_length, scope=bw)
        outputs = [array_ops.concat([a, b], 1) for a, b in zip(forward, turned(backward))]
        return outputs, state_fw, state_bw


def raw_rnn(cell, loop_fn, parallel_iterations=None, swap_memory=False, scope=None):
    """Runs a cell in a loop that `loop_fn` controls. Returns (TensorArrays of outputs, last state, last loop state).

    `loop_fn(time, cell_output, cell_state, loop_state)` returns, for every step, (finished, next input, next cell state,
    output to emit, next loop state).
    """
    from runnel.ops.variable_scopes import variable_scope
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn"):
        time = constant(0, dtype=dtypes.int32)
        finished, next_input, state, emit_structure, loop_state = loop_fn(time, None, None, None)
        keep_loop = loop_state is not None
        loop_state = constant(0, dtypes.int32) if loop_state is None else loop_state
        first = nest.flatten(next_input)[0]
        static = first.shape.as_list()[0] if first.shape.dims else None
        batch = static if static is not None else array_ops.shape(first)[0]
        if emit_structure is not None:
            sizes = [e.shape if e.shape.is_fully_defined() else array_ops.shape(e)
                     for e in nest.flatten(emit_structure)]
            kinds = [e.dtype for e in nest.flatten(emit_structure)]
        else:
            emit_structure = cell.output_size
            sizes = nest.flatten(emit_structure)
            kinds = [nest.flatten(state)[0].dtype] * len(sizes)
        arrays = [TensorArray(k, size=0, dynamic_size=True, element_shape=None) for k in kinds]

        def zeros(size, kind):
            if hasattr(size, "op"):
                dims = array_ops.concat([array_ops.reshape(batch, [1]), size], 0)
            else:
                dims = _shape_before(batch, size)
                dims = array_ops.stack(dims) if static is None else dims
            return array_ops.zeros(dims, kind)
        zero_emit = nest.pack_sequence_as(emit_structure, [zeros(s, k) for s, k in zip(sizes, kinds)])

        def body(time, done, current, arrays, state, loop_state):
            output, cell_state = cell(current, state)
            next_done, following, next_state, emit, next_loop = loop_fn(
                time + 1, output, cell_state, loop_state if keep_loop else None)
            nest.assert_same_structure(state, next_state)
            next_loop = loop_state if next_loop is None else next_loop

            def kept(new, old):
                if isinstance(new, TensorArray) or new.shape.ndims == 0:
                    return new
                return raw_ops.Select(condition=done, x=old, y=new)
            emit = nest.map_structure(kept, emit, zero_emit)
            next_state = nest.map_structure(kept, next_state, state)
            arrays = [a.write(time, e) for a, e in zip(arrays, nest.flatten(emit))]
            return (time + 1, raw_ops.LogicalOr(x=next_done, y=done), following, arrays, next_state,
                    next_loop)

        _, _, _, arrays, state, loop_state = while_loop(
            lambda time, done, *_: raw_ops.LogicalNot(x=math_ops.reduce_all(done)), body,
            (time, finished, next_input, arrays, state, loop_state),
            parallel_iterations=32 if parallel_iterations is None else parallel_iterations,
            swap_memory=swap_memory)
        return (nest.pack_sequence_as(emit_structure, arrays), state,
                loop_state if keep_loop else None)
