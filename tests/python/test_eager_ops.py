"""Eager ops and their gradients on tapes, compared with stock."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


@both
def test_blocks(tf, np):
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    parts = tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])
    wide = tf.space_to_batch_nd(tf.ones([2, 6, 4]), [3], [[0, 0]])
    return [parts.numpy(), tf.batch_to_space_nd(parts, [2, 2], [[0, 0], [0, 0]]).numpy(), wide.shape.as_list(),
            tf.nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]).numpy()]


@both
def test_gradients_of_gathers(tf, np):
    x, rows = tf.reshape(tf.range(12.0), [3, 4]), tf.constant([[0, 1], [1, 1], [2, 3]])
    results = []
    for keywords in ({"axis": 1}, {"axis": -1}, {"axis": tf.constant(1)}, {"axis": 1, "batch_dims": 1}):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.gather(x, rows if "batch_dims" in keywords else [0, 2, 0], **keywords)
            y = y * y
        results.append(tape.gradient(y, x).numpy())
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(x, [2, 2]) ** 2
    found = tape.gradient(y, x)
    results += [found.indices.numpy(), found.values.numpy()]
    for axis in (0, 1):  # one tape's function serves one axis
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.gather(x, [1], axis=axis))
        results.append(tf.convert_to_tensor(tape.gradient(y, x)).numpy())
    return results


@both
def test_gradients_of_lists(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[2])
        row = tf.raw_ops.TensorListGetItem(input_handle=rows, index=1, element_shape=-1, element_dtype=tf.float32)
        y = row * row
    return tape.gradient(y, x).numpy()


@both
def test_loops_with_arrays_in_functions(tf, np):
    @tf.function
    def squares(x):
        return tf.map_fn(lambda a: a * a, x)

    rows = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]]).map(lambda r: tf.map_fn(lambda a: a + 1.0, r))
    return [squares(tf.constant([1.0, 2.0, 3.0])).numpy()] + [r.numpy() for r in rows]


@both
def test_numbers_too_small_are_zero(tf, np):
    results = []
    for dtype in (np.float32, np.float64):
        tiny = np.finfo(dtype).tiny
        for shape in ((), (1 << 18,)):  # on this thread, on several
            results.append(float(tf.reduce_max(tf.constant(tiny, shape=shape) * dtype(0.1)).numpy()))
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(dtype)
            results += [float(session.run(x * dtype(0.1), {x: tiny})), float(session.run(tf.constant(tiny) * dtype(0.1)))]
        results.append(tiny / 16 * 16 == tiny)  # that is not for other code
    return results


@both
def test_sums_of_complex_numbers(tf, np):
    x = tf.constant(np.arange(12).reshape(2, 3, 2) * (1 + 2j))
    return [tf.einsum("abc->ac", x).numpy(), tf.einsum("abc->", x).numpy()]


@both
def test_complex_norms(tf, np):
    x = tf.constant([[3 + 4j, 1j], [2, 1 - 1j]])
    return [tf.norm(x).numpy(), tf.norm(x, axis=1).numpy(), tf.norm(x, 1, axis=0).numpy(), tf.norm(x, np.inf).numpy(),
            tf.norm(x, "fro", axis=[0, 1]).numpy(), tf.norm(x, axis=1, keepdims=True).numpy()]


@both
def test_second_order(tf, np):
    z = tf.constant([1 + 2j, -3 + 0.5j, 2j])
    with tf.GradientTape() as outer:
        outer.watch(z)
        with tf.GradientTape() as tape:
            tape.watch(z)
            size = tf.abs(z)
        first = tape.gradient(size, z)
    return [first.numpy(), outer.gradient(first, z).numpy()]


@both
def test_print(tf, np):
    import os
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "printed")
    x, v = tf.range(10), tf.Variable([1.5, 2.5])
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1, 2], [3, 4])
    for values in ((x,), ("x:", x, 3.5, None), ({"small": x, "Big": v, "third": [x, (v, "text")]},), (sparse, [sparse]), ("{}", x), (v, [[]]),
                   (tf.constant(["a", "b"]),), (tf.constant("é"),)):
        tf.print(*values, output_stream="file://" + path)
    tf.print(x, x, sep=";", end="!", summarize=-1, output_stream="file://" + path)
    with open(path) as stream:
        return stream.read()


@both
def test_arrays(tf, np):
    rows = tf.TensorArray(tf.float32, size=3, element_shape=[2]).write(1, [1.0, 2.0])
    loose = tf.TensorArray(tf.float32, size=2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0])
    return [rows.stack().numpy(), tf.TensorArray(tf.int32, size=0, element_shape=[5, 2]).stack().shape.as_list(), loose.read(0).numpy(),
            loose.read(1).numpy()]


@both
def test_texts_of_numpy(tf, np):
    return [tf.fill([2], np.array([b"yo"])[0]).numpy(), tf.constant(np.bytes_(b"abc")).numpy(), tf.constant(np.str_("abc")).numpy()]
