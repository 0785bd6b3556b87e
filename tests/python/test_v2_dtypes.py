"""tf.DType and tf.as_dtype as in stock: limits, errors, small types."""

from both import both

NAMES = "float32 float64 float16 bfloat16 int8 int32 uint8 uint16 uint64 bool string complex64 qint8 quint16 bool_ref".split()


def outcome(call):
    """Returns the text of a result or of an error."""
    try:
        return repr(call())
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


@both(v2=True)
def test_properties(tf, np):
    def row(dtype):
        names = "min max limits size is_numpy_compatible is_bool is_integer is_floating is_unsigned real_dtype as_numpy_dtype".split()
        return [outcome(lambda name=name: getattr(dtype, name)) for name in names]
    small = [getattr(tf.dtypes.experimental, name) for name in "float4_e2m1fn float8_e4m3b11fnuz float8_e4m3fn float8_e5m2 int2 int4 uint2 uint4".split()]
    return [row(tf.as_dtype(name)) for name in NAMES], [row(dtype) for dtype in small], tf.experimental.int4 is tf.dtypes.experimental.int4


@both(v2=True)
def test_conversion(tf, np):
    class Typed:
        dtype = "f4"
    values = ["foo", 0, 999, (tf.int32, tf.float32), None, [], np.dtype([("a", np.int32)]), int, complex, list, bytes, str, object, float, bool, "half", "float",
              "bool_ref", "float8_e5m2", np.int32, np.dtype("S3"), np.datetime64, Typed, Typed(), np.dtype([("qint8", "i1")])]
    found = [outcome(lambda v=value: tf.as_dtype(v)) for value in values[:-3]] + [tf.as_dtype(value).name for value in values[-3:]]
    made = [outcome(lambda v=value: tf.DType(v)) for value in (1, 0, 999, "float32", None, 101)]
    same = [tf.int32 == int, tf.int32 == 3, tf.float32 == "float32", tf.float32 == "foo", tf.float32 != None]  # noqa: E711, E721
    return found, made, same


@both(v2=True)
def test_as_types_of_functions(tf, np):
    proto = tf.float32.experimental_as_proto()
    return (tf.string.is_subtype_of(tf.string), tf.string.is_subtype_of(tf.uint32), str(tf.string.most_specific_common_supertype([tf.uint32])),
            str(tf.string.most_specific_common_supertype([tf.string])), str(tf.DType.experimental_from_proto(proto)), proto.datatype)


@both(v2=True)
def test_small_types(tf, np):
    four, eight = tf.dtypes.experimental.int4, tf.dtypes.experimental.float8_e5m2
    return [str(tf.constant([1, -8], four)), str(tf.cast([1, 3], four)), str(tf.cast([1.0, 3.3], eight)), tf.cast(tf.cast([1.0, 3.3], eight), tf.float32),
            tf.cast(tf.constant([[-3], [7]], four), tf.int32)]


@both(v2=True)
def test_lists_of_floats(tf, np):
    lists = [1.5, 2, 3.5], [1, 2.5, 3], [[1.0, 2.0], [3.0, 4]], [1.0, float("nan"), float("inf")], [0.1] * 1000, (1.0, 2.0), [[]], [[1.0], [2]]
    made = [tf.constant(x) for x in lists] + [tf.constant([0.1, 0.2], kind) for kind in (tf.float64, tf.float16, tf.bfloat16)]
    wrong = []
    for x in ([[1.0], [2.0, 3.0]], [1.0, [2.0]], [[1.0, 2.0], 3.0]):
        try:
            tf.constant(x)
        except ValueError as error:
            wrong.append(type(error).__name__)
    return [x if x.dtype != tf.bfloat16 else tf.cast(x, tf.float32) for x in made], wrong
