"""tf.data: pipelines, iterators."""

from both import both


@both
def test_pipelines(tf, np):
    shown = []
    D = tf.data.Dataset
    tf.set_random_seed(3)

    def show(ds, n=6):
        it = ds.make_one_shot_iterator()
        e = it.get_next()
        out = []
        with tf.Session() as s:
            try:
                while len(out) < n:
                    out.append(s.run(e))
            except tf.errors.OutOfRangeError:
                out.append("end")
        shown.append((str(ds.output_types), str(ds.output_shapes), out))

    show(D.range(10).map(lambda x: x * x).batch(4))
    show(D.from_tensor_slices((np.arange(6).reshape(3, 2).astype("f"), np.array([b"a", b"b", b"c"]))).repeat(2), 8)
    show(D.from_tensor_slices({"a": [1, 2, 3], "b": [[1.0, 2], [3, 4], [5, 6]]}).map(lambda d: {"s": d["a"], "t": tf.reduce_sum(d["b"])}))
    show(D.range(10).shuffle(5, seed=7).take(5))
    show(D.range(10).filter(lambda x: tf.equal(x % 3, 0)))
    show(D.range(3).flat_map(lambda x: D.range(x + 1)))
    show(D.range(3).interleave(lambda x: D.from_tensors(x).repeat(3), cycle_length=2, block_length=1), 9)
    show(D.zip((D.range(3), D.range(5, 8).map(lambda v: tf.cast(v, tf.float32)))))
    show(D.range(4).map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=[None]))
    show(D.range(5).concatenate(D.range(2)), 8)
    show(D.range(8).window(3).flat_map(lambda w: w.batch(3)), 8)
    show(D.range(5).map(lambda x: x + 1, num_parallel_calls=2).prefetch(1))
    show(D.range(7).shard(3, 1))
    show(D.range(4).cache().enumerate())

    def gen():
        for i in range(4):
            yield i, [i] * i

    show(D.from_generator(gen, (tf.int64, tf.float32), ([], [None])))
    return shown


@both
def test_iterators(tf, np):
    D = tf.data.Dataset
    x = tf.placeholder(tf.int64, [None])
    it = D.from_tensor_slices(x).map(lambda v: v * 2).batch(2).make_initializable_iterator()
    following = it.get_next()
    total = D.range(5).reduce(np.int64(0), lambda a, b: a + b)
    any_ = tf.data.Iterator.from_structure(tf.int64, [])
    first, second = any_.make_initializer(D.range(2)), any_.make_initializer(D.range(10, 12))
    of_any = any_.get_next()
    handle = tf.placeholder(tf.string, [])
    of_handle = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    one, two = D.range(3).make_one_shot_iterator(), D.range(5, 8).make_one_shot_iterator()
    ten = tf.constant(10, tf.int64)
    captured = D.range(3).map(lambda v: v + ten).make_initializable_iterator()
    of_captured = captured.get_next()
    with tf.Session() as sess:
        sess.run([it.initializer, captured.initializer], {x: [1, 2, 3]})
        results = [sess.run(following), sess.run(following), sess.run(total), sess.run(of_captured), sess.run(of_captured)]
        sess.run(first)
        results.append(sess.run(of_any))
        sess.run(second)
        results.append(sess.run(of_any))
        h1, h2 = sess.run([one.string_handle(), two.string_handle()])
        return results + [sess.run(of_handle, {handle: h}) for h in (h1, h2, h1)]
