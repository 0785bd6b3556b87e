#!/usr/bin/env python3
"""Builds the bench client against stock TensorFlow and against Runnel and compares them.

Every case runs in a process of its own, by turns: stock, ours, stock, ours; the best of the rounds
counts. Prints the table, writes build/bench/result.tsv. Without our library only stock is measured.
"""

import argparse
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
OUT = os.path.join(ROOT, "build", "bench")
MODELS = os.path.join(OUT, "models")
STOCK_PACKAGE = "tensorflow-cpu==2.21.0"
LIBRARY = "libtensorflow.so.2"
CFLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-Wall", "-Wextra"]
CASE_TIMEOUT = 180  # Seconds; the slowest case takes about ten.


def stock_folder(venv):
    """The wheel's folder in |venv|; None if it is not there."""
    pattern = os.path.join(venv, "lib", "python3*", "site-packages", "tensorflow")
    found = glob.glob(os.path.join(pattern, "libtensorflow_cc.so.2"))
    return os.path.dirname(os.path.abspath(found[0])) if found else None


def find_stock(venv):
    """The wheel's folder in |venv|, which is made when it is missing."""
    if not stock_folder(venv):
        print(f"installing {STOCK_PACKAGE} into {os.path.relpath(venv)} ...", flush=True)
        subprocess.run(["python3", "-m", "venv", venv], check=True)
        pip = os.path.join(venv, "bin", "pip")
        subprocess.run([pip, "install", "--quiet", STOCK_PACKAGE], check=True)
    return stock_folder(venv)


def find_ours(given):
    """Our library: the one given (a file or its folder), else the newest optimised build."""
    if given:
        paths = [given]
        if os.path.isdir(given):
            paths = glob.glob(os.path.join(given, "**", LIBRARY), recursive=True)
        if not paths or not os.path.exists(paths[0]):
            sys.exit(f"compare.py: no {LIBRARY} at {given}")
        return os.path.abspath(paths[0])
    found = []
    for depth in ("", "*/", "*/*/"):
        found += glob.glob(os.path.join(ROOT, "build", depth + LIBRARY))
    slow = re.compile(r"/build/(venv|bench|[^/]*(san|debug|cov|fuzz))")
    found = [path for path in found if not slow.search(path)]
    return max(found, key=os.path.getmtime) if found else None


def build_client(name, include, libraries, sources=None):
    """Compiles the client (or other |sources|) into build/bench/client_<name> when a source or library is newer."""
    client = os.path.join(OUT, "client_" + name)
    sources = sources or sorted(glob.glob(os.path.join(BENCH, "*.c")))
    inputs = sources + glob.glob(os.path.join(BENCH, "*.h")) + libraries
    newest = max(os.path.getmtime(path) for path in inputs)
    if os.path.exists(client) and os.path.getmtime(client) > newest:
        return client
    command = [os.environ.get("CC", "cc"), *CFLAGS, "-isystem", include, "-o", client, *sources]
    for library in libraries:
        folder = os.path.dirname(library)
        command += ["-L" + folder, "-Wl,-rpath," + folder, "-l:" + os.path.basename(library)]
    command += ["-lm", "-lpthread", *os.environ.get("LDFLAGS", "").split()]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"compare.py: cannot build the client for {name}")
    return client


def write_models(venv):
    """The graphs of models.py, when they are missing or older than it."""
    script = os.path.join(BENCH, "models.py")
    last = os.path.join(MODELS, "done")
    if os.path.exists(last) and os.path.getmtime(last) > os.path.getmtime(script):
        return
    subprocess.run([os.path.join(venv, "bin", "python"), script, MODELS], check=True,
                   stderr=subprocess.DEVNULL)
    with open(last, "w", encoding="ascii"):
        pass


def write_saved_models(venv):
    """Exports of Keras for cases_saved_model.c, when they are missing."""
    folder, names = os.path.join(MODELS, "saved"), ["lenet", "mobilenet", "resnet50"]
    missing = [name for name in names if not os.path.exists(os.path.join(folder, name, "ports.txt"))]
    if missing:
        script = os.path.join(ROOT, "tests", "saved_model", "make_models.py")
        subprocess.run([os.path.join(venv, "bin", "python"), script, folder, *missing], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read_bars():
    """The rows of bars.tsv as dictionaries, in the file's order."""
    with open(os.path.join(BENCH, "bars.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def run_case(client, case, options):
    """One figure of one client, or None and what it said."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", BENCH_MODELS=MODELS)
    command = [client, "--case", case]
    if options.quick:
        command.append("--quick")
    if options.seconds:
        command += ["--seconds", str(options.seconds)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              errors="replace", timeout=CASE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {CASE_TIMEOUT} s"
    fields = done.stdout.strip().split("\t")
    if done.returncode == 0 and len(fields) == 3 and fields[0] == case:
        return float(fields[1]), ""
    # The library's own log lines (severity letter, date) are not the reason.
    said = [line for line in done.stderr.splitlines()
            if line.strip() and not re.match(r"[IWE]\d{4} |WARNING: All log|\d{4}-\d\d-\d\d ", line)]
    return None, " / ".join(said[-2:]) or f"exit status {done.returncode}"


def stripped_size(library):
    """Megabytes of |library| without symbols and debug information."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, library], check=True)
        return os.path.getsize(stripped) / 1e6


def busy_seconds():
    """CPU seconds of the whole machine so far, and of the clients run by this process."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    own = os.times()
    return ((sum(ticks) - idle) / os.sysconf("SC_CLK_TCK"),
            own.children_user + own.children_system)


class Others:
    """How many cores other processes kept busy while this was open: above 0.2 a figure is off."""

    def __enter__(self):
        self.start = (time.monotonic(), *busy_seconds())
        return self

    def __exit__(self, *_):
        end = (time.monotonic(), *busy_seconds())
        wall, machine, own = (b - a for a, b in zip(self.start, end))
        self.cores = max(0.0, (machine - own) / wall) if wall > 0.1 else 0.0


def measure(row, clients, libraries, options):
    """Best figure per library, by turns; and the errors of those that failed."""
    figures, errors = {}, {}
    if row["case"] == "lib_size":
        # Stock is shipped stripped, and its 850 MB are not worth copying.
        figures["stock"] = sum(os.path.getsize(path) for path in libraries["stock"]) / 1e6
        if "ours" in libraries:
            figures["ours"] = stripped_size(libraries["ours"][0])
        return figures, errors
    best = max if row["better"] == "higher" else min
    for _ in range(options.rounds):
        for name, client in clients.items():
            if name in errors:
                continue
            value, error = run_case(client, row["case"], options)
            if value is None:
                errors[name] = error
                figures.pop(name, None)
            else:
                figures[name] = best(figures.get(name, value), value)
    return figures, errors


def judge(row, figures):
    """Ratio ours / stock and the verdict: pass, FAIL or empty where there is nothing to judge."""
    ours, stock = figures.get("ours"), figures.get("stock")
    ratio = ours / stock if ours is not None and stock else None
    judged = {"ratio": ratio, "value": ours}.get(row["of"])
    if judged is None:
        return ratio, ""
    bar = float(row["bar"])
    met = judged >= bar if row["better"] == "higher" else judged <= bar
    return ratio, "pass" if met else "FAIL"


def short(value):
    """A figure in three or four digits with k, M, G."""
    if value is None:
        return ""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {letter}"
    return f"{value:.4g}"


def bar_text(row):
    if row["of"] == "none":
        return ""
    sign = ">=" if row["better"] == "higher" else "<="
    return f"{sign} {row['bar']}" + ("x" if row["of"] == "ratio" else f" {row['unit']}")


TABLE = "{:<19} {:>12} {:>10} {:>10} {:>8}  {:<14} {}"


def print_row(row, figures, errors, ratio, verdict, others):
    cells = [short(figures.get(name)) or ("error" if name in errors else "")
             for name in ("stock", "ours")]
    ratio_text = "" if ratio is None else f"{ratio:.3g}x"
    line = TABLE.format(row["case"], row["unit"], *cells, ratio_text, bar_text(row), verdict)
    if others > 0.2:
        line += f"  (others: {others:.1f} cores)"
    print(line.rstrip(), flush=True)
    for name, error in errors.items():
        print(f"    {name}: {error}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="*", help="shell pattern of case names")
    parser.add_argument("--quick", action="store_true", help="one short batch: a smoke test")
    parser.add_argument("--seconds", type=float, help="length of a timed batch (default 0.7)")
    parser.add_argument("--rounds", type=int, help="turns of each library (default 2; quick: 1)")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--ours", help=f"our {LIBRARY} or its folder (default: newest in build/)")
    parser.add_argument("--stock-only", action="store_true", help="leave our library out")
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv"),
                        help="virtual environment that holds stock TensorFlow")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 1 if options.quick else 2
    return options


def prepare(options):
    """Clients by name and the libraries they are linked to."""
    os.makedirs(OUT, exist_ok=True)
    wheel = find_stock(options.venv)
    write_models(options.venv)
    write_saved_models(options.venv)
    libraries = {"stock": [os.path.join(wheel, "libtensorflow_cc.so.2"),
                           os.path.join(wheel, "libtensorflow_framework.so.2")]}
    includes = {"stock": os.path.join(wheel, "include"), "ours": os.path.join(ROOT, "include")}
    ours = None if options.stock_only else find_ours(options.ours)
    if ours:
        libraries["ours"] = [ours]
        print("ours: " + os.path.relpath(ours))
    elif not options.stock_only:
        print(f"ours: no {LIBRARY} under build/, measuring stock only")
    clients = {name: build_client(name, includes[name], libraries[name]) for name in libraries}
    return clients, libraries


def main():
    options = parse_arguments()
    rows = [row for row in read_bars() if fnmatch.fnmatch(row["case"], options.case)]
    if not rows:
        sys.exit(f"compare.py: no case matches '{options.case}'; bars.tsv names them")
    clients, libraries = prepare(options)
    print(TABLE.format("case", "unit", "stock", "ours", "ratio", "bar", ""))
    verdicts = []
    with open(os.path.join(OUT, "result.tsv"), "w", encoding="utf-8") as result:
        print("case", "unit", "stock", "ours", "ratio", "bar", "verdict", "others",
              sep="\t", file=result)
        for row in rows:
            with Others() as others:
                figures, errors = measure(row, clients, libraries, options)
            ratio, verdict = judge(row, figures)
            if "ours" in errors:
                verdict = "FAIL"
            verdicts.append(verdict)
            print_row(row, figures, errors, ratio, verdict, others.cores)
            cells = [f"{value:.6g}" if value is not None else ""
                     for value in (figures.get("stock"), figures.get("ours"), ratio)]
            print(row["case"], row["unit"], *cells, bar_text(row), verdict,
                  f"{others.cores:.2f}", sep="\t", file=result)
            result.flush()
    passed, failed = verdicts.count("pass"), verdicts.count("FAIL")
    if "ours" in clients:
        print(f"{passed} of {passed + failed} bars met")
    return 1 if options.strict and (failed or "ours" not in clients) else 0


if __name__ == "__main__":
    sys.exit(main())
