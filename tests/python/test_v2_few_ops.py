"""Functions over few ops, against stock TensorFlow 2: assert_shapes, DenseHashTable, DLPack, protos, distributions over vectors."""

import pytest

pytest.importorskip("numpy")
from both import both


@both(v2=True)
def test_shapes_agree(tf, np):
    x, y = tf.ones([2, 3]), tf.ones([3, 4])

    @tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec(None)])
    def later(a, b):
        tf.debugging.assert_shapes([(a, ("N", "D")), (b, ("D", "Q")), (b, (..., 4))])
        return a + 1.0
    checked = [tf.debugging.assert_shapes([(x, ("N", "D")), (y, ("D", 4)), (tf.constant(1.0), ()), (y, ("*", "Q")), (y, (None, "."))]),
               tf.debugging.assert_shapes({"a": None})]
    failed = False
    try:
        later(x, x)
    except tf.errors.InvalidArgumentError:
        failed = True
    return [value is None for value in checked] + [later(x, y).numpy(), failed]


@both(v2=True, raises=True)
def test_shapes_differ(tf, np):
    tf.debugging.assert_shapes([(tf.ones([2, 3]), ("N", "D")), (tf.ones([3, 4]), ("N", 4))], message="Look")


@both(v2=True, raises=True)
def test_rest_is_first(tf, np):
    tf.debugging.assert_shapes([(tf.ones([2, 3]), ("N", ...))])


@both(v2=True)
def test_dense_table(tf, np):
    table = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, default_value=-1, empty_key="", deleted_key="$", initial_num_buckets=4)
    table.insert(["a", "b", "c"], [1, 2, 3])
    table.remove(tf.constant(["b"]))
    table.insert_or_assign(["a"], [7])
    rows = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, default_value=[0.0, 0.0], empty_key=-1, deleted_key=-2)
    rows.insert([4], [[1.0, 2.0]])
    return [table.lookup(["a", "b", "c", "d"]).numpy(), table.size().numpy(), table[tf.constant("c")].numpy(), rows.lookup([4, 5]).numpy()]


@both(v2=True, raises=True)
def test_dense_table_without_the_empty_key(tf, np):
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1)
    table.insert([0], [1])


@both(v2=True)
def test_tables_without_names(tf, np):
    pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    fixed = tf.lookup.StaticHashTable(pairs, -1, experimental_is_anonymous=True)
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, experimental_is_anonymous=True)
    table.insert(["a"], [5])
    ragged = tf.ragged.constant([["a"], ["b", "c"]])
    later = table.lookup(tf.constant(["a", "x"]), dynamic_default_values=tf.constant([8, 9], tf.int64))
    return [fixed.lookup(ragged).to_list(), table.lookup(ragged.flat_values).numpy(), later.numpy(), fixed.size().numpy()]


@both(v2=True)
def test_dlpack(tf, np):
    x = tf.constant([[1, 2], [3, 4]], tf.int16)
    return tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x)).numpy()


@both(v2=True)
def test_proto_fields(tf, np):
    try:
        tf.io.encode_proto([[1]], [np.array([[1]], np.int64)], ["size"], "a.Missing", descriptor_source=b"bytes://")
    except (tf.errors.OpError, ValueError) as error:
        return type(error).__name__
    return None


@both(v2=True)
def test_sampled_product(tf, np):
    rng = np.random.RandomState(0)
    one, two = rng.randn(2, 3).astype(np.float32), rng.randn(3, 4).astype(np.float32)
    found = tf.sparse.sampled_addmm([[0, 1], [1, 3]], [1.0, 2.0], [2, 4], one, two, beta=0.5, alpha=2.0)
    return [np.array(part) for part in found]


@both(v2=True)
def test_quality_of_a_seed(tf, np):
    image = np.random.RandomState(0).randint(0, 255, [16, 16, 3]).astype(np.uint8)
    return tf.image.stateless_random_jpeg_quality(image, 50, 95, (1, 2)).numpy()


@both(v2=True)
def test_distributions_over_vectors(tf, np):
    made = tf.compat.v1.distributions
    one, other = made.Dirichlet([[1.0, 2.0, 3.0], [4.0, 2.0, 2.0]]), made.Dirichlet([2.0, 2.0, 2.0])
    counts, mixed = made.Multinomial(4.0, probs=[[0.2, 0.3, 0.5]]), made.DirichletMultinomial(4.0, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]])
    probs, whole = np.array([0.2, 0.3, 0.5], np.float32), np.array([1.0, 2.0, 1.0], np.float32)
    found = [one.mean(), one.variance(), one.covariance(), one.entropy(), other.mode(), one.log_prob(probs), one.kl_divergence(other),
             counts.mean(), counts.variance(), counts.covariance(), counts.log_prob(whole), mixed.mean(), mixed.variance(), mixed.covariance(),
             mixed.log_prob(whole)]
    drawn = [one.sample(3), counts.sample(3), mixed.sample(3)]
    sums = [tf.reduce_sum(sample, -1).numpy().round(3) for sample in drawn]
    return [value.numpy() for value in found] + [list(sample.shape) for sample in drawn] + sums + [
        list(one.batch_shape), list(one.event_shape), list(mixed.batch_shape)]


@both(v2=True)
def test_names_of_devices_with_memory(tf, np):
    found = []
    for name in ("CPU:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0", "/job:x/CPU:0", "unknown_device:0", "GPU:99", "CPU", "a/b:0"):
        for function in (tf.config.experimental.get_memory_info, tf.config.experimental.reset_memory_stats):
            try:
                found.append(type(function(name)).__name__)
            except ValueError as error:
                found.append(str(error))
    return found


@both(v2=True)
def test_the_order_of_unsorted_top_k(tf, np):
    found = []
    for seed in range(10):
        x = np.random.RandomState(seed).rand(3, 12).astype("f")
        x[1] = np.round(x[1] * 4)  # with ties
        found += [tf.math.top_k(x, k, sorted=False).indices.numpy() for k in (2, 3, 5, 8, 11, 12)]
    return found
