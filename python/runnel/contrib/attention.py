"""Attention of tf.contrib.seq2seq: mechanisms that score a memory, and a cell that uses them."""

import collections

from runnel import dtypes, nest, nn, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.layers import core as layers
from runnel.nn.rnn_cell import RNNCell, _zeros
from runnel.ops import array_ops, init_ops, math_ops
from runnel.ops.tensor_array import TensorArray
from runnel.ops.variable_scopes import get_variable, variable_scope


def hardmax(logits, name=None):
    """Returns 1 for the largest element of each row, and 0 for the others."""
    with name_scope(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits)
        depth = logits.shape.as_list()[-1]
        if depth is None:
            depth = array_ops.shape(logits)[-1]
        return array_ops.one_hot(math_ops.argmax(logits, -1), depth, dtype=logits.dtype)


class AttentionMechanism:
    """The base of mechanisms, which score each step of a memory for a query."""

    def __init__(self, query_layer, memory_layer, memory, probability_fn, memory_sequence_length=None,
                 score_mask_value=None, name=None):
        self.query_layer, self.memory_layer = query_layer, memory_layer
        self.dtype = memory_layer.dtype if memory_layer is not None else memory.dtype.base_dtype
        with name_scope(name, "BaseAttentionMechanismInit", [memory]):
            memory = convert_to_tensor(memory)
            if not memory.shape[2:].is_fully_defined():
                raise ValueError("Expected memory %s to have fully defined inner dims, but saw shape: %s" % (
                    memory.name, memory.shape))
            mask = None
            if memory_sequence_length is not None:
                mask = array_ops.sequence_mask(memory_sequence_length, array_ops.shape(memory)[1])
                memory *= array_ops.expand_dims(math_ops.cast(mask, memory.dtype), 2)
            self.values = memory
            self.keys = memory_layer(memory) if memory_layer is not None else memory
            dims = self.keys.shape.as_list()
            self.batch_size = dims[0] or array_ops.shape(self.keys)[0]
            self.alignments_size = dims[1] or array_ops.shape(self.keys)[1]
        self.state_size = self.alignments_size
        lowest = float("-inf") if score_mask_value is None else score_mask_value

        def probability(score):
            if mask is not None:
                score = array_ops.where(mask, score, array_ops.ones_like(score) * lowest)
            return (probability_fn or nn.softmax)(score)

        self._probability = probability

    def initial_alignments(self, batch_size, dtype):
        """Returns zeros."""
        return _zeros(self.alignments_size, batch_size, dtype) if not hasattr(
            self.alignments_size, "op") else array_ops.zeros(
                array_ops.stack([batch_size, self.alignments_size]), dtype)

    initial_state = initial_alignments

    def __call__(self, query, state):
        """Returns (weight of each step, next state)."""
        alignments = self._probability(self._score(query))
        return alignments, alignments


class LuongAttention(AttentionMechanism):
    """Scores a step by its product with the query."""

    def __init__(self, num_units, memory, memory_sequence_length=None, scale=False, probability_fn=None,
                 score_mask_value=None, dtype=None, name="LuongAttention"):
        super().__init__(None, layers.Dense(num_units, use_bias=False, name="memory_layer",
                                            dtype=dtype or dtypes.float32),
                         memory, probability_fn, memory_sequence_length, score_mask_value, name)
        self._scale = scale

    def _score(self, query):
        with variable_scope(None, "luong_attention", [query]):
            depth, units = query.shape.as_list()[-1], self.keys.shape.as_list()[-1]
            if depth != units:
                raise ValueError("Incompatible or unknown inner dimensions between query and keys.  Query "
                                 "(%s) has units: %s.  Keys (%s) have units: %s.  Perhaps you need to set "
                                 "num_units to the keys' dimension (%s)?" % (query, depth, self.keys, units,
                                                                             units))
            score = array_ops.squeeze(math_ops.matmul(array_ops.expand_dims(query, 1), self.keys,
                                                      transpose_b=True), [1])
            if not self._scale:
                return score
            return score * get_variable("attention_g", (), dtype=query.dtype,
                                        initializer=init_ops.ones_initializer())


class BahdanauAttention(AttentionMechanism):
    """Scores a step by v * tanh(key + query), optionally with v normalized."""

    def __init__(self, num_units, memory, memory_sequence_length=None, normalize=False,
                 probability_fn=None, score_mask_value=None, dtype=None, name="BahdanauAttention"):
        def dense(layer):
            return layers.Dense(num_units, use_bias=False, name=layer, dtype=dtype or dtypes.float32)

        super().__init__(dense("query_layer"), dense("memory_layer"), memory, probability_fn,
                         memory_sequence_length, score_mask_value, name)
        self._units, self._normalize = num_units, normalize

    def _score(self, query):
        with variable_scope(None, "bahdanau_attention", [query]):
            asked = array_ops.expand_dims(self.query_layer(query), 1)
            v = get_variable("attention_v", [self._units], dtype=query.dtype)
            if not self._normalize:
                return math_ops.reduce_sum(v * math_ops.tanh(self.keys + asked), [2])
            gain = get_variable("attention_g", (), dtype=query.dtype,
                                initializer=init_ops.constant_initializer((1.0 / self._units) ** 0.5))
            bias = get_variable("attention_b", [self._units], dtype=query.dtype,
                                initializer=init_ops.zeros_initializer())
            normed = gain * v * raw_ops.Rsqrt(x=math_ops.reduce_sum(v * v))
            return math_ops.reduce_sum(normed * math_ops.tanh(self.keys + asked + bias), [2])


class AttentionWrapperState(collections.namedtuple("AttentionWrapperState", (
        "cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"))):
    """The state of an AttentionWrapper."""

    def clone(self, **kwargs):
        """Returns a copy with some parts replaced."""
        return self._replace(**kwargs)


class AttentionWrapper(RNNCell):
    """A cell that also reads the attention of the previous step."""

    def __init__(self, cell, attention_mechanism, attention_layer_size=None, alignment_history=False,
                 cell_input_fn=None, output_attention=True, initial_cell_state=None, name=None,
                 attention_layer=None, attention_fn=None):
        super().__init__(name=name)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in self._mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError("attention_mechanism must be an AttentionMechanism, saw type: %s" %
                                type(mechanism).__name__)
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._cell, self._history, self._gives_attention = cell, alignment_history, output_attention
        self._initial, self._fn = initial_cell_state, attention_fn or _attended
        self._inputs = cell_input_fn or (lambda inputs, attention: array_ops.concat([inputs, attention], -1))
        self._layers, self._size = self._made_layers(attention_layer_size, attention_layer)

    def _made_layers(self, sizes, given):
        depths = [m.values.shape.as_list()[-1] for m in self._mechanisms]
        if sizes is None and given is None:
            return [None] * len(depths), sum(depths)
        chosen = sizes if sizes is not None else given
        chosen = list(chosen) if isinstance(chosen, (list, tuple)) else [chosen]
        if len(chosen) != len(depths):
            raise ValueError("If provided, %s must contain exactly one %s per attention_mechanism, saw: %d "
                             "vs %d" % (("attention_layer_size", "integer") if sizes is not None else
                                        ("attention_layer", "layer")) + (len(chosen), len(depths)))
        if sizes is not None:
            return [layers.Dense(size, use_bias=False, name="attention_layer", dtype=m.dtype)
                    for size, m in zip(chosen, self._mechanisms)], sum(chosen)
        shapes = [layer.compute_output_shape([None, self._cell.output_size + depth])
                  for layer, depth in zip(chosen, depths)]
        return chosen, sum(tensor_shape.as_shape(shape).as_list()[-1] for shape in shapes)

    def _one_or_all(self, values):
        values = tuple(values)
        return values if self._is_multi else values[0]

    @property
    def output_size(self):
        return self._size if self._gives_attention else self._cell.output_size

    @property
    def state_size(self):
        sizes = self._one_or_all(m.alignments_size for m in self._mechanisms)
        return AttentionWrapperState(
            self._cell.state_size, self._size, tensor_shape.TensorShape([]), sizes,
            self._one_or_all(m.alignments_size if self._history else () for m in self._mechanisms), sizes)

    def zero_state(self, batch_size, dtype):
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            state = self._initial
            if state is None:
                state = self._cell.zero_state(batch_size, dtype)
            state = nest.map_structure(lambda s: array_ops.identity(s, name="checked_cell_state"), state)
            first = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            return AttentionWrapperState(
                state, _zeros(self._size, batch_size, dtype), array_ops.zeros([], dtypes.int32),
                self._one_or_all(first),
                self._one_or_all(TensorArray(dtype, size=0, dynamic_size=True) if self._history else ()
                                 for _ in first),
                self._one_or_all(m.initial_state(batch_size, dtype) for m in self._mechanisms))

    def call(self, inputs, state):
        if not isinstance(state, AttentionWrapperState):
            raise TypeError("Expected state to be instance of AttentionWrapperState. Received type %s "
                            "instead." % type(state))
        output, cell_state = self._cell(self._inputs(inputs, state.attention), state.cell_state)
        before = state.attention_state if self._is_multi else [state.attention_state]
        histories = state.alignment_history if self._is_multi else [state.alignment_history]
        found = [self._fn(mechanism, output, previous, layer) for mechanism, previous, layer in zip(
            self._mechanisms, before, self._layers)]
        attention = array_ops.concat([one[0] for one in found], 1)
        state = AttentionWrapperState(
            cell_state, attention, state.time + 1, self._one_or_all(one[1] for one in found),
            self._one_or_all(history.write(state.time, one[1]) if self._history else ()
                             for history, one in zip(histories, found)),
            self._one_or_all(one[2] for one in found))
        return (attention if self._gives_attention else output), state


def _attended(mechanism, output, attention_state, layer):
    """Returns (attention, alignments, the mechanism's next state) for a cell's output."""
    alignments, state = mechanism(output, attention_state)
    context = array_ops.squeeze(math_ops.matmul(array_ops.expand_dims(alignments, 1), mechanism.values), [1])
    if layer is not None:
        context = layer(array_ops.concat([output, context], 1))
    return context, alignments, state
