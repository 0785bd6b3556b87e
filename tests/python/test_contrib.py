"""tf.contrib: layers, cells, sequences to sequences, random fields, hyperparameters, MNIST's files."""

import gzip
import itertools
import struct

import numpy as np
import pytest

import runnel as tf
from runnel.contrib import crf, layers, legacy_seq2seq, rnn, seq2seq, slim
from runnel.contrib.training import HParams


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        yield graph


def values(*fetches, feed=None):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return sess.run(list(fetches), feed)


def test_layers_are_core_layers_under_slims_names():
    x = tf.constant(np.random.RandomState(0).randn(2, 8, 8, 3).astype(np.float32))
    y = layers.conv2d(x, 4, [3, 3], scope="c")
    z = layers.fully_connected(layers.flatten(layers.max_pool2d(y, 2)), 5, activation_fn=None, scope="f")
    assert [v.op.name for v in tf.trainable_variables()] == [
        "c/weights", "c/biases", "f/weights", "f/biases"]
    kernel, bias = tf.trainable_variables()[:2]
    plain = tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME") + bias)
    pooled = tf.nn.max_pool(plain, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    weights, biases = tf.trainable_variables()[2:]
    got, want = values(z, tf.reshape(pooled, [2, -1]) @ weights + biases)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_arg_scopes_nest_and_are_kept():
    x = tf.zeros([1, 4, 4, 1])
    with slim.arg_scope([slim.conv2d], padding="VALID", activation_fn=None) as kept:
        with slim.arg_scope([slim.conv2d], padding="SAME"):
            assert slim.conv2d(x, 1, 3).shape.as_list() == [1, 4, 4, 1]
        assert slim.conv2d(x, 1, 3).op.type == "BiasAdd"
    with slim.arg_scope(kept):
        assert slim.conv2d(x, 1, 3).shape.as_list() == [1, 2, 2, 1]
    with pytest.raises(ValueError), slim.arg_scope([tf.nn.relu], padding="SAME"):
        pass


def test_repeated_and_stacked_layers_collect_their_outputs():
    x = tf.zeros([2, 6, 6, 1])
    with slim.arg_scope([slim.conv2d, slim.fully_connected], outputs_collections="ends",
                        weights_regularizer=slim.l2_regularizer(0.5)):
        net = slim.repeat(x, 2, slim.conv2d, 3, [3, 3], scope="conv")
        slim.stack(slim.flatten(net), slim.fully_connected, [4, 5], scope="fc")
    assert list(slim.utils.convert_collection_to_dict("ends")) == [
        "conv/conv_1", "conv/conv_2", "fc/fc_1", "fc/fc_2"]
    penalties = tf.losses.get_regularization_losses()
    weights = [v for v in slim.get_model_variables() if v.op.name.endswith("weights")]
    got, want = values(tf.add_n(penalties), tf.add_n([0.25 * tf.reduce_sum(w * w) for w in weights]))
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("updates", [tf.GraphKeys.UPDATE_OPS, None])
@pytest.mark.parametrize("shape", [[6, 3], [4, 2, 2, 3]])
def test_batch_norm_keeps_averages(shape, updates):
    x = np.random.RandomState(1).randn(*shape).astype(np.float32)
    y = layers.batch_norm(tf.constant(x), decay=0.9, scale=True, updates_collections=updates)
    rows = x.reshape(-1, 3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, _ = sess.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS)])
        mean, variance = (sess.run(v) for v in tf.global_variables() if "moving" in v.op.name)
    want = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 0.001)
    np.testing.assert_allclose(got.reshape(-1, 3), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, 0.1 * rows.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * rows.var(0, ddof=1), rtol=1e-4)


def test_optimize_loss_and_train_op_take_a_step():
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", initializer=[3.0, 4.0])
    loss = tf.reduce_sum(v * v) / 2
    train = layers.optimize_loss(loss, step, 0.1, "SGD", clip_gradients=1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(train) == 12.5
        np.testing.assert_allclose(sess.run(v), [3 - 0.06, 4 - 0.08], rtol=1e-6)
        assert sess.run(step) == 1
    op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        np.testing.assert_allclose(sess.run(v), [1.5, 2.0])


def test_slim_trains_and_goes_on(tmp_path):
    def run(steps):
        with tf.Graph().as_default():
            v = slim.model_variable("v", shape=[], initializer=tf.constant_initializer(8.0))
            op = slim.learning.create_train_op(v * v, tf.train.GradientDescentOptimizer(0.25))
            return slim.learning.train(op, str(tmp_path), number_of_steps=steps, log_every_n_steps=0)
    assert run(2) == 16.0
    assert run(4) == 1.0  # from the state after two steps


def test_cells_have_the_names_of_their_variables():
    inputs = [tf.ones([2, 3]) for _ in range(3)]
    rnn.static_rnn(rnn.LayerNormBasicLSTMCell(4), inputs, dtype=tf.float32)
    rnn.static_rnn(rnn.AttentionCellWrapper(rnn.BasicLSTMCell(4), 2), inputs, dtype=tf.float32, scope="a")
    rnn.static_rnn(rnn.LSTMBlockCell(4), inputs, dtype=tf.float32, scope="b")
    names = {v.op.name for v in tf.trainable_variables()}
    assert {"rnn/layer_norm_basic_lstm_cell/kernel", "rnn/layer_norm_basic_lstm_cell/state/gamma",
            "a/attention_cell_wrapper/attention/attn_w", "a/attention_cell_wrapper/basic_lstm_cell/kernel",
            "a/attention_cell_wrapper/attn_output_projection/bias", "b/lstm_cell/kernel"} <= names


def test_buckets_share_variables_and_sum_cross_entropies():
    source = [tf.constant([1, 2]) for _ in range(3)]
    target = [tf.constant([2, 0]) for _ in range(4)]
    ones = [tf.ones([2]) for _ in range(4)]
    outputs, losses = legacy_seq2seq.model_with_buckets(
        source, target, target, ones, [(2, 2), (3, 4)],
        lambda x, y: legacy_seq2seq.embedding_attention_seq2seq(x, y, rnn.GRUCell(5), 4, 6, 3))
    assert len(tf.trainable_variables()) == len({v.op.name for v in tf.trainable_variables()}) == 20
    wanted = [tf.add_n([tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=t, logits=o)) for t, o in zip(target, bucket)]) / len(bucket) for bucket in outputs]
    got, want = values(losses, wanted)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_decoder_reads_its_own_words_when_a_tensor_says_so():
    reads = tf.placeholder(tf.bool, [])
    words = [tf.placeholder(tf.int32, [1]) for _ in range(4)]
    outputs, _ = legacy_seq2seq.embedding_rnn_seq2seq(
        [tf.constant([1])], words, rnn.GRUCell(5), 3, 3, 4, feed_previous=reads)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = [{w: [n] for w, n in zip(words, numbers)} for numbers in ([0, 1, 2, 0], [0, 2, 1, 1])]
        own = [sess.run(outputs[3], {**feed, reads: True}) for feed in feeds]
        given = [sess.run(outputs[3], {**feed, reads: False}) for feed in feeds]
    np.testing.assert_array_equal(*own)  # only the first word counts
    assert not np.allclose(*given)


def test_decoding_what_is_given_is_dynamic_rnn():
    lengths = np.array([5, 2, 4], np.int32)
    x = tf.constant(np.random.RandomState(2).randn(3, 5, 4).astype(np.float32))
    cell, state = rnn.GRUCell(6, name="cell"), tf.ones([3, 6])
    decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(x, lengths), state)
    outputs, final, found = seq2seq.dynamic_decode(decoder, impute_finished=True)
    wanted, last = tf.nn.dynamic_rnn(cell, x, lengths, state)
    got = values(outputs.rnn_output, wanted, final, last, found)
    np.testing.assert_allclose(got[0], got[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[2], got[3], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(got[4], lengths)


def test_luong_attention_is_a_softmax_of_products():
    memory = np.random.RandomState(3).randn(2, 4, 3).astype(np.float32)
    lengths, query = np.array([4, 2]), np.random.RandomState(4).randn(2, 3).astype(np.float32)
    attention = seq2seq.LuongAttention(3, tf.constant(memory), lengths)
    alignments, _ = attention(tf.constant(query), attention.initial_state(2, tf.float32))
    got, kernel = values(alignments, tf.trainable_variables()[0])
    scores = np.einsum("btd,de,be->bt", memory, kernel, query)
    scores[1, 2:] = -np.inf
    want = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(got, want / want.sum(1, keepdims=True), rtol=1e-5)


def test_greedy_decoding_with_two_attentions_ends_and_remembers():
    memory = tf.constant(np.random.RandomState(5).randn(2, 4, 3).astype(np.float32))
    table = tf.get_variable("table", [5, 3])
    cell = seq2seq.AttentionWrapper(
        rnn.BasicLSTMCell(6), [seq2seq.BahdanauAttention(6, memory, [4, 2], normalize=True),
                               seq2seq.LuongAttention(6, memory, [4, 2], scale=True)],
        attention_layer_size=[3, 4], alignment_history=True)
    decoder = seq2seq.BasicDecoder(cell, seq2seq.GreedyEmbeddingHelper(table, [1, 1], 0),
                                   cell.zero_state(2, tf.float32), tf.layers.Dense(5))
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    history, ids, lengths = values(state.alignment_history[0].stack(), outputs.sample_id, lengths)
    assert ids.shape == (2, history.shape[0]) and history.shape[0] == lengths.max() <= 6
    np.testing.assert_allclose(history.sum(2), 1, rtol=1e-5)
    assert not history[:, 1, 2:].any()


@pytest.mark.parametrize("time, batch", list(itertools.product([True, False], repeat=2)))
def test_sequence_loss(time, batch):
    random = np.random.RandomState(6)
    logits, targets = random.randn(3, 4, 5), random.randint(0, 5, (3, 4))
    weights = random.rand(3, 4).astype(np.float32)
    loss = seq2seq.sequence_loss(tf.constant(logits.astype(np.float32)), tf.constant(targets),
                                 tf.constant(weights), time, batch)
    single = np.log(np.exp(logits).sum(2)) - np.take_along_axis(logits, targets[..., None], 2)[..., 0]
    want = single * weights
    if time and batch:
        want = want.sum() / weights.sum()
    elif time or batch:
        axis = 1 if time else 0
        want = want.sum(axis) / weights.sum(axis)
    np.testing.assert_allclose(values(loss)[0], want, rtol=1e-5)


def test_random_fields_agree_with_counting_all_sequences():
    random = np.random.RandomState(8)
    x, moves = random.randn(3, 4, 3).astype(np.float32), random.randn(3, 3).astype(np.float32)
    tags, lengths = random.randint(0, 3, (3, 4)), np.array([4, 2, 1])
    likelihood, _ = crf.crf_log_likelihood(x, tags, lengths, moves)
    path, best = crf.crf_decode(x, moves, lengths)
    likelihood, path, best = values(likelihood, path, best)
    for b, length in enumerate(lengths):
        def score(p, b=b):
            return sum(x[b, t, tag] for t, tag in enumerate(p)) + sum(moves[i, j] for i, j in zip(p, p[1:]))
        every = list(itertools.product(range(3), repeat=length))
        norm = np.log(sum(np.exp(score(p)) for p in every))
        np.testing.assert_allclose(likelihood[b], score(tuple(tags[b, :length])) - norm, rtol=1e-4)
        assert tuple(path[b, :length]) == max(every, key=score) and not path[b, length:].any()
        np.testing.assert_allclose(best[b], max(map(score, every)), rtol=1e-5)
        assert tuple(crf.viterbi_decode(x[b, :length], moves)[0]) == max(every, key=score)


def test_random_fields_learn():
    x = tf.constant(np.random.RandomState(9).randn(2, 5, 3).astype(np.float32))
    loss = -tf.reduce_mean(crf.crf_log_likelihood(x, [[0, 1, 2, 0, 1]] * 2, [5, 3])[0])
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss)
        for _ in range(20):
            sess.run(step)
        assert sess.run(loss) < before - 0.5


def test_hyperparameters_of_text():
    params = HParams(rate=0.1, count=3, kind="relu", sizes=[1, 2], flag=True)
    params.parse("rate=0.5, count=4,sizes=[3,4,5],flag=false").parse("sizes[1]=9")
    assert params.values() == {"rate": 0.5, "count": 4, "kind": "relu", "sizes": [3, 9, 5], "flag": False}
    assert HParams(**params.values()).parse_json(params.to_json()).sizes == [3, 9, 5]
    for text in ("count=x", "other=1", "count=1,count=2", "sizes=3", "count=[1]", "count=1.5"):
        with pytest.raises(ValueError):
            params.parse(text)


def test_adam_with_decay_and_lazy_adam():
    from runnel.contrib import opt
    rows = tf.get_variable("rows", [4, 2], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(tf.gather(rows, [1, 1, 3])))
    lazy, decayed = opt.LazyAdamOptimizer(0.1).minimize(loss), opt.AdamWOptimizer(0.5, 0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(lazy)
        np.testing.assert_allclose(sess.run(rows)[:, 0], [1, 0.9, 1, 0.9], rtol=1e-4)
        sess.run(decayed)
        np.testing.assert_allclose(sess.run(rows)[0], [0.5, 0.5], rtol=1e-6)
        np.testing.assert_allclose(sess.run(rows)[1], [0.35, 0.35], rtol=1e-3)


def write_idx(path, array, magic=None):
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(">%dI" % (array.ndim + 1), magic or 0x800 + array.ndim, *array.shape))
        file.write(array.tobytes())


def test_mnist_of_a_folder(tmp_path):
    from runnel.examples.tutorials.mnist import input_data
    random = np.random.RandomState(10)
    for name, count in (("train", 20), ("t10k", 6)):
        write_idx(tmp_path / (name + "-images-idx3-ubyte.gz"), random.randint(0, 256, (count, 28, 28), np.uint8))
        write_idx(tmp_path / (name + "-labels-idx1-ubyte.gz"), np.arange(count, dtype=np.uint8) % 10)
    mnist = input_data.read_data_sets(str(tmp_path), one_hot=True, validation_size=4)
    assert (mnist.train.num_examples, mnist.validation.num_examples, mnist.test.num_examples) == (16, 4, 6)
    seen = [mnist.train.next_batch(6) for _ in range(8)]
    assert mnist.train.epochs_completed == 2 and all(x.shape == (6, 784) for x, _ in seen)
    counts = np.sum([y.sum(0) for _, y in seen], 0)
    np.testing.assert_array_equal(counts, 3 * np.bincount(np.arange(4, 20) % 10, minlength=10))
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", np.zeros(3, np.uint8), magic=0x803)
    with pytest.raises(ValueError, match="t10k-labels"):
        input_data.read_data_sets(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="train-images"):
        input_data.read_data_sets(str(tmp_path / "nowhere"))


def test_what_is_absent_says_where_to_look():
    with pytest.raises(AttributeError, match="doc/python_names.md"):
        tf.contrib.tensorrt
