"""Decoders that run as loops: dynamic_decode of tf.contrib.seq2seq, its decoders and helpers."""

import collections

from runnel import dtypes, nest, nn, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import name_scope
from runnel.nn.rnn import _transposed
from runnel.nn.rnn_cell import _zeros
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import cond, while_loop
from runnel.ops.random_ops import multinomial, random_uniform
from runnel.ops.tensor_array import TensorArray
from runnel.ops.variable_scopes import variable_scope


class Decoder:
    """The base of decoders for dynamic_decode: a subclass defines the start and one step."""

    @property
    def batch_size(self):
        raise NotImplementedError

    @property
    def output_size(self):
        raise NotImplementedError

    @property
    def output_dtype(self):
        raise NotImplementedError

    def initialize(self, name=None):
        """Returns (whether each is finished, first inputs, first state)."""
        raise NotImplementedError

    def step(self, time, inputs, state, name=None):
        """Returns (outputs, state, next inputs, whether each is finished)."""
        raise NotImplementedError

    def finalize(self, outputs, final_state, sequence_lengths):
        """Returns the final (outputs, state)."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self):
        """Whether `step` itself tracks what was finished before."""
        return False


def _chosen(is_finished, kept, new):
    """Returns `kept` for each finished example, else `new`; scalars and TensorArrays are always new."""
    if isinstance(new, TensorArray):
        return new
    new.set_shape(kept.shape)
    return new if new.shape.ndims == 0 else array_ops.where(is_finished, kept, new)


def dynamic_decode(decoder, output_time_major=False, impute_finished=False, maximum_iterations=None,
                   parallel_iterations=32, swap_memory=False, scope=None):
    """Runs a decoder until all examples are finished. Returns (outputs, last state, lengths).

    Args:
      decoder: a Decoder.
      output_time_major: whether outputs are [time, batch, ...] instead of [batch, time, ...].
      impute_finished: whether finished examples keep their state and output zeros.
      maximum_iterations: a limit on the number of steps.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError("Expected decoder to be type Decoder, but saw: %s" % type(decoder))
    with variable_scope(scope, "decoder"):
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(maximum_iterations, dtype=dtypes.int32,
                                                   name="maximum_iterations")
            if maximum_iterations.shape.ndims != 0:
                raise ValueError("maximum_iterations must be a scalar")
        finished, inputs, state = decoder.initialize()
        sizes, types = decoder.output_size, decoder.output_dtype
        zero_outputs = nest.map_structure(lambda size, dtype: _zeros(size, decoder.batch_size, dtype),
                                          sizes, types)
        if maximum_iterations is not None:
            finished = finished | (maximum_iterations <= 0)
        lengths = array_ops.zeros_like(finished, dtype=dtypes.int32)
        arrays = nest.map_structure(lambda dtype: TensorArray(dtype, size=0, dynamic_size=True), types)

        def body(time, arrays, state, inputs, finished, lengths):
            outputs, after, next_inputs, now_finished = decoder.step(time, inputs, state)
            if not decoder.tracks_own_finished:
                now_finished = now_finished | finished
            lengths = array_ops.where(finished, lengths,
                                      array_ops.fill(array_ops.shape(lengths), time + 1))
            if maximum_iterations is not None:
                now_finished = now_finished | (time + 1 >= maximum_iterations)
            nest.assert_same_structure(state, after)
            if impute_finished:
                outputs = nest.map_structure(lambda new, zero: array_ops.where(finished, zero, new),
                                             outputs, zero_outputs)
                after = nest.map_structure(lambda new, old: _chosen(finished, old, new), after, state)
            arrays = nest.map_structure(lambda array, output: array.write(time, output), arrays, outputs)
            return time + 1, arrays, after, next_inputs, now_finished, lengths

        _, arrays, state, _, _, lengths = while_loop(
            lambda *values: ~math_ops.reduce_all(values[4]), body,
            (constant(0), arrays, state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations, swap_memory=swap_memory)
        outputs = nest.map_structure(lambda array: array.stack(), arrays)
        try:
            outputs, state = decoder.finalize(outputs, state, lengths)
        except NotImplementedError:
            pass
        return outputs if output_time_major else nest.map_structure(_transposed, outputs), state, lengths


BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))


class BasicDecoder(Decoder):
    """A cell with a helper that turns its outputs into inputs."""

    def __init__(self, cell, helper, initial_state, output_layer=None):
        if not isinstance(helper, Helper):
            raise TypeError("helper must be a Helper, received: %s" % type(helper))
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    @property
    def batch_size(self):
        return self._helper.batch_size

    def _rnn_output_size(self):
        size = self._cell.output_size
        if self._output_layer is None:
            return size
        with_batch = nest.map_structure(lambda s: tensor_shape.TensorShape([None]).concatenate(s), size)
        return nest.map_structure(lambda s: self._output_layer.compute_output_shape(s)[1:], with_batch)

    @property
    def output_size(self):
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self):
        dtype = nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(nest.map_structure(lambda _: dtype, self._rnn_output_size()),
                                  self._helper.sample_ids_dtype)

    def initialize(self, name=None):
        return self._helper.initialize() + (self._initial_state,)

    def step(self, time, inputs, state, name=None):
        with name_scope(name, "BasicDecoderStep", (time, inputs, state)):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(time=time, outputs=outputs, state=state,
                                                               sample_ids=ids)
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


class Helper:
    """The base of helpers, which determine what a decoder reads next."""

    sample_ids_shape = tensor_shape.TensorShape([])
    sample_ids_dtype = dtypes.int32

    @property
    def batch_size(self):
        raise NotImplementedError

    def initialize(self, name=None):
        """Returns (whether each is finished, first inputs)."""
        raise NotImplementedError

    def sample(self, time, outputs, state, name=None):
        """Returns the ids for the outputs."""
        raise NotImplementedError

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        """Returns (whether each is finished, next inputs, state)."""
        raise NotImplementedError


class CustomHelper(Helper):
    """A helper made of three functions."""

    def __init__(self, initialize_fn, sample_fn, next_inputs_fn, sample_ids_shape=None,
                 sample_ids_dtype=None):
        self._initialize, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self._batch_size = None
        self.sample_ids_shape = tensor_shape.TensorShape(sample_ids_shape or [])
        self.sample_ids_dtype = sample_ids_dtype or dtypes.int32

    @property
    def batch_size(self):
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    def initialize(self, name=None):
        finished, inputs = self._initialize()
        if self._batch_size is None:
            self._batch_size = array_ops.size(finished)
        return finished, inputs

    def sample(self, time, outputs, state, name=None):
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        return self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(Helper):
    """Reads the given inputs, up to the length of each sequence."""

    def __init__(self, inputs, sequence_length, time_major=False, name=None):
        with name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            inputs = nest.map_structure(convert_to_tensor, inputs)
            if not time_major:
                inputs = nest.map_structure(_transposed, inputs)
            self._inputs = inputs
            self._arrays = nest.map_structure(
                lambda x: TensorArray(x.dtype, size=array_ops.shape(x)[0]).unstack(x), inputs)
            self._length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._length.shape.ndims != 1:
                raise ValueError("Expected sequence_length to be a vector, but received shape: %s" %
                                 self._length.shape)
            self._zero_inputs = nest.map_structure(lambda x: array_ops.zeros_like(x[0, :]), inputs)
            self._batch_size = array_ops.size(self._length)

    @property
    def inputs(self):
        return self._inputs

    @property
    def sequence_length(self):
        return self._length

    @property
    def batch_size(self):
        return self._batch_size

    def _read(self, time, finished):
        return cond(math_ops.reduce_all(finished), lambda: self._zero_inputs,
                    lambda: nest.map_structure(lambda array: array.read(time), self._arrays))

    def initialize(self, name=None):
        with name_scope(name, "TrainingHelperInitialize"):
            finished = math_ops.equal(0, self._length)
            return finished, self._shaped(self._read(0, finished))

    def _shaped(self, inputs):
        for x, zero in zip(nest.flatten(inputs), nest.flatten(self._zero_inputs)):
            x.set_shape(zero.shape)
        return inputs

    def sample(self, time, outputs, state=None, name=None):
        return math_ops.argmax(outputs, -1, output_type=dtypes.int32)

    def next_inputs(self, time, outputs, state, sample_ids=None, name=None):
        with name_scope(name, "TrainingHelperNextInputs", [time, outputs, state]):
            finished = time + 1 >= self._length
            return finished, self._shaped(self._read(time + 1, finished)), state


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Reads the given inputs or, at random, samples of its own outputs."""

    def __init__(self, inputs, sequence_length, embedding, sampling_probability, time_major=False,
                 seed=None, scheduling_seed=None, name=None):
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = embedding if callable(embedding) else (lambda ids: nn.embedding_lookup(embedding, ids))
        self._probability, self._seed, self._scheduling_seed = sampling_probability, seed, scheduling_seed

    def sample(self, time, outputs, state=None, name=None):
        chooses = random_uniform([self.batch_size], seed=self._scheduling_seed) < self._probability
        ids = math_ops.cast(array_ops.squeeze(multinomial(outputs, 1, seed=self._seed), [1]), dtypes.int32)
        return array_ops.where(chooses, ids, array_ops.fill([self.batch_size], -1))

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished, given, state = super().next_inputs(time, outputs, state, sample_ids, name)
        own = self._embed(raw_ops.Maximum(x=sample_ids, y=0))
        mixed = array_ops.where(sample_ids > -1, own, given)
        return finished, self._shaped(mixed), state


class GreedyEmbeddingHelper(Helper):
    """Reads the embedding of the most probable id, until it is the end token."""

    def __init__(self, embedding, start_tokens, end_token):
        self._embed = embedding if callable(embedding) else (lambda ids: nn.embedding_lookup(embedding, ids))
        self._start = convert_to_tensor(start_tokens, dtype=dtypes.int32, name="start_tokens")
        self._end = convert_to_tensor(end_token, dtype=dtypes.int32, name="end_token")
        if self._start.shape.ndims != 1:
            raise ValueError("start_tokens must be a vector")
        if self._end.shape.ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._batch_size, self._first = array_ops.size(self._start), self._embed(self._start)

    @property
    def batch_size(self):
        return self._batch_size

    def initialize(self, name=None):
        return array_ops.tile([False], [self._batch_size]), self._first

    def sample(self, time, outputs, state, name=None):
        return math_ops.argmax(outputs, -1, output_type=dtypes.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished = math_ops.equal(sample_ids, self._end)
        inputs = cond(math_ops.reduce_all(finished), lambda: self._first, lambda: self._embed(sample_ids))
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Reads the embedding of a sampled id, until it is the end token."""

    def __init__(self, embedding, start_tokens, end_token, softmax_temperature=None, seed=None):
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time, outputs, state, name=None):
        logits = outputs if self._temperature is None else outputs / self._temperature
        return math_ops.cast(array_ops.squeeze(multinomial(logits, 1, seed=self._seed), [1]), dtypes.int32)


class InferenceHelper(Helper):
    """Reads a function of the outputs, until another function says that it is the end."""

    def __init__(self, sample_fn, sample_shape, sample_dtype, start_inputs, end_fn, next_inputs_fn=None):
        self._sample, self._end, self._next = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_shape = tensor_shape.TensorShape(sample_shape)
        self.sample_ids_dtype = sample_dtype
        self._first = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = array_ops.shape(self._first)[0]

    @property
    def batch_size(self):
        return self._batch_size

    def initialize(self, name=None):
        return array_ops.tile([False], [self._batch_size]), self._first

    def sample(self, time, outputs, state, name=None):
        return self._sample(outputs)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        inputs = sample_ids if self._next is None else self._next(sample_ids)
        return self._end(sample_ids), inputs, state
