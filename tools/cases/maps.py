"""Maps of tensors, and composite tensors in variants."""

from .base import *

KEYS = "F I U C b s"


def empty():
    return node("EmptyTensorMap")


def put(m, k, v):
    return node("TensorMapInsert", [m, k, v])


def found(m, k, d="float"):
    return node("TensorMapLookup", [m, k], {"value_dtype": d})


def key(value, d="int32"):
    return scalar(d, value)


def alist():
    return node("EmptyTensorList", [iscalar(-1), iscalar(-1)], {"element_dtype": "float"})


def values(t):
    size, has, look, erase, stack = (
        "TensorMapSize", "TensorMapHasKey", "TensorMapLookup", "TensorMapErase", "TensorMapStackKeys")
    x, y = drawn("float", [2]), drawn("float", [3, 2])
    one = put(empty(), key(1), x)
    two = put(one, key(2), y)
    t.row("made", "EmptyTensorMap", [], then=[node(size, [use("node")])])
    t.row("empty", size, [empty()])
    t.row("two", size, [two])
    t.row("again", size, [put(two, key(1), y)])
    for d in dtypes(KEYS):
        k = dict(drawn(d, [3]), id="k")
        t.row("key_" + d, look, [put(empty(), k, x), use("k")], {"value_dtype": "float"})
        t.row("other_key_" + d, has, [put(empty(), k, x), drawn(d, [3])])
        t.row("keys_" + d, stack, [put(empty(), drawn(d, [3]), x)], {"key_dtype": d})
        t.row("value_" + d, look, [put(empty(), key(3), drawn(d, [2])), key(3)], {"value_dtype": d})
    t.row("replaced", look, [put(two, key(1), y), key(1)], {"value_dtype": "float"})
    t.row("second", look, [two, key(2)], {"value_dtype": "float"})
    t.row("missing", look, [two, key(3)], {"value_dtype": "float"})
    t.row("missing_text", look, [two, vec("string", ["ab", "c"])], {"value_dtype": "float"})
    t.row("type_of_key", look, [two, key(1, "int64")], {"value_dtype": "float"})
    t.row("shape_of_key", has, [two, vec("int32", [1])])
    t.row("has", has, [two, key(2)])
    t.row("has_not", has, [two, key(9)])
    t.row("not_a_map", size, [alist()], message="code-only")
    t.row("no_variant", look, [alist(), key(1)], {"value_dtype": "float"}, message="code-only")
    maps = node("Reshape", [two, ivec(1)])
    t.row("vector", size, [maps])
    t.row("vector", look, [maps, key(1)], {"value_dtype": "float"})
    gone = node(erase, [two, key(1)], {"value_dtype": "float"})
    t.row("erased", has, [gone, key(1)])
    t.row("kept", look, [gone, key(2)], {"value_dtype": "float"})
    t.row("erased", size, [gone])
    t.row("erased_missing", size, [node(erase, [two, key(7)], {"value_dtype": "float"})])
    t.row("missing", erase, [two, key(7)], {"value_dtype": "float"})
    t.row("not_a_map", erase, [alist(), key(7)], {"value_dtype": "float"}, message="code-only")
    t.row("not_a_map", "TensorMapInsert", [alist(), key(7), x], message="code-only")
    t.row("empty", stack, [empty()], {"key_dtype": "int32"})
    t.row("type", stack, [one], {"key_dtype": "int64"})
    t.row("shapes", stack, [put(one, vec("int32", [1, 2]), y)], {"key_dtype": "int32"})
    # A map that something else still reads does not change.
    base = dict(two, id="m")
    changed = put(base, key(1), drawn("float", [5]))
    t.row("unchanged", "Pack", [[node(size, [put(changed, key(5), x)]), node(size, [use("m")])]])
    t.row("in_map", look, [put(empty(), key(1), two), key(1)], {"value_dtype": "variant"}, message="code-only")


def gradients(t):
    x, y = drawn("double", [2]), drawn("double", [2])
    one = put(empty(), key(1), x)
    two = put(one, key(2), y)
    look = "TensorMapLookup"
    d = {"value_dtype": "double"}
    t.row("grad", look, [one, key(1)], d, grad=True)
    t.row("grad_second", look, [two, key(2)], d, grad=True)
    t.row("grad_replaced", look, [put(two, key(1), drawn("double", [2])), key(1)], d, grad=True)
    t.row("grad_erased", look, [node("TensorMapErase", [two, key(2)], d), key(1)], d, grad=True)
    both = node("Add", [found(dict(two, id="m"), key(1), "double"), found(use("m"), key(2), "double")])
    t.row("grad_both", "Mul", [both, found(use("m"), key(1), "double")], grad=True)


SPECS = {"sparse": b"\x0a\x02\x08\x01", "ragged": b"\x0a\x02\x08\x03", "none": b""}


def composites(t):
    make, read = "CompositeTensorVariantFromComponents", "CompositeTensorVariantToComponents"

    def packed(spec, *parts):
        return node(make, [list(parts)], {"metadata": SPECS[spec].decode()})

    def row(name, v, spec, types, **more):
        t.row(name, read, [v], {"metadata": SPECS[spec].decode(), "Tcomponents": types}, **more)

    parts = drawn("float", [3]), vec("int64", [0, 2, 3])
    row("ragged", packed("ragged", *parts), "ragged", ["float", "int64"])
    row("sparse", packed("sparse", *parts), "sparse", ["float", "int64"])
    row("unknown", packed("none", *parts), "none", ["float", "int64"])
    for d in dtypes(KEYS):
        row(d, packed("ragged", drawn(d, [2, 2])), "ragged", [d])
    row("class", packed("ragged", *parts), "sparse", ["float", "int64"])
    row("count", packed("ragged", *parts), "ragged", ["float"])
    row("type", packed("ragged", *parts), "ragged", ["float", "int32"])
    row("list", alist(), "ragged", ["float"], message="code-only")
    row("grad", packed("ragged", drawn("double", [3]), vec("int64", [0, 2, 3])), "ragged", ["double", "int64"], grad=True)
    t.row("bad_metadata", make, [[drawn("float", [3])]], {"metadata": "zzz"})
    t.row("bad_metadata", read, [packed("ragged", *parts)], {"metadata": "zzz", "Tcomponents": ["float"]})


def fill(t):
    values(t)
    gradients(t)
    composites(t)
