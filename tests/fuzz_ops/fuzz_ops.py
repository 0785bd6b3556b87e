#!/usr/bin/env python3
"""Compares single ops of our library with stock TensorFlow on random calls.

  fuzz_ops.py [--seed N] [--seconds S | --cases N] [--op PART] [--optimize]
  fuzz_ops.py --quick
  fuzz_ops.py --case SEED/NUMBER     runs one case again and prints it

See README.md here.
"""

import argparse
import collections
import importlib.util
import os
import random
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import compare
import generic
import hints
import known
import opdefs
import programs
import rows
import values
import worker

BATCH = 250


class Side:
    """A worker process."""

    def __init__(self, library, *options):
        env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")
        command = [sys.executable, os.path.join(HERE, "worker.py"), library, *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0)

    def send(self, request):
        worker.send(self.process.stdin.fileno(), request)

    def receive(self):
        return worker.receive(self.process.stdout.fileno())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def stock_library():
    spec = importlib.util.find_spec("tensorflow")
    if spec is None:
        return None
    return os.path.join(spec.submodule_search_locations[0], "libtensorflow_cc.so.2")


class Generator:
    """Case number N of a seed is the same whatever came before it."""

    def __init__(self, seed, ops, table, part):
        self.seed, self.ops = seed, ops
        fits = lambda name: not part or part in name
        names = sorted(n for n in table if n in ops and fits(n) and n not in hints.EXCLUDED)
        self.row_ops = [(n.encode(), n) for n in names]
        self.rows = {n: [(row["name"].encode(), row) for row in table[n]] for n in names}
        possible = [ops[n] for n in sorted(ops) if fits(n) and generic.is_possible(ops[n])]
        self.any_ops = [(b"%s %d" % (op.name.encode(), i), op) for op in possible for i in range(generic.weight(op))]
        self.programs = [f for f in programs.ALL if not part or part in f.__name__]

    def case(self, number):
        rng = random.Random("%s/%d" % (self.seed, number))
        if self.programs and (rng.random() < 0.06 or not self.row_ops + self.any_ops):
            return rng.choice(self.programs)(rng, self.ops)
        for attempt in range(100):
            key = "%s/%d/%d" % (self.seed, number, attempt)
            if self.row_ops and (not self.any_ops or rng.random() < 0.6):
                row = pick(key, self.rows[pick(key, self.row_ops)])
                try:
                    return rows.case(rng, self.ops, row)
                except rows.Unusable:
                    continue
            return generic.case(rng, pick(key, self.any_ops))
        raise SystemExit("No row of these ops makes a case")


def pick(key, named):
    """The one of (name, it) pairs that the key's draw falls on. One pair more changes few draws."""
    start = zlib.crc32(key.encode())
    return max(named, key=lambda pair: zlib.crc32(pair[0], start))[1]


def describe(case):
    lines = []
    for number, node in enumerate(case["nodes"]):
        attrs = "".join(", %s=%s" % (k, v[1]) for k, v in sorted(node["attrs"].items()))
        lines.append("    %%%d = %s(%s)%s" % (number, node["op"], ", ".join(map(show, node["inputs"])), attrs))
    return "\n".join(lines)


def show(spec):
    if isinstance(spec, list):
        return "[" + ", ".join(map(show, spec)) + "]"
    if spec[0] == "node":
        return "%%%d:%d" % spec[1:]
    return values.text(*spec[1:4]) + ("" if spec[4] == "open" else " " + spec[4])


def answer_text(answer):
    if answer[0] != "ok":
        return " ".join(map(str, answer))
    return "; ".join(values.text(*x) for outputs in answer[1] for x in outputs)


def start(args):
    ours = Side(
        args.library, "--memory", "6", *(["--optimize"] if args.optimize else []), *(["--verbose"] if args.case else [])
    )
    stock = Side(args.stock, "--memory", "8", *(["--verbose"] if args.case else []))
    return ours, stock


def registry(ours, stock):
    """The ops that both have, as stock defines them, with stock's kernels."""
    ours.send(("ops", []))
    names = sorted(opdefs.ops_of(ours.receive()[0]))
    stock.send(("ops", names))
    op_list, kernels = stock.receive()
    ops = opdefs.ops_of(op_list)
    for name in names:
        if name in ops:
            ops[name].kernels = opdefs.kernels_of(kernels[name])
    return {name: ops[name] for name in names if name in ops}


def replay(args, generator, ours, stock):
    case = generator.case(int(args.case.split("/")[1]))
    print("%s %s, from %s\n%s" % (case["mode"], case["op"], case["from"], describe(case)))
    answers = []
    for side in (ours, stock):
        side.send(("run", [case]))
        answers.append(side.receive()[0])
    print("  ours:  %s\n  stock: %s" % tuple(map(answer_text, answers)))
    print("  %s" % (compare.difference(case, *answers) or "no difference",))


class Tally:
    def __init__(self, args):
        self.args, self.count, self.ran, self.listed = args, 0, 0, collections.Counter()
        self.ops, self.found, self.odd_zeros = set(), collections.defaultdict(list), collections.Counter()

    def add(self, number, case, ours, stock):
        self.count += 1
        self.ops.add(case["op"])
        self.ran += stock[0] == "ok"
        found = compare.difference(case, ours, stock)
        if found is None:
            return
        reason = known.reason(case, found, ours, stock)
        if reason:
            self.listed[reason] += 1
            return
        if found[0] == "zero sign":
            self.odd_zeros[case["op"]] += 1
            return
        self.found[(case["op"], found[0])].append(number)
        if len(self.found[(case["op"], found[0])]) <= self.args.each:
            print("%s %s (%s, from %s): %s" % (case["op"], found[0], case["mode"], case["from"], found[1]))
            print(describe(case)[: self.args.width])
            print("    ours:  %s\n    stock: %s" % (answer_text(ours)[:500], answer_text(stock)[:500]))
            print(
                "    again: %s --case %s/%d%s"
                % (os.path.relpath(__file__), self.args.seed, number, " --op " + self.args.op if self.args.op else ""),
                flush=True,
            )

    def report(self):
        for (op, kind), numbers in sorted(self.found.items()):
            print("%6d %s %s" % (len(numbers), op, kind))
        for reason, count in sorted(self.listed.items()) if self.args.verbose else ():
            print("%6d listed: %s" % (count, reason))
        print(
            "%d calls of %d ops, %d ran in stock; %d differ, %d listed, %d signs of zero"
            % (self.count, len(self.ops), self.ran, sum(map(len, self.found.values())),
               sum(self.listed.values()), sum(self.odd_zeros.values()))
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, help="stop after this many, however long it takes")
    parser.add_argument("--quick", action="store_true", help="what the tests run")
    parser.add_argument("--op", default="", help="only ops with this in their name")
    parser.add_argument("--case")
    parser.add_argument("--each", type=int, default=2, help="differences that are shown per op and kind")
    parser.add_argument("--width", type=int, default=1500)
    parser.add_argument("--verbose", action="store_true", help="count the listed ones by reason")
    parser.add_argument("--optimize", action="store_true", help="our planner's passes on")
    parser.add_argument("--library", default=os.path.join(ROOT, "build/release/libtensorflow.so.2"))
    parser.add_argument("--stock", default=stock_library())
    args = parser.parse_args()
    if args.quick:
        args.seed, args.cases = "quick", 7500
    if not args.stock or not os.path.exists(args.stock):
        print("no stock TensorFlow: nothing to compare with")
        return 77
    if args.case:
        args.seed = args.case.split("/")[0]
    ours, stock = start(args)
    ops = registry(ours, stock)
    generator = Generator(args.seed, ops, rows.load(os.path.join(ROOT, "tests/ops/cases")), args.op)
    if args.case:
        replay(args, generator, ours, stock)
        return 0
    tally, number, until = Tally(args), args.first, time.time() + args.seconds
    last = None if args.cases is None else args.first + args.cases
    batch = []
    while True:
        more = number < last if last is not None else time.time() < until
        coming = []
        while more and len(coming) < BATCH and (last is None or number < last):
            coming.append((number, generator.case(number)))
            number += 1
        if batch:
            for (n, case), a, b in zip(batch, ours.receive(), stock.receive()):
                tally.add(n, case, a, b)
        if not coming:
            break
        for side in (ours, stock):
            side.send(("run", [case for _, case in coming]))
        batch = coming
    tally.report()
    ours.close()
    stock.close()
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
