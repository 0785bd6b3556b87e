"""tf.contrib.crf: conditional random fields over sequences of tags.

The score of a sequence is the sum of the scores of its tags and of its transitions.
"""

from runnel import dtypes
from runnel.core.convert import constant, convert_to_tensor
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import while_loop
from runnel.ops.functional_ops import scan
from runnel.ops.variable_scopes import get_variable


def _mask(lengths, count, dtype):
    return array_ops.sequence_mask(lengths, maxlen=count, dtype=dtype)


def _length(x):
    """Returns the number of steps, statically if possible."""
    return x.shape.as_list()[1] or array_ops.shape(x)[1]


def crf_unary_score(tag_indices, sequence_lengths, inputs):
    """Returns the sum of the scores of the tags of each sequence."""
    tag_indices = convert_to_tensor(tag_indices)
    chosen = array_ops.one_hot(tag_indices, array_ops.shape(inputs)[2], dtype=inputs.dtype)
    scores = math_ops.reduce_sum(inputs * chosen, 2)
    return math_ops.reduce_sum(scores * _mask(sequence_lengths, _length(tag_indices), inputs.dtype), 1)


def crf_binary_score(tag_indices, sequence_lengths, transition_params):
    """Returns the sum of the scores of the transitions of each sequence."""
    tag_indices = convert_to_tensor(tag_indices)
    pairs = array_ops.stack([tag_indices[:, :-1], tag_indices[:, 1:]], 2)
    scores = array_ops.gather_nd(transition_params, pairs)
    mask = _mask(sequence_lengths, _length(tag_indices), scores.dtype)[:, 1:]
    return math_ops.reduce_sum(scores * mask, 1)


def crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params):
    """Returns the unnormalized score of each sequence of tags."""
    return (crf_unary_score(tag_indices, sequence_lengths, inputs)
            + crf_binary_score(tag_indices, sequence_lengths, transition_params))


def _forward(inputs, sequence_lengths, transition_params):
    """Returns the logarithm of the sum over all prefixes, by the last tag."""
    lengths = convert_to_tensor(sequence_lengths)
    count, transitions = _length(inputs), array_ops.expand_dims(transition_params, 0)

    def step(time, alphas):
        scores = math_ops.reduce_logsumexp(array_ops.expand_dims(alphas, 2) + transitions, [1])
        goes_on = array_ops.expand_dims(math_ops.cast(time, lengths.dtype) < lengths, 1)
        kept = array_ops.where_v2(goes_on, scores + inputs[:, time], alphas)
        kept.set_shape(alphas.shape)
        return time + 1, kept

    return while_loop(lambda time, _: time < count, step, (constant(1), inputs[:, 0]))[1]


def crf_log_norm(inputs, sequence_lengths, transition_params):
    """Returns the logarithm of the sum over all sequences of tags; 0 for empty ones."""
    inputs = convert_to_tensor(inputs)
    norm = math_ops.reduce_logsumexp(_forward(inputs, sequence_lengths, transition_params), [1])
    return array_ops.where_v2(convert_to_tensor(sequence_lengths) <= 0, array_ops.zeros_like(norm), norm)


def crf_log_likelihood(inputs, tag_indices, sequence_lengths, transition_params=None):
    """Returns (log-probability of each sequence of tags, transitions).

    Args:
      inputs: [batch, steps, tags], scores of single tags.
      tag_indices: [batch, steps].
      sequence_lengths: [batch].
      transition_params: [tags, tags]; by default the variable "transitions".
    """
    inputs = convert_to_tensor(inputs)
    if transition_params is None:
        count = inputs.shape.as_list()[2]
        transition_params = get_variable("transitions", [count, count])
    sequence_lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    scores = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return scores - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_decode(potentials, transition_params, sequence_length):
    """Returns (best tags of each sequence, their scores); tags after a sequence's end are 0."""
    potentials = convert_to_tensor(potentials)
    lengths = math_ops.cast(sequence_length, dtypes.int32)
    transitions = array_ops.expand_dims(transition_params, 0)
    count = _length(potentials)
    tags = array_ops.shape(potentials)[2]
    stay = array_ops.expand_dims(math_ops.range(tags), 0)
    steps = array_ops.transpose(potentials, [1, 0, 2])

    def forward(before, now):
        score, _, time = before
        reached = array_ops.expand_dims(score, 2) + transitions
        goes_on = array_ops.expand_dims(time < lengths, 1)
        best = array_ops.where_v2(goes_on, math_ops.reduce_max(reached, [1]) + now, score)
        back = array_ops.where_v2(goes_on, math_ops.argmax(reached, 1, output_type=dtypes.int32),
                                  stay + array_ops.zeros_like(score, dtype=dtypes.int32))
        return best, back, time + 1

    first = (steps[0], array_ops.zeros_like(steps[0], dtype=dtypes.int32), constant(1))
    scores, backs, _ = scan(forward, steps[1:], first)
    last = array_ops.concat([array_ops.expand_dims(steps[0], 0), scores], 0)[-1]
    best = math_ops.argmax(last, 1, output_type=dtypes.int32)

    def backward(tag, back):
        rows = math_ops.range(array_ops.shape(back)[0])
        return array_ops.gather_nd(back, array_ops.stack([rows, tag], 1))

    earlier = scan(backward, array_ops.reverse(backs, [0]), best)
    path = array_ops.concat([array_ops.reverse(earlier, [0]), array_ops.expand_dims(best, 0)], 0)
    path = array_ops.transpose(path)
    score = math_ops.reduce_max(last, [1])
    is_empty = lengths <= 0
    return (path * _mask(lengths, count, dtypes.int32),
            array_ops.where_v2(is_empty, array_ops.zeros_like(score), score))


def viterbi_decode(score, transition_params):
    """Returns (best tags, their score) of one sequence, in NumPy: [steps, tags] and [tags, tags]."""
    import numpy as np
    best, backs = np.asarray(score[0]), []
    for row in score[1:]:
        reached = best[:, None] + transition_params
        backs.append(np.argmax(reached, 0))
        best = row + np.max(reached, 0)
    path = [int(np.argmax(best))]
    for back in reversed(backs):
        path.append(int(back[path[-1]]))
    return path[::-1], np.max(best)
