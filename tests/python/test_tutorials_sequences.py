"""Programs of 1.x tutorials about sequences of words and of actions: equal losses here and in stock."""

from both import both


@both(rtol=1e-3, atol=1e-4)
def test_word2vec_with_nce(tf, np):
    graph = tf.get_default_graph()
    with graph.as_default(), tf.device("/cpu:0"):
        tf.set_random_seed(9)
        train_inputs = tf.placeholder(tf.int32, shape=[8])
        train_labels = tf.placeholder(tf.int32, shape=[8, 1])
        valid = tf.constant([1, 2, 3], dtype=tf.int32)
        embeddings = tf.Variable(tf.random_uniform([50, 16], -1.0, 1.0, seed=1))
        embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        nce_w = tf.Variable(tf.truncated_normal([50, 16], stddev=0.25, seed=2))
        nce_b = tf.Variable(tf.zeros([50]))
        sampled = tf.nn.log_uniform_candidate_sampler(tf.cast(train_labels, tf.int64), 1, 5, True, 50, seed=4)
        loss = tf.reduce_mean(tf.nn.nce_loss(nce_w, nce_b, train_labels, embed, 5, 50, sampled_values=sampled))
        optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
        normalized = embeddings / norm
        similarity = tf.matmul(tf.nn.embedding_lookup(normalized, valid), normalized, transpose_b=True)
    rng = np.random.RandomState(0)
    with tf.Session(graph=graph) as session:
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(10):
            feed = {train_inputs: rng.randint(50, size=8), train_labels: rng.randint(50, size=(8, 1))}
            losses.append(session.run([optimizer, loss], feed_dict=feed)[1])
        return losses, similarity.eval()


@both(rtol=1e-3, atol=1e-4)
def test_char_rnn(tf, np):
    tf.set_random_seed(2)
    text = "hello world, hello tensors, hello again "
    vocabulary = sorted(set(text))
    ids = np.array([vocabulary.index(c) for c in text])
    x = tf.placeholder(tf.int32, [2, None])
    y = tf.placeholder(tf.int32, [2, None])
    with tf.variable_scope("rnnlm", initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=8)):
        cells = [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(12, state_is_tuple=True), output_keep_prob=1.0) for _ in range(2)]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=True)
        state0 = cell.zero_state(2, tf.float32)
        embedding = tf.get_variable("embedding", [len(vocabulary), 12])
        outputs, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(embedding, x), initial_state=state0)
        w, b = tf.get_variable("softmax_w", [12, len(vocabulary)]), tf.get_variable("softmax_b", [len(vocabulary)])
        logits = tf.reshape(tf.tensordot(outputs, w, [[2], [0]]) + b, [-1, len(vocabulary)])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits))
    tvars = tf.trainable_variables()
    grads, norm = tf.clip_by_global_norm(tf.gradients(loss, tvars), 5.0)
    train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(grads, tvars))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rows, now = [], sess.run(state0)
        for i in range(8):
            batch = ids[i * 4:i * 4 + 8].reshape(2, 4)
            feed = {x: batch, y: np.roll(batch, -1, 1)}
            for (c, h), values in zip(state0, now):
                feed[c], feed[h] = values.c, values.h
            cost, size, now, _ = sess.run([loss, norm, state, train], feed)
            rows.append((cost, size))
        return rows, [v.name for v in tvars], now


@both(rtol=1e-3, atol=1e-4)
def test_bidirectional_classifier(tf, np):
    tf.set_random_seed(6)
    rng = np.random.RandomState(0)
    data, lengths, targets = rng.rand(6, 5, 3).astype("float32"), np.array([5, 3, 4, 2, 5, 1]), rng.randint(2, size=6)
    x, n, y = tf.placeholder(tf.float32, [None, 5, 3]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    with tf.variable_scope("bi", initializer=tf.glorot_uniform_initializer(seed=4)):
        forward, backward = tf.nn.rnn_cell.GRUCell(4), tf.nn.rnn_cell.BasicLSTMCell(4, forget_bias=1.0)
        (out_f, out_b), (last_f, last_b) = tf.nn.bidirectional_dynamic_rnn(forward, backward, x, sequence_length=n, dtype=tf.float32)
        steps = tf.unstack(x, 5, 1)
        static, _, _ = tf.nn.static_bidirectional_rnn(tf.nn.rnn_cell.BasicRNNCell(3), tf.nn.rnn_cell.BasicRNNCell(3), steps, dtype=tf.float32)
        features = tf.concat([last_f, last_b.h, tf.reduce_max(tf.concat([out_f, out_b], 2), 1), static[-1]], 1)
        logits = tf.layers.dense(features, 2)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train], {x: data, n: lengths, y: targets})[0] for _ in range(8)], [v.name for v in tf.global_variables()]


@both(rtol=1e-3, atol=1e-4)
def test_sequence_to_sequence(tf, np):
    tf.set_random_seed(12)
    vocabulary, hidden = 7, 8
    source, target = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, 4])
    init = tf.random_uniform_initializer(-0.2, 0.2, seed=5)
    with tf.variable_scope("model", initializer=init):
        table = tf.get_variable("embedding", [vocabulary, hidden])
        with tf.variable_scope("encoder"):
            memory, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(hidden), tf.nn.embedding_lookup(table, source), dtype=tf.float32)
        cell = tf.nn.rnn_cell.GRUCell(hidden)
        projection = tf.get_variable("projection", [2 * hidden, vocabulary])

        def step(state, token):
            with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
                out, state = cell(tf.nn.embedding_lookup(table, token), state)
            weights = tf.nn.softmax(tf.squeeze(tf.matmul(memory, tf.expand_dims(out, 2)), 2))
            context = tf.reduce_sum(tf.expand_dims(weights, 2) * memory, 1)
            return tf.matmul(tf.concat([out, context], 1), projection), state
        go = tf.zeros_like(target[:, 0])
        logits, token, now = [], go, state
        for t in range(4):  # teacher forcing
            scores, now = step(now, token)
            logits.append(scores)
            token = target[:, t]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=tf.stack(logits, 1)))
        result = tf.TensorArray(tf.int32, size=4)

        def body(i, token, state, result):  # greedy
            scores, state = step(state, token)
            token = tf.cast(tf.argmax(scores, 1), tf.int32)
            return i + 1, token, state, result.write(i, token)
        _, _, _, result = tf.while_loop(lambda i, *_: i < 4, body, [0, go, state, result])
        decoded = tf.transpose(result.stack())
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    rng = np.random.RandomState(0)
    pairs = rng.randint(1, vocabulary, size=(5, 4))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train], {source: pairs, target: pairs[:, ::-1]})[0] for _ in range(20)]
        return losses, sess.run(decoded, {source: pairs, target: pairs}), [v.name for v in tf.trainable_variables()]


class _Walk:
    """A walk over five places; the last pays."""

    def __init__(self, np):
        self.np, self.at = np, 0

    def reset(self):
        self.at = 0
        return self.state()

    def state(self):
        return self.np.eye(5, dtype="float32")[self.at]

    def step(self, action):
        self.at = max(0, min(4, self.at + (1 if action == 1 else -1)))
        return self.state(), float(self.at == 4), self.at == 4


@both(rtol=1e-3, atol=1e-4)
def test_policy_gradient(tf, np):
    tf.set_random_seed(4)
    states, actions, rewards = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    logits = tf.layers.dense(tf.layers.dense(states, 8, tf.nn.tanh, kernel_initializer=tf.glorot_uniform_initializer(seed=1)), 2,
                             kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    probs = tf.nn.softmax(logits)
    log_prob = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
    loss = -tf.reduce_mean(log_prob * rewards)
    optimizer = tf.train.AdamOptimizer(0.05)
    tvars = tf.trainable_variables()
    holders = [tf.placeholder(tf.float32, name="%d_holder" % i) for i, _ in enumerate(tvars)]
    grads = tf.gradients(loss, tvars)
    update = optimizer.apply_gradients(zip(holders, tvars))
    rng, env, lengths, losses = np.random.RandomState(0), _Walk(np), [], []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        buffer = [np.zeros(v.shape.as_list(), "float32") for v in tvars]
        for episode in range(6):
            s, history = env.reset(), []
            for _ in range(20):
                p = sess.run(probs, {states: [s]})[0]
                a = int(rng.rand() < p[1])
                following, r, done = env.step(a)
                history.append((s, a, r))
                s = following
                if done:
                    break
            running, returns = 0.0, []
            for _, _, r in reversed(history):
                running = r + 0.9 * running
                returns.insert(0, running)
            feed = {states: np.vstack([h[0] for h in history]), actions: [h[1] for h in history], rewards: returns}
            value, found = sess.run([loss, grads], feed)
            buffer = [a + b for a, b in zip(buffer, found)]
            if episode % 2:
                sess.run(update, dict(zip(holders, buffer)))
                buffer = [0 * b for b in buffer]
            lengths.append(len(history))
            losses.append(value)
    return lengths, losses


@both(rtol=1e-3, atol=1e-4)
def test_deep_q_learning(tf, np):
    tf.set_random_seed(8)

    def network(s, scope, trainable=True):
        with tf.variable_scope(scope):
            h = tf.layers.dense(s, 10, tf.nn.relu, kernel_initializer=tf.random_normal_initializer(0, 0.3, seed=3), trainable=trainable)
            return tf.layers.dense(h, 2, kernel_initializer=tf.random_normal_initializer(0, 0.3, seed=4), trainable=trainable)
    s, s2 = tf.placeholder(tf.float32, [None, 5], "s"), tf.placeholder(tf.float32, [None, 5], "s_")
    a, r, done = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    q, target = network(s, "eval"), network(s2, "target", False)
    e_params = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="eval")
    t_params = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="target")
    replace = [tf.assign(t, e) for t, e in zip(t_params, e_params)]
    chosen = tf.gather_nd(q, tf.stack([tf.range(tf.shape(a)[0], dtype=tf.int32), a], axis=1))
    goal = tf.stop_gradient(r + 0.9 * (1.0 - done) * tf.reduce_max(target, axis=1))
    loss = tf.reduce_mean(tf.squared_difference(goal, chosen, name="TD_error"))
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    env, rng, memory, losses = _Walk(np), np.random.RandomState(3), [], []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        state = env.reset()
        for i in range(40):
            values = sess.run(q, {s: state[np.newaxis]})
            action = int(values.argmax()) if rng.rand() > 0.5 else rng.randint(2)
            following, reward, over = env.step(action)
            memory.append((state, action, reward, following, float(over)))
            state = env.reset() if over else following
            if i >= 8:
                if i % 10 == 0:
                    sess.run(replace)
                batch = [memory[j] for j in rng.randint(len(memory), size=8)]
                feed = {s: [m[0] for m in batch], a: [m[1] for m in batch], r: [m[2] for m in batch], s2: [m[3] for m in batch], done: [m[4] for m in batch]}
                losses.append(sess.run([loss, train], feed)[0])
        return losses, sess.run(q, {s: np.eye(5)})
