#!/usr/bin/env python3
"""Applications of `runnel serve` as processes: clipper_test.py RUNNEL MODELS PART

PART is "example": the bandit of examples/serving, with fewer queries; "folder": what feedback taught outlives kill -9, answers are marked, strict applications refuse; "redis": two servers
share what they learn, go on while Redis is gone, and meet again when it is back; or "redis_secure": the same Redis behind TLS, a password and a database number. Exits with 77
without redis-server or NumPy.
"""
import atexit
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.ports import free_ports

RUNNEL, MODELS, PART = sys.argv[1:4]
APPS = """
application { name: "a" input_type: FLOATS default_output: "-1" latency_slo_micros: 10000000 loss: ABSOLUTE
  policy { name: "exp4" } model { name: "half_plus_two" } model { name: "half_plus_three" } }
application { name: "late" input_type: FLOATS default_output: "-1" latency_slo_micros: 1 model { name: "half_plus_two" } }
application { name: "strict" input_type: FLOATS default_output: "-1" latency_slo_micros: 1 is_strict: true
  model { name: "half_plus_two" } }
"""


class Server:
    def __init__(self, folder, *options, models=None, apps=None):
        if not models:
            models, apps = os.path.join(folder, "models.config"), os.path.join(folder, "apps.config")
            with open(models, "w") as out:
                configs = [f'config {{ name: "{name}" base_path: "{MODELS}/{name}" model_platform: "tensorflow" }}'
                           for name in ("half_plus_two", "half_plus_three")]
                out.write("model_config_list { %s }\n" % " ".join(configs))
            with open(apps, "w") as out:
                out.write(APPS)
        self.process = subprocess.Popen(
            [RUNNEL, "serve", "--port=0", "--rest_api_port=0", f"--model_config_file={models}", f"--apps_file={apps}", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        atexit.register(self.process.kill)
        self.port = None
        said = ""
        for line in self.process.stdout:
            said += line
            match = re.search(r"REST at port (\d+)", line)
            if match:
                self.port = int(match.group(1))
            if line.strip() == "ready":
                return
        raise RuntimeError("runnel serve has ended: " + said)

    def get(self, path):
        return self.post(path, None, "GET")

    def post(self, path, body, method="POST"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text, reply.headers

    def predict(self, app, **body):
        code, text, headers = self.post(f"/{app}/predict", body)
        assert code == 200, (code, text)
        return json.loads(text), headers

    def weight(self, model, user=""):
        code, text, _ = self.post("/admin/get_state", {"app_name": "a", "uid": user})
        assert code == 200, (code, text)
        return json.loads(text)["weights"][model]

    def teach(self, user, times, other=None):
        """Says that half_plus_three is right, to this server or to another one."""
        for i in range(times):
            query, _ = self.predict("a", input=[float(i)], uid=user)
            code, text, _ = (other or self).post("/a/update", {"query_id": query["query_id"], "label": i / 2 + 3})
            assert (code, text) == (200, "Feedback received? 1"), (code, text)

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(60)
        self.process.stdout.close()


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within half a minute")


def check_inference(server):
    """The Open Inference Protocol has applications, too."""
    def infer(app, code=200, outputs=(), **more):
        tensor = {"name": "input", "shape": [1, 1], "datatype": "FP32", "data": [20.0], **more}
        body = {"inputs": [tensor], "outputs": [{"name": name} for name in outputs], "parameters": {"user": "bert"}}
        got, text, headers = server.post(f"/v2/models/{app}/infer", body)
        assert got == code, (got, text)
        reply = json.loads(text)
        return reply if code != 200 else {x["name"]: x["data"][0] for x in reply["outputs"]}, headers

    answer, headers = infer("a")
    assert 12 < float(answer["output"]) < 13 and answer["default"] is False and answer["missing"] == 0, answer
    assert headers["Runnel-Marks"] is None and set(answer) == {"output", "query_id", "default", "confidence", "missing"}
    for _ in range(2):  # the second time changes nothing
        code, text, _ = server.post("/a/update", {"query_id": answer["query_id"], "label": 13.0})
        assert (code, text) == (200, "Feedback received? 1"), (code, text)
    assert server.weight("half_plus_three", "bert") > 0.5
    assert infer("a", outputs=["confidence", "output"], shape=[1])[0].keys() == {"confidence", "output"}
    answer, headers = infer("late", data=[21.0])  # which the cache has not
    assert answer["output"] == "-1" and answer["default"] and headers["Runnel-Marks"] == "default", answer
    infer("strict", 504, data=[22.0])
    for more, says in (({"shape": [2, 1], "data": [1.0, 2.0]}, "one row"), ({"datatype": "FP64"}, "is FP32, not FP64"),
                       ({"outputs": ["nothing"]}, "no output 'nothing'")):
        assert says in infer("a", 400, **more)[0]["error"], says
    assert "not found" in infer("b", 404)[0]["error"]
    metadata = json.loads(server.get("/v2/models/a")[1])
    assert metadata["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1]}] and metadata["versions"] == ["1"], metadata
    config = json.loads(server.get("/v2/models/a/config")[1])
    assert config["name"] == "a" and config["platform"] == "runnel_application", config
    assert config["input"] == [{"name": "input", "data_type": "TYPE_FP32", "dims": [-1]}], config
    assert [x["name"] for x in config["output"]] == ["output", "query_id", "default", "confidence", "missing"], config
    assert server.get("/v2/models/a/versions/2/config")[0] == 404
    (stats,) = json.loads(server.get("/v2/models/a/stats")[1])["model_stats"]
    assert (stats["name"], stats["version"], stats["inference_count"]) == ("a", "1", stats["inference_stats"]["success"]["count"]), stats
    assert stats["inference_count"] >= 2 and stats["inference_stats"]["fail"]["count"] == 3, stats
    assert {"a", "late", "half_plus_two"} <= {x["name"] for x in json.loads(server.get("/v2/models/stats")[1])["model_stats"]}
    index = json.loads(server.post("/v2/repository/index", {})[1])
    assert {"name": "a", "version": "1", "state": "READY", "reason": ""} in index and len(index) == len({x["name"] for x in index}), index
    assert server.get("/v2/models/a/ready")[0] == 200 and server.get("/v2/models/b/ready")[0] == 400


def folder_part(folder):
    state = "--state=" + os.path.join(folder, "state")
    server = Server(folder, state)
    query, headers = server.predict("a", input=[2.0])
    assert query["output"] == 3.5 and not query["default"] and query["missing"] == 0, query
    assert headers["Runnel-Marks"] is None
    server.teach("anna", 20)
    weights = server.weight("half_plus_three", "anna"), server.weight("half_plus_three")
    assert min(weights) > 0.9, weights
    time.sleep(1)  # so much may be lost
    server.end(signal.SIGKILL)
    server = Server(folder, state)
    again = server.weight("half_plus_three", "anna"), server.weight("half_plus_three")
    assert again == weights, (again, weights)
    check_inference(server)
    # An objective that no model can meet.
    query, headers = server.predict("late", input=[2.0])
    assert query["default"] and query["output"] == -1 and query["missing"] == 1, query
    assert "latency objective" in query["default_explanation"] and headers["Runnel-Marks"] == "default", query
    code, text, _ = server.post("/strict/predict", {"input": [2.0]})
    assert code == 504, (code, text)
    server.end(signal.SIGTERM)


def example_part(folder):
    try:
        import numpy
    except ImportError:
        sys.exit(77)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    example = os.path.join(root, "examples", "serving", "bandit")
    # The containers' "python3 -m runnel.serving" means this interpreter and this tree's package.
    tools = os.path.join(folder, "bin")
    os.mkdir(tools)
    with open(os.path.join(tools, "python3"), "w") as out:
        container = os.path.join(root, "python", "runnel", "serving", "container.py")
        out.write('#!/bin/sh\nshift 2\nexec "%s" -B "%s" "$@"\n' % (sys.executable, container))
    os.chmod(os.path.join(tools, "python3"), 0o755)
    os.environ["PATH"] = tools + ":" + os.environ["PATH"]
    home = os.path.join(folder, "models")
    subprocess.run([sys.executable, "-B", os.path.join(example, "make_models.py"), home], check=True)
    server = Server(folder, models=os.path.join(home, "models.pbtxt"), apps=os.path.join(example, "apps.pbtxt"))
    picture = os.path.join(folder, "curve.svg")
    play = subprocess.run([sys.executable, "-B", os.path.join(example, "play.py"), home, str(server.port), picture, "900"],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    broken = {line.split()[0]: float(line.split()[3]) for line in play.splitlines()}
    assert broken["fixed"] < 25 and broken["exp3"] > broken["fixed"] + 15 and broken["exp4"] > broken["fixed"] + 25, play
    with open(picture) as svg:
        assert svg.read().count("<polyline") == 3
    server.end(signal.SIGTERM)


def listens(path):
    """Whether a server accepts connections at `path`; its socket has a name before that."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def start_redis(folder, path, *options):
    redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder, *options],
                             stdout=subprocess.DEVNULL)
    wait_for(lambda: listens(path))
    return redis


def redis_part(folder):
    if not shutil.which("redis-server"):
        sys.exit(77)
    path = os.path.join(folder, "redis")
    redis = start_redis(folder, path)
    try:
        one, two = Server(folder, "--redis=unix:" + path), Server(folder, "--redis=unix:" + path)
        one.teach("anna", 20)
        wait_for(lambda: two.weight("half_plus_three", "anna") > 0.9 and two.weight("half_plus_three") > 0.9)
        # Feedback may reach the server that did not answer.
        one.teach("carl", 20, other=two)
        wait_for(lambda: one.weight("half_plus_three", "carl") > 0.9 and two.weight("half_plus_three", "carl") > 0.9)
        # An application that one gets, the other gets, too; and it goes from both.
        new = {"name": "new", "input_type": "floats", "default_output": "0", "latency_slo_micros": 10000000}
        assert one.post("/admin/add_app", new)[0] == 200
        assert one.post("/admin/add_model_links", {"app_name": "new", "model_names": ["half_plus_three"]})[0] == 200
        links = {"app_name": "new"}
        wait_for(lambda: two.post("/admin/get_linked_models", links)[1] == '["half_plus_three"]')
        assert two.predict("new", input=[2.0])[0]["output"] == 4
        assert two.post("/admin/delete_app", {"name": "new"})[0] == 200
        wait_for(lambda: one.post("/new/predict", {"input": [2.0]})[0] == 404)
        redis.kill()
        redis.wait()
        os.unlink(path)
        # Both go on, each with what it knows.
        two.teach("bert", 20)
        assert two.predict("a", input=[2.0], uid="anna")[0]["output"] > 3.9
        wait_for(lambda: two.weight("half_plus_three", "bert") > 0.9)
        redis = start_redis(folder, path)
        wait_for(lambda: one.weight("half_plus_three", "bert") > 0.9)
        one.end(signal.SIGTERM)
        two.end(signal.SIGTERM)
    finally:
        redis.kill()
        redis.wait()


def ask_redis(path, *commands):
    """Sends commands in Redis' inline form; the replies as one text."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall("".join(command + "\r\n" for command in (*commands, "QUIT")).encode())
        return b"".join(iter(lambda: client.recv(4096), b"")).decode()


def start_secure_redis(folder, path, certs):
    """Returns the process and its TLS port, which another process may take first: then it tries again."""
    for _ in range(5):
        port = free_ports(1)[0]
        redis = start_redis(folder, path, "--tls-port", str(port), "--tls-cert-file", f"{certs}/worker-0.pem", "--tls-key-file",
                            f"{certs}/worker-0-key.pem", "--tls-ca-cert-file", f"{certs}/ca.pem", "--bind", "127.0.0.1",
                            "--user", "default", "off", "--user", "serve", "on", ">secret", "~runnel:*", "~other:*", "+@all", "--databases", "4")
        try:
            ask_redis(path)
            return redis, port
        except OSError:
            redis.kill()
            redis.wait()
            os.unlink(path)
    raise RuntimeError("redis-server does not start")


def redis_secure_part(folder):
    if not shutil.which("redis-server"):
        sys.exit(77)
    certs, path = os.path.join(folder, "certs"), os.path.join(folder, "redis")
    subprocess.run([RUNNEL, "cert", "--dir", certs, "--cluster", "worker=127.0.0.1:1"], check=True, capture_output=True)

    def config(name, port, tls, password='password: "secret"', database=2, more=""):
        file = os.path.join(folder, name)
        with open(file, "w") as out:
            out.write(f'address: "127.0.0.1:{port}" database: {database} user: "serve" {password} {more} tls {{ {tls} }}\n')
        return "--redis_config_file=" + file

    redis, port = start_secure_redis(folder, path, certs)
    try:
        ca = f'ca_file: "{certs}/ca.pem" '
        both = ca + f'cert_file: "{certs}/client.pem" key_file: "{certs}/client-key.pem"'
        with open(os.path.join(folder, "password"), "w") as out:
            out.write("secret\n")
        one = Server(folder, config("one", port, both))
        two = Server(folder, config("two", port, both, password=f'password_file: "{folder}/password"'))
        other = Server(folder, config("other", port, both, more='key_prefix: "other:"'))
        one.teach("anna", 20)
        wait_for(lambda: two.weight("half_plus_three", "anna") > 0.9)
        login = "AUTH serve secret"
        assert "runnel:a/anna" in ask_redis(path, login, "SELECT 2", "KEYS runnel:a/*")
        assert "runnel:" not in ask_redis(path, login, "SELECT 0", "KEYS runnel:*")
        assert abs(other.weight("half_plus_three", "anna") - 0.5) < 1e-6, "another prefix is another state"
        for server in one, two, other:
            server.end(signal.SIGTERM)
        # What Redis refuses ends the server; what may pass does not, and is counted.
        for options in (config("bad", port, both, password='password: "wrong"'), config("bad", port, both, database=4)):
            try:
                Server(folder, options)
            except RuntimeError as error:
                assert "WRONGPASS" in str(error) or "out of range" in str(error), error
            else:
                raise AssertionError(options)
        for tls in ca, both.replace("ca.pem", "client.pem"):  # no certificate; an authority that signed nothing
            server = Server(folder, config("alone", port, tls))
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("GET", "/monitoring/prometheus/metrics")
            match = re.search(r'runnel_store_failures_total{store="redis"} (\d+)', connection.getresponse().read().decode())
            assert match and int(match.group(1)) > 0
            assert server.predict("a", input=[2.0])[0]["output"] == 3.5
            server.end(signal.SIGTERM)
    finally:
        redis.kill()
        redis.wait()


with tempfile.TemporaryDirectory() as home:
    {"folder": folder_part, "redis": redis_part, "redis_secure": redis_secure_part, "example": example_part}[PART](home)
