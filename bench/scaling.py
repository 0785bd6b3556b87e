#!/usr/bin/env python3
"""Measures how our library scales with threads; needs no other library.

Every case runs with 1, 2, 4 ... threads up to the number of processors, each in a process of its own, by
turns; the best of the rounds counts. A row fails if the most threads take more than 1.05 times the time of
any smaller number. --ours given several times compares builds by turns; --stock adds stock TensorFlow;
--busy keeps each processor busy with another process meanwhile. Writes build/bench/scaling.tsv.
"""

import argparse
import contextlib
import fnmatch
import os
import subprocess
import sys

import compare

CASES = ["mlp_b1_h128", "mlp_b128_h500", "lenet_b1", "lenet_b64", "alexnet_b16", "lstm_b1_h64",
         "lstm_b32_h256", "elementwise12", "matmul64", "matmul256", "matmul1024", "matmul2048"]
SLACK = 1.05


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="*", help="shell pattern of case names")
    parser.add_argument("--threads", help="numbers with commas (default: 1,2,4... up to all)")
    parser.add_argument("--rounds", type=int, default=3, help="turns per figure (default 3)")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a timed batch")
    parser.add_argument("--ours", action="append", help="a library or its folder; may be repeated")
    parser.add_argument("--stock", action="store_true", help="measure stock TensorFlow too")
    parser.add_argument("--venv", default=os.path.join(compare.ROOT, "build", "venv"),
                        help="virtual environment that holds stock TensorFlow")
    parser.add_argument("--busy", action="store_true", help="one busy process per processor")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a row fails")
    options = parser.parse_args()
    options.quick = False
    processors = len(os.sched_getaffinity(0))
    if options.threads:
        options.threads = [int(number) for number in options.threads.split(",")]
    else:
        options.threads = [1 << i for i in range(processors.bit_length())]
        if options.threads[-1] != processors:
            options.threads.append(processors)
    return options


def find_libraries(options):
    """(name, include folder, libraries) per client."""
    include = os.path.join(compare.ROOT, "include")
    found = []
    for index, given in enumerate(options.ours or [None]):
        library = compare.find_ours(given)
        if not library:
            sys.exit(f"scaling.py: no {compare.LIBRARY} under build/")
        found.append((f"ours{index + 1}" if index else "ours", include, [library]))
        print(f"{found[-1][0]}: {os.path.relpath(library)}")
    if options.stock:
        wheel = os.path.abspath(compare.find_stock(options.venv))
        found.append(("stock", os.path.join(wheel, "include"),
                      [os.path.join(wheel, "libtensorflow_cc.so.2"),
                       os.path.join(wheel, "libtensorflow_framework.so.2")]))
    return found


@contextlib.contextmanager
def busy_processes(wanted):
    """One process per processor that never sleeps, while this is open."""
    spinners = []
    try:
        if wanted:
            for processor in os.sched_getaffinity(0):
                spinners.append(subprocess.Popen(
                    ["taskset", "-c", str(processor), sys.executable, "-c", "while True: pass"]))
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(case, clients, options):
    """{(client, threads): best figure}; a case that failed has none."""
    figures = {}
    for _ in range(options.rounds):
        for threads in options.threads:
            os.environ["BENCH_THREADS"] = str(threads)
            for name, client in clients.items():
                value, error = compare.run_case(client, case, options)
                if value is None:
                    print(f"    {name}, {threads} threads: {error}")
                    continue
                key = (name, threads)
                figures[key] = max(figures.get(key, 0), value)
    return figures


def print_rows(case, unit, clients, figures, options, file):
    failed = False
    for name in clients:
        row = [figures.get((name, threads)) for threads in options.threads]
        known = [value for value in row if value]
        falls = bool(known) and row[-1] is not None and max(known) > SLACK * row[-1]
        verdict = "SLOWER" if falls else ""
        failed = failed or (falls and name == "ours")
        cells = "".join(f"{compare.short(value):>12}" for value in row)
        print(f"{case:<16} {unit:<11} {name:<6}{cells}  {verdict}".rstrip(), flush=True)
        print(case, unit, name, *[f"{value:.6g}" if value else "" for value in row], verdict,
              sep="\t", file=file, flush=True)
    return failed


def main():
    options = parse_arguments()
    os.makedirs(compare.OUT, exist_ok=True)
    units = {row["case"]: row["unit"] for row in compare.read_bars()}
    cases = [case for case in CASES if fnmatch.fnmatch(case, options.case)]
    if not cases:
        sys.exit(f"scaling.py: no case matches '{options.case}'; CASES names them")
    clients = {name: compare.build_client(name, include, libraries)
               for name, include, libraries in find_libraries(options)}
    print(f"{'case':<16} {'unit':<11} {'':<6}" + "".join(f"{n:>12}" for n in options.threads))
    failed = False
    with busy_processes(options.busy), \
            open(os.path.join(compare.OUT, "scaling.tsv"), "w", encoding="utf-8") as file:
        print("case", "unit", "library", *options.threads, "verdict", sep="\t", file=file)
        for case in cases:
            figures = measure(case, clients, options)
            failed = print_rows(case, units[case], clients, figures, options, file) or failed
    return 1 if options.strict and failed else 0


if __name__ == "__main__":
    sys.exit(main())
