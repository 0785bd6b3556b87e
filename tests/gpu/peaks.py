#!/usr/bin/env python3
"""Compares the peak of GPU memory of networks of full size with peaks.tsv.

usage: peaks.py GPU_BENCH

The environment names an emulated driver that does no work (RN_EMULATED_IDLE), so that only the memory is real.
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def peak(program, case, dtype):
    """The column peak_mib of the case."""
    run = subprocess.run([program, case, "--dtype", dtype, "--seconds", "0"], stdout=subprocess.PIPE, check=True)
    row = run.stdout.decode().splitlines()[-1].split("\t")
    return int(row[8])


def main(program):
    with open(os.path.join(HERE, "peaks.tsv"), encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream if not line.startswith("#")]
    failed = 0
    for case, dtype, most, torch in rows[1:]:
        ours = peak(program, case, dtype)
        is_ok = 0 < ours <= int(most)
        failed += not is_ok
        print("%s %-20s %-8s %6d MiB, at most %s, PyTorch %s" % ("ok    " if is_ok else "FAILED", case, dtype, ours, most, torch))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
