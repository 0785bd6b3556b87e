"""dtype_conversion_mode "safe" and "all": types of results with weak operands, as in stock."""

from both import both

TYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128".split()



def attempt(tf, compute):
    try:
        result = compute()
    except TypeError:
        return "TypeError"
    return result.dtype.name, "weak" in repr(result), tf.cast(tf.convert_to_tensor(result), tf.complex128).numpy()


def enable(tf, mode):
    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)


def sums(tf, mode):
    enable(tf, mode)
    found = []
    for a in TYPES:
        x = tf.cast(tf.constant([1.0, 0.0], tf.float32), a)
        for b in TYPES:
            y = tf.cast(tf.constant([1.0, 1.0], tf.float32), b)
            if (a, b) != ("bool", "bool"):
                found.append((a, b, attempt(tf, lambda x=x, y=y: x + y)))
        for number in (2, 2.0, 2j):
            found.append((a, str(number), attempt(tf, lambda x=x, n=number: x + n), attempt(tf, lambda x=x, n=number: n + x)))
    return found


@both(v2=True)
def test_all(tf, np):
    return sums(tf, "all")


@both(v2=True)
def test_safe(tf, np):
    return sums(tf, "safe")


@both(v2=True)
def test_functions(tf, np):
    enable(tf, "all")
    weak = tf.constant([1.5, 2.5])
    strong = tf.constant([1.5, 2.5], tf.float16)
    rows = [weak, strong, tf.exp(weak), tf.exp(strong), tf.exp([1.0]), tf.reduce_sum(weak), tf.add(weak, strong), tf.maximum(weak, 2.0),
            tf.reshape(weak, [2, 1]), tf.zeros_like(weak), tf.matmul([[1.0]], tf.constant([[1.0]], tf.float64)), -weak, weak[0], strong > 2.0, weak > 2.0,
            tf.constant(3), tf.constant(tf.constant(1, tf.int16), tf.int32), tf.convert_to_tensor(weak), tf.math.divide_no_nan(1, 2)]
    return [(row.dtype.name, "weak" in repr(row), np.asarray(row.numpy(), np.float64)) for row in rows]


@both(v2=True)
def test_variables(tf, np):
    enable(tf, "all")
    v = tf.Variable([1.0, 2.0], dtype=tf.float16)
    v.assign_add([1.0, 1.0])
    v.assign_sub(tf.constant([1, 1]))
    try:
        v.assign(tf.constant([1.0, 2.0], tf.float64))
        return "assigned"
    except TypeError:
        return v.numpy()


@both(v2=True)
def test_unknown_mode(tf, np):
    try:
        enable(tf, "none")
    except ValueError as error:
        return str(error)


@both(v2=True)
def test_variance_of_complex_and_integers(tf, np):
    enable(tf, "off")
    z = tf.constant([1 + 2j, 3 - 1j], tf.complex64)
    try:
        tf.math.reduce_variance(tf.constant([1, 2], tf.int32))
    except TypeError as error:
        text = str(error)
    return tf.math.reduce_variance(z).numpy(), tf.math.reduce_std(z).numpy(), text, tf.math.divide_no_nan(tf.constant(1), tf.constant([0, 2])).numpy()
