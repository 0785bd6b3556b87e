#!/usr/bin/env python3
"""Measures `runnel serve` and other servers by turns: compare.py --ours BUILD [--peers VENV] [--model NAME]

VENV is a virtual environment with some of FastAPI and uvicorn, LitServe, BentoML and Ray Serve, and with onnx and
onnxruntime; those that it lacks are left out. All serve the same two models: the identity of one float, and an MLP
784-128-10 of the same random weights. Each turn starts a server of its own and loads it with `runnel load` from this
machine: a closed loop of 8 requests for the capacity, then an open loop at half of the smallest capacity for the
latencies. REST sends one body throughout, gRPC 16 random ones, so that our cache answers nearly everything; ours is
measured with it and without.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import servers

PEERS = {"fastapi": ("FastAPI", ("fastapi", "uvicorn")), "litserve": ("LitServe", ("litserve",)),
         "bentoml": ("BentoML", ("bentoml",)), "ray": ("Ray Serve", ("ray",))}
COLUMNS = "%-9s %-26s %12s %9s %9s %9s %9s %9s"
HEAD = ("model", "server", "answers/s", "offered/s", "p50 ms", "p99 ms", "ready ms", "MB idle")


def version_of(python, modules):
    """The version of the first module, if all are there, with ONNX Runtime."""
    code = "import importlib.metadata as m; print([m.version(n) for n in %r][0])" % (list(modules) + ["onnxruntime", "onnx"],)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


class Contestant:
    def __init__(self, name, command, path, body, model, flags=(), is_grpc=False):
        self.name, self.command, self.path, self.body, self.model = name, command, path, body, model
        self.flags, self.is_grpc = flags, is_grpc
        self.ready, self.idle = [], []

    def turn(self, runnel, seconds, *flags):
        """One start, and what the load measured."""
        with servers.Server(self.command, self.path, self.body) as server:
            self.ready.append(server.ready_ms)
            self.idle.append(server.memory())
            result = servers.load(runnel, server.second if self.is_grpc else server.port, self.model, *self.flags, *flags,
                                  seconds=seconds)
        if result["ok"] < result["sent"]:
            print("%s: %d of %d requests failed" % (self.name, result["sent"] - result["ok"], result["sent"]), file=sys.stderr)
        return result


def bodies(folder):
    """A request per model, as a file."""
    values = random.Random(1)
    contents = {"identity": [1.5], "mlp": [[round(values.random(), 4) for _ in range(784)]]}
    for model, instances in contents.items():
        (folder / (model + ".json")).write_text(json.dumps({"instances": instances}))
    return list(contents)


def contestants(options, runnel, folder, model):
    file = folder / (model + ".json")
    body, path = file.read_text(), f"/v1/models/{model}:predict"
    rest, grpc = ("--body", file), ("--protocol", "grpc", "--connections", 1)
    found = []
    for name, flags in (("Runnel", ()), ("Runnel, no cache", ("--cache_mb=0",))):
        command = servers.ours(runnel, folder, model, *flags)
        found.append(Contestant(name + ", REST", command, path, body, model, rest))
        found.append(Contestant(name + ", gRPC", command, path, body, model, grpc, True))
    for key, (name, _) in PEERS.items():
        if key in options.versions:
            command = [options.python, servers.HERE / "peers" / (key + "_peer.py"), "{port}", folder / (model + ".onnx")]
            found.append(Contestant(f"{name} {options.versions[key]}", command, "/predict", body, model,
                                    (*rest, "--path", "/predict")))
    return found


def tried(contestant, *arguments):
    try:
        return contestant.turn(*arguments)
    except RuntimeError as error:
        print(f"{contestant.name}: {error}", file=sys.stderr)
        return None


def measure(options, runnel, folder, model):
    """Rows of the table."""
    capacity = {each: tried(each, runnel, options.seconds) for each in contestants(options, runnel, folder, model)}
    capacity = {each: result["ok_per_second"] for each, result in capacity.items() if result and result["ok"]}
    rate = options.rate or max(1, int(min(capacity.values()) / 2))
    for each, most in capacity.items():
        result = tried(each, runnel, options.seconds, "--rate", rate)
        latency = result["latency_ms"] if result else {"p50": float("nan"), "p99": float("nan")}
        yield (model, each.name, "%.0f" % most, "%.0f" % rate, "%.3f" % latency["p50"], "%.3f" % latency["p99"],
               "%.0f" % min(each.ready), "%.1f" % max(each.idle))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default=servers.ROOT / "build" / "release", help="a build folder")
    parser.add_argument("--peers", help="a virtual environment with the peers")
    parser.add_argument("--stock", default=servers.ROOT / "build" / "venv" / "bin" / "python", help="a Python with TensorFlow")
    parser.add_argument("--models", help="a folder that keeps the models (default: a new one)")
    parser.add_argument("--model", choices=("identity", "mlp"), help="only this one")
    parser.add_argument("--seconds", type=float, default=3, help="per figure")
    parser.add_argument("--rate", type=int, help="of the open loop (default: half of the smallest capacity)")
    parser.add_argument("--out", help="a file for the rows, with tabs between the columns")
    options = parser.parse_args()
    runnel = servers.find_runnel(options.ours)
    options.python = pathlib.Path(options.peers or "/nowhere") / "bin" / "python"
    options.versions = {}
    for key, (name, modules) in PEERS.items():
        version = options.python.exists() and version_of(options.python, modules)
        if version:
            options.versions[key] = version
        else:
            print(f"{name} is not here and left out")
    rows = [HEAD]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.models or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        servers.make_models(options.stock, folder, "identity", "mlp")
        if options.versions:
            subprocess.run([options.python, servers.HERE / "peers" / "onnx_model.py", folder], check=True)
        print((COLUMNS % HEAD).rstrip(), flush=True)
        for model in bodies(folder):
            if options.model in (None, model):
                for row in measure(options, runnel, folder, model):
                    rows.append(row)
                    print((COLUMNS % row).rstrip(), flush=True)
    if options.out:
        with open(options.out, "w") as out:
            out.writelines("\t".join(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
