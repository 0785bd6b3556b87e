"""tf.random.Generator: random numbers from a state that a variable holds."""

import enum

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.trackable import AutoTrackable
from runnel.ops import math_ops
from runnel.ops.array_ops import concat, stack, zeros_like


class Algorithm(enum.IntEnum):
    """The generators of random bits."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


_COUNTERS = {Algorithm.PHILOX: 2, Algorithm.THREEFRY: 1}  # how many numbers of the state count; one more is the key


def _algorithm(alg):
    """Returns an Algorithm, given as such, as a number or by name. The default is that of the CPU."""
    if isinstance(alg, str):
        try:
            alg = {"philox": 1, "threefry": 2, "auto_select": 3}[alg]
        except KeyError:
            raise ValueError("Argument `alg` got unsupported string value %s. Supported string values are 'philox' for the Philox algorithm, "
                             "'threefry' for the ThreeFry algorithm, and 'auto_select' for auto-selection." % alg) from None
    alg = Algorithm(3 if alg is None else int(alg))
    return Algorithm.PHILOX if alg is Algorithm.AUTO_SELECT else alg


def create_rng_state(seed, alg):
    """Returns the state of a generator for a seed: an integer of any size, or a vector of integers."""
    size = _COUNTERS[_algorithm(alg)] + 1
    if isinstance(seed, int):
        bits = seed & ((1 << 64 * size) - 1)
        words = [(bits >> 64 * i) & ((1 << 64) - 1) for i in range(size)]
        return convert_to_tensor([w - (1 << 64) if w >> 63 else w for w in words], dtypes.int64)
    seed = math_ops.cast(convert_to_tensor(seed), dtypes.int64)
    if seed.shape.rank == 0:
        seed = raw_ops.Reshape(seed, [1])
    missing = size - seed.shape.as_list()[0]
    return seed[:size] if missing <= 0 else concat([convert_to_tensor([0] * missing, dtypes.int64), seed], 0)


class Generator(AutoTrackable):
    """A generator of random numbers. `from_seed` and the other class methods create one.

    Args:
      copy_from: a generator whose state is copied.
      state: a vector of integers: counters, then a key. A variable is not copied: the generator then shares it.
      alg: the algorithm.
    """

    def __init__(self, copy_from=None, state=None, alg=None):
        from runnel.ops.variables import Variable
        if copy_from is not None:
            alg, state = copy_from.algorithm, copy_from.state.read_value()
        if state is None:
            raise ValueError("A Generator is created from another one or from a state.")
        self._alg = _algorithm(alg)
        if not isinstance(state, Variable):
            state = convert_to_tensor(state, dtypes.int64)
        wanted = _COUNTERS[self._alg] + 1
        if state.shape.as_list() != [wanted]:
            raise ValueError("For this algorithm, the shape of the state must be [%d]; got %s" % (wanted, state.shape))
        if not isinstance(state, Variable):
            state = Variable(state, trainable=False, dtype=dtypes.int64, use_resource=True, name="StateVar")
        self._state_var = state

    @classmethod
    def from_state(cls, state, alg):
        """Returns a generator with this state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed, alg=None):
        """Returns a generator whose state comes from a seed."""
        return cls(state=create_rng_state(seed, _algorithm(alg)), alg=_algorithm(alg))

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """Returns a generator with a random state."""
        algorithm = _algorithm(alg)
        return cls(state=raw_ops.NonDeterministicInts(shape=[_COUNTERS[algorithm] + 1], dtype=dtypes.int64), alg=algorithm)

    @classmethod
    def from_key_counter(cls, key, counter, alg):
        """Returns a generator with this key and these counters."""
        algorithm = _algorithm(alg)
        return cls(state=_state_of(key, counter, algorithm), alg=algorithm)

    def reset(self, state):
        """Sets the state."""
        self._state_var.assign(convert_to_tensor(state, dtypes.int64))

    def reset_from_seed(self, seed):
        """Sets the state that comes from a seed."""
        self._state_var.assign(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key, counter):
        """Sets the key and the counters."""
        self._state_var.assign(_state_of(key, counter, self._alg))

    state = property(lambda self: self._state_var)
    algorithm = property(lambda self: int(self._alg))

    @property
    def key(self):
        """The key: the last number of the state."""
        return self._state_var.read_value()[-1]

    def skip(self, delta):
        """Advances the counters by `delta` numbers. Returns the state before."""
        return raw_ops.RngReadAndSkip(resource=self._state_var.handle, alg=int(self._alg), delta=math_ops.cast(convert_to_tensor(delta), dtypes.uint64))

    def _key_and_counter(self, shape):
        state = self.skip(raw_ops.Prod(math_ops.cast(shape, dtypes.int64), [0]))
        bits = raw_ops.Bitcast(input=state, type=dtypes.uint64)
        count = _COUNTERS[self._alg]
        return bits[count:], bits[:count] if count == 2 else concat([bits[:count], convert_to_tensor([0], dtypes.uint64)], 0)

    def _drawn(self, op, shape, dtype, *rest):
        shape = _as_shape(shape)
        key, counter = self._key_and_counter(shape)
        attrs = {} if rest else {"dtype": dtype}
        return op(shape, key, counter, int(self._alg), *rest, **attrs)

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        """Draws from a normal distribution."""
        dtype = dtypes.as_dtype(dtype)
        values = self._drawn(raw_ops.StatelessRandomNormalV2, shape, dtype)
        return raw_ops.AddV2(values * convert_to_tensor(stddev, dtype), convert_to_tensor(mean, dtype), name=name)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        """Draws from a normal distribution without values further than two standard deviations from the mean."""
        dtype = dtypes.as_dtype(dtype)
        values = self._drawn(raw_ops.StatelessTruncatedNormalV2, shape, dtype)
        return raw_ops.AddV2(values * convert_to_tensor(stddev, dtype), convert_to_tensor(mean, dtype), name=name)

    def uniform(self, shape, minval=0, maxval=None, dtype=dtypes.float32, name=None):
        """Draws from [minval, maxval); floats from [0, 1) by default."""
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_integer:
            if (minval is None) != (maxval is None):
                raise ValueError("For integer dtype %r, argument `minval` and `maxval` must be both None or both non-None; got `minval`=%s, "
                                 "`maxval`=%s." % (dtype, minval, maxval))
            if minval is None:
                return self.uniform_full_int(shape, dtype, name)
            return self._drawn(raw_ops.StatelessRandomUniformIntV2, shape, dtype, convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype))
        low, high = convert_to_tensor(minval, dtype), convert_to_tensor(1 if maxval is None else maxval, dtype)
        values = self._drawn(raw_ops.StatelessRandomUniformV2, shape, dtype)
        return raw_ops.AddV2(values * (high - low), low, name=name)

    def uniform_full_int(self, shape, dtype=dtypes.uint64, name=None):
        """Draws from all integers of a type."""
        return self._drawn(raw_ops.StatelessRandomUniformFullIntV2, shape, dtypes.as_dtype(dtype))

    def binomial(self, shape, counts, probs, dtype=dtypes.int32, name=None):
        """Draws numbers of successes in `counts` trials, each with probability `probs`."""
        counts, probs = convert_to_tensor(counts), convert_to_tensor(probs)
        shape = _as_shape(shape)
        drawn = raw_ops.StatefulRandomBinomial(self._state_var.handle, convert_to_tensor(int(self._alg), dtypes.int64), shape, counts, probs,
                                               dtype=dtype, name=name)
        # The op leaves the state as it is. Stock reserves 200 numbers for each draw of a set, in groups of four.
        sets = raw_ops.Prod(raw_ops.BroadcastArgs(s0=raw_ops.Shape(counts), s1=raw_ops.Shape(probs)), [0])
        self.skip(sets * 200 * (raw_ops.Prod(shape, [0]) // raw_ops.Maximum(sets, 1) + 3) // 4)
        return drawn

    def _keys(self, count):
        return self.uniform_full_int([count], dtypes.int64)

    def make_seeds(self, count=1):
        """Returns seeds for stateless functions, one per column."""
        keys = self._keys(count)
        return stack([keys, zeros_like(keys)])

    def split(self, count=1):
        """Returns generators that are independent of this one."""
        keys = self._keys(count)
        zeros = convert_to_tensor([0] * _COUNTERS[self._alg], dtypes.int64)
        return [Generator(state=concat([zeros, raw_ops.Reshape(keys[i], [1])], 0), alg=self._alg) for i in range(count)]


def _state_of(key, counter, algorithm):
    counter, key = convert_to_tensor(counter, dtypes.int64), convert_to_tensor(key, dtypes.int64)
    return concat([counter[:_COUNTERS[algorithm]], raw_ops.Reshape(key, [1])], 0)


def _as_shape(shape):
    from runnel.core.tensor_util import shape_tensor
    return shape_tensor(shape)


_global: list = []


def get_global_generator():
    """Returns the global generator. It starts at random."""
    if not _global:
        from runnel.core import framework
        with framework.init_scope():
            _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator):
    """Replaces the global generator."""
    _global[:] = [generator]
