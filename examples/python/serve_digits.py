"""A model server with a queue that answers the requests of many clients in batches.

The program trains a model, saves it as a SavedModel and loads it again. Then each client asks about one
digit at a time, and a thread answers all waiting requests, up to a limit, in one step. A step reads all
weights for a batch of any size, so larger batches serve more requests per second.
"""

import argparse
import concurrent.futures
import queue
import tempfile
import threading
import time

import numpy as np
import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=45)
options = parser.parse_args()
images, labels, test_images, test_labels = load()
CLIENTS, ROUNDS = 32, 3


def train(folder):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 64])
        y = tf.placeholder(tf.int64, [None])
        logits = tf.layers.dense(tf.layers.dense(tf.layers.dense(x, 2048, tf.nn.relu), 2048, tf.nn.relu), 10)
        step = tf.train.AdamOptimizer(0.0005).minimize(tf.losses.sparse_softmax_cross_entropy(y, logits))
        sess.run(tf.global_variables_initializer())
        for i in range(options.steps):
            sess.run(step, {x: images[i * 100 % 1500:][:100], y: labels[i * 100 % 1500:][:100]})
        tf.saved_model.simple_save(sess, folder, inputs={"images": x}, outputs={"digits": tf.argmax(logits, 1)})


class Server:
    """Answers requests, at most `most` of them per step."""

    def __init__(self, folder, most):
        self.most, self.waiting = most, queue.Queue()
        session = tf.Session(graph=tf.Graph())
        with session.graph.as_default():
            model = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], folder)
        signature = model.signature_def["serving_default"]
        self.step = session.make_callable(signature.outputs["digits"].name, [signature.inputs["images"].name])
        threading.Thread(target=self.work, daemon=True).start()

    def ask(self, image):
        answer = queue.Queue(1)
        self.waiting.put((image, answer))
        return answer.get()

    def work(self):
        while True:
            batch = [self.waiting.get()]
            while len(batch) < self.most and not self.waiting.empty():
                batch.append(self.waiting.get())
            for (_, answer), digit in zip(batch, self.step(np.stack([image for image, _ in batch]))):
                answer.put(digit)


folder, rates = tempfile.mkdtemp() + "/model", {}
train(folder)
for most in 1, 2, 4, 8, 16, 32:
    server, answers = Server(folder, most), np.zeros(len(test_images), np.int64)

    def client(number, server=server, answers=answers):
        for i in list(range(number, len(test_images), CLIENTS)) * ROUNDS:
            answers[i] = server.ask(test_images[i])

    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(client, range(CLIENTS)))
    rates[most] = ROUNDS * len(test_images) / (time.time() - begin)
    print("batches of at most %2d: %6.0f requests a second" % (most, rates[most]))
print("serving: %.1f %% right; %.1f times as many requests a second in batches" % (
    100 * np.mean(answers == test_labels), max(rates.values()) / rates[1]))
