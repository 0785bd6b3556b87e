"""tf.nn.rnn_cell: cells, which compute one step of a recurrent network."""

import collections

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import device as device_scope, name_scope
from runnel.layers import core as layers
from runnel.nn import nn_ops
from runnel.ops import array_ops, math_ops

LSTMStateTuple = collections.namedtuple("LSTMStateTuple", ("c", "h"))
LSTMStateTuple.__doc__ = "The state of an LSTM: c, the cell state, and h, the output."


def _zeros(size, batch_size, dtype):
    def one(size):
        shape = [batch_size] + tensor_shape.as_shape(size).as_list()
        return array_ops.zeros(array_ops.stack(shape) if hasattr(batch_size, "op") else shape, dtype)
    return nest.map_structure(one, size)


class RNNCell(layers.Layer):
    """The base of cells: a function of an input and a state that returns (output, next state)."""

    def __call__(self, inputs, state, scope=None, *args, **kwargs):
        if scope is None:
            return super().__call__(inputs, state, *args, **kwargs)
        from runnel.ops.variable_scopes import variable_scope
        with variable_scope(scope, custom_getter=None) as entered:
            return super().__call__(inputs, state, *args, scope=entered, **kwargs)

    def _shapes(self, inputs):
        return inputs.shape if not nest.is_nested(inputs) else nest.map_structure(
            lambda x: x.shape, inputs)

    @property
    def state_size(self):
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self):
        raise NotImplementedError("Abstract method")

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        """Returns zeros as the state for a batch like `inputs`."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            batch_size, dtype = array_ops.shape(inputs)[0], dtype or inputs.dtype
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size, dtype):
        """Returns zeros as the state."""
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return _zeros(self.state_size, batch_size, dtype)


_zero_state_tensors = _zeros  # the name that cells of other packages use


class _LayerCell(RNNCell):
    """A cell with a kernel and a bias."""

    def _weights(self, rows, columns, kernel="kernel", bias="bias", bias_initializer=None,
                 initializer=None):
        return (self.add_variable(kernel, [rows, columns], self._dtype, initializer),
                self.add_variable(bias, [columns], self._dtype, layers._zeros(bias_initializer)))

    def _depth(self, inputs_shape):
        last = tensor_shape.as_shape(inputs_shape).as_list()[-1]
        if last is None:
            raise ValueError("Expected inputs.shape[-1] to be known, saw shape: %s" % inputs_shape)
        return last


class BasicRNNCell(_LayerCell):
    """The basic cell: tanh([x, h] @ kernel + bias)."""

    def __init__(self, num_units, activation=None, reuse=None, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = _activation(activation)

    @property
    def state_size(self):
        return self._num_units

    output_size = state_size

    def build(self, inputs_shape):
        self._kernel, self._bias = self._weights(self._depth(inputs_shape) + self._num_units,
                                                 self._num_units)
        self.built = True

    def call(self, inputs, state):
        gates = raw_ops.MatMul(a=array_ops.concat([inputs, state], 1), b=self._kernel)
        output = self._activation(nn_ops.bias_add(gates, self._bias))
        return output, output


def _activation(activation):
    if activation is None:
        return math_ops.tanh
    if isinstance(activation, str):
        return getattr(nn_ops, activation)
    return activation


class GRUCell(_LayerCell):
    """A gated recurrent unit."""

    def __init__(self, num_units, activation=None, reuse=None, kernel_initializer=None,
                 bias_initializer=None, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = _activation(activation)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self):
        return self._num_units

    output_size = state_size

    def build(self, inputs_shape):
        from runnel.ops.init_ops import constant_initializer
        rows = self._depth(inputs_shape) + self._num_units
        ones = self._bias_initializer or constant_initializer(1.0, dtype=self._dtype)
        self._gate_kernel, self._gate_bias = self._weights(
            rows, 2 * self._num_units, "gates/kernel", "gates/bias", ones, self._kernel_initializer)
        self._candidate_kernel, self._candidate_bias = self._weights(
            rows, self._num_units, "candidate/kernel", "candidate/bias", self._bias_initializer,
            self._kernel_initializer)
        self.built = True

    def call(self, inputs, state):
        gates = nn_ops.bias_add(raw_ops.MatMul(a=array_ops.concat([inputs, state], 1),
                                               b=self._gate_kernel), self._gate_bias)
        r, u = array_ops.split(math_ops.sigmoid(gates), 2, 1)
        candidate = nn_ops.bias_add(raw_ops.MatMul(a=array_ops.concat([inputs, r * state], 1),
                                                   b=self._candidate_kernel), self._candidate_bias)
        state = u * state + (1 - u) * self._activation(candidate)
        return state, state


class BasicLSTMCell(_LayerCell):
    """A long short-term memory cell without peepholes."""

    def __init__(self, num_units, forget_bias=1.0, state_is_tuple=True, activation=None, reuse=None,
                 name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = _activation(activation)

    @property
    def state_size(self):
        n = self._num_units
        return LSTMStateTuple(n, n) if self._state_is_tuple else 2 * n

    @property
    def output_size(self):
        return self._num_units

    def build(self, inputs_shape):
        self._kernel, self._bias = self._weights(self._depth(inputs_shape) + self._num_units,
                                                 4 * self._num_units)
        self.built = True

    def call(self, inputs, state):
        one = convert_to_tensor(1, dtypes.int32)
        c, h = state if self._state_is_tuple else array_ops.split(state, 2, one)
        gates = nn_ops.bias_add(raw_ops.MatMul(a=array_ops.concat([inputs, h], 1), b=self._kernel),
                                self._bias)
        i, j, f, o = array_ops.split(gates, 4, one)
        forget = convert_to_tensor(self._forget_bias, f.dtype)
        new_c = math_ops.add(raw_ops.Mul(x=c, y=math_ops.sigmoid(math_ops.add(f, forget))),
                             raw_ops.Mul(x=math_ops.sigmoid(i), y=self._activation(j)))
        new_h = raw_ops.Mul(x=self._activation(new_c), y=math_ops.sigmoid(o))
        return new_h, (LSTMStateTuple(new_c, new_h) if self._state_is_tuple
                       else array_ops.concat([new_c, new_h], 1))


class LSTMCell(_LayerCell):
    """A long short-term memory cell, optionally with peepholes, projection and clipping."""

    def __init__(self, num_units, use_peepholes=False, cell_clip=None, initializer=None,
                 num_proj=None, proj_clip=None, num_unit_shards=None, num_proj_shards=None,
                 forget_bias=1.0, state_is_tuple=True, activation=None, reuse=None, name=None,
                 dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units, self._num_proj = num_units, num_proj
        self._use_peepholes, self._cell_clip, self._proj_clip = use_peepholes, cell_clip, proj_clip
        self._initializer, self._forget_bias = initializer, forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = _activation(activation)

    @property
    def state_size(self):
        n, shown = self._num_units, self._num_proj or self._num_units
        return LSTMStateTuple(n, shown) if self._state_is_tuple else n + shown

    @property
    def output_size(self):
        return self._num_proj or self._num_units

    def build(self, inputs_shape):
        n = self._num_units
        self._kernel, self._bias = self._weights(self._depth(inputs_shape) + self.output_size, 4 * n,
                                                 initializer=self._initializer)
        if self._use_peepholes:
            self._peepholes = [self.add_variable("w_%s_diag" % gate, [n], self._dtype,
                                                 self._initializer) for gate in "fio"]
        if self._num_proj is not None:
            self._projection = self.add_variable("projection/kernel", [n, self._num_proj],
                                                 self._dtype, self._initializer)
        self.built = True

    def call(self, inputs, state):
        n, sigmoid = self._num_units, math_ops.sigmoid
        if self._state_is_tuple:
            c, h = state
        else:
            c = array_ops.slice(state, [0, 0], [-1, n])
            h = array_ops.slice(state, [0, n], [-1, self.output_size])
        gates = nn_ops.bias_add(raw_ops.MatMul(a=array_ops.concat([inputs, h], 1), b=self._kernel),
                                self._bias)
        i, j, f, o = array_ops.split(gates, 4, 1)
        if self._use_peepholes:
            w_f, w_i, w_o = self._peepholes
            c = sigmoid(f + self._forget_bias + w_f * c) * c + sigmoid(i + w_i * c) * \
                self._activation(j)
        else:
            c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            from runnel.ops.math_ops import clip_by_value
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        h = (sigmoid(o + w_o * c) if self._use_peepholes else sigmoid(o)) * self._activation(c)
        if self._num_proj is not None:
            h = raw_ops.MatMul(a=h, b=self._projection)
            if self._proj_clip is not None:
                from runnel.ops.math_ops import clip_by_value
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, (LSTMStateTuple(c, h) if self._state_is_tuple else array_ops.concat([c, h], 1))


class MultiRNNCell(RNNCell):
    """Stacks cells."""

    def __init__(self, cells, state_is_tuple=True):
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError("cells must be a list or tuple, but saw: %s." % cells)
        if len({id(cell) for cell in cells}) < len(cells):
            from runnel import logging
            logging.log_first_n(logging.WARN, "At least two cells provided to MultiRNNCell are the "
                                "same object and will share weights.", 1)
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self):
        if self._state_is_tuple:
            return tuple(cell.state_size for cell in self._cells)
        return sum(cell.state_size for cell in self._cells)

    @property
    def output_size(self):
        return self._cells[-1].output_size

    @property
    def trainable_variables(self):
        return [v for cell in self._cells for v in cell.trainable_variables]

    trainable_weights = trainable_variables

    @property
    def variables(self):
        return [v for cell in self._cells for v in cell.variables]

    weights = variables

    def zero_state(self, batch_size, dtype):
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    def call(self, inputs, state):
        from runnel.ops.variable_scopes import variable_scope
        position, states, at = inputs, [], 0
        for number, cell in enumerate(self._cells):
            with variable_scope("cell_%d" % number):
                if self._state_is_tuple:
                    before = state[number]
                else:
                    before = array_ops.slice(state, [0, at], [-1, cell.state_size])
                    at += cell.state_size
                position, after = cell(position, before)
                states.append(after)
        return position, (tuple(states) if self._state_is_tuple else array_ops.concat(states, 1))


class _Wrapper(RNNCell):
    """A cell around another, whose variables it uses."""

    def __init__(self, cell):
        super().__init__()
        self._cell = cell

    @property
    def wrapped_cell(self):
        return self._cell

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    @property
    def trainable_variables(self):
        return self._cell.trainable_variables

    trainable_weights = trainable_variables

    @property
    def variables(self):
        return self._cell.variables

    weights = variables

    def zero_state(self, batch_size, dtype):
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs, state, scope=None, **kwargs):
        return self._wrapped(inputs, state, scope)


class DropoutWrapper(_Wrapper):
    """Applies dropout to the inputs, the state and the outputs of a cell."""

    def __init__(self, cell, input_keep_prob=1.0, output_keep_prob=1.0, state_keep_prob=1.0,
                 variational_recurrent=False, input_size=None, dtype=None, seed=None,
                 dropout_state_filter_visitor=None):
        super().__init__(cell)
        self._keep = {"input": input_keep_prob, "output": output_keep_prob, "state": state_keep_prob}
        for what, keep in self._keep.items():
            if isinstance(keep, (int, float)) and not 0 < keep <= 1:
                raise ValueError("Parameter %s_keep_prob must be in (0, 1]: %s" % (what, keep))
        self._seed, self._visitor = seed, dropout_state_filter_visitor
        self._variational, self._noise = variational_recurrent, {}
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            self._make_noise(cell, input_size, dtype)

    def _make_noise(self, cell, input_size, dtype):
        from runnel.ops import random_ops

        def noise(size, seed):
            shape = array_ops.concat(([1], tensor_shape.as_shape(size).as_list()), 0)
            return random_ops.random_uniform(shape, seed=seed, dtype=dtype)
        for what, size in (("input", input_size), ("state", cell.state_size),
                           ("output", cell.output_size)):
            if not self._is_all(what) and size is not None:
                flat = [noise(s, self._salted(what, i)) for i, s in enumerate(nest.flatten(size))]
                self._noise[what] = flat

    def _is_all(self, what):
        keep = self._keep[what]
        return isinstance(keep, (int, float)) and keep >= 1

    def _salted(self, prefix, index):
        if self._seed is None:
            return None
        import hashlib
        text = "%s%s_%d" % (self._seed, prefix, index)
        return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _dropped(self, what, values):
        if self._is_all(what):
            return values
        flat, results = nest.flatten(values), []
        names = _lstm_parts(values) if what == "state" else [None] * len(flat)
        for index, (value, part) in enumerate(zip(flat, names)):
            if part == "c":  # no dropout in the memory of an LSTM
                results.append(value)
            elif self._variational:
                keep = convert_to_tensor(self._keep[what], value.dtype)
                mask = raw_ops.Floor(x=keep + self._noise[what][index])
                result = raw_ops.RealDiv(x=value, y=keep) * mask
                result.set_shape(value.shape)
                results.append(result)
            else:
                results.append(nn_ops.dropout(value, keep_prob=self._keep[what],
                                              seed=self._salted(what, index)))
        return nest.pack_sequence_as(values, results)

    def _wrapped(self, inputs, state, scope):
        inputs = self._dropped("input", inputs)
        output, after = self._cell(inputs, state, scope=scope)
        return self._dropped("output", output), self._dropped("state", after)


def _lstm_parts(state):
    if isinstance(state, LSTMStateTuple):
        return ["c", "h"]
    if nest.is_nested(state):
        return [part for one in state for part in _lstm_parts(one)]
    return [None]


class ResidualWrapper(_Wrapper):
    """Adds the input of a cell to its output."""

    def __init__(self, cell, residual_fn=None):
        super().__init__(cell)
        self._residual = residual_fn

    def _wrapped(self, inputs, state, scope):
        outputs, after = self._cell(inputs, state, scope=scope)
        if self._residual is not None:
            return self._residual(inputs, outputs), after
        nest.assert_same_structure(inputs, outputs)
        return nest.map_structure(lambda a, b: a + b, inputs, outputs), after


class DeviceWrapper(_Wrapper):
    """Runs a cell on a device."""

    def __init__(self, cell, device):
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size, dtype):
        with device_scope(self._device):
            return self._cell.zero_state(batch_size, dtype)

    def _wrapped(self, inputs, state, scope):
        with device_scope(self._device):
            return self._cell(inputs, state, scope=scope)
