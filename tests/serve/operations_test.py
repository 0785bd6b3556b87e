#!/usr/bin/env python3
"""What operators do with a model server: operations_test.py RUNNEL PART"""

import glob
import http.server
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from serve_tools import FOLDER, MODELS, RUNNEL, Server, check, context_of, run, wait_until, write

TWO = ("--model_name=two", f"--model_base_path={MODELS}/half_plus_two")


def config_of(**models):
    return "model_config_list {\n" + "".join(
        f'  config {{ name: "{name}" base_path: "{MODELS}/{path}" model_platform: "tensorflow" }}\n'
        for name, path in models.items()) + "}\n"


def part_probes():
    server = Server(*TWO)
    check(server.ask("/healthz")[0] == 200)
    check(server.ask("/readyz")[0] == 200)
    check(json.loads(server.ask("/v1/models")[2]) == {"models": ["two"]})
    check(server.predict("two", [1.0, 2.0, 5.0]) == [2.5, 3.0, 4.5])
    status = json.loads(server.ask("/statusz")[2])
    check(status["ready"] and status["models"][0]["versions"][0]["state"] == "AVAILABLE", status)
    check(status["models"][0]["latency"]["count"] == 1, status)
    check(server.ask("/v1/nothing")[0] == 400 and server.ask("/nothing/at/all")[0] == 404)
    # gRPC's port speaks REST, too.
    check(server.ask("/readyz", port=server.port)[0] == 200)
    # Threads of models give way to those of connections.
    niceness = {"rn_pool": set(), "others": set()}
    for thread in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{thread}/comm") as file:
            name = file.read().strip()
        niceness["rn_pool" if name == "rn_pool" else "others"].add(os.getpriority(os.PRIO_PROCESS, int(thread)))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    check(niceness["rn_pool"] == {min(own + 5, 19)} and own in niceness["others"], niceness)
    check(server.end() == 0, server.logged())


def part_silent():
    """More connections than there are descriptors, which make no request or none any more, lock nobody out."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    server = Server(*TWO)  # which gets this limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    silent = []
    for said in (b"", b"GET /readyz HTTP/1.1\r\nA: b\r\n", b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"):
        for port in (server.port, server.rest):
            for _ in range(4):
                for _ in range(100):
                    silent.append(socket.create_connection(("127.0.0.1", port), 10))
                    silent[-1].sendall(said)
                check(server.ask("/readyz", port=server.port)[0] == 200)
                check(server.ask("/readyz", port=server.rest)[0] == 200)
    check(server.predict("two", [1.0]) == [2.5])
    for one in silent:
        one.close()


def part_memory():
    """Large requests leave no more behind than the session keeps for the next ones, of which two run at a time here."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    server = Server(*TWO, "--cache_mb=0")
    bodies = [json.dumps({"instances": [1.5] * count}) for count in (5000000, 300000, 700000, 1500000, 3000000)]
    for _ in range(2):
        for group in ([bodies[0]] * 4, 2 * bodies[1:]):
            threads = [threading.Thread(target=server.ask, args=("/v1/models/two:predict", body)) for body in group]
            for each in threads:
                each.start()
            for each in threads:
                each.join()

    def resident():
        with open(f"/proc/{server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 20

    wait_until(lambda: resident() < 200, "idle memory stays high")


def part_metrics():
    server = Server(*TWO)
    for _ in range(20):
        server.predict("two", [1.0])
    server.ask("/v1/models/nothing:predict", {"instances": [1]})
    text = server.ask("/monitoring/prometheus/metrics")[2]
    check(':tensorflow:serving:request_count{model_name="two",status="OK"} 20\n' in text, text)
    check('runnel_queue_length{model_name="two"} 0\n' in text, text)
    # One batch of one row; the cache has answered the others.
    batching = ":tensorflow:serving:batching_session:"
    for line in (batching + 'wrapped_run_count{model_name="two"} 1', batching + 'padding_size_sum{model_name="two"} 0',
                 batching + 'input_batch_size_bucket{model_name="two",le="1"} 1',
                 batching + 'processed_batch_size_sum{model_name="two"} 1',
                 'runnel_cache_requests_total{model_name="two",outcome="hit"} 19',
                 'runnel_cache_requests_total{model_name="two",outcome="miss"} 1',
                 'runnel_refused_requests_total{model_name="two",reason="full"} 0'):
        check(line + "\n" in text, line, text)
    check('"nothing"' not in text, text)  # clients make no series
    [model] = json.loads(server.ask("/statusz")[2])["models"]
    check(model["batch"]["count"] == 1 and model["batch"]["counts"][0] == 1, model)
    # The stages of a request add up to its time.
    sums = {}
    for line in text.splitlines():
        if line.startswith("runnel_stage_seconds_sum"):
            sums[line.split('stage="')[1].split('"')[0]] = float(line.rsplit(" ", 1)[1])
    check(set(sums) >= {"queue", "batch", "run", "serialize"}, sums)
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        # What promtool dislikes in TensorFlow Serving's names stays: they begin with ':'.
        ours = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("runnel_")]
        check(done.returncode in (0, 3) and not ours, done.stdout + done.stderr)


def part_page():
    chromium = shutil.which("chromium")
    if not chromium:
        print("Chromium is missing")
        sys.exit(77)
    server = Server(*TWO)
    server.predict("two", [1.0])
    shown = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                            "--virtual-time-budget=5000", f"http://127.0.0.1:{server.rest}/"],
                           capture_output=True, text=True, timeout=120).stdout
    for text in ("runnel ", "ready", "<h2>two</h2>", "AVAILABLE", "1 requests", "Prediction cache"):
        check(text in shown, text, "is not in", shown)


def part_tokens():
    tokens = {"predict": "p" * 20, "read": "r" * 20, "admin": "a" * 20}
    file = write("tokens", "# who may do what\n" + "".join(f"{role} {token}\n" for role, token in tokens.items()))
    server = Server(*TWO, f"--tokens={file}")

    def code(path, role, body=None):
        headers = {"Authorization": f"Bearer {tokens[role]}"} if role else {}
        return server.ask(path, body, headers)[0]

    body = {"instances": [1.0]}
    check([code("/v1/models/two:predict", role, body) for role in (None, "predict", "read", "admin")] ==
          [401, 200, 200, 200])
    check([code("/statusz", role) for role in (None, "predict", "read", "admin")] == [401, 403, 200, 200])
    check([code("/v1/models/two", role) for role in (None, "read")] == [401, 200])
    check([code("/admin/get_all_applications", role, {}) for role in (None, "predict", "read", "admin")] ==
          [401, 403, 403, 200])
    check(code("/healthz", None) == 200 and code("/readyz", None) == 200 and code("/", None) == 200)
    bad = write("bad", "reader abcdefghijklmnopqrst\n")
    done = subprocess.run([RUNNEL, "serve", *TWO, "--any_port", f"--tokens={bad}"], capture_output=True, text=True)
    check(done.returncode == 1 and "bad:1: " in done.stderr, done.stderr)
    # Renewed without a restart; what cannot be read changes nothing.
    write("tokens", "reader abcdefghijklmnopqrst\n")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "not renewed" in server.logged(), "a bad file was not reported")
    check(code("/v1/models/two:predict", "predict", body) == 200)
    write("tokens", f"predict {'n' * 20}\n")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: code("/v1/models/two:predict", "predict", body) == 401, "the old token is still good")
    tokens["predict"] = "n" * 20
    check(code("/v1/models/two:predict", "predict", body) == 200)


def part_reload():
    file = write("models.pbtxt", config_of(two="half_plus_two"))
    server = Server(f"--model_config_file={file}")
    check(server.predict("two", [2.0]) == [3.0])
    write("models.pbtxt", config_of(two="half_plus_two", three="half_plus_three"))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.ask("/v1/models/three")[0] == 200 and "AVAILABLE" in server.ask("/v1/models/three")[2],
               "the new model does not load")
    check(server.predict("three", [2.0]) == [4.0])
    # A bad file changes nothing.
    write("models.pbtxt", "model_config_list { config { nome: 'x' } }")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "the configuration stays as it is" in server.logged(), server.logged())
    check("models.pbtxt:1:" in server.logged(), server.logged())
    check(server.predict("two", [2.0]) == [3.0])
    write("models.pbtxt", config_of(three="half_plus_three"))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.ask("/v1/models/two:predict", {"instances": [1]})[0] == 404, "two stays")
    check(server.predict("three", [2.0]) == [4.0])


def part_drain():
    server = Server(*TWO)
    failures, stop = [], threading.Event()

    def keep_asking():
        while not stop.is_set():
            try:
                code = server.ask("/v1/models/two:predict", {"instances": [1.0]})[0]
                if code != 200:
                    failures.append(code)
            except ConnectionError:
                return  # it does not listen any more

    threads = [threading.Thread(target=keep_asking) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    code = server.end()
    stop.set()
    for thread in threads:
        thread.join()
    check(code == 0 and not failures, code, failures, server.logged())


def part_tls():
    certs = os.path.join(FOLDER, "certs")
    subprocess.run([RUNNEL, "cert", "--dir", certs, "--cluster", "worker=127.0.0.1:1"], check=True, capture_output=True)

    def text(name):
        with open(os.path.join(certs, name)) as file:
            return file.read().replace("\n", "\\n")

    file = write("ssl", f'server_key: "{text("worker-0-key.pem")}"\nserver_cert: "{text("worker-0.pem")}"\n')
    server = Server(*TWO, f"--ssl_config_file={file}", scheme="https", context=context_of(os.path.join(certs, "ca.pem")))
    check(server.predict("two", [1.0]) == [2.5])
    # A new certificate, of an authority that the client does not know.
    others = os.path.join(FOLDER, "others")
    subprocess.run([RUNNEL, "cert", "--dir", others, "--cluster", "worker=127.0.0.1:1"], check=True, capture_output=True)
    write("ssl", "".join(f'{field}: "{text(os.path.join(others, name))}"\n'
                         for field, name in (("server_key", "worker-0-key.pem"), ("server_cert", "worker-0.pem"))))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "ssl: renewed" in server.logged(), "the certificate was not renewed")
    try:
        server.predict("two", [1.0])
        check(False, "the old certificate is still in use")
    except OSError:
        pass
    strict = write("ssl2", f'server_key: "{text("worker-0-key.pem")}"\nserver_cert: "{text("worker-0.pem")}"\n'
                           f'custom_ca: "{text("ca.pem")}"\nclient_verify: true\n')
    context = context_of(os.path.join(certs, "ca.pem"))
    verifying = Server(*TWO, f"--ssl_config_file={strict}", scheme="https", context=context)
    try:
        verifying.predict("two", [1.0])
        refused = False
    except OSError:
        refused = True
    check(refused, "a client without a certificate was served")
    context.load_cert_chain(os.path.join(certs, "client.pem"), os.path.join(certs, "client-key.pem"))
    check(verifying.predict("two", [1.0]) == [2.5])


def part_samples():
    """Sampled requests replay as load and as warm-up."""
    base = os.path.join(FOLDER, "two")
    shutil.copytree(os.path.join(MODELS, "half_plus_two"), base)
    prefix = os.path.join(FOLDER, "samples")
    file = write("models.pbtxt", f'''model_config_list {{ config {{ name: "two" base_path: "{base}" model_platform: "tensorflow"
      logging_config {{ log_collector_config {{ type: "file" filename_prefix: "{prefix}" }} sampling_config {{ sampling_rate: 1 }} }} }} }}''')
    server = Server(f"--model_config_file={file}")
    for i in range(10):
        server.predict("two", [float(i)])
    wait_until(lambda: glob.glob(prefix + ".*") and os.path.getsize(glob.glob(prefix + ".*")[0]) > 500, "no samples")
    check(server.end() == 0)
    [samples] = glob.glob(prefix + ".*")
    version = os.path.join(base, os.listdir(base)[0])
    os.makedirs(os.path.join(version, "assets.extra"))
    shutil.copy(samples, os.path.join(version, "assets.extra", "tf_serving_warmup_requests"))
    server = Server("--model_name=two", f"--model_base_path={base}")
    text = server.ask("/monitoring/prometheus/metrics")[2]
    check("model_warmup_latency" in text, text)
    # A version whose warm-up fails is not served, and its state says why.
    bad = os.path.join(base, "999")
    shutil.copytree(version, os.path.join(FOLDER, "bad"))
    with open(os.path.join(FOLDER, "bad", "assets.extra", "tf_serving_warmup_requests"), "ab") as out:
        out.write(b"no record")
    os.rename(os.path.join(FOLDER, "bad"), bad)

    def bad_state():
        states = json.loads(server.ask("/v1/models/two")[2])["model_version_status"]
        return next((each for each in states if each["version"] == "999" and each["status"]["error_code"] != "OK"), None)

    wait_until(bad_state, "the bad version has no error")
    check("tf_serving_warmup_requests" in bad_state()["status"]["error_message"], bad_state())
    check(server.predict("two", [1.0]) == [2.5])
    for protocol, port in (("grpc", server.port), ("rest", server.rest), ("oip", server.rest), ("oip-grpc", server.port)):
        done = subprocess.run([RUNNEL, "load", f"127.0.0.1:{port}", "two", "--log", samples, "--rate", "100", "--seconds", "0.5",
                               "--warmup", "0", "--protocol", protocol, "--json"], capture_output=True, text=True, timeout=60)
        result = json.loads(done.stdout)
        check(result["ok"] == result["sent"] > 20, protocol, done.stdout, done.stderr)


class ChunkServer:
    """Replies in chunks, byte by byte, with an extension and a trailer; at /bad, with something else after the first chunk."""

    def __enter__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                chunks = b"5;some=thing\r\nhello\r\n" + (b"nonsense\r\n" if self.path == "/bad" else b"A\r\n0123456789\r\n0\r\nX: y\r\n\r\n")
                for i in range(len(chunks)):
                    self.wfile.write(chunks[i:i + 1])

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()


def part_path():
    """A body and a path of the user's own, as for servers of other kinds."""
    file = write("models.pbtxt", config_of(two="half_plus_two"))
    server = Server(f"--model_config_file={file}")
    body = write("body.json", '{"instances": [1.0]}')
    command = [RUNNEL, "load", f"127.0.0.1:{server.rest}", "any", "--body", body, "--seconds", "0.2", "--warmup", "0", "--json"]

    def load(path):
        return subprocess.run([*command, "--path", path], capture_output=True, text=True, timeout=60)

    result = json.loads(load("/v1/models/two:predict").stdout)
    check(result["ok"] == result["answered"] > 0, result)
    result = json.loads(load("/v1/models/three:predict").stdout)
    check(result["ok"] == 0 < result["codes"]["404"], result)
    # Servers that do not say how long a reply is.
    with ChunkServer() as other:
        command[2] = f"127.0.0.1:{other.port}"
        result = json.loads(load("/good").stdout)
        check(result["ok"] == result["answered"] > 1, result)
        result = json.loads(load("/bad").stdout)
        check(result["ok"] == 0, result)
    for path in ("predict", "/two words"):
        done = load(path)
        check(done.returncode == 2 and "--path needs" in done.stderr, done.returncode, done.stderr)


def part_apps():
    apps = write("apps.pbtxt", '''application { name: "half" input_type: FLOATS default_output: "-1" latency_slo_micros: 5000000
      model { name: "two" } model { name: "three" } policy { name: "exp4" } }''')
    file = write("models.pbtxt", config_of(two="half_plus_two", three="half_plus_three"))
    state = os.path.join(FOLDER, "state")
    server = Server(f"--model_config_file={file}", f"--apps_file={apps}", f"--state={state}")
    for _ in range(40):
        code, _, text = server.ask("/half/predict", {"input": [2.0]})
        reply = json.loads(text)
        check(code == 200 and not reply["default"], code, text)
        code, _, text = server.ask("/half/update", {"query_id": reply["query_id"], "label": 4.0})
        check(code == 200, code, text)

    def weights():
        [app] = json.loads(server.ask("/statusz")[2])["applications"]
        return {model["name"]: model["weight"] for model in app["models"]}

    learned = weights()
    check(learned["three"] > learned["two"], learned)
    check(server.end() == 0, server.logged())
    server = Server(f"--model_config_file={file}", f"--state={state}")
    check(abs(weights()["three"] - learned["three"]) < 1e-6, learned, weights())


def part_instances():
    def replicas(server):
        [model] = json.loads(server.ask("/statusz")[2])["models"]
        return len(model["versions"][0]["replicas"])

    server = Server(*TWO, "--replicas=3", "--model_memory_mb=4")
    check(replicas(server) == 3, server.logged())
    # What needs too much memory fails, and the model goes on.
    check(server.predict("two", [1.0, 2.0]) == [2.5, 3.0])
    code, _, text = server.ask("/v1/models/two:predict", {"instances": [1.0] * (2 << 20)})
    check(code == 429 and "memory" in text.lower(), code, text[:300])
    check(server.predict("two", [3.0]) == [3.5])
    check(server.end() == 0, server.logged())
    server = Server(*TWO, "--isolate", "--replicas=2", "--model_memory_mb=1024")
    check(replicas(server) == 2, server.logged())
    children = []  # of whichever thread started them
    for path in glob.glob(f"/proc/{server.process.pid}/task/*/children"):
        with open(path) as file:
            children += file.read().split()
    check(len(children) == 2, children)
    for child in children:
        with open(f"/proc/{child}/limits") as file:
            check(any(line.startswith("Max data size") and str(1 << 30) in line for line in file), child)
    # It takes shapes that the signature lacks, as in the server's own process.
    check(server.predict("two", [1.0, 2.0]) == [2.5, 3.0])
    check(server.predict("two", [[1.0], [2.0]]) == [[2.5], [3.0]])
    for inputs, outputs in ((1.0, 2.5), ([[[3.0]]], [[[3.5]]])):
        code, _, text = server.ask("/v1/models/two:predict", {"inputs": inputs})
        check(code == 200 and json.loads(text)["outputs"] == outputs, code, text)
    check(server.end() == 0, server.logged())


def part_full():
    """A disk without room for traces costs traces alone."""
    server = Server(*TWO, "--trace_config=triton,file=/dev/full", "--trace_config=level=TIMESTAMPS", "--trace_config=rate=1")
    for i in range(2000):
        check(server.predict("two", [float(i)]) == [0.5 * i + 2])
    check(server.end() == 0)
    check("No space left on device" in server.logged() and server.logged().count("No space left") < 20, server.logged()[:2000])


def part_labels():
    """Names of classes for Triton's clients, from a file of the model."""
    folder = os.path.join(FOLDER, "labelled")
    shutil.copytree(f"{MODELS}/simple", folder)
    (version,) = os.listdir(folder)
    labels = os.path.join(folder, version, "assets.extra", "labels")
    os.makedirs(labels)
    with open(os.path.join(labels, "OUTPUT0.txt"), "w") as file:
        file.write("cat\ndog\r\n\nbird")
    server = Server("--model_name=simple", f"--model_base_path={folder}")
    outputs = {x["name"]: x for x in json.loads(server.ask("/v2/models/simple/config")[2])["output"]}
    check(outputs["OUTPUT0"]["label_filename"] == "assets.extra/labels/OUTPUT0.txt" and not outputs["OUTPUT1"].get("label_filename"), outputs)
    inputs = [{"name": f"INPUT{i}", "datatype": "INT32", "shape": [1, 16], "data": list(range(16, 0, -1))} for i in range(2)]
    wanted = [{"name": f"OUTPUT{i}", "parameters": {"classification": 5}} for i in range(2)]
    code, _, text = server.ask("/v2/models/simple/infer", {"inputs": inputs, "outputs": wanted})
    check(code == 200, text)
    found = {x["name"]: x["data"] for x in json.loads(text)["outputs"]}
    check(found["OUTPUT0"] == ["32:0:cat", "30:1:dog", "28:2", "26:3:bird", "24:4"], found)
    check(found["OUTPUT1"] == [f"0:{i}" for i in range(5)], found)


def part_flags():
    def said(*flags):
        done = subprocess.run([RUNNEL, "serve", *flags], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    code, text = said()
    check(code == 2 and "--model_base_path" in text, code, text)
    code, text = said(*TWO, "--any_port", "--check")
    check(code == 0 and "the configuration is fine" in text, code, text)
    code, text = said("--model_name=x", f"--model_base_path={FOLDER}/nothing", "--any_port", "--check",
                      "--max_num_load_retries=0", "--file_system_poll_wait_seconds=0")
    check(code == 1, code, text)
    # Applications are checked, too, and their state is left alone.
    half = 'application { name: "half" input_type: FLOATS default_output: "-1" latency_slo_micros: 1000 model { name: "two" } %s }'
    state = os.path.join(FOLDER, "checked")
    for more, reason in (("", ""), ('model { name: "four" }', "application half: there is no model four"),
                         ('policy { name: "guess" }', "there is no policy 'guess'"), ("colour: 1", "colour")):
        apps = write("checked.pbtxt", half % more)
        code, text = said(*TWO, "--check", f"--apps_file={apps}", f"--state={state}")
        check(code == (1 if reason else 0) and reason in text and (apps in text or not reason or "four" in reason), code, text)
    check(not os.path.exists(state))
    code, text = said(*TWO, "--any_port", "--check", "--xla_gpu_compilation_enabled=true", "--grpc_max_threads=4")
    check(code == 0 and "--grpc_max_threads has no effect here" in text, code, text)
    for flag in ("--enable_batching=perhaps", "--per_process_gpu_memory_fraction=1.5", "--per_process_gpu_memory_fraction=half"):
        code, text = said(*TWO, flag)
        check(code == 2, flag, code, text)
    code, text = said("--version")
    check(code == 0 and text.startswith("runnel "), code, text)
    session = write("session.pbtxt", "gpu_options { per_process_gpu_memory_fraction: 0.5 } intra_op_parallelism_threads: 1")
    code, text = said(*TWO, "--check", f"--tensorflow_session_config_file={session}", "--enable_per_model_batching_params")
    check(code == 0, code, text)
    code, text = said(*TWO, "--check", f"--tensorflow_session_config_file={write('bad.pbtxt', 'colour: 1')}")
    check(code == 1 and "bad.pbtxt" in text and "colour" in text, code, text)
    code, text = said(*TWO, "--check", "--model_gpus=two")
    check(code == 1 and "NAME=GPU" in text, code, text)
    code, text = said(*TWO, "--check", "--model_gpus=two=none", "--per_process_gpu_memory_fraction=0.5")
    check(code == 0, code, text)
    server = Server(*TWO, "--log_format=json")
    line = next(line for line in server.logged().splitlines() if line.startswith("{"))
    check(set(json.loads(line)) == {"time", "level", "message"}, line)
    # The port is taken: the error names it.
    code, text = said(*TWO, "--host=127.0.0.1", f"--port={server.port}")
    check(code == 1 and str(server.port) in text, code, text)


run({name[5:]: part for name, part in list(globals().items()) if name.startswith("part_")})
