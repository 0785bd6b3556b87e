"""Extension types and dispatch, as in stock."""

import typing

from both import both


def masked(tf, base=None):
    """Returns a new class MaskedTensor."""
    class MaskedTensor(base or tf.experimental.BatchableExtensionType):
        values: tf.Tensor
        mask: tf.Tensor
        scale: float = 1.0

        shape = property(lambda self: self.values.shape)
        dtype = property(lambda self: self.values.dtype)

        def with_default(self, default):
            return tf.where(self.mask, self.values, default)
    return MaskedTensor


def outcome(call):
    """Returns the text of a result or of an error."""
    try:
        return str(call())
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


@both(v2=True)
def test_fields(tf, np):
    class Fields(tf.experimental.ExtensionType):
        a: tf.Tensor
        b: int = 3
        c: tuple[tf.Tensor, ...] = ()
        d: typing.Mapping[str, tf.Tensor] = {}
        e: typing.Union[int, str, None] = None
        f: tf.DType = tf.float32
        g: tf.TensorShape = None
        h: typing.Optional[tf.RaggedTensor] = None
    Fields.__qualname__ = "Fields"
    x = Fields([1.0, 2.0], c=[1, 2], d={"k": [True]}, g=[2, None])
    texts = [outcome(call) for call in (
        lambda: x, lambda: x._type_spec, lambda: setattr(x, "b", 4), lambda: delattr(x, "b"), lambda: Fields(), lambda: Fields(1, "a"), lambda: Fields(1, e=2.5),
        lambda: Fields(1, z=3), lambda: Fields(1, c=5), lambda: Fields(1, d={1: 2}), lambda: Fields(1, f="int32").f, lambda: Fields(1, b=True),
        lambda: hash(x), lambda: x == 3, lambda: Fields(1, h=tf.ragged.constant([[1], [2, 3]])).h, lambda: Fields(1, b=2.5))]
    return texts, x == x, x != x, x == Fields([1.0, 3.0], c=[1, 2], d={"k": [True]}, g=[2, None]), list(tf.experimental.extension_type.as_dict(x))


@both(v2=True)
def test_bad_classes(tf, np):
    def made(annotations, **values):
        return lambda: type(tf.experimental.ExtensionType)("Bad", (tf.experimental.ExtensionType,), {"__annotations__": annotations, **values})
    return [outcome(call) for call in (made({"x": list}), made({"Spec": int}), made({"self": int}), made({"a": int}, a="x"))]


@both(v2=True)
def test_constructor_and_validation(tf, np):
    class Pair(tf.experimental.ExtensionType):
        a: tf.Tensor
        b: tf.Tensor

        def __init__(self, a):
            self.a = a
            self.b = tf.shape(a)

        def __validate__(self):
            self.a.shape.assert_has_rank(1)

        def total(self):
            return tf.reduce_sum(self.a)

    class Triple(Pair):
        c: int

        def __init__(self, a, c):
            self.a, self.b, self.c = a, [5], c
    made = Triple([1.0, 2.0], 7)
    return Pair([1.0, 2.0]).total(), outcome(lambda: Pair([[1.0]])), made.b, made.c, outcome(lambda: setattr(made, "c", 8))


@both(v2=True)
def test_functions_and_control_flow(tf, np):
    MaskedTensor = masked(tf)
    traces = []

    @tf.function
    def double(x):
        traces.append(x.scale)
        return MaskedTensor(x.values * 2, x.mask, x.scale)

    @tf.function
    def chosen(x, is_first):
        if is_first:
            return x
        return MaskedTensor(x.values + 1, x.mask)

    @tf.function
    def loop(x):
        for _ in tf.range(3):
            x = MaskedTensor(x.values + 1, tf.logical_not(x.mask))
        return x
    x = MaskedTensor([1.0, 2.0], [True, False])
    y = double(x)
    double(MaskedTensor([3.0, 2.0], [True, False]))
    double(MaskedTensor([3.0, 2.0], [True, False], 2.0))
    z, w = chosen(x, tf.constant(False)), loop(x)
    with tf.GradientTape() as tape:
        v = tf.Variable([1.0, 2.0])
        out = double(MaskedTensor(v * v, [True, True])).values
    return y.values, y.mask, type(y) is MaskedTensor, traces, z.values, w.values, w.mask, tape.gradient(out, v)


@both(v2=True)
def test_nest_and_specs(tf, np):
    MaskedTensor = masked(tf)
    x = MaskedTensor([[1, 2], [3, 4]], [[True, False], [True, True]])
    spec = tf.type_spec_from_value(x)
    wide = MaskedTensor.Spec(tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([None, 2], tf.bool), 1.0)
    flat = tf.nest.flatten([x, 5], expand_composites=True)
    packed = tf.nest.pack_sequence_as([x, 5], list(flat), expand_composites=True)
    return [spec.is_compatible_with(x), wide.is_compatible_with(x), spec == wide, wide.is_subtype_of(spec), spec.is_subtype_of(wide), len(flat), packed[0].values, isinstance(x, tf.experimental.ExtensionType),
            isinstance(spec, tf.experimental.ExtensionTypeSpec), spec.value_type is MaskedTensor, str(spec.most_specific_compatible_type(MaskedTensor.Spec(
                tf.TensorSpec([3, 2], tf.int32), tf.TensorSpec([3, 2], tf.bool), 1.0)).values.shape)]


@both(v2=True)
def test_dispatch(tf, np):
    MaskedTensor = masked(tf)

    @tf.experimental.dispatch_for_api(tf.shape)
    def shape(input: MaskedTensor, out_type=tf.int32):  # noqa: A002
        return tf.shape(input.values, out_type)

    @tf.experimental.dispatch_for_api(tf.concat)
    def concat(values: list[MaskedTensor], axis):
        return MaskedTensor(tf.concat([v.values for v in values], axis), tf.concat([v.mask for v in values], axis))

    @tf.experimental.dispatch_for_unary_elementwise_apis(MaskedTensor)
    def unary(api, x):
        return MaskedTensor(api(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(MaskedTensor, typing.Union[MaskedTensor, tf.Tensor])
    def binary(api, x, y):
        other = y.values if isinstance(y, MaskedTensor) else y
        return MaskedTensor(api(x.values, other), x.mask)
    x = MaskedTensor([[1.0, -2.0]], [[True, False]])
    found = [tf.shape(x), tf.concat([x, x], 0).values, tf.abs(x).values, tf.math.negative(x).values, tf.cast(x, tf.int32).values, tf.ones_like(x).values, tf.add(x, x).values,
             tf.multiply(x, tf.constant(3.0)).values, tf.nn.relu(x).values, tf.clip_by_value(x, -1.0, 0.5).values, tf.abs(tf.constant(-1.0)), tf.concat([[1], [2]], 0), tf.math.greater(x, x).values]
    inside = tf.function(lambda y: tf.abs(y))(x).values
    tf.experimental.unregister_dispatch_for(unary)
    return found, inside, outcome(lambda: tf.abs(x)).split(":")[0], outcome(lambda: tf.experimental.unregister_dispatch_for(unary)).split(":")[0]


@both(v2=True)
def test_bad_dispatch(tf, np):
    MaskedTensor = masked(tf)

    def wrong(a: MaskedTensor):
        return a

    def bare(x, y):
        return x
    return [outcome(call).split(":")[0] for call in (
        lambda: tf.experimental.dispatch_for_api(tf.add)(wrong), lambda: tf.experimental.dispatch_for_api(print), lambda: tf.experimental.dispatch_for_api(tf.add)(bare),
        lambda: tf.experimental.dispatch_for_api(tf.add, {"q": MaskedTensor})(bare))]
