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


@both(v2=True)
def test_annotations_and_constructors(tf, np):
    import inspect

    def made(annotations, **values):
        return lambda: type(tf.experimental.ExtensionType)("Bad", (tf.experimental.ExtensionType,), {"__annotations__": annotations, **values})

    class Base(tf.experimental.ExtensionType):
        name: str
        count: int = 2
        weight: tf.Tensor

    class Derived(Base):
        maker: tf.Tensor = "x"
        count: int = 4
    kinds = [[(p.name, p.kind.name, p.default if isinstance(p.default, (int, str)) else None) for p in inspect.signature(c.__init__).parameters.values()] for c in (Base, Derived)]
    bad = [outcome(call) for call in (
        made({"x": typing.Mapping[tf.Tensor, int]}), made({"x": typing.List[int]}), made({"x": complex}), made({}, x=3), made({"_to_components": int}),  # noqa: UP006
        made({"x": int}, Spec=12), made({"x": float}, x=8), made({"x": typing.Tuple[int, ...]}, x=[1, "2"]), lambda: Base("a", weight=1.0, count=2.5),  # noqa: UP006
        lambda: tf.experimental.ExtensionType(), lambda: Base.Spec("a", 2, 5), lambda: Base.Spec("a", 2, tf.TensorSpec([])).weight)]
    return kinds, bad, Derived("n", weight=[1.0]).maker, Base("n", weight=3) == Base("n", weight=[3])


def test_values_in_one_variant():
    import runnel.v2 as tf
    from runnel.extension_types.packing import is_packed, pack, unpack

    class Named(tf.experimental.ExtensionType):
        __name__ = "runnel.tests.Named"
        values: tf.Tensor
        rows: tf.RaggedTensor
        scale: int = 3
    x = Named([1, 2], tf.ragged.constant([[1], [2, 3]]))
    packed = pack(x)
    assert is_packed(packed) and not is_packed(x) and len(tf.nest.flatten(packed, expand_composites=True)) == 1
    assert packed.values.numpy().tolist() == [1, 2] and unpack(packed).rows.to_list() == [[1], [2, 3]] and packed.scale == 3
    again = tf.function(lambda y: pack(Named(y.values * 2, y.rows)))(packed)
    assert is_packed(again) and again.values.numpy().tolist() == [2, 4]


def test_models_of_unknown_extension_types(tmp_path):
    import runnel.v2 as tf
    from runnel.core import type_spec
    from runnel.extension_types.anonymous import AnonymousExtensionType, reinterpret

    class Pair(tf.experimental.ExtensionType):
        __name__ = "runnel.tests.Pair"
        a: tf.Tensor
        b: int
    module = tf.Module()
    module.f = tf.function(lambda p: Pair(p.a + p.b, p.b))
    module.f.get_concrete_function(Pair([1, 2], 5))
    tf.saved_model.save(module, str(tmp_path))
    del type_spec._registered[type_spec._names.pop(Pair.Spec)]
    loaded = tf.saved_model.load(str(tmp_path))
    out = loaded.f(reinterpret(Pair([1, 2], 5), AnonymousExtensionType))
    assert isinstance(out, AnonymousExtensionType) and out.a.numpy().tolist() == [6, 7] and out.b == 5
    assert type(reinterpret(out, Pair)) is Pair
