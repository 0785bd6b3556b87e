#!/usr/bin/env python3
"""Measures `runnel serve` beside its bars: figures.py --ours BUILD [--case PATTERN]

start     from the start of the process to the first answer, and memory when idle
requests  requests per second of a model that does nothing, and its median latency at 1,000 per second
wide      a request of 150,000 floats as JSON and as gRPC, to a slow model; the bar means one that takes 12 ms
loading   p99 of one model while another one of 500 MB is loaded and unloaded, again and again
overload  answers in time at ten times of what a model can do
shares    p99 of one model while another one gets ten times of what it can do
cache     requests per second that the cache answers, and that it does not

Server and generator share this machine. A row says PASS if the figure reaches its bar.
"""

import argparse
import fnmatch
import pathlib
import signal
import statistics
import sys
import tempfile
import threading
import time

import servers

COLUMNS = "%-9s %-46s %12s %-5s %10s %s"
HALF = servers.ROOT / "tests" / "serve" / "models"


class Bench:
    def __init__(self, options, folder):
        self.runnel, self.stock, self.folder, self.seconds = servers.find_runnel(options.ours), options.stock, folder, options.seconds
        self.case, self.missed = None, 0

    def row(self, what, figure, unit, bar=None, is_least=False):
        """|bar| is the least figure, or the greatest."""
        passes = None if bar is None else figure >= bar if is_least else figure <= bar
        self.missed += passes is False
        limit = "" if bar is None else (">= %g" if is_least else "<= %g") % bar
        shown = ("%.0f" if abs(figure) >= 1000 else "%.3g") % figure
        verdict = {None: "", True: "PASS", False: "MISS"}[passes]
        print((COLUMNS % (self.case, what, shown, unit, limit, verdict)).rstrip(), flush=True)

    def serve(self, model, *flags, folder=None):
        """A server of |model|, made where it is missing."""
        if not folder:
            servers.make_models(self.stock, self.folder, model)
        command = servers.ours(self.runnel, folder or self.folder, model, *flags)
        return servers.Server(command, f"/v1/models/{model}", None)

    def load(self, port, model, *flags, **more):
        return servers.load(self.runnel, port, model, *flags, **{"seconds": self.seconds, **more})


def start(bench):
    ready, memory = [], []
    for _ in range(9):
        with servers.Server(servers.ours(bench.runnel, HALF, "half_plus_two"), "/v1/models/half_plus_two:predict",
                            '{"instances": [1.0]}') as server:
            ready.append(server.ready_ms)
            memory.append(servers.megabytes(server.process.pid, "Rss"))
    bench.row("start to the first answer, median of 9", statistics.median(ready), "ms", 100)
    bench.row("memory when idle (RSS), largest of 9", max(memory), "MB", 25)


def requests(bench):
    with bench.serve("identity", "--cache_mb=0") as server:
        for protocol, port, bar, flags in (("rest", server.port, 25000, ()), ("grpc", server.second, 30000, ("--connections", 1))):
            flags = ("--protocol", protocol, *flags)
            bench.row(f"no-op model, {protocol}", bench.load(port, "identity", *flags)["ok_per_second"], "/s", bar, True)
            latency = bench.load(port, "identity", *flags, "--rate", 1000)["service_ms"]
            bench.row(f"its p50 at 1,000/s, {protocol}", latency["p50"] * 1000, "us", 60)


def wide(bench):
    found = {}
    with bench.serve("wide", "--cache_mb=0") as server:
        for protocol, port in (("grpc", server.second), ("rest", server.port)):
            flags = ("--protocol", protocol, "--connections", 1, *(("--streams", 1) if protocol == "grpc" else ()))
            found[protocol] = bench.load(port, "wide", *flags)["service_ms"]["p50"]
            bench.row(f"150,000 floats, p50, {protocol}", found[protocol], "ms")
    bench.row("rest by grpc", found["rest"] / found["grpc"], "x", 3)


def config_of(models):
    rows = "".join(f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" }}\n' for name, path in models.items())
    return "model_config_list {\n" + rows + "}\n"


def flip(server, config, both, alone, ended, flips):
    """Loads and unloads the big model until |ended|; appends the time of each load."""
    while not ended.is_set():
        begun = time.monotonic()
        config.write_text(config_of(both))
        server.process.send_signal(signal.SIGHUP)
        while not server.serves("big"):
            time.sleep(0.05)
        flips.append(time.monotonic() - begun)
        config.write_text(config_of(alone))
        server.process.send_signal(signal.SIGHUP)
        while server.serves("big"):
            time.sleep(0.05)


def loading(bench):
    servers.make_models(bench.stock, bench.folder, "mlp", "big")
    alone = {"mlp": bench.folder / "mlp"}
    both = {**alone, "big": bench.folder / "big"}
    config = bench.folder / "loading.pbtxt"
    config.write_text(config_of(alone))
    command = [bench.runnel, "serve", "--host=127.0.0.1", "--rest_api_port={port}", "--port={second}", "--cache_mb=0",
               f"--model_config_file={config}"]
    quiet, disturbed, flips = [], [], []
    with servers.Server(command, "/v1/models/mlp", None) as server:
        def p99():
            return bench.load(server.second, "mlp", "--protocol", "grpc", "--rate", 500, warmup=0.5)["latency_ms"]["p99"]

        for _ in range(5):  # by turns: what else happens on the machine comes and goes
            quiet.append(p99())
            ended = threading.Event()
            thread = threading.Thread(target=flip, args=(server, config, both, alone, ended, flips))
            thread.start()
            disturbed.append(p99())
            ended.set()
            thread.join()
            time.sleep(0.2)
    bench.row("p99 of A, quiet, median of 5", statistics.median(quiet), "ms")
    bench.row(f"p99 of A while B loads and unloads, {len(flips)} times", statistics.median(disturbed), "ms")
    bench.row("median time until B is loaded", statistics.median(flips) * 1000, "ms")
    bench.row("disturbed by quiet", statistics.median(disturbed) / statistics.median(quiet), "x", 1.2)


def overload(bench):
    with bench.serve("slow", "--cache_mb=0") as server:
        flags = ("--protocol", "grpc", "--deadline_ms", 100)
        peak = bench.load(server.second, "slow", "--protocol", "grpc", "--connections", 1, "--streams", 8)["ok_per_second"]
        bench.row("peak, closed loop of 8", peak, "/s")
        for factor in (1, 10):
            result = bench.load(server.second, "slow", *flags, "--rate", peak * factor)
            good = result["ok_per_second"]  # without late ones
            bench.row(f"in time (100 ms) at {factor}x", good, "/s")
        bench.row("in time at 10x by peak", good / peak, "x", 0.9, True)


def shares(bench):
    servers.make_models(bench.stock, bench.folder, "mlp", "slow")
    config = bench.folder / "shares.pbtxt"
    config.write_text(config_of({"mlp": bench.folder / "mlp", "slow": bench.folder / "slow"}))
    command = [bench.runnel, "serve", "--host=127.0.0.1", "--rest_api_port={port}", "--port={second}", "--cache_mb=0",
               f"--model_config_file={config}"]
    alone, beside = [], []
    with servers.Server(command, "/v1/models/mlp", None) as server:
        def p99():
            return bench.load(server.second, "mlp", "--protocol", "grpc", "--rate", 200, warmup=0.5)["latency_ms"]["p99"]

        flags = ("--protocol", "grpc", "--connections", 1)
        peak = bench.load(server.second, "slow", *flags, "--streams", 8)["ok_per_second"]
        for _ in range(3):
            alone.append(p99())
            other = bench.load(server.second, "slow", "--protocol", "grpc", "--deadline_ms", 100, "--rate", 10 * peak,
                               seconds=bench.seconds + 1, warmup=0, begin_only=True)
            beside.append(p99())
            servers.result_of(other)
    bench.row("p99 of A alone, median of 3", statistics.median(alone), "ms")
    bench.row("p99 of A beside B at 10x, median of 3", statistics.median(beside), "ms")
    bench.row("beside B by alone", statistics.median(beside) / statistics.median(alone), "x", 1.5)


def cache(bench):
    for model in ("mlp", "slow"):
        for flags, what in (((), "hits"), (("--cache_mb=0",), "no cache")):
            with bench.serve(model, *flags) as server:
                result = bench.load(server.second, model, "--protocol", "grpc", "--connections", 1)
                bench.row(f"{model}, {what}, grpc", result["ok_per_second"], "/s")


CASES = (start, requests, wide, loading, overload, shares, cache)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default=servers.ROOT / "build" / "release", help="a build folder")
    parser.add_argument("--stock", default=servers.ROOT / "build" / "venv" / "bin" / "python", help="a Python with TensorFlow")
    parser.add_argument("--models", help="a folder that keeps the models (default: a new one)")
    parser.add_argument("--case", default="*", help="which cases: a pattern")
    parser.add_argument("--seconds", type=float, default=3, help="per figure")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a bar is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(options, pathlib.Path(options.models or temporary))
        bench.folder.mkdir(parents=True, exist_ok=True)
        print((COLUMNS % ("case", "what", "figure", "unit", "bar", "")).rstrip())
        for case in CASES:
            bench.case = case.__name__
            if fnmatch.fnmatch(bench.case, options.case):
                case(bench)
    sys.exit(1 if options.strict and bench.missed else 0)


if __name__ == "__main__":
    main()
