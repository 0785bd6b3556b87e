"""Recurrent layers, as a loop over time."""

from runnel import dtypes, raw_ops
from runnel.core.convert import constant, convert_to_tensor
from runnel.keras import activations, backend as K, regularizers  # noqa: N812
from runnel.keras.layers import Layer
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import while_loop
from runnel.ops.tensor_array import TensorArray


class _Recurrent(Layer):
    """The base of recurrent layers: a subclass defines `_gates`, and computes the next state from an input and a state."""

    _gates = 1
    _states = 1

    def __init__(self, units, activation="tanh", use_bias=True, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros",
                 kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None,
                 dropout=0.0, recurrent_dropout=0.0, return_sequences=False, return_state=False,
                 go_backwards=False, stateful=False, unroll=False, recurrent_activation="hard_sigmoid",
                 unit_forget_bias=True, implementation=1, reset_after=False, input_length=None,
                 **kwargs):
        if input_length is not None and "input_dim" in kwargs:
            kwargs["input_shape"] = (input_length, kwargs.pop("input_dim"))
        super().__init__(**kwargs)
        if stateful:
            raise NotImplementedError("tf.keras.layers.%s: stateful is not supported" %
                                      type(self).__name__)
        self.units, self.use_bias = units, use_bias
        self.activation = activations.get(activation)
        self.recurrent_activation = activations.get(recurrent_activation)
        self._makers = kernel_initializer, recurrent_initializer, bias_initializer
        self._regularizers = [regularizers.get(r) for r in (kernel_regularizer, recurrent_regularizer,
                                                            bias_regularizer)]
        self.dropout, self.return_sequences, self.return_state = dropout, return_sequences, return_state
        self.go_backwards, self.unit_forget_bias = go_backwards, unit_forget_bias

    def build(self, input_shape):
        depth = input_shape.as_list()[-1]
        width = self._gates * self.units
        self.kernel = self.add_weight("kernel", [depth, width], initializer=self._makers[0],
                                      regularizer=self._regularizers[0])
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.units, width],
                                                initializer=self._makers[1],
                                                regularizer=self._regularizers[1])
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight("bias", [width], initializer=self._bias_initializer(),
                                        regularizer=self._regularizers[2])
        self.built = True

    def _bias_initializer(self):
        return self._makers[2]

    def call(self, inputs, initial_state=None, training=None):
        if self.dropout:
            from runnel.layers import core as base
            from runnel.nn import nn_ops
            training = K.learning_phase() if training is None else training
            shape = array_ops.shape(inputs)
            whole = inputs
            inputs = base._in_training(training, lambda: nn_ops.dropout(
                whole, rate=self.dropout, noise_shape=array_ops.stack([shape[0], 1, shape[2]])),
                lambda: array_ops.identity(whole))
            inputs.set_shape(whole.shape)
        steps_known = inputs.shape.as_list()[1]
        x = array_ops.transpose(inputs, [1, 0, 2])
        if self.go_backwards:
            x = array_ops.reverse(x, [0])
        # The inputs' part does not depend on the state, so one matmul computes it for all steps.
        projected = math_ops.tensordot(x, self.kernel, [[2], [0]])
        if self.bias is not None:
            projected = projected + self.bias
        count = array_ops.shape(x)[0]
        batch = array_ops.shape(x)[1]
        if initial_state is None:
            zeros = array_ops.zeros(array_ops.stack([batch, self.units]), inputs.dtype)
            zeros.set_shape([inputs.shape.as_list()[0], self.units])
            states = [zeros] * self._states
        else:
            states = list(initial_state) if isinstance(initial_state, (list, tuple)) else [
                initial_state]
        rows = TensorArray(inputs.dtype, size=count).unstack(projected)
        outputs = TensorArray(inputs.dtype, size=count if self.return_sequences else 0)

        def body(t, states, outputs):
            states = self._step(rows.read(t), states)
            if self.return_sequences:
                outputs = outputs.write(t, states[0])
            return t + 1, states, outputs
        _, states, outputs = while_loop(lambda t, *_: t < count, body,
                                        (constant(0, dtypes.int32), states, outputs),
                                        parallel_iterations=32)
        for state in states:
            state.set_shape([inputs.shape.as_list()[0], self.units])
        result = states[0]
        if self.return_sequences:
            result = array_ops.transpose(outputs.stack(), [1, 0, 2])
            result.set_shape([inputs.shape.as_list()[0], steps_known, self.units])
        return [result] + states if self.return_state else result


class SimpleRNN(_Recurrent):
    """A simple recurrent layer: activation(x @ kernel + h @ recurrent_kernel + bias)."""

    def _step(self, x, states):
        return [self.activation(x + raw_ops.MatMul(a=states[0], b=self.recurrent_kernel))]


class GRU(_Recurrent):
    """A layer of gated recurrent units."""

    _gates = 3

    def _step(self, x, states):
        h, n = states[0], self.units
        kernel = convert_to_tensor(self.recurrent_kernel)
        x_z, x_r, x_h = array_ops.split(x, 3, axis=1)
        inner = raw_ops.MatMul(a=h, b=kernel[:, :2 * n])
        z = self.recurrent_activation(x_z + inner[:, :n])
        r = self.recurrent_activation(x_r + inner[:, n:])
        candidate = self.activation(x_h + raw_ops.MatMul(a=r * h, b=kernel[:, 2 * n:]))
        return [z * h + (1 - z) * candidate]


class LSTM(_Recurrent):
    """A layer of long short-term memory."""

    _gates = 4
    _states = 2

    def _bias_initializer(self):
        if not self.unit_forget_bias or self._makers[2] != "zeros":
            return self._makers[2]
        n = self.units

        def initializer(shape, dtype=None, partition_info=None):
            return array_ops.concat([array_ops.zeros([n], dtype), array_ops.ones([n], dtype),
                                     array_ops.zeros([2 * n], dtype)], 0)
        return initializer

    def _step(self, x, states):
        h, c = states
        gates = x + raw_ops.MatMul(a=h, b=self.recurrent_kernel)
        i, f, g, o = array_ops.split(gates, 4, axis=1)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        return [self.recurrent_activation(o) * self.activation(c), c]


class Bidirectional(Layer):
    """Applies a recurrent layer in both directions."""

    def __init__(self, layer, merge_mode="concat", **kwargs):
        super().__init__(**kwargs)
        config = layer.get_config()
        self.forward_layer = layer
        config = dict(config, go_backwards=not config.get("go_backwards", False), name=None)
        self.backward_layer = type(layer)(**config)
        self.merge_mode = merge_mode
        self._first_shape = self._first_shape or layer._first_shape

    def call(self, inputs, training=None):
        forward, backward = self.forward_layer(inputs), self.backward_layer(inputs)
        for layer in (self.forward_layer, self.backward_layer):
            self._adopt(layer.trainable_variables, layer.non_trainable_variables)
        if self.forward_layer.return_sequences:
            backward = array_ops.reverse(backward, [1])
        if self.merge_mode == "concat":
            return array_ops.concat([forward, backward], -1)
        if self.merge_mode == "sum":
            return forward + backward
        if self.merge_mode == "ave":
            return (forward + backward) / 2
        if self.merge_mode == "mul":
            return forward * backward
        return [forward, backward]


class TimeDistributed(Layer):
    """Applies a layer to every time step."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer

    def call(self, inputs, training=None):
        dims, shape = inputs.shape.as_list(), array_ops.shape(inputs)
        flat = array_ops.reshape(inputs, array_ops.concat([[-1], shape[2:]], 0))
        flat.set_shape([None] + dims[2:])
        outputs = self.layer(flat)
        self._adopt(self.layer.trainable_variables, self.layer.non_trainable_variables)
        result = array_ops.reshape(outputs, array_ops.concat([shape[:2], array_ops.shape(outputs)[1:]],
                                                             0))
        result.set_shape(dims[:2] + outputs.shape.as_list()[1:])
        return result
