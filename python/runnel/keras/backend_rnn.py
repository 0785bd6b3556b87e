"""tf.keras.backend.rnn: a step function over the time steps of a sequence."""

import runnel as tf
from runnel import nest


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False,
        input_length=None, time_major=False, zero_output_for_mask=False):
    """Calls step_function(inputs of a step, states) -> (output, new states) for every time step.

    Returns:
      (last output, outputs of all steps, last states). Where the mask is False, a step repeats the previous output (zeros
      with zero_output_for_mask) and keeps the states.
    """
    if not time_major:
        inputs = nest.map_structure(_swap, inputs)
    flat = [tf.convert_to_tensor(part) for part in nest.flatten(inputs)]
    for part in flat:
        part.shape.with_rank_at_least(3)
    if mask is not None:
        mask = tf.convert_to_tensor(mask)
        if mask.dtype != tf.bool:
            mask = tf.cast(mask, tf.bool)
        if mask.shape.ndims == 2:
            mask = tf.expand_dims(mask, -1)
        if not time_major:
            mask = _swap(mask)
    constants = list(constants or [])
    if unroll and not flat[0].shape.as_list()[0]:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    run = _unrolled if unroll else _looped
    last, outputs, states = run(
        lambda parts, states: step_function(nest.pack_sequence_as(inputs, parts), tuple(states) + tuple(constants)),
        flat, tuple(initial_states), mask, go_backwards, zero_output_for_mask, input_length)
    outputs = nest.map_structure(lambda part: _shaped(part, flat[0]), outputs)
    if not time_major:
        outputs = nest.map_structure(_swap, outputs)
    return last, outputs, states


def _swap(tensor):
    tensor = tf.convert_to_tensor(tensor)
    return tf.transpose(tensor, [1, 0] + list(range(2, tensor.shape.ndims)))


def _shaped(outputs, first):
    dims = outputs.shape.as_list()
    dims[:2] = first.shape.as_list()[:2]
    outputs.set_shape(dims)
    return outputs


def _masked(mask, new, old):
    """Returns the new values where the mask, one value per row, is True, else the old ones."""
    for _ in range(new.shape.ndims - mask.shape.ndims):
        mask = tf.expand_dims(mask, -1)
    sizes = tf.concat([[1], tf.shape(new)[1:]], 0)
    return tf.where(tf.tile(mask, sizes), new, old)


def _select(mask, new, old):
    return nest.map_structure(lambda a, b: _masked(mask, a, b), new, old)


def _unrolled(step, flat, states, mask, go_backwards, zero_output, _length):
    count = flat[0].shape.as_list()[0]
    order = range(count - 1, -1, -1) if go_backwards else range(count)
    results = []
    for t in order:
        output, new = step([part[t] for part in flat], states)
        new = tuple(new)
        if mask is not None:
            before = nest.map_structure(tf.zeros_like, output) if zero_output or not results else results[-1]
            output = _select(mask[t], output, before)
            new = _select(mask[t], new, states)
        results.append(output)
        states = new
    outputs = nest.map_structure(lambda *parts: tf.stack(parts), *results)
    return results[-1], outputs, list(states)


def _looped(step, flat, states, mask, go_backwards, zero_output, length):
    count = tf.shape(flat[0])[0]
    arrays = [tf.TensorArray(part.dtype, size=count, tensor_array_name="input_ta_%d" % i).unstack(
        tf.reverse(part, [0]) if go_backwards else part) for i, part in enumerate(flat)]
    masks = None
    if mask is not None:
        masks = tf.TensorArray(tf.bool, size=count, tensor_array_name="mask_ta").unstack(
            tf.reverse(mask, [0]) if go_backwards else mask)
    # One step outside of the loop shows the structure, types and shapes of the outputs.
    sample, _ = step([part[0] for part in flat], states)
    results = tuple(tf.TensorArray(part.dtype, size=count, element_shape=part.shape,
                                   tensor_array_name="output_ta_%d" % i)
                    for i, part in enumerate(nest.flatten(sample)))
    previous = tuple(tf.zeros_like(part) for part in nest.flatten(sample)) if masks is not None else ()

    def body(t, results, previous, states):
        output, new = step([array.read(t) for array in arrays], states)
        output, new = tuple(nest.flatten(output)), nest.flatten(tuple(new))
        for before, after in zip(nest.flatten(states), new):
            after.set_shape(before.shape)
        if masks is not None:
            now = masks.read(t)
            before = tuple(tf.zeros_like(part) for part in output) if zero_output else previous
            output = tuple(_masked(now, a, b) for a, b in zip(output, before))
            new = [_masked(now, a, b) for a, b in zip(new, nest.flatten(states))]
            previous = output
        results = tuple(array.write(t, part) for array, part in zip(results, output))
        return t + 1, results, previous, nest.pack_sequence_as(states, new)

    bound = count if length is None else tf.reduce_max(length)
    _, results, _, states = tf.while_loop(
        lambda t, *_: t < bound, body, (tf.constant(0, tf.int32, name="time"), results, previous, states),
        parallel_iterations=32, swap_memory=True)
    stacks = [array.stack() for array in results]
    outputs = nest.pack_sequence_as(sample, stacks)
    last = nest.pack_sequence_as(sample, [stack[bound - 1] for stack in stacks])
    for part, like in zip(nest.flatten(last), nest.flatten(sample)):
        part.set_shape(like.shape)
    return last, outputs, list(states)
