#!/usr/bin/env python3
"""A model that never ends for some inputs: endless_test.py RUNNEL

Its requests are answered at their deadline, alone or in a batch, and the model goes on with others.
"""
import concurrent.futures
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

from serving import Server


class Down(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def call(self, x):
        """Counts down to zero, by one; without end if there is a fraction."""
        return {"y": tf.while_loop(lambda y: tf.reduce_any(tf.not_equal(y, 0)), lambda y: [y - tf.sign(y)], [x])[0]}


def ask(server, value):
    """The HTTP code and the answer."""
    body = json.dumps({"instances": [value]}).encode()
    url = "http://%s/v1/models/down:predict" % server.rest
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as reply:
            return reply.status, json.load(reply)["predictions"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def main():
    with tempfile.TemporaryDirectory() as folder:
        down = Down()
        tf.saved_model.save(down, os.path.join(folder, "1"), signatures={"serving_default": down.call})
        server = Server(sys.argv[1], "--model_name=down", "--model_base_path=" + folder, "--rest_api_timeout_in_ms=500")
        try:
            server.wait_for(r"(?m)^ready")
            with concurrent.futures.ThreadPoolExecutor(32) as callers:
                for count in (1, 32):  # more than the model has lanes
                    begun = time.monotonic()
                    answers = list(callers.map(lambda i: ask(server, 0.5 + i), range(count)))
                    assert all(code in (503, 504) for code, _ in answers) and 504 in [code for code, _ in answers], answers
                    assert time.monotonic() - begun < 30
                    # Every lane is free again.
                    answers = list(callers.map(lambda i: ask(server, 3.0 + i), range(32)))
                    assert all(answer == (200, [0.0]) for answer in answers), answers
        finally:
            server.stop()


main()
