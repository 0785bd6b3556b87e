#!/usr/bin/env python3
"""The same answer alone or batched, bit by bit: same_answer_test.py RUNNEL

A network with dense and convolutional layers, made with stock TensorFlow, answers each row alone; then rows in requests of many
sizes, at many places; then the rows of callers at the same time, joined by the server, padded and split as well.
"""
import concurrent.futures
import json
import os
import sys
import tempfile
import urllib.request

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy
import tensorflow as tf

from serving import Server

ROWS = 48


class Network(tf.Module):
    def __init__(self):
        draw = numpy.random.default_rng(1)
        make = lambda *shape: tf.Variable(draw.normal(size=shape).astype(numpy.float32) * 0.1)
        self.wide, self.bias, self.narrow, self.filters = make(64, 300), make(300), make(300, 10), make(3, 3, 1, 8)

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="x")])
    def call(self, x):
        hidden = tf.nn.relu(x @ self.wide + self.bias)
        images = tf.nn.conv2d(tf.reshape(x, [-1, 8, 8, 1]), self.filters, 1, "SAME")
        return {"classes": tf.nn.softmax(hidden @ self.narrow), "means": tf.reduce_mean(images, axis=[1, 2])}


def ask(server, rows):
    body = json.dumps({"inputs": rows.tolist()}).encode()
    url = "http://%s/v1/models/network:predict" % server.rest
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as reply:
        outputs = json.load(reply)["outputs"]
    return {name: numpy.array(value, numpy.float32) for name, value in outputs.items()}


def check(answer, alone, first):
    for name, value in answer.items():
        for i, row in enumerate(value):
            if row.tobytes() != alone[first + i][name][0].tobytes():
                sys.exit("%s of row %d differs in a batch: %s, alone %s" % (name, first + i, row, alone[first + i][name][0]))


def run(runnel, folder, *flags):
    server = Server(runnel, "--model_name=network", "--model_base_path=" + folder, "--cache_mb=0", *flags)
    try:
        server.wait_for(r"(?m)^ready")
        inputs = numpy.random.default_rng(2).normal(size=(ROWS, 64)).astype(numpy.float32)
        alone = [ask(server, inputs[i:i + 1]) for i in range(ROWS)]
        for count in (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, ROWS):
            for first in (0, 1, 6):
                if first + count <= ROWS:
                    check(ask(server, inputs[first:first + count]), alone, first)
        with concurrent.futures.ThreadPoolExecutor(16) as callers:
            parts = [(i % (ROWS - 3), 1 + i % 3) for i in range(200)]
            answers = callers.map(lambda part: ask(server, inputs[part[0]:sum(part)]), parts)
            for (first, _), answer in zip(parts, answers):
                check(answer, alone, first)
    finally:
        server.stop()


def main():
    with tempfile.TemporaryDirectory() as folder:
        network = Network()
        tf.saved_model.save(network, os.path.join(folder, "1"), signatures={"serving_default": network.call})
        run(sys.argv[1], folder)
        parameters = os.path.join(folder, "batching.txt")
        with open(parameters, "w") as file:
            file.write("max_batch_size { value: 24 } batch_timeout_micros { value: 2000 } max_enqueued_batches { value: 100 } "
                       "allowed_batch_sizes: 6 allowed_batch_sizes: 24 enable_large_batch_splitting { value: true }")
        run(sys.argv[1], folder, "--enable_batching", "--batching_parameters_file=" + parameters)


main()
