#!/usr/bin/env python3
"""Writes the op cases: make_cases.py [DIR] [FAMILY ...]   (DIR: tests/ops/cases)

Each module of tools/cases/ fills the table of one family; tests/ops/record.sh then records the
results of stock TensorFlow.
"""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from cases.base import Table

FAMILIES = (
    "math array cluster collective nn nn_general fused state training random data_flow control_flow string bitwise debug "
    "linalg list patches staging special tables ctc_rnn stateless_random lookup image quant quantized quantized_more quantized_onednn uniform parsing io sparse function dataset summary signal misc ragged maps inplace remap tfdbg counts edges extremes attributes"
).split()


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "../tests/ops/cases")
    for family in sys.argv[2:] or FAMILIES:
        table = Table()
        importlib.import_module("cases." + family).fill(table)
        table.write(os.path.join(out, family + ".jsonl"), family)
        print("%s: %d rows, %d ops" % (family, len(table.rows), len({r["op"] for r in table.rows})))


if __name__ == "__main__":
    main()
