"""Prints what the inner paths of TensorFlow 2 do: types as messages, registries, dispatch, decorators, deprecation. See test_inner_paths_v2.py."""

import collections
import functools
import typing

import numpy as np
import tensorflow as tf

from tensorflow.core.function.polymorphism import function_type as function_types
from tensorflow.core.function.polymorphism import function_type_pb2
from tensorflow.core.function.trace_type import default_types, serialization
from tensorflow.core.function import trace_type
from tensorflow.python.framework import type_spec_registry
from tensorflow.python.ops import array_ops, bitwise_ops, math_ops
from tensorflow.python.platform import tf_logging
from tensorflow.python.util import (
    decorator_utils, deprecation, dispatch, function_utils, lazy_loader, object_identity, tf_decorator, tf_inspect)


def outcome(call, *args, **kwargs):
    """Returns the value of a call, or the class and first line of its error."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, str(error).split("\n")[0])


def types_as_messages():
    Pair = collections.namedtuple("Pair", "left right")
    kinds = [tf.float32, tf.TensorShape([2, None]), tf.TensorShape(None), tf.TensorSpec([3], tf.int32, "x"), tf.RaggedTensorSpec([2, None], tf.string)]
    kinds += [trace_type.from_value(value) for value in (
        1, 2.5, "text", None, True, (1, [2.0, "a"]), {"a": 1, "b": (None,)}, np.zeros([2], np.float32), Pair(1, 2))]
    for kind in kinds:
        message = serialization.serialize(kind)
        print(kind, message.representation.type_url, serialization.deserialize(message) == kind, len(message.SerializeToString()))
    print(outcome(serialization.serialize, 5))
    print(outcome(serialization.serialize, default_types.Literal(b"bytes")))
    print(outcome(lambda: serialization.register_serializable(tf.DType)))
    f = function_types.FunctionType(
        [function_types.Parameter("a", function_types.Parameter.POSITIONAL_OR_KEYWORD, True, trace_type.from_value(1)),
         function_types.Parameter("b", function_types.Parameter.KEYWORD_ONLY, False, None)],
        collections.OrderedDict([("c", tf.TensorSpec([], tf.bool))]))
    print(f.to_proto().parameters[0], f.to_proto().captures, function_types.FunctionType.from_proto(f.to_proto()) == f,
          function_type_pb2.Parameter.FromString(f.to_proto().parameters[1].SerializeToString()).name)


class Boxed(tf.TypeSpec):
    """Describes nothing."""

    value_type = property(lambda self: object)
    _component_specs = property(lambda self: tf.TensorSpec([]))

    def __init__(self, value):
        self.value = value

    def _serialize(self):
        return (self.value,)

    def _to_components(self, value):
        return value

    def _from_components(self, components):
        return components


def registries():
    print([outcome(type_spec_registry.register, name).split(".")[0] if not callable(outcome(type_spec_registry.register, name)) else "ok"
           for name in (None, "name", "", "a b.c", "mine.Boxed")])
    print(outcome(type_spec_registry.register("mine.Boxed"), None))
    type_spec_registry.register("mine.Boxed")(Boxed)
    print(outcome(type_spec_registry.register("mine.Other"), Boxed), outcome(type_spec_registry.lookup, None), outcome(type_spec_registry.lookup, "x.y"),
          outcome(type_spec_registry.get_name, 3), type_spec_registry.get_name(Boxed), type_spec_registry.lookup("mine.Boxed") is Boxed)
    one, other = Boxed(np.arange(3)), Boxed(np.arange(3))
    print(one == other, one == Boxed(np.arange(4)))
    first, second = (collections.namedtuple("Two", "a b") for _ in range(2))
    print(Boxed(first(1, tf.TensorShape([2]))).is_compatible_with(Boxed(second(1, tf.TensorShape([None])))))


class Masked(tf.experimental.ExtensionType):
    """Values, some of which count."""

    values: tf.Tensor
    mask: tf.Tensor


def dispatched():
    x = Masked([1, -2], [True, False])
    unary = dispatch.dispatch_for_unary_elementwise_apis(Masked)(lambda api, x: Masked(api(x.values), x.mask))
    print([f(x).values.numpy().tolist() for f in (math_ops.abs, math_ops.negative, bitwise_ops.invert, array_ops.ones_like_v2)])

    @dispatch.register_unary_elementwise_api
    @dispatch.add_dispatch_support
    def doubled(x):
        return x * 2
    print(doubled(x).values.numpy().tolist(), doubled(3))
    dispatch.unregister_dispatch_for(unary)
    print(outcome(math_ops.abs, x).split(":")[0])

    @dispatch.dispatch_for_api(math_ops.add, {"x": Masked, "y": typing.Union[Masked, tf.Tensor, int]})
    def added(x, y):
        return "added"
    print(math_ops.add(x, 1, name="sum"), math_ops.add(x, x), int(math_ops.add(1, 2)))
    print(dispatch.type_based_dispatch_signatures_for(Masked)[math_ops.add][0].keys())
    dispatch.unregister_dispatch_for(added)

    @dispatch.dispatch_for_api(math_ops.add_n, {"inputs": list[Masked]})
    def summed(inputs):
        return len(inputs)
    print(math_ops.add_n(x for _ in range(3)))
    dispatch.unregister_dispatch_for(summed)
    for api, signature, target in ((math_ops.add, {"x": tuple[Masked]}, added), (math_ops.add, [Masked], added),
                                   (math_ops.add, {None: Masked}, added), (math_ops.add, {"x": Masked}, "no function")):
        print(outcome(lambda: dispatch.dispatch_for_api(api, signature)(target)))  # noqa: B023
    print(outcome(dispatch.add_dispatch_support, lambda x: x, iterable_parameters="x"), dispatch.make_type_checker(int) is dispatch.make_type_checker(int))


@dispatch.add_dispatch_support
def weighted(x, y, factor=2):
    return math_ops.add(x, y * factor)


class Plain:
    """No tensor."""


def fallbacks():
    dispatch.dispatch_for_types(weighted, Plain)(lambda x, y: "plain")
    print(weighted(Plain(), 1), int(weighted(1, 1)), outcome(weighted, Plain(), 1, factor=3))
    print(outcome(dispatch.dispatch_for_types(weighted, Plain), lambda y, x: None))


def described(function):
    """Adds one to the result."""
    def wrapper(*args, **kwargs):
        return wrapper.__wrapped__(*args, **kwargs) + 1
    return tf_decorator.make_decorator(function, wrapper, "described", "Documented.")


@described
@described
def plain(a, b=1, *more, key=None):
    """Plain."""
    return a + b


def decorators():
    print(plain.__name__, plain.__doc__, tf_inspect.getfullargspec(plain), plain(1), len(tf_decorator.unwrap(plain)[0]))
    tf_decorator.rewrap(plain, tf_decorator.unwrap(plain)[1], lambda a: a * 10)
    print(plain(1), tf_inspect.isfunction(plain), tf_inspect.getdoc(plain), tf_inspect.getsourcefile(plain).split("/")[-1])
    spec = tf_inspect.FullArgSpec(["p", "q"], None, "rest", (1,), [], None, {})
    given = tf_decorator.make_decorator(lambda *args: args, lambda *args: args, "given", "", spec)
    print(tf_inspect.getfullargspec(given) == spec, sorted(tf_inspect.getcallargs(given, 5).items()))
    print(tf_inspect.getargspec(functools.partial(lambda m, n: m, 1)), outcome(tf_inspect.getargspec, functools.partial(lambda m, n: m, m=1)).split(":")[0])
    print([function_utils.get_func_name(f) for f in (outcome, collections.OrderedDict().items, lambda x: x)][::2],
          function_utils.get_func_code(functools.partial(outcome)), outcome(function_utils.get_func_code, 1))
    module = lazy_loader.LazyLoader("collections_later", globals(), "collections")
    print(module.OrderedDict is collections.OrderedDict, globals()["collections_later"] is collections)
    one, two = object_identity._ObjectIdentityWrapper("a"), object_identity._ObjectIdentityWrapper("a")
    print(one == two, outcome(lambda: one == "a").split(":")[0])


class Shown:
    """Has a property that is computed once per class."""

    @decorator_utils.cached_classproperty
    def name(cls):  # noqa: N805
        """The name."""
        return cls.__name__


def deprecations():
    said = []
    tf_logging.warning = lambda text, *values: said.append((text % values).split(": ", 1)[1])
    when, how = "2030-01-01", "Use the other."

    @deprecation.deprecated(when, how)
    def old(x):
        """Does it.

        Args:
          x: a number.
        """
        return x

    @deprecation.deprecated(None, how)
    class Old:
        def __init__(self):
            self.x = 1

    @deprecation.deprecated(when, how)
    class OldText(str):
        pass

    @deprecation.deprecated_args(when, how, "a", ("b", 1))
    def arguments(x, a=None, b=1, *more):
        """Does it."""
        return x

    @deprecation.deprecated_args(when, how, ("a", 2))
    def few(x, a=None):
        return x

    @deprecation.deprecated_arg_values(when, how, a=3)
    def values(a=3):
        return a
    print(old.__doc__, Old.__doc__, arguments.__doc__, values.__doc__, OldText.__doc__ is not None, sep="\n---\n")
    print(few(1, 2), few(1, 5), old(1), old(2), Old().x, OldText("a"), values(1), values())
    with tf.Graph().as_default():
        print([few(1, 2), few(1, 5), few(1, a=5)])
    other = deprecation.deprecated_alias("tf.old", "tf.new", lambda x: x)
    print(other(1), other(2))
    with deprecation.silence():
        print(arguments(1, 5))
    for text in said:
        print("said", text.replace("__main__", "main"))
    print(outcome(deprecation.deprecated_args(when, how, "missing"), lambda x: x))
    print(outcome(deprecation.deprecated, "soon", how), outcome(deprecation.deprecated, when, ""))
    print(outcome(lambda: deprecation.deprecated(when, how)(property(lambda self: 1))).split(" is not")[1])
    print(Shown.name, Shown().name, outcome(setattr, Shown(), "name", 1).split(":")[0])
    print(decorator_utils.add_notice_to_docstring("Brief\n  Rest", "Do", "None", "(sign)", ["Note this"]))


for part in (types_as_messages, registries, dispatched, fallbacks, decorators, deprecations):
    print("==", part.__name__)
    part()
