#!/usr/bin/env python3
"""Measures networks on a GPU under Runnel and PyTorch, by turns: compare.py --ours DIR [--case PATTERN] [--no-compile]

DIR is a build folder, or a folder with gpu_bench and the libraries. Each figure comes from a process of its own: ours,
PyTorch, PyTorch with its compiler, ours again; our figure is the mean of the two. Where PyTorch is missing, the figures
in bars.tsv take its place, marked with "*". A row says PASS if our figure reaches the bar; the memory of a row passes if
our peak is at most PyTorch's smaller one.
"""

import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = "%-18s %-8s %-16s %9s %9s %9s %7s %9s %-4s  %15s %s"


def read_bars():
    lines = [line.rstrip("\n").split("\t") for line in open(HERE / "bars.tsv") if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def run(command, environment, timeout):
    """The last line of the command's output; None, with its complaint on stderr, if it fails."""
    try:
        done = subprocess.run(command, env=environment, timeout=timeout, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        print("%s: more than %d s" % (" ".join(command), timeout), file=sys.stderr)
        return None
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        print("%s: %s" % (" ".join(command), (done.stderr.strip().splitlines() or ["failed"])[-1]), file=sys.stderr)
        return None
    return lines[-1].split("\t")


class Ours:
    def __init__(self, options):
        folder = pathlib.Path(options.ours).resolve()
        programs = [folder / "gpu_bench", folder / "bench" / "gpu" / "gpu_bench"]
        self.program = next((p for p in programs if p.exists()), None)
        if not self.program:
            raise SystemExit("no gpu_bench in %s" % folder)
        self.options = options
        self.environment = dict(os.environ)
        self.environment["LD_LIBRARY_PATH"] = ":".join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")])

    def run(self, case, dtype, seconds=None, cache=None):
        environment = dict(self.environment, **({"RUNNEL_CACHE_DIR": cache} if cache else {}))
        command = [str(self.program), case, "--dtype", dtype, "--device", self.options.device,
                   "--seconds", str(self.options.seconds if seconds is None else seconds)]
        row = run(command + (["--tiny"] if self.options.tiny else []), environment, 300)
        names = "case dtype device figure unit best_ms setup_ms first_ms peak_mib loss steps".split()
        return dict(zip(names, row)) if row else None

    def figure(self, case, dtype):
        """(figure, MiB)"""
        row = self.run(case, dtype)
        return (float(row["figure"]), int(row["peak_mib"])) if row else None

    def first_steps(self):
        """The first step with an empty cache, and with the cache that it left, in milliseconds."""
        with tempfile.TemporaryDirectory() as cache:
            rows = [self.run("resnet50", "float", 0, cache) for _ in range(2)]
        return [(float(row["first_ms"]), int(row["peak_mib"])) if row else None for row in rows]


class Torch:
    def __init__(self, options):
        self.options = options
        probe = "import torch; assert torch.cuda.is_available(); print(torch.__version__)"
        found = None if options.no_torch else run([sys.executable, "-c", probe], os.environ, 120)
        self.version = found[0] if found else None

    def figure(self, case, dtype, compiled):
        if not self.version or (compiled and self.options.no_compile):
            return None
        command = [sys.executable, str(HERE / "torch_nets.py"), case, "--dtype", dtype, "--seconds", str(self.options.seconds)]
        row = run(command + (["--compile"] if compiled else []), os.environ, 400)
        return (float(row[0]), int(row[1])) if row else None


def mean(results):
    results = [r for r in results if r]
    return (sum(r[0] for r in results) / len(results), max(r[1] for r in results)) if results else None


def measure(bar, ours, torch):
    """Ours, eager, compiled: (figure, MiB) or None."""
    case, dtype = bar["case"], bar["dtype"]
    if case.startswith("first_"):
        cold, warm = ours.first_steps()
        return (cold if case == "first_cold" else warm), None, None
    first = ours.figure(case, dtype)
    eager = torch.figure(case, dtype, False)
    # The compiler has nothing to do for these, or does not take cuDNN's LSTM.
    has_compile = case.split("_")[0] not in ("lstm", "null", "matmul", "copy")
    compiled = torch.figure(case, dtype, True) if has_compile else None
    return mean([first, ours.figure(case, dtype)]), eager, compiled


def bar_of(bar, eager, compiled):
    """What our figure must reach; None if nothing is known."""
    factor, less = float(bar["factor"]), bar["unit"] == "ms"
    if bar["against"] == "value":
        return factor
    figures = {"eager": eager, "compile": compiled}
    wanted = [figures[k] for k in figures if bar["against"] in (k, "best") and figures[k] is not None]
    if not wanted:
        return None
    return factor * (min(wanted) if less else max(wanted))


def show(value, mark=""):
    if value is None:
        return "-"
    return ("%.3f" if value < 10 else "%.2f" if value < 100 else "%.0f") % value + mark


def row_of(bar, results):
    ours, *peers = results
    figures, marks = [], []
    for peer, column in zip(peers, ("eager", "compile")):
        kept = None if bar[column] == "-" else float(bar[column])
        figures.append(peer[0] if peer else kept)
        marks.append("" if peer else "*")
    limit = bar_of(bar, *figures)
    ratio = verdict = None
    if ours and limit:
        ratio = ours[0] / limit
        verdict = "PASS" if (ratio <= 1 if bar["unit"] == "ms" else ratio >= 1) else "MISS"
    memory = [peer[1] for peer in peers if peer]
    sizes = "%s / %s" % (ours[1] if ours else "-", min(memory) if memory else "-")
    remembered = "" if not ours or not memory else "PASS" if ours[1] <= min(memory) else "MISS"
    return (bar["case"], bar["dtype"], bar["unit"], show(ours[0] if ours else None), show(figures[0], marks[0]),
            show(figures[1], marks[1]), show(ratio), show(limit), verdict or "-", sizes, remembered)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="a folder with gpu_bench and the libraries")
    parser.add_argument("--case", default="*", help="which cases: a pattern")
    parser.add_argument("--dtype", default="*", help="float, bfloat16 or both")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--seconds", type=float, default=2, help="per figure")
    parser.add_argument("--tiny", action="store_true", help="small networks of ours, to try this program")
    parser.add_argument("--no-compile", action="store_true", help="leave PyTorch's compiler out")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a bar is missed")
    parser.add_argument("--out", help="a file for the rows, with tabs between the columns")
    options = parser.parse_args()
    ours, torch = Ours(options), Torch(options)
    print("PyTorch %s" % (torch.version or "is not here: figures with * are from bars.tsv"))
    head = ("case", "dtype", "unit", "ours", "eager", "compile", "of bar", "bar", "", "MiB ours/torch", "")
    rows = [head]
    print((COLUMNS % head).rstrip(), flush=True)
    for bar in read_bars():
        if not fnmatch.fnmatch(bar["case"], options.case) or not fnmatch.fnmatch(bar["dtype"], options.dtype):
            continue
        rows.append(row_of(bar, measure(bar, ours, torch)))
        print((COLUMNS % rows[-1]).rstrip(), flush=True)
    if options.out:
        with open(options.out, "w") as out:
            out.writelines("\t".join(row) + "\n" for row in rows)
    missed = [row for row in rows[1:] if row[8] != "PASS"]
    print("%d of %d bars reached" % (len(rows) - 1 - len(missed), len(rows) - 1))
    sys.exit(1 if options.strict and missed else 0)


if __name__ == "__main__":
    main()
