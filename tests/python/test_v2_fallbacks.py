"""tf.__internal__.dispatch, tf.__operators__ and the public names of functions: how Keras makes layers of operations."""

from both import both


@both(v2=True)
def test_global_dispatcher(tf, np):
    class Symbol:
        dtype, shape = tf.float32, tf.TensorShape([2])

    seen = []

    class Keeper(tf.__internal__.dispatch.GlobalOpDispatcher):
        def handle(self, op, args, kwargs):
            if not any(isinstance(x, Symbol) for x in tf.nest.flatten([args, kwargs])):
                return self.NOT_SUPPORTED
            seen.append(callable(op))
            return "handled"

    Keeper().register()
    for operator in tf.Tensor.OVERLOADABLE_OPERATORS:
        setattr(Symbol, operator, getattr(tf.Tensor, operator))
    Symbol.__hash__ = object.__hash__
    x, one = Symbol(), tf.constant([1.0, 2.0])
    results = [tf.reshape(x, [1, 2]), tf.concat([x, x], 0), x + 1.0, 1.0 - x, one * x, x[0], x < 1.0, -x, tf.add(one, one).numpy()]
    errors = []
    for bad in (lambda: tf.reshape(one, object()), lambda: tf.add(one, object())):
        try:
            bad()
        except (TypeError, ValueError) as error:
            errors.append(type(error).__name__)
    return results, seen, len(errors)


@both(v2=True)
def test_dispatcher_of_one_function(tf, np):
    class Pair:
        pass

    @tf.__internal__.dispatch.add_dispatch_support
    def double(x, name=None):
        if isinstance(x, Pair):
            raise TypeError("not a tensor")
        return tf.multiply(x, 2.0)

    class Handler(tf.__internal__.dispatch.OpDispatcher):
        def handle(self, args, kwargs):
            return ("pair", len(args)) if isinstance(args[0], Pair) else self.NOT_SUPPORTED

    errors = []
    try:
        double(Pair())
    except TypeError as error:
        errors.append(str(error))
    Handler().register(double)
    return double(Pair()), double(1.0), errors, double.__name__


@both(v2=True)
def test_operators_as_functions(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    named = tf.__operators__
    return named.add(x, 1.0), named.eq(x, 2.0), named.ne(x, 2.0), named.getitem(x, (slice(None), 1)), named.ragged_getitem(
        tf.ragged.constant([[1], [2, 3]]), 1)


@both(v2=True)
def test_kinds_of_nested_values(tf, np):
    import collections

    class Two(collections.abc.Sequence):
        def __init__(self, items=(1, 2)):
            self._items = list(items)

        def __len__(self):
            return 2

        def __getitem__(self, i):
            return self._items[i]

    rows = []
    for value in (range(3), {"b": 1, "a": 2}.values(), {"b": 1}.keys(), {"b": 1, "a": 3}.items(), collections.deque([1]),
                  collections.UserList([1, 2]), Two(), b"ab", bytearray(b"ab"), {1}):
        mapped = tf.nest.map_structure(lambda x: x, value)
        rows.append((tf.nest.is_nested(value), len(tf.nest.flatten(value)), type(mapped).__name__))
    return rows


@both(v2=True)
def test_a_variable_that_is_a_tensor_type_too(tf, np):
    class Cast(tf.Variable, tf.__internal__.types.Tensor):
        def __init__(self):
            pass

    return isinstance(Cast(), tf.Variable), callable(tf.Variable.assign), tf.is_tensor(tf.Variable(1.0))
