"""Functions whose parameters or results differ in TensorFlow 2: the same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_images(tf, np):
    image = tf.reshape(tf.range(48, dtype=tf.float32), [4, 4, 3]) / 48
    batch = tf.stack([image, 1 - image])
    begin, size, box = tf.image.stateless_sample_distorted_bounding_box([4, 4, 3], tf.constant([[[0.1, 0.2, 0.9, 0.8]]]), seed=(5, 6))
    return (tf.image.stateless_random_flip_left_right(image, seed=(1, 2)), tf.image.stateless_random_flip_left_right(image, seed=(3, 2)),
            tf.image.stateless_random_flip_up_down(batch, seed=(1, 2)), tf.image.stateless_random_brightness(image, 0.2, seed=[3, 4])[0],
            tf.image.stateless_random_contrast(image, 0.2, 0.9, seed=[3, 4])[0], tf.image.stateless_random_saturation(image, 0.2, 0.9, seed=[3, 4])[0],
            tf.image.stateless_random_hue(image, 0.2, seed=[3, 4])[0], tf.image.stateless_random_crop(image, [2, 2, 3], seed=[7, 8]), begin, size, box,
            tf.image.extract_glimpse(batch, [2, 2], [[0.0, 0.0], [0.1, 0.1]], noise="zero"))


@both
def test_arrays(tf, np):
    x = tf.reshape(tf.range(16, dtype=tf.float32), [1, 4, 4, 1])
    return (tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])[:, 0, 0, 0], tf.batch_to_space(tf.reshape(x, [4, 2, 2, 1]), [2, 2], [[0, 0], [0, 1]])[0, :, :, 0],
            tf.io.decode_raw([b"abcd", b"e"], tf.uint8, fixed_length=3), tf.io.decode_raw(b"ab", tf.int16), tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1),
            tf.gather_nd([[1, 2], [3, 4]], [[0], [1]], batch_dims=1), tf.ones([2], layout=None), tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=0, separator="-"),
            tf.strings.reduce_join([["a", "b"]], keepdims=True), tf.tensor_scatter_nd_max([1, 2], [[0]], [5]), tf.matmul([[1.0]], [[2.0]], transpose_a=True),
            tf.argmax([[1, 5], [7, 2]], output_type=tf.int32), tf.math.reduce_std([1.0, 2.0]), tf.norm([[3.0, 4.0]], axis=1), tf.squeeze([[1]], axis=0), tf.is_tensor(x))


@both
def test_pools(tf, np):
    x = tf.reshape(tf.range(50, dtype=tf.float32), [1, 5, 5, 2])
    k = tf.ones([2, 2, 2]) * 0.5
    pooled = tf.nn.fractional_max_pool(x, 1.4, seed=3)
    return (tf.nn.dilation2d(x, k, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]), tf.nn.erosion2d(x, k, [1, 1, 1, 1], "VALID", "NHWC", [1, 2, 2, 1]), pooled[0].shape,
            tf.nn.max_pool2d(x, 2, 2, "SAME"), tf.nn.avg_pool2d(x, [2, 2], [1, 1], "VALID"), tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True))


@both(rtol=1e-2, atol=1e-2)
def test_gradients_by_differences(tf, np):
    by_tape, by_differences = tf.test.compute_gradient(lambda a, b: a * tf.reduce_sum(b), [tf.constant([1.0, 2.0]), tf.constant([3.0])])
    return by_tape, by_differences


@both
def test_scopes_and_variables(tf, np):
    with tf.name_scope("outer") as outer:
        with tf.name_scope("inner") as inner:
            v = tf.Variable(1.0, name="v")
            current = tf.get_current_name_scope()
        with tf.name_scope(inner):
            w = tf.Variable(1.0)

    @tf.function
    def f(x):
        with tf.name_scope("traced"):
            return tf.add(x, v, name="sum")
    f(tf.constant(1.0))
    names = [op.name for op in f.get_concrete_function(tf.constant(1.0)).graph.get_operations() if op.type == "AddV2"]
    return outer, inner, v.name, w.name, current, names, tf.get_current_name_scope()


@both
def test_generators_in_functions(tf, np):
    g = tf.random.Generator.from_seed(7)

    @tf.function
    def f():
        return g.normal([2]), g.uniform([2], 5, 9, tf.int64)
    copy = tf.random.Generator.from_state(g.state, alg="philox")
    tf.random.set_global_generator(tf.random.Generator.from_seed(4))
    world = tf.random.get_global_generator()
    results = [f(), f(), copy.normal([2]), world.normal([2]), tf.random.Generator.from_key_counter(5, [1, 2], "philox").state]
    copy.reset_from_seed(9)
    copy.skip(4)
    return results, copy.state, tf.random.create_rng_state(2**65 + 3, 1), tf.random.Generator.from_seed([4, 5]).state
