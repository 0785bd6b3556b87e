#!/usr/bin/env python3
"""Measures networks on the CPU under Runnel, stock TensorFlow, ONNX Runtime, OpenVINO and PyTorch, by turns.

Every figure comes from a process of its own, which has as many cores as threads; the best step of all rounds counts.
Prints a row per network: items per second of each library; the best peer's time divided by ours, and the same for CPU
time; then CPU time per step, the first step and the peak memory of each. Writes build/bench/nets.tsv and nets.json, and
with several numbers of threads draws how they scale into nets.svg. A peer that cannot be imported is named and left out.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.path[:0] = [BENCH, os.path.join(ROOT, "python", "tools")]
import compare  # noqa: E402

OUT = os.path.join(compare.OUT, "nets")
TORCH_NETS = os.path.join(BENCH, "gpu", "torch_nets.py")
ONNX_PEER = os.path.join(HERE, "onnx_peer.py")
FIELDS = ("best_ms", "median_ms", "cpu_ms", "first_ms", "peak_mb")
COLUMNS = ("ours", "stock", "onnxruntime", "openvino", "torch", "torch_compile")
TIMEOUT = 900  # Seconds per figure; the compiler of PyTorch may need most of them.


def read_nets():
    with open(os.path.join(HERE, "nets.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def cores(count):
    """The first |count| processors that this process may use, of different cores as long as there are any."""
    def sibling_rank(cpu):
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path, encoding="ascii") as file:
                first = file.read().replace("-", ",").split(",")[0]
        except OSError:
            return 0
        return 0 if int(first) == cpu else 1

    allowed = sorted(os.sched_getaffinity(0), key=lambda cpu: (sibling_rank(cpu), cpu))
    return allowed[:count]


def run(command, threads, environment=None):
    """The fields of the last line that the command prints; or None and what it said."""
    def limit():
        os.sched_setaffinity(0, cores(threads))

    variables = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="", **(environment or {}))
    try:
        done = subprocess.run(command, env=variables, preexec_fn=limit, timeout=TIMEOUT, capture_output=True, text=True,
                              errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {TIMEOUT} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        return lines[-1].split("\t"), ""
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return None, said[-1] if said else f"exit status {done.returncode}"


class Client:
    """The graph in one of the two libraries, by the client on the C API."""

    def __init__(self, name, include, libraries):
        sources = [os.path.join(HERE, "client.c")] + [os.path.join(BENCH, f) for f in ("graph_util.c", "session_util.c", "measure.c")]
        self.program = compare.build_client("nets_" + name, include, libraries, sources)

    def measure(self, net, threads, seconds):
        fields, error = run([self.program, graph_of(net), str(threads), str(seconds)], threads)
        return (dict(zip(FIELDS, map(float, fields))) if fields else None), error

    def loss(self, net, threads):
        fields, _ = run([self.program, graph_of(net), str(threads), "0"], threads)
        return float(fields[0]) if fields else None


class Onnx:
    """The network in the form that PyTorch exports."""

    def __init__(self, python, runtime):
        self.python, self.runtime = python, runtime

    def measure(self, net, threads, seconds):
        if net["trains"] == "yes":
            return None, ""
        path = os.path.join(OUT, net["name"] + ".onnx")
        if not os.path.exists(path):
            command = [self.python, TORCH_NETS, net["case"], "--batch", net["batch"], "--device", "cpu", "--onnx", path + ".new"]
            _, error = run(command, threads)
            if not os.path.exists(path + ".new"):
                return None, "no export: " + error
            os.rename(path + ".new", path)
        fields, error = run([self.python, ONNX_PEER, self.runtime, path, str(threads), str(seconds)], threads)
        return (dict(zip(FIELDS, map(float, fields))) if fields else None), error


class Torch:
    def __init__(self, python, compiled):
        self.python, self.compiled = python, compiled

    def measure(self, net, threads, seconds):
        command = [self.python, TORCH_NETS, net["case"], "--batch", net["batch"], "--device", "cpu", "--threads", str(threads),
                   "--seconds", str(seconds)]
        peak = os.path.join(OUT, "peak")
        fields, error = run([sys.executable, __file__, "--peak", peak] + command + (["--compile"] if self.compiled else []), threads)
        if not fields:
            return None, error
        with open(peak, encoding="ascii") as file:
            return dict(zip(FIELDS, [*map(float, fields[2:6]), float(file.read())])), ""


def with_peak(path, command):
    """Runs a command and writes the largest memory of a process under it, in MB."""
    import resource
    status = subprocess.call(command)
    with open(path, "w", encoding="ascii") as file:
        file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024e-6))
    return status


def graph_of(net):
    return os.path.join(OUT, net["name"] + ".pb")


def write_graph(net, library):
    """The graph of a network, by gpu_bench of our build."""
    build = os.path.dirname(library)
    program = os.path.join(build, "bench", "gpu", "gpu_bench")
    if not os.path.exists(program):
        subprocess.run(["ninja", "-C", build, "gpu_bench"], check=True, stdout=subprocess.DEVNULL)
    path = graph_of(net)
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(program):
        subprocess.run([program, "--device", "cpu", "--batch", net["batch"], "--export", path, net["case"]], check=True)


def find_peers(options):
    """The libraries to measure, by their names; those that are missing are named."""
    library = compare.find_ours(options.ours)
    if not library:
        sys.exit(f"nets.py: no {compare.LIBRARY} under build/")
    peers = {"ours": Client("ours", os.path.join(ROOT, "include"), [library])}
    missing = []
    wheel = compare.stock_folder(options.venv)
    if wheel:
        names = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
        peers["stock"] = Client("stock", os.path.join(wheel, "include"), [os.path.join(wheel, name) for name in names])
    else:
        missing.append("stock TensorFlow")
    for module in ("onnxruntime", "openvino", "torch"):
        probe = run([options.python, "-c", f"import {module}; print({module}.__version__)"], 1)[0]
        if not probe:
            missing.append(module)
            continue
        print(f"{module} {probe[0]}")
        if module == "torch":
            peers["torch"] = Torch(options.python, False)
            if options.compile:
                peers["torch_compile"] = Torch(options.python, True)
        else:
            peers[module] = Onnx(options.python, module)
    if missing:
        print("not here: " + ", ".join(missing))
    wanted = options.peers.split(",")
    return library, {name: peer for name, peer in peers.items() if name == "ours" or any(fnmatch.fnmatch(name, w) for w in wanted)}


def best_of(found, new):
    """Both figures' best: less is better in all of them. Nothing counts the processes of a noisy machine."""
    return {key: min(found[key], value) for key, value in new.items()} if found else new


def measure(net, peers, threads, options):
    figures, errors = {}, {}
    for _ in range(options.rounds):
        for name, peer in peers.items():
            if name in errors:
                continue
            new, error = peer.measure(net, threads, options.seconds)
            if error:
                errors[name] = error
            elif new:
                figures[name] = best_of(figures.get(name), new)
    return figures, errors


def check_values(net, peers, threads):
    """The same graph must give the same number in both libraries."""
    losses = [peers[name].loss(net, threads) for name in ("ours", "stock") if name in peers]
    if len(losses) == 2 and None not in losses and abs(losses[0] - losses[1]) > 1e-3 * abs(losses[1]):
        return f"value {losses[0]:g}, stock {losses[1]:g}"
    return ""


def print_row(net, threads, figures, errors, note, peers):
    rate = {name: float(net["items"]) / f["best_ms"] * 1e3 for name, f in figures.items()}
    cells = [compare.short(rate.get(name)) or ("error" if name in errors else "-") for name in peers]

    def ratio(key):
        others = [figures[name][key] for name in figures if name != "ours"]
        return f"{min(others) / figures['ours'][key]:.2f}" if others and "ours" in figures else ""

    def cell(key):
        return " / ".join(f"{figures[name][key]:.3g}" if name in figures else "-" for name in peers)

    print(f"{net['name']:<19} {net['unit']:<10} {threads:>3} " + " ".join(f"{c:>13}" for c in cells) + f" {ratio('best_ms'):>7} {ratio('cpu_ms'):>7}  "
          f"{cell('cpu_ms')}; {cell('first_ms')}; {cell('peak_mb')}" + (f"  {note}" if note else ""), flush=True)
    for name, error in errors.items():
        print(f"    {name}: {error}", flush=True)
    return rate


def draw(rows, path):
    """How each network scales: items per second by threads, one panel per network."""
    from svg_chart import COLOURS, Panel, picture
    panels = []
    for name in dict.fromkeys(row["net"] for row in rows):
        of_net = [row for row in rows if row["net"] == name]
        threads = sorted({row["threads"] for row in of_net})
        most = max(row["items_per_s"] for row in of_net)
        panel = Panel(300, 210, f"{name}, {of_net[0]['unit']}")
        panel.axes((0, max(threads)), (0, most * 1.1), "threads", names={t: str(t) for t in threads})
        present = [peer for peer in COLUMNS if any(row["library"] == peer for row in of_net)]
        for i, peer in enumerate(present):
            line = sorted((row["threads"], row["items_per_s"]) for row in of_net if row["library"] == peer)
            panel.line(*zip(*line), colour=COLOURS[COLUMNS.index(peer)])
            panel.points(*zip(*line), colour=COLOURS[COLUMNS.index(peer)])
            left, top = panel.frame[:2]
            panel.text(left + 6, top + 12 + 13 * i, peer, colour=COLOURS[COLUMNS.index(peer)])
        panels.append(panel)
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture(*[panels[i:i + 3] for i in range(0, len(panels), 3)]))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="*", help="which networks: patterns, with commas between them")
    parser.add_argument("--threads", default=str(len(os.sched_getaffinity(0))), help="how many, or several: 1,2,4")
    parser.add_argument("--peers", default="*", help="patterns of stock, onnxruntime, openvino, torch, torch_compile")
    parser.add_argument("--seconds", type=float, default=2, help="per figure")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each library")
    parser.add_argument("--compile", action="store_true", help="PyTorch with its compiler, too")
    parser.add_argument("--ours", help="our library or its folder (default: the newest in build/)")
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv"), help="where stock TensorFlow is")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the peers")
    parser.add_argument("--out", default=compare.OUT, help="folder of nets.tsv, nets.json and nets.svg")
    return parser.parse_args()


def main():
    if sys.argv[1:2] == ["--peak"]:
        return with_peak(sys.argv[2], sys.argv[3:])
    options = parse()
    os.makedirs(OUT, exist_ok=True)
    library, peers = find_peers(options)
    nets = [net for net in read_nets() if any(fnmatch.fnmatch(net["name"], p) for p in options.net.split(","))]
    if not nets:
        sys.exit(f"nets.py: no network matches '{options.net}'; nets.tsv names them")
    print(f"{'net':<19} {'unit':<10} thr " + " ".join(f"{name:>13}" for name in peers) + f" {'of best':>7} {'by CPU':>7}  CPU ms; first ms; peak MB")
    rows = []
    for net in nets:
        write_graph(net, library)
        counts = [int(t) for t in options.threads.split(",")]
        note = check_values(net, peers, max(counts))
        for threads in counts:
            figures, errors = measure(net, peers, threads, options)
            rate = print_row(net, threads, figures, errors, note, peers)
            rows += [{"net": net["name"], "library": name, "threads": threads, "items_per_s": rate[name], "unit": net["unit"], **f}
                     for name, f in figures.items()]
            write_results(rows, options.out)
    if len(options.threads.split(",")) > 1 and rows:
        draw(rows, os.path.join(options.out, "nets.svg"))
    return 0


def write_results(rows, folder):
    keys = ("net", "library", "threads", "items_per_s", "unit", *FIELDS)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "nets.tsv"), "w", encoding="utf-8") as file:
        print(*keys, sep="\t", file=file)
        for row in rows:
            print(*(f"{row[k]:.6g}" if isinstance(row[k], float) else row[k] for k in keys), sep="\t", file=file)
    with open(os.path.join(folder, "nets.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
