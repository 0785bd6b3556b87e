#!/usr/bin/env python3
"""Writes the training graphs of cases_models.c with stock TensorFlow: models.py FOLDER

Each file is a GraphDef with a node "init" that makes the variables, a node "step" that trains once,
and a tensor "loss". Both libraries run the very same nodes, stock's gradients included. Loops are
those of graphs: Enter, Merge, Switch, NextIteration, Exit.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as stock  # noqa: E402

tf = stock.compat.v1
RANDOM = np.random.RandomState(7)


def variable(name, shape, scale=0.05):
    initial = tf.random.uniform(shape, -scale, scale, seed=1) if scale else tf.zeros(shape)
    return tf.get_variable(name, initializer=initial, use_resource=True)


def lstm_cell(x, c, h, weights, bias):
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), weights), bias)
    i, j, f, o = tf.split(gates, 4, 1)
    c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.sigmoid(o) * tf.tanh(c)


def constant(*shape):
    return tf.constant(RANDOM.uniform(-1, 1, shape).astype("f"))


def descend(loss, rate=0.01):
    return tf.train.GradientDescentOptimizer(rate).minimize(loss)


def consume(*numbers):
    """A step that needs them: either library may leave out what only a NoOp needs."""
    return variable("sink", [], 0).assign(tf.add_n(numbers))


def lstm_loop(rows, weights, bias):
    """The states of an LSTM in a while loop, inputs and outputs in tensor arrays."""
    steps, batch, hidden = rows.shape.as_list()
    inputs = tf.TensorArray(tf.float32, steps).unstack(rows)
    outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, hidden])
    zero = tf.zeros([batch, hidden])

    def body(t, c, h, out):
        x = tf.ensure_shape(inputs.read(t), [batch, hidden])
        c, h = lstm_cell(x, c, h, weights, bias)
        return t + 1, c, h, out.write(t, h)

    final = tf.while_loop(lambda t, *_: t < steps, body, [0, zero, zero, outputs],
                          parallel_iterations=32)
    return final[3].stack()


def dynamic_rnn(batch, hidden, steps):
    weights, bias = variable("w", [2 * hidden, 4 * hidden]), variable("b", [4 * hidden], 0)
    loss = tf.reduce_mean(tf.square(lstm_loop(constant(steps, batch, hidden), weights, bias)))
    return loss, descend(loss)


def lstm_inference(hidden, steps, vocabulary=10000):
    """A language model's LSTM read word by word: batch 1, weights that no step changes."""
    table = variable("embedding", [vocabulary, hidden])
    weights, bias = variable("w", [2 * hidden, 4 * hidden]), variable("b", [4 * hidden], 0)
    words = tf.constant(RANDOM.randint(0, vocabulary, [steps, 1]))
    states = lstm_loop(tf.nn.embedding_lookup(table, words), weights, bias)
    sum_of_states = tf.reduce_sum(tf.square(states))
    return sum_of_states, consume(sum_of_states)


def language_model(sampled, vocabulary=10000, hidden=512, batch=32, steps=20):
    """Embedding, LSTM unrolled, softmax over the vocabulary or a sample of it."""
    table = variable("embedding", [vocabulary, hidden])
    weights, bias = variable("w", [2 * hidden, 4 * hidden]), variable("b", [4 * hidden], 0)
    out_weights, out_bias = variable("out_w", [vocabulary, hidden]), variable("out_b", [vocabulary], 0)
    words = tf.constant(RANDOM.randint(0, vocabulary, [steps + 1, batch]))
    c = h = tf.zeros([batch, hidden])
    states = []
    for t in range(steps):
        c, h = lstm_cell(tf.nn.embedding_lookup(table, words[t]), c, h, weights, bias)
        states.append(h)
    states, labels = tf.concat(states, 0), tf.reshape(words[1:], [-1])
    loss = tf.reduce_mean(softmax_loss(sampled, out_weights, out_bias, states, labels, vocabulary))
    return loss, descend(loss)


def softmax_loss(sampled, weights, bias, states, labels, classes):
    if sampled:
        return tf.nn.sampled_softmax_loss(weights, bias, tf.reshape(labels, [-1, 1]), states, sampled,
                                          classes, seed=3)
    logits = tf.nn.bias_add(tf.matmul(states, weights, transpose_b=True), bias)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def softmax_layer(sampled, classes=40000, hidden=512, batch=640):
    """The last layer of a language model alone, forward and backward."""
    weights, bias = variable("w", [classes, hidden]), variable("b", [classes], 0)
    labels = tf.constant(RANDOM.randint(0, classes, [batch]))
    states = variable("states", [batch, hidden])
    loss = tf.reduce_mean(softmax_loss(sampled, weights, bias, states.read_value(), labels, classes))
    gradients = tf.gradients(loss, [weights, bias, states])
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients]
    return loss, consume(*[tf.reshape(v, [-1])[0] for v in values])


def embedding(optimizer, rows=1 << 20, width=64, looked_up=4096):
    table = variable("table", [rows, width])
    # In a variable, as ids that are read: of constant ones everything but the update is computed ahead.
    ids = tf.get_variable("ids", initializer=tf.constant(RANDOM.randint(0, rows, [looked_up])),
                          use_resource=True, trainable=False)
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, ids)))
    return loss, optimizer(0.1).minimize(loss)


def adam(tensors=40, total=50_000_000):
    """Adam with gradients that are there already."""
    size = total // tensors
    variables = [variable(f"v{i}", [size]) for i in range(tensors)]
    gradients = [variable(f"g{i}", [size]).read_value() for i in range(tensors)]
    step = tf.train.AdamOptimizer(1e-4).apply_gradients(zip(gradients, variables))
    return variables[0].read_value()[0] * gradients[0][0], step


def small_function():
    """One call of a function of a hundred ops over four numbers."""

    @stock.function(autograph=False)
    def body(x):
        for i in range(50):
            x = tf.maximum(x * 1.01 - 0.01 * i, x)
        return x

    x = variable("x", [4])
    y = body(x.read_value())
    return y[0], consume(y[0])


MODELS = {
    "rnn_b32_h256": lambda: dynamic_rnn(32, 256, 50),
    "rnn_b1_h32": lambda: dynamic_rnn(1, 32, 50),
    "lstm_loop_h512": lambda: lstm_inference(512, 100),
    "lm_full": lambda: language_model(0),
    "lm_sampled": lambda: language_model(512),
    "softmax_full": lambda: softmax_layer(0),
    "softmax_sampled": lambda: softmax_layer(512),
    "embedding_sgd": lambda: embedding(tf.train.GradientDescentOptimizer),
    "embedding_adagrad": lambda: embedding(tf.train.AdagradOptimizer),
    "adam": adam,
    "function100": small_function,
}


def write(folder, name):
    with tf.Graph().as_default() as graph:
        loss, step = MODELS[name]()
        tf.identity(loss, name="loss")
        with tf.control_dependencies([step]):
            tf.no_op(name="step")
        with tf.control_dependencies([tf.global_variables_initializer()]):
            tf.no_op(name="init")
        with open(os.path.join(folder, name + ".pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    tf.disable_control_flow_v2()
    for name in MODELS:
        write(folder, name)


if __name__ == "__main__":
    main()
