#!/usr/bin/env python3
"""A model that never ends for some inputs: endless_test.py RUNNEL

Its requests are answered at their deadline, alone or in a batch, and the model goes on with others. While it does not end,
other models, pages and probes answer, although it was quick before, on connections of before and on new ones.
"""
import concurrent.futures
import http.client
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

from serving import Api, Server


class Down(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def call(self, x):
        """Counts down to zero, by one; without end if there is a fraction."""
        return {"y": tf.while_loop(lambda y: tf.reduce_any(tf.not_equal(y, 0)), lambda y: [y - tf.sign(y)], [x])[0]}


def ask(server, value, model="down"):
    """The HTTP code and the answer."""
    body = json.dumps({"instances": [value]}).encode()
    url = "http://%s/v1/models/%s:predict" % (server.rest, model)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as reply:
            return reply.status, json.load(reply)["predictions"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def check_deadlines(server):
    with concurrent.futures.ThreadPoolExecutor(32) as callers:
        for count in (1, 32):  # more than the model has lanes
            begun = time.monotonic()
            answers = list(callers.map(lambda i: ask(server, 0.5 + i), range(count)))
            assert all(code in (503, 504) for code, _ in answers) and 504 in [code for code, _ in answers], answers
            assert time.monotonic() - begun < 30
            # Every lane is free again, and soon the model is expected to answer so many in time.
            for _ in range(20):
                answers = list(callers.map(lambda i: ask(server, 3.0 + i), range(32)))
                if all(answer == (200, [0.0]) for answer in answers):
                    break
            else:
                raise AssertionError(answers)


def get(connection, path):
    connection.request("GET", path)
    reply = connection.getresponse()
    reply.read()
    return reply.status


def check_others(server):
    """Two models at a time that do not end for ten minutes."""
    for model in ("down", "third", "other"):
        for _ in range(100):  # until it is known to be quick
            assert ask(server, 2.0, model) == (200, [0.0])
    old = http.client.HTTPConnection(server.rest, timeout=60)
    assert get(old, "/healthz") == 200
    hanging = []
    for model in ("down", "third"):
        hanging.append(http.client.HTTPConnection(server.rest, timeout=60))
        hanging[-1].request("POST", "/v1/models/%s:predict" % model, json.dumps({"instances": [0.5]}),
                            {"X-Request-Timeout-Ms": "600000"})
        for _ in range(30):
            assert get(old, "/healthz") == 200 and get(old, "/statusz") == 200
            assert ask(server, 5.0, "other") == (200, [0.0])
            assert get(http.client.HTTPConnection(server.rest, timeout=60), "/readyz") == 200
    for connection in hanging:
        connection.close()  # which ends the runs
    for model in ("down", "third"):
        while ask(server, 3.0, model) != (200, [0.0]):  # refused or too late, as long as one runs
            pass


def check_sessions(server):
    """More endless steps of SessionRun than the server has threads, and reloads: predictions go on."""
    api = Api(server.grpc)
    new = lambda name: api.type("tensorflow.serving." + name)()
    run = new("SessionRunRequest")
    run.model_spec.name, run.tensor_name_is_alias = "down", True
    run.fetch.append("y")
    run.feed.add(name="x").tensor.ParseFromString(tf.make_tensor_proto([0.5]).SerializeToString())
    calls = 4 * os.cpu_count() + 20
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(calls) as callers:
        runs = [callers.submit(api.call, "tensorflow.serving.SessionService.SessionRun", run, timeout=8) for _ in range(calls)]
        time.sleep(1)
        answers = [ask(server, 3.0, "other") for _ in range(20)]
        took = time.monotonic() - begun
        reload = new("ReloadConfigRequest")
        for name in ("down", "other", "third"):
            reload.config.model_config_list.config.add(name=name, base_path=server.folder, model_platform="tensorflow")
        assert not api.call("tensorflow.serving.ModelService.HandleReloadConfigRequest", reload).status.error_code
        reloaded = time.monotonic() - begun
        assert all(each.exception() for each in runs)
    api.close()
    assert answers == [(200, [0.0])] * 20 and took < 6 and reloaded < 7, (answers, took, reloaded)


def main():
    with tempfile.TemporaryDirectory() as folder:
        down = Down()
        tf.saved_model.save(down, os.path.join(folder, "1"), signatures={"serving_default": down.call})
        config = os.path.join(folder, "models.pbtxt")
        with open(config, "w") as file:
            rows = "".join('config { name: "%s" base_path: "%s" model_platform: "tensorflow" }\n' % (name, folder)
                           for name in ("down", "other", "third"))
            file.write("model_config_list {\n%s}\n" % rows)
        server = Server(sys.argv[1], "--model_config_file=" + config, "--rest_api_timeout_in_ms=500", "--cache_mb=0")
        try:
            server.wait_for(r"(?m)^ready")
            check_deadlines(server)
        finally:
            server.stop()
        server = Server(sys.argv[1], "--model_config_file=" + config, "--cache_mb=0")
        try:
            server.wait_for(r"(?m)^ready")
            check_others(server)
            server.folder = folder
            check_sessions(server)
        finally:
            server.stop()


main()
