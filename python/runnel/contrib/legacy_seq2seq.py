"""tf.contrib.legacy_seq2seq: sequence-to-sequence models over lists of tensors, one per step."""

import copy

from runnel import dtypes, nest, nn
from runnel.contrib.rnn import EmbeddingWrapper, OutputProjectionWrapper, linear, static_rnn
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.variable_scopes import get_variable, get_variable_scope, variable_scope


def _best_symbol(embedding, output_projection=None, update_embedding=True):
    """Returns a loop function: the embedding of the most probable symbol of the last output."""
    def loop(previous, _):
        if output_projection is not None:
            previous = nn.xw_plus_b(previous, output_projection[0], output_projection[1])
        chosen = nn.embedding_lookup(embedding, math_ops.argmax(previous, 1))
        return chosen if update_embedding else array_ops.stop_gradient(chosen)
    return loop


def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
    """Decodes. Returns (outputs, last state). A loop function turns an output into the next input."""
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for number, inputs in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    inputs = loop_function(previous, number)
            if number > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
            previous = output if loop_function is not None else None
    return outputs, state


def basic_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, dtype=dtypes.float32, scope=None):
    """An encoder whose last state is the decoder's first."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, loop_function=None, dtype=dtypes.float32,
                     scope=None):
    """Like basic_rnn_seq2seq; encoder and decoder share their variables."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def _feeding(embedding, output_projection, feed_previous, update_embedding):
    return _best_symbol(embedding, output_projection, update_embedding) if feed_previous else None


def embedding_rnn_decoder(decoder_inputs, initial_state, cell, num_symbols, embedding_size,
                          output_projection=None, feed_previous=False,
                          update_embedding_for_previous=True, scope=None):
    """A decoder whose inputs are symbols."""
    with variable_scope(scope or "embedding_rnn_decoder"):
        if output_projection is not None:
            output_projection[0].shape.assert_is_compatible_with([None, num_symbols])
            output_projection[1].shape.assert_is_compatible_with([num_symbols])
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = _feeding(embedding, output_projection, feed_previous, update_embedding_for_previous)
        inputs = [nn.embedding_lookup(embedding, i) for i in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop)


def embedding_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, num_encoder_symbols,
                          num_decoder_symbols, embedding_size, output_projection=None,
                          feed_previous=False, dtype=None, scope=None):
    """Maps symbols to symbols. `feed_previous`, a bool or a tensor, makes the decoder read its own outputs."""
    with variable_scope(scope or "embedding_rnn_seq2seq") as entered:
        dtype = dtype or entered.dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        return _decoded(feed_previous, lambda feeds: embedding_rnn_decoder(
            decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection, feeds))


def _decoded(feed_previous, decode):
    """Returns decode(feed_previous). If `feed_previous` is a tensor, the step chooses between both decoders."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    from runnel.ops.control_flow import cond
    shapes = []

    def branch(feeds):
        with variable_scope(get_variable_scope(), reuse=None if feeds else True):
            outputs, state = decode(feeds)
            shapes[:] = [len(outputs), state]
            return outputs + nest.flatten(state)

    flat = cond(feed_previous, lambda: branch(True), lambda: branch(False))
    count, state = shapes
    return flat[:count], nest.pack_sequence_as(state, flat[count:])


def embedding_tied_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, num_symbols, embedding_size,
                               num_decoder_symbols=None, output_projection=None, feed_previous=False,
                               dtype=None, scope=None):
    """Maps symbols to symbols of the same vocabulary, with one embedding and one cell."""
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as entered:
        embedding = get_variable("embedding", [num_symbols, embedding_size], dtype=entered.dtype)
        sources = [nn.embedding_lookup(embedding, x) for x in encoder_inputs]
        targets = [nn.embedding_lookup(embedding, x) for x in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(
                cell, num_symbols if num_decoder_symbols is None else num_decoder_symbols)
        return _decoded(feed_previous, lambda feeds: tied_rnn_seq2seq(
            sources, targets, cell, _feeding(embedding, output_projection, feeds, True), entered.dtype))


def _attend(query, hidden, features, vectors, sizes):
    """Returns what each head reads from the encoder's states for a query."""
    length, size = sizes
    found = []
    if nest.is_nested(query):
        query = array_ops.concat(nest.flatten(query), 1)
    for number, (feature, vector) in enumerate(zip(features, vectors)):
        with variable_scope("Attention_%d" % number):
            asked = array_ops.reshape(linear(query, size, True), [-1, 1, 1, size])
            scores = math_ops.reduce_sum(vector * math_ops.tanh(feature + asked), [2, 3])
            weights = array_ops.reshape(nn.softmax(scores), [-1, length, 1, 1])
            found.append(array_ops.reshape(math_ops.reduce_sum(weights * hidden, [1, 2]), [-1, size]))
    return found


def attention_decoder(decoder_inputs, initial_state, attention_states, cell, output_size=None,
                      num_heads=1, loop_function=None, dtype=None, scope=None,
                      initial_state_attention=False):
    """A decoder that attends to the encoder's states ([batch, length, size]) in each step."""
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.shape.as_list()[2] is None:
        raise ValueError("Shape[2] of attention_states must be known: %s" % attention_states.shape)
    output_size = cell.output_size if output_size is None else output_size
    with variable_scope(scope or "attention_decoder", dtype=dtype) as entered:
        dtype, size = entered.dtype, attention_states.shape.as_list()[2]
        batch = array_ops.shape(decoder_inputs[0])[0]
        length = attention_states.shape.as_list()[1]
        if length is None:
            length = array_ops.shape(attention_states)[1]
        hidden = array_ops.reshape(attention_states, [-1, length, 1, size])
        features, vectors = [], []
        for head in range(num_heads):
            kernel = get_variable("AttnW_%d" % head, [1, 1, size, size], dtype=dtype)
            features.append(nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
            vectors.append(get_variable("AttnV_%d" % head, [size], dtype=dtype))

        def attend(state):
            return _attend(state, hidden, features, vectors, (length, size))

        attentions = [array_ops.zeros(array_ops.stack([batch, size]), dtype) for _ in range(num_heads)]
        for attention in attentions:
            attention.set_shape([None, size])
        state, outputs, previous = initial_state, [], None
        if initial_state_attention:
            attentions = attend(initial_state)
        for number, inputs in enumerate(decoder_inputs):
            if number > 0:
                get_variable_scope().reuse_variables()
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    inputs = loop_function(previous, number)
            depth = inputs.shape.with_rank(2).as_list()[1]
            if depth is None:
                raise ValueError("Could not infer input size from input: %s" % inputs.name)
            cell_output, state = cell(linear([inputs] + attentions, depth, True), state)
            with variable_scope(get_variable_scope(),
                                reuse=True if number == 0 and initial_state_attention else None):
                attentions = attend(state)
            with variable_scope("AttnOutputProjection"):
                output = linear([cell_output] + attentions, output_size, True)
            outputs.append(output)
            previous = output if loop_function is not None else None
    return outputs, state


def embedding_attention_decoder(decoder_inputs, initial_state, attention_states, cell, num_symbols,
                                embedding_size, num_heads=1, output_size=None, output_projection=None,
                                feed_previous=False, update_embedding_for_previous=True, dtype=None,
                                scope=None, initial_state_attention=False):
    """An attention_decoder whose inputs are symbols."""
    output_size = cell.output_size if output_size is None else output_size
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = _feeding(embedding, output_projection, feed_previous, update_embedding_for_previous)
        inputs = [nn.embedding_lookup(embedding, i) for i in decoder_inputs]
        return attention_decoder(inputs, initial_state, attention_states, cell, output_size, num_heads,
                                 loop, initial_state_attention=initial_state_attention)


def embedding_attention_seq2seq(encoder_inputs, decoder_inputs, cell, num_encoder_symbols,
                                num_decoder_symbols, embedding_size, num_heads=1,
                                output_projection=None, feed_previous=False, dtype=None, scope=None,
                                initial_state_attention=False):
    """Maps symbols to symbols with attention."""
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as entered:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = static_rnn(encoder, encoder_inputs, dtype=entered.dtype)
        seen = array_ops.concat([array_ops.reshape(e, [-1, 1, cell.output_size]) for e in outputs], 1)
        output_size = None
        if output_projection is None:
            cell, output_size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols
        return _decoded(feed_previous, lambda feeds: embedding_attention_decoder(
            decoder_inputs, state, seen, cell, num_decoder_symbols, embedding_size, num_heads,
            output_size, output_projection, feeds, initial_state_attention=initial_state_attention))


def sequence_loss_by_example(logits, targets, weights, average_across_timesteps=True,
                             softmax_loss_function=None, name=None):
    """Returns the weighted cross entropy of each example, over lists of steps."""
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError("Lengths of logits, weights, and targets must be the same %d, %d, %d." % (
            len(logits), len(weights), len(targets)))
    with name_scope(name, "sequence_loss_by_example", logits + targets + weights):
        losses = []
        for logit, target, weight in zip(logits, targets, weights):
            if softmax_loss_function is None:
                loss = nn.sparse_softmax_cross_entropy_with_logits(
                    labels=array_ops.reshape(target, [-1]), logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total = math_ops.add_n(losses)
        if average_across_timesteps:
            total /= math_ops.add_n(weights) + 1e-12
    return total


def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True,
                  softmax_loss_function=None, name=None):
    """Returns the weighted cross entropy of a batch, over lists of steps."""
    with name_scope(name, "sequence_loss", logits + targets + weights):
        cost = math_ops.reduce_sum(sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function))
        if average_across_batch:
            return cost / math_ops.cast(array_ops.shape(targets[0])[0], cost.dtype)
        return cost


def model_with_buckets(encoder_inputs, decoder_inputs, targets, weights, buckets, seq2seq,
                       softmax_loss_function=None, per_example_loss=False, name=None):
    """Builds a model for each pair of lengths, with shared variables. Returns (outputs, losses) by bucket."""
    for given, at, what in ((encoder_inputs, 0, "encoder_inputs"), (targets, 1, "targets"),
                            (weights, 1, "weights")):
        if len(given) < buckets[-1][at]:
            raise ValueError("Length of %s (%d) must be at least that of last bucket (%d)." % (
                what, len(given), buckets[-1][at]))
    losses, outputs = [], []
    measure = sequence_loss_by_example if per_example_loss else sequence_loss
    with name_scope(name, "model_with_buckets", encoder_inputs + decoder_inputs + targets + weights):
        for number, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number > 0 else None):
                bucket, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(bucket)
                losses.append(measure(bucket, targets[:target], weights[:target],
                                      softmax_loss_function=softmax_loss_function))
    return outputs, losses
