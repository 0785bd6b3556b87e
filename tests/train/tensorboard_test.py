#!/usr/bin/env python3
"""Reads the log of the example digits with TensorBoard's reader.

usage: tensorboard_test.py DIGITS RUNNEL FOLDER      ends with 77 where there is no TensorBoard
"""

import shutil
import subprocess
import sys

try:
    from tensorboard.backend.event_processing import plugin_event_accumulator
except ImportError:
    print("no TensorBoard here")
    sys.exit(77)

import numpy as np
from tensorboard.util import tensor_util


def plain(log, tag):
    return [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in log.Tensors(tag)]


def main():
    digits, runnel, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([digits, folder, "--steps", "4000"], check=True, stdout=subprocess.DEVNULL)
    log = plugin_event_accumulator.EventAccumulator(folder, size_guidance={"tensors": 0})
    log.Reload()
    tags = log.Tags()
    assert tags["graph"], "no graph"
    assert log.Graph().node, "an empty graph"
    want = {
        "loss": "scalars",
        "accuracy": "scalars",
        "held_out/accuracy": "scalars",
        "hidden/weights": "histograms",
        "hidden/units": "images",
    }
    assert set(want) | {"__run_graph__"} == set(tags["tensors"]), tags["tensors"]
    for tag, plugin in want.items():
        got = log.SummaryMetadata(tag).plugin_data.plugin_name
        assert got == plugin, "%s is of %s" % (tag, got)
    losses = plain(log, "loss")
    assert [s for s, _ in losses] == list(range(100, 4001, 100)), losses
    buckets = tensor_util.make_ndarray(log.Tensors("hidden/weights")[-1].tensor_proto)
    assert buckets.shape == (30, 3) and buckets[:, 2].sum() == 64 * 64, buckets
    width, height, png = tensor_util.make_ndarray(log.Tensors("hidden/units")[-1].tensor_proto)
    assert (width, height) == (b"72", b"72") and png.startswith(b"\x89PNG"), (width, height)

    # The command reads the same numbers.
    out = subprocess.run([runnel, "events", folder, "--csv", "--tag", "loss"], check=True, capture_output=True)
    rows = [line.split(",") for line in out.stdout.decode().splitlines()]
    assert [(int(r[2]), float(np.float32(r[4]))) for r in rows] == losses, rows
    shutil.rmtree(folder)


main()
