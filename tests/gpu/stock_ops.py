#!/usr/bin/env python3
"""Compares the ops that have kernels for GPUs with those that stock TensorFlow registers for them.

usage: stock_ops.py RUNNEL

stock_ops.tsv lists stock's: "gpu" has a kernel for GPUs, "default" one for any device, which computes in host memory,
"gpu+default" has both, the second for int32. without_kernel.txt lists those that only the CPU has here, with the reason.
The environment says where the CUDA part is.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    """The lines of a file beside this one that are no comments, each cut at its first white space."""
    with open(os.path.join(HERE, name), encoding="utf-8") as stream:
        lines = [line for line in stream.read().splitlines() if line and not line.startswith("#")]
    return dict((line.split(None, 1) + [""])[:2] for line in lines)


def main(runnel):
    run = subprocess.run([runnel, "ops", "--json"], stdout=subprocess.PIPE, check=True)
    ours = {op["name"]: set(op["devices"]) for op in json.loads(run.stdout)}
    stock, excused = read("stock_ops.tsv"), read("without_kernel.txt")
    known = [op for op in stock if op in ours]
    missing = [op for op in known if not ours[op] & {"GPU", "DEFAULT", "any"}]
    errors = ["%s: stock has a kernel for GPUs, there is none here" % op for op in missing if op not in excused]
    errors += ["%s: without_kernel.txt gives no reason" % op for op in excused if not excused[op]]
    errors += ["%s: has a kernel now, or is no op of stock's: take it off without_kernel.txt" % op
               for op in excused if op not in missing]
    if not any("GPU" in devices for devices in ours.values()):
        errors = ["no op has a kernel for GPUs: the CUDA part is not loaded"]
    print("%d of %d ops that stock runs on GPUs have kernels there; %d have none; %d ops are not registered here"
          % (len(known) - len(missing), len(known), len(missing), len(stock) - len(known)))
    print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
