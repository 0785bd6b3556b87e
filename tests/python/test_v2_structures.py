"""tf.nest: what differs between structures, structures walked as deep as others, paths. The same programs in stock."""

import collections
import functools

from both import both as _both

both = functools.partial(_both, v2=True)
Pair = collections.namedtuple("Pair", "a b")
Other = collections.namedtuple("Other", "a b")


def failure(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return None


@both
def test_differences(tf, np):
    same = tf.nest.assert_same_structure
    pairs = [([1, 2], [1, [2]]), ([1, 2], (1, 2)), ({"a": 1}, {"b": 1}), (Pair(1, 2), Other(1, 2)), ([1, 2], [1]), (1, [1]), ({"a": [1]}, {"a": (1,)}),
             (Pair(1, [2]), Pair(1, 2)), ([], [1]), (collections.OrderedDict(a=1), {"a": 1})]
    return [failure(lambda one=one, two=two: same(one, two)) for one, two in pairs], [
        failure(lambda one=one, two=two: same(one, two, check_types=False)) for one, two in pairs]


@both
def test_packing(tf, np):
    pack = tf.nest.pack_sequence_as
    return [pack({"b": 1, "a": [2, 3]}, [1, 2, 3]), failure(lambda: pack([1, 2], [1])), failure(lambda: pack(1, [1, 2])), failure(lambda: pack([1], "x")),
            failure(lambda: tf.nest.map_structure(len, [1], foo=1)), pack(Pair(1, [2]), [5, 6])]


@both
def test_shallow_structures(tf, np):
    nest = tf.__internal__.nest
    return [nest.flatten_up_to([0, 0], [[1, 2], {"a": 3}]), nest.flatten_up_to({"a": 0, "b": [0]}, {"a": [1], "b": [(2, 3)]}),
            nest.map_structure_up_to([0, 0], lambda x, y: (x, y), [[1], 2], [3, [4]]), list(nest.yield_flat_paths({"a": [1, {"b": 2}], "c": Pair(1, 2)})),
            failure(lambda: nest.flatten_up_to([0, 0], [1])), failure(lambda: nest.flatten_up_to([0], 1)), failure(lambda: nest.flatten_up_to([0], (1,))),
            failure(lambda: nest.flatten_up_to({"a": 0}, {"b": 0}))]


@both
def test_composites_in_structures(tf, np):
    x = tf.sparse.from_dense([[1, 0], [0, 2]])
    r = tf.ragged.constant([[1], [2, 3]])
    return [len(tf.nest.flatten([x, {"r": r}], expand_composites=True)), failure(lambda: tf.nest.assert_same_structure(x, r, expand_composites=True))[0],
            failure(lambda: tf.nest.assert_same_structure([x], [tf.constant(1)], expand_composites=True))[0],
            tf.nest.map_structure(lambda t: t + t, r, expand_composites=True).values]


@both
def test_type_specs_with_other_parts(tf, np):
    class Spec(tf.TypeSpec):
        value_type = property(lambda self: object)
        _component_specs = property(lambda self: [])

        def __init__(self, *parts):
            self.parts = parts

        def _serialize(self):
            return self.parts

        def _to_components(self, value):
            return []

        def _from_components(self, components):
            return object()
    shape = tf.TensorShape
    specs = [Spec(shape([1]), 2), Spec(shape([None]), 2), Spec(shape([1])), Spec(shape([1]), 2, 3), Spec(Pair(shape([1]), 2)), Spec(Pair(shape([3]), 2)),
             Spec((shape([1]), 2))]
    common = [[one.most_specific_common_supertype([two]) for two in specs] for one in specs]
    return [[one.is_subtype_of(two) for two in specs] for one in specs], [[None if x is None else str(x.parts) for x in row] for row in common]
