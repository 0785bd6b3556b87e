#!/usr/bin/env python3
"""Triton's and KServe's own clients on `runnel serve`: oip_test.py RUNNEL MODELS

Everything runs over both forms of the Open Inference Protocol, as the clients' users do: health and metadata, inference with
JSON, binary, shared and streamed tensors of every type, time-outs, errors, statistics, loading and unloading. Exits with 77
where tritonclient is not installed; KServe's part is left out where kserve is not.
"""
import asyncio
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_port  # noqa: E402

try:
    import numpy as np
    import tritonclient.grpc as grpc_client
    import tritonclient.grpc.aio as grpc_aio
    import tritonclient.http as http_client
    import tritonclient.http.aio as http_aio
    import tritonclient.utils.shared_memory as shm
    from tritonclient.utils import InferenceServerException, np_to_triton_dtype, serialized_byte_size
    from tritonclient.utils import serialize_byte_tensor
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

RUNNEL, MODELS = sys.argv[1:3]
NAMES = ("simple", "simple_string", "every_type", "half_plus_two", "half_plus_two_2_versions")


class Server:
    """`runnel serve` with the models of the tests, on two ports of which one speaks everything."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        config = os.path.join(self.folder.name, "models.config")
        with open(config, "w") as out:
            out.write("model_config_list {\n")
            for name in NAMES:
                policy = "model_version_policy { all {} }" if name.endswith("versions") else ""
                out.write(f'  config {{ name: "{name}" base_path: "{MODELS}/{name}" model_platform: "tensorflow" {policy} }}\n')
            out.write("}\n")
        self.port, self.rest = free_port(), free_port()
        self.traces = os.path.join(self.folder.name, "trace.json")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen([RUNNEL, "serve", f"--port={self.port}", f"--rest_api_port={self.rest}",
                                         f"--model_config_file={config}", f"--trace_config=triton,file={self.traces}",
                                         "--trace_config=rate=1"], stderr=self.log)
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError("runnel serve has ended")
            if self.is_ready():
                return
            time.sleep(0.05)
        raise RuntimeError("runnel serve did not become ready")

    def is_ready(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/v2/health/ready", timeout=5).status == 200
        except OSError:
            return False

    def get(self, path, data=None, headers={}, port=None):
        """The code and the body of a plain request."""
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.rest}{path}", data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def logged(self):
        """What the server has logged so far."""
        with open(self.log.name) as log:
            return log.read()

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def cleanup(self):
        self.log.close()
        self.folder.cleanup()


def expect(condition, text=""):
    if not condition:
        raise AssertionError(text)


def fails(call, part, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except InferenceServerException as error:
        expect(part in str(error), f"{error} lacks {part}")
        return error
    raise AssertionError(f"did not fail with {part}")


def make_input(client, name, array, **how):
    tensor = client.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(array, **how)
    return tensor


A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.ones((1, 16), dtype=np.int32)


def check_simple(result):
    expect((result.as_numpy("OUTPUT0") == A + B).all(), "OUTPUT0")
    expect((result.as_numpy("OUTPUT1") == A - B).all(), "OUTPUT1")


def simple_inputs(client, **how):
    return [make_input(client, "INPUT0", A, **how), make_input(client, "INPUT1", B, **how)]


# --- Both forms. |client| is the module, |triton| the connection.


def health_and_metadata(client, triton, is_http):
    expect(triton.is_server_live() and triton.is_server_ready())
    expect(triton.is_model_ready("simple") and triton.is_model_ready("simple", "1"))
    expect(not triton.is_model_ready("simple", "2") and not triton.is_model_ready("none"))
    as_dict = (lambda x: x) if is_http else (lambda x: x)
    kwargs = {} if is_http else {"as_json": True}
    server = triton.get_server_metadata(**kwargs)
    expect("binary_tensor_data" in server["extensions"] and server["name"] == "runnel", server)
    model = as_dict(triton.get_model_metadata("simple", **kwargs))
    expect(model["versions"] == ["1"] and model["platform"] == "tensorflow_savedmodel", model)
    expect([x["name"] for x in model["inputs"]] == ["INPUT0", "INPUT1"], model)
    expect(model["inputs"][0]["datatype"] == "INT32", model)
    expect([int(d) for d in model["inputs"][0]["shape"]] == [-1, 16], model)
    expect(triton.get_model_metadata("half_plus_two_2_versions", **kwargs)["versions"] == ["123", "124"])
    config = triton.get_model_config("simple", **kwargs)
    config = config if is_http else config["config"]
    expect(config["input"][0]["data_type"] == "TYPE_INT32" and config["max_batch_size"] > 0, config)
    expect([int(d) for d in config["input"][0]["dims"]] == [16], config)
    fails(triton.get_model_metadata, "unknown model", "none")


def simple_infer(client, triton, is_http):
    check_simple(triton.infer("simple", simple_inputs(client)))
    result = triton.infer("simple", simple_inputs(client), request_id="42", priority=1, timeout=5000000,
                          outputs=[client.InferRequestedOutput("OUTPUT1")])
    expect((result.as_numpy("OUTPUT1") == A - B).all() and result.as_numpy("OUTPUT0") is None)
    reply = result.get_response()
    expect((reply["id"] if is_http else reply.id) == "42")
    expect((reply["model_version"] if is_http else reply.model_version) == "1")
    if is_http:
        check_simple(triton.infer("simple", simple_inputs(client, binary_data=False)))
        outputs = [client.InferRequestedOutput(name, binary_data=is_binary)
                   for name, is_binary in (("OUTPUT0", True), ("OUTPUT1", False))]
        check_simple(triton.infer("simple", simple_inputs(client, binary_data=False), outputs=outputs))
        check_simple(triton.infer("simple", simple_inputs(client), request_compression_algorithm="gzip"))
    for version, plus in (("123", 2), ("124", 3), ("", 3)):
        x = np.array([[1], [2], [5]], dtype=np.float32)
        result = triton.infer("half_plus_two_2_versions", [make_input(client, "x", x)], model_version=version)
        expect((result.as_numpy("y") == x / 2 + plus).all(), version)


def asynchronous(client, triton, is_http):
    if is_http:
        for request in [triton.async_infer("simple", simple_inputs(client)) for _ in range(20)]:
            check_simple(request.get_result(timeout=30))
        return
    done = queue.Queue()
    for _ in range(20):
        triton.async_infer("simple", simple_inputs(client), lambda result, error: done.put((result, error)))
    for _ in range(20):
        result, error = done.get(timeout=30)
        expect(error is None, error)
        check_simple(result)


def string_infer(client, triton, is_http):
    texts = [np.array([str(v).encode() for v in x.flatten()], dtype=np.object_).reshape(x.shape) for x in (A, B)]
    inputs = [make_input(client, f"INPUT{i}", text) for i, text in enumerate(texts)]
    result = triton.infer("simple_string", inputs)
    expect([int(v) for v in result.as_numpy("OUTPUT0")[0]] == list((A + B)[0]))
    if is_http:
        inputs = [make_input(client, f"INPUT{i}", text, binary_data=False) for i, text in enumerate(texts)]
        outputs = [client.InferRequestedOutput("OUTPUT1", binary_data=False)]
        result = triton.infer("simple_string", inputs, outputs=outputs)
        expect([int(v) for v in result.as_numpy("OUTPUT1")[0]] == list((A - B)[0]))


def type_values():
    values = {"BOOL": np.array([[True, False, True]]), "FP16": np.array([[1.5, -2, 0]], np.float16),
              "FP32": np.array([[1.5, np.inf, -0.1]], np.float32), "FP64": np.array([[1e300, -1e-300, 0.1]]),
              "BYTES": np.array([[b"", b"\x00\xff", "caf\u00e9".encode()]], dtype=np.object_)}
    for bits in (8, 16, 32, 64):
        for kind in ("int", "uint"):
            info = np.iinfo(f"{kind}{bits}")
            values[f"{kind.upper()}{bits}"] = np.array([[info.min, info.max, 7]], f"{kind}{bits}")
    try:
        import ml_dtypes
        values["BF16"] = np.array([[1.5, -2, 0]], ml_dtypes.bfloat16)
    except ImportError:
        pass
    return values


def every_type(client, triton, is_http):
    values = type_values()
    if "BF16" not in values:
        return
    result = triton.infer("every_type", [make_input(client, name, value) for name, value in values.items()])
    for name, value in values.items():
        expect((result.as_numpy(name + "_OUT") == value).all(), name)
    if not is_http:
        return
    values["BYTES"] = np.array([[b"", b"x", "caf\u00e9".encode()]], dtype=np.object_)
    inputs = [make_input(client, name, value, **({} if name == "BF16" else {"binary_data": False}))
              for name, value in values.items()]
    outputs = [client.InferRequestedOutput(name + "_OUT", binary_data=name == "BF16") for name in values]
    result = triton.infer("every_type", inputs, outputs=outputs)
    for name, value in values.items():
        back = result.as_numpy(name + "_OUT")
        if name == "BYTES":
            back = np.array([[text.encode() for text in back[0]]], dtype=np.object_)
        expect((back == value).all(), f"{name} as JSON: {back}")


def errors(client, triton, is_http):
    fails(triton.infer, "unknown model", "none", simple_inputs(client))
    fails(triton.infer, "unknown model", "simple", simple_inputs(client), model_version="9")
    fails(triton.infer, "INPUT1", "simple", simple_inputs(client)[:1])
    wrong = [make_input(client, name, x.astype(np.float32)) for name, x in (("INPUT0", A), ("INPUT1", B))]
    fails(triton.infer, "to be int32", "simple", wrong)
    fails(triton.infer, "NONE", "simple", simple_inputs(client), outputs=[client.InferRequestedOutput("NONE")])
    fails(triton.infer, "signature", "simple", simple_inputs(client), parameters={"signature_name": "none"})
    check_simple(triton.infer("simple", simple_inputs(client), parameters={"signature_name": "serving_default"}))


def classification(client, triton, is_http):
    sums = (A + B)[0]
    order = sorted(range(sums.size), key=lambda i: (-sums[i], i))
    for count in (1, 3, 100):
        result = triton.infer("simple", simple_inputs(client), outputs=[client.InferRequestedOutput("OUTPUT0", class_count=count)])
        got = result.as_numpy("OUTPUT0")
        expect(got.shape == (1, min(count, sums.size)), got)
        expect([text.decode() for text in got[0]] == [f"{sums[i]}:{i}" for i in order[:count]], got)
    x = make_input(client, "x", np.array([[1.0], [2.0]], np.float32))
    got = triton.infer("half_plus_two", [x], outputs=[client.InferRequestedOutput("y", class_count=2)]).as_numpy("y")
    expect([[text.decode() for text in row] for row in got] == [["2.500000:0"], ["3.000000:0"]], got)
    inputs = [make_input(client, name, np.array([[str(n).encode() for n in value[0]]], dtype=np.object_))
              for name, value in (("INPUT0", A), ("INPUT1", B))]
    fails(triton.infer, "unsupported type 'BYTES'", "simple_string", inputs,
          outputs=[client.InferRequestedOutput("OUTPUT0", class_count=3)])


def sequences(client, triton, is_http):
    """A model without state answers as if there were none."""
    check_simple(triton.infer("simple", simple_inputs(client), sequence_id=7, sequence_start=True, sequence_end=False))
    check_simple(triton.infer("simple", simple_inputs(client), sequence_id=7, sequence_end=True))


def shared_memory(client, triton, is_http):
    triton.unregister_system_shared_memory()
    triton.unregister_cuda_shared_memory()
    size = A.nbytes
    key = f"/runnel_oip_{os.getpid()}_{int(is_http)}"
    region = shm.create_shared_memory_region("all", key, 4 * size)
    try:
        shm.set_shared_memory_region(region, [A, B])
        fails(triton.register_system_shared_memory, "open", "all", key + "_none", 4 * size)
        fails(triton.register_system_shared_memory, "byte size", "all", key, 5 * size)
        triton.register_system_shared_memory("all", key, 4 * size)
        fails(triton.register_system_shared_memory, "already", "all", key, 4 * size)
        status = triton.get_system_shared_memory_status() if is_http else \
            triton.get_system_shared_memory_status(as_json=True)["regions"].values()
        expect([x["name"] for x in status] == ["all"], status)
        inputs = [client.InferInput(f"INPUT{i}", [1, 16], "INT32") for i in range(2)]
        outputs = [client.InferRequestedOutput(f"OUTPUT{i}") for i in range(2)]
        for i in range(2):
            inputs[i].set_shared_memory("all", size, i * size)
            outputs[i].set_shared_memory("all", size, (2 + i) * size)
        result = triton.infer("simple", inputs, outputs=outputs)
        output = result.get_output("OUTPUT1")
        expect((output["parameters"]["shared_memory_byte_size"] if is_http else
                output.parameters["shared_memory_byte_size"].int64_param) == size)
        got = [shm.get_contents_as_numpy(region, np.int32, [1, 16], (2 + i) * size) for i in range(2)]
        expect((got[0] == A + B).all() and (got[1] == A - B).all())
        # One output in memory, the other in the reply.
        mixed = [outputs[0], client.InferRequestedOutput("OUTPUT1")]
        expect((triton.infer("simple", inputs, outputs=mixed).as_numpy("OUTPUT1") == A - B).all())
        inputs[0].set_shared_memory("all", size, 4 * size)
        fails(triton.infer, "offset", "simple", inputs, outputs=outputs)
        inputs[0].set_shared_memory("none", size)
        fails(triton.infer, "find", "simple", inputs, outputs=outputs)
        inputs[0] = client.InferInput("INPUT0", [1, 16], "INT32")  # the client keeps old offsets
        inputs[0].set_shared_memory("all", size)
        outputs[0].set_shared_memory("all", size - 1, 2 * size)
        fails(triton.infer, "at least", "simple", inputs, outputs=outputs)
        # The client shrinks the region.
        os.truncate("/dev/shm" + key, size // 2)
        outputs[0].set_shared_memory("all", size, 2 * size)
        fails(triton.infer, "shrunk", "simple", inputs, outputs=outputs)
        check_simple(triton.infer("simple", simple_inputs(client)))
        triton.unregister_system_shared_memory("all")
        fails(triton.infer, "find", "simple", inputs, outputs=outputs)
    finally:
        shm.destroy_shared_memory_region(region)
    string_region(client, triton, is_http)


def string_region(client, triton, is_http):
    texts = [np.array([[str(v).encode() for v in x[0]]], dtype=np.object_) for x in (A, B)]
    sizes = [serialized_byte_size(serialize_byte_tensor(text)) for text in texts]
    key = f"/runnel_oip_text_{os.getpid()}_{int(is_http)}"
    region = shm.create_shared_memory_region("text", key, 1000)
    try:
        shm.set_shared_memory_region(region, [serialize_byte_tensor(text) for text in texts])
        triton.register_system_shared_memory("text", key, 1000)
        inputs = [client.InferInput(f"INPUT{i}", [1, 16], "BYTES") for i in range(2)]
        inputs[0].set_shared_memory("text", sizes[0])
        inputs[1].set_shared_memory("text", sizes[1], sizes[0])
        output = client.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory("text", 500, 500)
        triton.infer("simple_string", inputs, outputs=[output])
        got = shm.get_contents_as_numpy(region, np.object_, [1, 16], 500)
        expect([int(v) for v in got[0]] == list((A + B)[0]))
        triton.unregister_system_shared_memory()
    finally:
        shm.destroy_shared_memory_region(region)


def statistics(client, triton, is_http):
    kwargs = {} if is_http else {"as_json": True}
    before = triton.get_inference_statistics("simple", **kwargs)["model_stats"][0]
    fresh = np.frombuffer(os.urandom(A.nbytes), np.int32).reshape(A.shape)  # not in the cache of predictions
    result = triton.infer("simple", [make_input(client, "INPUT0", fresh), make_input(client, "INPUT1", 0 * B)])
    expect((result.as_numpy("OUTPUT0") == fresh).all())
    after = triton.get_inference_statistics("simple", "1", **kwargs)["model_stats"][0]
    expect(after["name"] == "simple" and after["version"] == "1", after)
    expect(int(after["inference_count"]) == int(before["inference_count"]) + 1, after)
    expect(int(after["execution_count"]) == int(before["execution_count"]) + 1, after)
    success = [int(x["inference_stats"]["success"]["count"]) for x in (before, after)]
    expect(success[1] == success[0] + 1, (before, after))
    expect(int(after["inference_stats"]["success"]["ns"]) > 0, after)
    expect(abs(int(after["last_inference"]) - time.time() * 1000) < 5000, after)
    everything = triton.get_inference_statistics(**kwargs)["model_stats"]
    expect({x["name"] for x in everything} == set(NAMES), everything)


def log_settings(triton, is_http, settings=None):
    """The settings, after those of |settings| were changed, as the REST form has them."""
    if is_http:
        return triton.get_log_settings() if settings is None else triton.update_log_settings(settings)
    reply = triton.get_log_settings(as_json=True) if settings is None else triton.update_log_settings(settings, as_json=True)
    return {name: next(iter(value.values())) for name, value in reply["settings"].items()}


def logging(client, triton, is_http):
    start = {"log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0,
             "log_format": "default"}
    expect(log_settings(triton, is_http) == start, log_settings(triton, is_http))
    expect(log_settings(triton, is_http, {}) == start)
    expect(log_settings(triton, is_http, {"log_info": None, "log_verbose_level": None}) == start)
    wrongs = [{"log_file": "/tmp/x"}, {"log_format": "none"}, {"none": True}]
    if is_http:  # the other client makes every value of the right kind
        wrongs += [{"log_info": 1}, {"log_verbose_level": True}, {"log_verbose_level": -1}, {"log_info": []}, {"log_format": 1}]
    for wrong in wrongs:
        both = {"log_error": False, **wrong}  # nothing is changed
        fails(triton.update_log_settings, "log", both)
        expect(log_settings(triton, is_http) == start, wrong)

    def infer_and_look():
        before = len(SERVER.logged())
        check_simple(triton.infer("simple", simple_inputs(client)))
        return SERVER.logged()[before:]

    expect(infer_and_look() == "")
    changed = log_settings(triton, is_http, {"log_verbose_level": 1, "log_format": "ISO8601"})
    expect(changed == {**start, "log_verbose_level": 1, "log_format": "ISO8601"}, changed)
    text = infer_and_look()
    expect(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z I (REST|GRPC) infer of 'simple': OK in [\d.]+ ms", text), text)
    log_settings(triton, is_http, {"log_info": False})
    expect(infer_and_look() == "")
    changed = log_settings(triton, is_http, {name: value for name, value in start.items() if name != "log_file"})
    expect(changed == start, changed)


def trace_settings(triton, is_http, model=None, settings=None):
    kwargs = {} if is_http else {"as_json": True}
    reply = triton.get_trace_settings(model, **kwargs) if settings is None else \
        triton.update_trace_settings(model, settings, **kwargs)
    if is_http:
        return reply
    reply = {name: value.get("value", [""]) for name, value in reply["settings"].items()}
    return {name: value if name == "trace_level" else value[0] for name, value in reply.items()}


def traced(index):
    """The traces in a file, once it is there: by id, the description and the times by name."""
    path = f"{SERVER.traces}.{index}"
    for _ in range(200):
        try:
            with open(path) as text:
                entries = json.load(text)
            break
        except (OSError, ValueError):
            time.sleep(0.02)
    else:
        raise AssertionError(f"no {path}")
    found = {}
    for entry in entries:
        about = found.setdefault(entry["id"], {"times": {}})
        about["times"].update({x["name"]: x["ns"] for x in entry.pop("timestamps", [])})
        about.update(entry)
    return found


def tracing(client, triton, is_http):
    start = {"trace_level": ["OFF"], "trace_rate": "1", "trace_count": "-1", "log_frequency": "0", "trace_mode": "triton",
             "trace_file": SERVER.traces}
    expect(trace_settings(triton, is_http) == start, trace_settings(triton, is_http))
    expect(trace_settings(triton, is_http, "simple") == start)
    fails(triton.get_trace_settings, "unknown model", "none")
    for wrong in ({"trace_file": "/tmp/x"}, {"trace_level": ["TENSORS"]}, {"trace_level": ["OFF", "TIMESTAMPS"]}, {"trace_rate": "x"},
                  {"trace_count": "-2"}, {"none": "1"}):
        fails(triton.update_trace_settings, "trace", None, {"log_frequency": "7", **wrong})
        expect(trace_settings(triton, is_http) == start, wrong)
    first = len([name for name in os.listdir(SERVER.folder.name) if name.startswith("trace.json.")])
    # The server traces nothing, this model every second request, three of them, two per file.
    own = {"trace_level": ["TIMESTAMPS"], "trace_rate": "2", "trace_count": "3", "log_frequency": "2"}
    expect(trace_settings(triton, is_http, "simple", own) == {**start, **own})
    expect(trace_settings(triton, is_http) == start)
    began = time.monotonic_ns()
    for i in range(8):
        fresh = np.frombuffer(os.urandom(A.nbytes), np.int32).reshape(A.shape)  # not in the cache of predictions
        triton.infer("simple", [make_input(client, "INPUT0", fresh), make_input(client, "INPUT1", B)], request_id=f"r{i}")
        triton.infer("half_plus_two", [make_input(client, "x", np.array([[2]], dtype=np.float32))])
    ended = time.monotonic_ns()
    traces = list(traced(first).values())
    expect([x["request_id"] for x in traces] == ["r1", "r3"], traces)
    kind = ("HTTP_RECV_END", "HTTP_SEND_START") if is_http else ("GRPC_WAITREAD_END", "GRPC_SEND_START")
    names = [kind[0], "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
             "REQUEST_END", kind[1]]
    for trace in traces:
        expect(trace["model_name"] == "simple" and trace["model_version"] == 1, trace)
        times = [trace["times"][name] for name in names]
        expect(times == sorted(times) and began < times[0] and times[-1] < ended, trace)
    # The third one is left; then the count has ended.
    expect(trace_settings(triton, is_http, "simple") == {**start, **own, "trace_count": "0"})
    changed = trace_settings(triton, is_http, "simple", {"trace_rate": "1", "trace_count": "1"})
    expect(changed["trace_count"] == "1" and changed["trace_rate"] == "1", changed)
    check_simple(triton.infer("simple", simple_inputs(client), request_id="last"))
    expect([x["request_id"] for x in traced(first + 1).values()] == ["r5", "last"])
    # A cleared setting is the server's again.
    trace_settings(triton, is_http, settings={"trace_rate": "5"})
    cleared = {name: None for name in ("trace_level", "trace_rate", "trace_count", "log_frequency")}
    expect(trace_settings(triton, is_http, "simple", cleared) == {**start, "trace_rate": "5"})
    expect(trace_settings(triton, is_http, settings=cleared) == start)
    trace_settings(triton, is_http, settings={"trace_level": ["TIMESTAMPS"], "trace_count": "1"})
    check_simple(triton.infer("simple", simple_inputs(client), request_id="whole"))
    trace_settings(triton, is_http, settings=cleared)


def check_whole_trace():
    """The file that is complete when the server has ended: one request of each pass."""
    with open(SERVER.traces) as text:
        entries = json.load(text)
    expect([x["request_id"] for x in entries if "model_name" in x] == ["whole"] * 3, entries)


def index_of(triton, is_http):
    index = triton.get_model_repository_index(**({} if is_http else {"as_json": True}))
    return {(x["name"], x.get("version", "")): x["state"] for x in (index if is_http else index["models"])}


def model_control(client, triton, is_http):
    index = index_of(triton, is_http)
    expect(index[("simple", "1")] == "READY" and index[("half_plus_two_2_versions", "124")] == "READY", index)
    triton.unload_model("simple")
    expect(not triton.is_model_ready("simple"))
    fails(triton.infer, "unknown model", "simple", simple_inputs(client))
    index = index_of(triton, is_http)
    expect(all(state != "READY" for (name, _), state in index.items() if name == "simple"), index)
    check = make_input(client, "x", np.array([[2]], dtype=np.float32))
    expect(triton.infer("half_plus_two", [check]).as_numpy("y")[0, 0] == 3)
    triton.load_model("simple")
    expect(triton.is_model_ready("simple"))
    check_simple(triton.infer("simple", simple_inputs(client)))
    triton.load_model("simple")  # a loaded one, too
    fails(triton.load_model, "failed to load", "none")
    fails(triton.load_model, "cannot set", "simple", config='{"instance_group": []}')
    name = "half_plus_two_2_versions"
    triton.load_model(name, config='{"version_policy": {"specific": {"versions": [123]}}}')
    expect(triton.is_model_ready(name, "123"))
    for _ in range(500):  # the other one is unloaded afterwards
        if not triton.is_model_ready(name, "124"):
            break
        time.sleep(0.02)
    expect(not triton.is_model_ready(name, "124"))
    triton.load_model(name)
    expect(triton.is_model_ready(name, "124"))


def marks(client, triton, is_http):
    """An answer from the cache of predictions says so."""
    fresh = make_input(client, "x", np.frombuffer(os.urandom(4), np.uint32).astype(np.float32).reshape(1, 1))
    for text in ("", "cached"):
        reply = triton.infer("half_plus_two", [fresh]).get_response()
        got = reply.get("parameters", {}).get("runnel_marks", "") if is_http else \
            reply.parameters["runnel_marks"].string_param
        expect(got == text, reply)


# --- One form.


def stream(url):
    """A stream of requests, answers in order, errors between them."""
    with grpc_client.InferenceServerClient(url) as triton:
        done = queue.Queue()
        triton.start_stream(lambda result, error: done.put((result, error)))
        for i in range(30):
            triton.async_stream_infer("none" if i % 10 == 9 else "simple", simple_inputs(grpc_client), request_id=str(i))
        for i in range(30):
            result, error = done.get(timeout=60)
            if i % 10 == 9:
                expect("unknown model" in str(error), error)
            else:
                expect(error is None, error)
                check_simple(result)
                expect(result.get_response().id == str(i), i)
                expect(result.get_response().parameters["triton_final_response"].bool_param)
        triton.stop_stream()
        triton.start_stream(lambda result, error: done.put((result, error)))
        triton.stop_stream(cancel_requests=True)
        check_simple(triton.infer("simple", simple_inputs(grpc_client)))


async def coroutines(url, rest_url):
    async with grpc_aio.InferenceServerClient(url) as triton:
        expect(await triton.is_server_ready())
        for result in await asyncio.gather(*(triton.infer("simple", simple_inputs(grpc_client)) for _ in range(10))):
            check_simple(result)

        async def requests():
            for i in range(5):
                yield {"model_name": "simple", "inputs": simple_inputs(grpc_client), "request_id": str(i)}

        count = 0
        async for result, error in triton.stream_infer(requests()):
            expect(error is None and result.get_response().id == str(count))
            check_simple(result)
            count += 1
        expect(count == 5)
    async with http_aio.InferenceServerClient(rest_url) as triton:
        expect(await triton.is_server_live() and await triton.is_model_ready("simple"))
        for result in await asyncio.gather(*(triton.infer("simple", simple_inputs(http_client)) for _ in range(10))):
            check_simple(result)


def plain_http(server):
    """What the clients never send, and the port that speaks everything."""
    for path, code in (("/v2/none", 404), ("/v2/models/a/b/c/d/e/f/g", 404), ("/v2/models/none", 404), ("/v2/models/%zz", 400),
                       ("/v2/repository/index", 405), ("/v2/models/simple/infer", 405)):
        got, body = server.get(path)
        expect(got == code and "error" in json.loads(body), (path, got, body))
    request = {"inputs": [{"name": name, "datatype": "INT32", "shape": [1, 16], "data": x.tolist()}
                          for name, x in (("INPUT0", A), ("INPUT1", B))]}
    for port in (server.rest, server.port):
        code, body = server.get("/v2/models/simple/infer", json.dumps(request).encode(), port=port)
        expect(code == 200 and json.loads(body)["outputs"][0]["data"] == list((A + B)[0]), body)
    request["inputs"][0]["shape"] = [1, 17]
    for body in (json.dumps(request).encode(), b"", b"[", b'{"inputs": 3}'):
        code, body = server.get("/v2/models/simple/infer", body)
        expect(code == 400 and "error" in json.loads(body), body)
    code, body = server.get("/v2/models/half_plus_two/infer", np.float32(4).tobytes(), {"Inference-Header-Content-Length": "0"})
    expect(code == 200 and body.endswith(np.float32(4).tobytes()), body)
    code, body = server.get("/v2/models/simple/infer", A.tobytes(), {"Inference-Header-Content-Length": "0"})
    expect(code == 400 and b"1 input" in body, body)
    code, body = server.get("/v2/models/simple/infer", b"{}", {"Inference-Header-Content-Length": "3"})
    expect(code == 400 and "error" in json.loads(body), body)


def kserve_clients(server):
    """In a process of its own, because the two clients bring messages of the same names."""
    here = os.path.dirname(os.path.abspath(__file__))
    client = subprocess.run([sys.executable, os.path.join(here, "oip_kserve.py"), str(server.port), str(server.rest)])
    expect(client.returncode in (0, 77), "KServe's client")


def check_protos():
    """Every message of proto/serving/oip.proto against the client's own descriptors: names, numbers and types."""
    from google.protobuf.descriptor import FieldDescriptor
    from tritonclient.grpc import model_config_pb2, service_pb2
    words = {number: name[5:].lower() for name, number in vars(FieldDescriptor).items() if name.startswith("TYPE_")}
    known = {**service_pb2.DESCRIPTOR.message_types_by_name, **model_config_pb2.DESCRIPTOR.message_types_by_name}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto", "serving", "oip.proto")
    stack, count = [], 0
    for line in open(path):
        line = line.split("//")[0].strip()
        if match := re.match(r"message (\w+) {$", line):
            stack.append(stack[-1].nested_types_by_name[match[1]] if stack else known[match[1]])
        elif line.endswith("{"):
            stack.append(stack[-1] if stack else None)  # a oneof or an enum
        elif line == "}":
            stack.pop()
        elif stack and stack[-1] is None:
            name, number = re.match(r"(\w+) = (\d+);$", line).groups()
            expect(model_config_pb2.DataType.Value(name) == int(number), line)
        elif stack:
            repeated, kind, name, number = re.match(r"(repeated )?([\w<>, ]+) (\w+) = (\d+);$", line).groups()
            field = stack[-1].fields_by_name[name]
            is_map = kind.startswith("map<")
            expect(field.number == int(number) and field.is_repeated == (is_map or bool(repeated)), line)
            of = field.message_type or field.enum_type
            expect(is_map or kind == (of.name if of else words[field.type]), line)
            count += 1
    expect(count > 100, count)


def main():
    global SERVER
    check_protos()
    server = SERVER = Server()
    try:
        rest_url, url = f"127.0.0.1:{server.rest}", f"127.0.0.1:{server.port}"
        for part in (health_and_metadata, simple_infer, asynchronous, string_infer, every_type, errors, classification, sequences,
                     shared_memory, statistics, logging, tracing,
                     marks, model_control):
            for client, address in ((http_client, rest_url), (http_client, url), (grpc_client, url)):
                print(part.__name__, client.__name__, flush=True)
                with client.InferenceServerClient(address) as triton:
                    part(client, triton, client is http_client)
        print("streams, coroutines, plain HTTP, KServe", flush=True)
        stream(url)
        asyncio.run(coroutines(url, rest_url))
        plain_http(server)
        kserve_clients(server)
        expect(server.process.poll() is None, "the server has ended")
        server.stop()
        check_whole_trace()
    except BaseException:
        print(server.logged())
        raise
    finally:
        server.stop()
        server.cleanup()


main()
