"""tf.contrib.rnn: the cells of tf.nn.rnn_cell, and more."""

from runnel import nest, nn, raw_ops
from runnel.contrib.layers import layer_norm
from runnel.core.framework import name_scope
from runnel.nn.rnn import (
    _transposed as transpose_batch_time, bidirectional_dynamic_rnn as _bidirectional_dynamic_rnn,
    static_bidirectional_rnn, static_rnn, static_state_saving_rnn)
from runnel.nn.rnn_cell import (
    BasicLSTMCell, BasicRNNCell, DeviceWrapper, DropoutWrapper, GRUCell, LSTMCell, LSTMStateTuple, MultiRNNCell,
    ResidualWrapper, RNNCell)
from runnel.nn.rnn_cell import _LayerCell as LayerRNNCell
from runnel.ops import array_ops, init_ops, math_ops
from runnel.ops.variable_scopes import get_variable, get_variable_scope, variable_scope


def linear(args, output_size, bias, bias_initializer=None, kernel_initializer=None):
    """Returns [args] @ kernel + bias, with variables of the current scope."""
    args = list(args) if isinstance(args, (list, tuple)) else [args]
    depth = sum(a.shape.with_rank(2).as_list()[1] for a in args)
    dtype = args[0].dtype.base_dtype
    kernel = get_variable("kernel", [depth, output_size], dtype=dtype, initializer=kernel_initializer)
    outputs = raw_ops.MatMul(a=args[0] if len(args) == 1 else array_ops.concat(args, 1), b=kernel)
    if not bias:
        return outputs
    return nn.bias_add(outputs, get_variable(
        "bias", [output_size], dtype=dtype, initializer=bias_initializer or init_ops.zeros_initializer()))


class _Around(RNNCell):
    """A cell around another, with variables of its own."""

    def __init__(self, cell, reuse=None, **kwargs):
        super().__init__(_reuse=reuse, **kwargs)
        self._cell = cell

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    def zero_state(self, batch_size, dtype):
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return self._cell.zero_state(batch_size, dtype)


class EmbeddingWrapper(_Around):
    """Embeds ids, then applies a cell."""

    def __init__(self, cell, embedding_classes, embedding_size, initializer=None, reuse=None):
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError("Both embedding_classes and embedding_size must be > 0: %d, %d." % (
                embedding_classes, embedding_size))
        self._shape, self._initializer = [embedding_classes, embedding_size], initializer

    def call(self, inputs, state):
        bound = 3 ** 0.5  # the uniform distribution over [-bound, bound] has variance 1
        initializer = (self._initializer or get_variable_scope().initializer
                       or init_ops.random_uniform_initializer(-bound, bound))
        embedding = get_variable("embedding", self._shape, initializer=initializer,
                                 dtype=nest.flatten(state)[0].dtype)
        return self._cell(nn.embedding_lookup(embedding, array_ops.reshape(inputs, [-1])), state)


class InputProjectionWrapper(_Around):
    """Applies a linear layer, then a cell."""

    def __init__(self, cell, num_proj, activation=None, input_size=None, reuse=None):
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs, state):
        projected = linear(inputs, self._num_proj, True)
        return self._cell(self._activation(projected) if self._activation else projected, state)


class OutputProjectionWrapper(_Around):
    """Applies a cell, then a linear layer."""

    def __init__(self, cell, output_size, activation=None, reuse=None):
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError("Parameter output_size must be > 0: %d." % output_size)
        self._projected, self._activation = output_size, activation

    @property
    def output_size(self):
        return self._projected

    def call(self, inputs, state):
        output, state = self._cell(inputs, state)
        projected = linear(output, self._projected, True)
        return self._activation(projected) if self._activation else projected, state


class HighwayWrapper(_Around):
    """Adds a gated highway around a cell."""

    def __init__(self, cell, couple_carry_transform_gates=True, carry_bias_init=1.0):
        super().__init__(cell)
        self._is_coupled, self._carry_bias = couple_carry_transform_gates, carry_bias_init

    def _gate(self, x, name, bias):
        size = x.shape.as_list()[-1]
        weight = get_variable(name + "_w", [size, size])
        return math_ops.sigmoid(nn.xw_plus_b(x, weight, get_variable(
            name + "_b", [size], initializer=init_ops.constant_initializer(bias))))

    def call(self, inputs, state):
        outputs, state = self._cell(inputs, state)
        carry = self._gate(inputs, "carry", self._carry_bias)
        transform = 1 - carry if self._is_coupled else self._gate(inputs, "transform", -self._carry_bias)
        return inputs * carry + outputs * transform, state


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM with layer normalization of gates and cells, and recurrent dropout."""

    def __init__(self, num_units, forget_bias=1.0, input_size=None, activation=math_ops.tanh,
                 layer_norm=True, norm_gain=1.0, norm_shift=0.0, dropout_keep_prob=1.0,
                 dropout_prob_seed=None, reuse=None):
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._layer_norm, self._norms = layer_norm, (norm_gain, norm_shift)
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self):
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self):
        return self._num_units

    def _norm(self, x, scope):
        if not self._layer_norm:
            return x
        with variable_scope(scope):
            for name, value in zip(("gamma", "beta"), self._norms):
                get_variable(name, x.shape[-1:], dtype=x.dtype,
                             initializer=init_ops.constant_initializer(value))
        return layer_norm(x, reuse=True, scope=scope)

    def call(self, inputs, state):
        c, h = state
        gates = linear([inputs, h], 4 * self._num_units, not self._layer_norm)
        i, j, f, o = array_ops.split(gates, 4, 1)
        i, j, f, o = (self._norm(gate, scope) for gate, scope in (
            (i, "input"), (j, "transform"), (f, "forget"), (o, "output")))
        new = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = nn.dropout(new, self._keep_prob, seed=self._seed)
        c = self._norm(c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * new, "state")
        h = self._activation(c) * math_ops.sigmoid(o)
        return h, LSTMStateTuple(c, h)


class LSTMBlockCell(LSTMCell):
    """An LSTM with the variable names of stock's fused cell. The planner fuses its steps."""

    def __init__(self, num_units, forget_bias=1.0, cell_clip=None, use_peephole=False, dtype=None,
                 reuse=None, name="lstm_cell"):
        super().__init__(num_units, use_peepholes=use_peephole, cell_clip=cell_clip,
                         forget_bias=forget_bias, dtype=dtype, reuse=reuse, name=name)


class AttentionCellWrapper(_Around):
    """A cell that attends to its own last outputs."""

    def __init__(self, cell, attn_length, attn_size=None, attn_vec_size=None, input_size=None,
                 state_is_tuple=True, reuse=None):
        super().__init__(cell, reuse)
        if attn_length <= 0:
            raise ValueError("attn_length should be greater than zero, got %s" % attn_length)
        self._attn_size = attn_size if attn_size is not None else cell.output_size
        self._attn_vec_size = attn_vec_size if attn_vec_size is not None else self._attn_size
        self._attn_length, self._input_size, self._is_tuple = attn_length, input_size, state_is_tuple

    @property
    def state_size(self):
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return sizes if self._is_tuple else sum(sizes)

    @property
    def output_size(self):
        return self._attn_size

    def zero_state(self, batch_size, dtype):
        return RNNCell.zero_state(self, batch_size, dtype)

    def call(self, inputs, state):
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        inner, attention, seen = state if self._is_tuple else array_ops.split(state, list(sizes), 1)
        seen = array_ops.reshape(seen, [-1, self._attn_length, self._attn_size])
        inputs = linear([inputs, attention], self._input_size or inputs.shape.as_list()[1], True)
        output, inner = self._cell(inputs, inner)
        query = array_ops.concat(nest.flatten(inner), 1) if self._is_tuple else inner
        attention = self._attention(query, seen)
        with variable_scope("attn_output_projection"):
            output = linear([output, attention], self._attn_size, True)
        seen = array_ops.concat([seen[:, 1:], array_ops.expand_dims(output, 1)], 1)
        state = (inner, attention, array_ops.reshape(seen, [-1, self._attn_length * self._attn_size]))
        return output, state if self._is_tuple else array_ops.concat(list(state), 1)

    def _attention(self, query, seen):
        with variable_scope("attention"):
            kernel = get_variable("attn_w", [1, 1, self._attn_size, self._attn_vec_size])
            v = get_variable("attn_v", [self._attn_vec_size])
            hidden = array_ops.reshape(seen, [-1, self._attn_length, 1, self._attn_size])
            features = nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            asked = array_ops.reshape(linear(query, self._attn_vec_size, True),
                                      [-1, 1, 1, self._attn_vec_size])
            weights = nn.softmax(math_ops.reduce_sum(v * math_ops.tanh(features + asked), [2, 3]))
            found = array_ops.reshape(weights, [-1, self._attn_length, 1, 1]) * hidden
            return array_ops.reshape(math_ops.reduce_sum(found, [1, 2]), [-1, self._attn_size])


def _checked_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw):
    for cells, name in ((cells_fw, "fw"), (cells_bw, "bw")):
        if not cells:
            raise ValueError("Must specify at least one %s cell for BidirectionalRNN." % name)
        if not isinstance(cells, list):
            raise ValueError("cells_%s must be a list of RNNCells (one per layer)." % name)
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for states, name in ((initial_states_fw, "fw"), (initial_states_bw, "bw")):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):
            raise ValueError("initial_states_%s must be a list of state tensors (one per layer)." % name)
    nothing = [None] * len(cells_fw)
    return zip(cells_fw, cells_bw, initial_states_fw or nothing, initial_states_bw or nothing)


def stack_bidirectional_rnn(cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None,
                            dtype=None, sequence_length=None, scope=None):
    """Stacks unrolled bidirectional layers. Returns (outputs, states forward, states backward)."""
    rows = _checked_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    forward, backward = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (cell_fw, cell_bw, state_fw, state_bw) in enumerate(rows):
            with variable_scope("cell_%d" % number) as cell_scope:
                inputs, state_fw, state_bw = static_bidirectional_rnn(
                    cell_fw, cell_bw, inputs, state_fw, state_bw, dtype, sequence_length, cell_scope)
            forward.append(state_fw)
            backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)


def stack_bidirectional_dynamic_rnn(cells_fw, cells_bw, inputs, initial_states_fw=None,
                                    initial_states_bw=None, dtype=None, sequence_length=None,
                                    parallel_iterations=None, time_major=False, scope=None,
                                    swap_memory=False):
    """Stacks bidirectional layers as loops. Returns (outputs, states forward, states backward)."""
    rows = _checked_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    forward, backward = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (cell_fw, cell_bw, state_fw, state_bw) in enumerate(rows):
            with variable_scope("cell_%d" % number):
                outputs, (state_fw, state_bw) = _bidirectional_dynamic_rnn(
                    cell_fw, cell_bw, inputs, sequence_length, state_fw, state_bw, dtype,
                    parallel_iterations, swap_memory, time_major)
                inputs = array_ops.concat(outputs, 2)
            forward.append(state_fw)
            backward.append(state_bw)
    return inputs, tuple(forward), tuple(backward)
