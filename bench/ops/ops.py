#!/usr/bin/env python3
"""Measures single ops under Runnel and stock TensorFlow, by turns, on one thread and on two.

Every library and number of threads has a process of its own, which calls the ops of ops.tsv one after the other; in
each round every process calls the op for a moment, and the best batch of all rounds counts. Prints the rows from the
slowest to the fastest by stock's time divided by ours, the geometric means, and the rows below the bar. Writes
build/bench/ops.tsv.

With --scaling there is no stock: prints the rows that the largest number of threads makes slower. Writes
build/bench/ops_scaling.tsv.
"""

import argparse
import math
import os
import re
import select
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.path.insert(0, BENCH)
import compare  # noqa: E402

SHARED = ("graph_util.c", "session_util.c", "measure.c")
SIZES = ("tiny", "cache", "memory")
LEAST, MEAN = 0.9, 1.5  # The bars of one row and of the geometric mean.
SLACK = 1.05  # By how much the most threads may be slower than fewer.
TIMEOUT = 120  # Seconds per answer.


def read_rows():
    with open(os.path.join(HERE, "ops.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    keys = lines[0]
    return [dict(zip(keys, line + [""] * (len(keys) - len(line)))) for line in lines[1:]]


def text_of(row):
    return " ".join(row[key] for key in ("size", "op", "inputs", "attributes") if row[key])


class Failed(Exception):
    pass


class Client:
    """A process that calls ops with one library and one number of threads. Starts again after a row that failed."""

    def __init__(self, program, threads):
        self.command = [program, str(threads)]
        self.process = None

    def ask(self, *words):
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"), text=True, errors="replace")
        try:
            self.process.stdin.write("\t".join(words) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failure() from None
        if not select.select([self.process.stdout], [], [], TIMEOUT)[0]:
            self.process.kill()
            self.failure()
            raise Failed(f"no answer in {TIMEOUT} s")
        answer = self.process.stdout.readline()
        if not answer:
            raise self.failure()
        return [float(word) for word in answer.split()]

    def failure(self):
        said = [line for line in self.process.communicate()[1].splitlines() if line.strip()]
        status, self.process = self.process.returncode, None
        return Failed(said[-1] if said and status > 0 else f"exit status {status}")

    def close(self):
        if self.process:
            self.process.communicate()


def sources():
    return [os.path.join(HERE, name) for name in ("client.c", "inputs.c", "attributes.c")] + [os.path.join(BENCH, name) for name in SHARED]


def build_ours(options):
    """The client's program with our library."""
    os.makedirs(compare.OUT, exist_ok=True)
    library = compare.find_ours(options.ours)
    if not library:
        sys.exit(f"ops.py: no {compare.LIBRARY} under build/")
    print("ours: " + os.path.relpath(library))
    return compare.build_client("ops_ours", os.path.join(ROOT, "include"), [library], sources())


def build(options):
    """The client's program per library."""
    ours, wheel = build_ours(options), compare.find_stock(options.venv)
    names = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
    stock = [os.path.join(wheel, name) for name in names]
    return {"stock": compare.build_client("ops_stock", os.path.join(wheel, "include"), stock, sources()), "ours": ours}


def start(row, client, options):
    """Prepares the calls of a row. Returns the mean absolute value of the first result."""
    value, = client.ask("call", row["op"], row["inputs"], row["attributes"])
    client.ask("time", str(options.seconds / 5))  # what the first calls set up
    return value


def measure(row, clients, options):
    """The best wall and CPU time of a call in microseconds, per library, and a note about its result."""
    best, values = {}, {}
    for name, client in clients.items():
        values[name] = start(row, client, options)
    for _ in range(options.rounds):
        for name, client in clients.items():
            new = client.ask("time", str(options.seconds))
            best[name] = [min(pair) for pair in zip(best.get(name, new), new)]
    slack = 1e-3 * abs(values["stock"]) + 1e-6
    same = abs(values["ours"] - values["stock"]) <= slack
    return best, "" if same else f"value {values['ours']:g}, stock {values['stock']:g}"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def report(results, threads, by):
    """The table of one number of threads, slowest first; the rows below the bar."""
    rows = sorted((r for r in results if r["threads"] == threads), key=lambda r: r[by])
    if not rows:
        return []
    print(f"\n{threads} thread{'s' if threads > 1 else ''}: time of a call in microseconds, stock's divided by ours\n")
    print(f"{'stock':>10} {'ours':>10} {'ratio':>6} {'by CPU':>6}  op")
    for r in rows:
        note = f"  ({r['note']})" if r["note"] else ""
        print(f"{r['stock_wall']:10.2f} {r['ours_wall']:10.2f} {r['wall']:6.2f} {r['cpu']:6.2f}  {r['row']}{note}")
    below = [r for r in rows if r[by] < LEAST]
    means = [f"{geometric_mean([r[by] for r in rows]):.2f} of all {len(rows)}"]
    for size in SIZES:
        of_size = [r[by] for r in rows if r["row"].startswith(size + " ")]
        if of_size:
            means.append(f"{geometric_mean(of_size):.2f} of {len(of_size)} {size}")
    print(f"\ngeometric mean by {by} time (bar {MEAN}): " + ", ".join(means) + f"; below {LEAST}: {len(below)} rows")
    return below


def write_results(results):
    keys = ("row", "threads", "stock_wall", "ours_wall", "wall", "stock_cpu", "ours_cpu", "cpu", "note")
    with open(os.path.join(compare.OUT, "ops.tsv"), "w", encoding="utf-8") as file:
        print(*keys, sep="\t", file=file)
        for r in results:
            print(*(f"{r[key]:.5g}" if isinstance(r[key], float) else r[key] for key in keys), sep="\t", file=file)


def compare_with_stock(rows, options):
    """Prints the tables. Returns the rows below the bar, and those that failed."""
    results, errors = measure_all(rows, build(options), options)
    return sum((report(results, threads, options.by) for threads in map(int, options.threads.split(","))), []), errors


def measure_scaling(row, clients, options, best):
    """The best wall time of a call per number of threads, in microseconds, no worse than |best|. The numbers take turns."""
    for client in clients.values():
        start(row, client, options)
    for _ in range(options.rounds):
        for threads, client in clients.items():
            best[threads] = min(best.get(threads, math.inf), client.ask("time", str(options.seconds))[0])
    return best


def worse(best):
    """The time with the most threads, by the best of all."""
    return best[max(best)] / min(best.values())


def scaling_turn(rows, program, counts, options, found):
    """Measures |rows| in new processes and puts the times into |found|, by text. Returns the rows that failed."""
    clients, errors = {threads: Client(program, threads) for threads in counts}, []
    for row in rows:
        try:
            found[text_of(row)] = measure_scaling(row, clients, options, found.get(text_of(row), {}))
        except Failed as failed:
            errors.append(f"{text_of(row)}: {failed}")
    for client in clients.values():
        client.close()
    return errors


def scale(rows, options):
    """Prints the rows that take longer with the most threads than with fewer. Returns them, and the rows that failed.

    A calling thread keeps its processor for seconds, and on a shared machine a processor may be half as fast as another.
    So rows that look slower get further turns, in processes that may run elsewhere."""
    program, counts, found = build_ours(options), sorted(map(int, options.threads.split(","))), {}
    errors, slower = scaling_turn(rows, program, counts, options, found), rows
    for _ in range(options.turns):
        slower = [row for row in slower if text_of(row) in found and worse(found[text_of(row)]) > SLACK]
        if slower:
            scaling_turn(slower, program, counts, options, found)
    slower = [row for row in slower if text_of(row) in found and worse(found[text_of(row)]) > SLACK]
    print("time of a call in microseconds, by the number of threads\n\n" + " ".join(f"{threads:>10}" for threads in counts) + "  worse  op")
    for row in slower:
        best = found[text_of(row)]
        print(" ".join(f"{best[threads]:10.2f}" for threads in counts) + f" {worse(best):6.2f}  {text_of(row)}")
    with open(os.path.join(compare.OUT, "ops_scaling.tsv"), "w", encoding="utf-8") as file:
        print("row", *counts, sep="\t", file=file)
        for text, best in found.items():
            print(text, *(f"{best[threads]:.5g}" for threads in counts), sep="\t", file=file)
    if found:
        gain = geometric_mean([best[counts[0]] / best[counts[-1]] for best in found.values()])
        print(f"\n{len(slower)} of {len(found)} rows are more than {SLACK - 1:.0%} slower with {counts[-1]} threads than with fewer; "
              f"geometric mean of the gain over {counts[0]}: {gain:.2f}")
    return slower, errors


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="which rows: size, op, inputs and attributes, with spaces between")
    parser.add_argument("--threads", default="1,2", help="how many, or several")
    parser.add_argument("--scaling", action="store_true", help="compare the numbers of threads of ours instead of the libraries")
    parser.add_argument("--by", choices=("wall", "cpu"), default="wall", help="the time that is judged; cpu on a busy machine")
    parser.add_argument("--seconds", type=float, default=0.05, help="per turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each library")
    parser.add_argument("--turns", type=int, default=3, help="with --scaling: further turns of rows that look slower")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a row is below the bar")
    parser.add_argument("--ours", help="our library or its folder (default: the newest in build/)")
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv"), help="where stock TensorFlow is")
    return parser.parse_args()


def measure_all(rows, programs, options):
    results, errors = [], []
    for threads in map(int, options.threads.split(",")):
        clients = {name: Client(program, threads) for name, program in programs.items()}
        for i, row in enumerate(rows):
            try:
                best, note = measure(row, clients, options)
            except Failed as failed:
                errors.append(f"{text_of(row)}: {failed}")
                continue
            (stock_wall, stock_cpu), (ours_wall, ours_cpu) = best["stock"], best["ours"]
            results.append({"row": text_of(row), "threads": threads, "stock_wall": stock_wall, "ours_wall": ours_wall,
                            "wall": stock_wall / ours_wall, "stock_cpu": stock_cpu, "ours_cpu": ours_cpu, "cpu": stock_cpu / ours_cpu,
                            "note": note})
            if sys.stderr.isatty():
                print(f"\r{i + 1} of {len(rows)}", end="", file=sys.stderr)
        write_results(results)
        for client in clients.values():
            client.close()
    return results, errors


def main():
    options = parse()
    rows = [row for row in read_rows() if re.search(options.only, text_of(row))]
    if not rows:
        sys.exit(f"ops.py: no row matches '{options.only}'")
    with compare.Others() as others:
        bad, errors = (scale if options.scaling else compare_with_stock)(rows, options)
    for error in errors:
        print("failed: " + error)
    if others.cores > 0.2:
        print(f"other processes kept {others.cores:.1f} cores busy")
    return 1 if options.strict and (bad or errors) else 0


if __name__ == "__main__":
    sys.exit(main())
