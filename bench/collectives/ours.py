"""All-reduce over the tasks of a cluster that is up: ours.py COUNT CHAIN TURNS prints the seconds of one, in the quickest
of TURNS steps, and the processor time of one over all tasks.

A step runs CHAIN reductions of COUNT floats, one after the other, so that the cost of a step is shared.
"""

import json
import os
import sys
import time

import numpy as np
import runnel as tf


def processor_time():
    """Of the tasks, which are children of the command that started this script, in seconds."""
    used = 0
    for folder in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % folder) as file:
                fields = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(fields[1]) == os.getppid() and int(folder) != os.getpid():
            used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


count, chain, turns = (int(word) for word in sys.argv[1:4])
tasks = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
with tf.Graph().as_default():
    ends, starts = [], []
    for i in range(tasks):
        with tf.device("/job:worker/task:%d/cpu:0" % i):
            start = tf.get_variable("x%d" % i, [count], initializer=tf.constant_initializer(i + 1.0))
            x = tf.raw_ops.Identity(input=start)
            for k in range(chain):
                x = tf.raw_ops.CollectiveReduce(
                    input=x, group_size=tasks, group_key=1, instance_key=k + 1, merge_op="Add", final_op="Div", subdiv_offsets=[0]
                )
            starts.append(start)
            ends.append(tf.reduce_max(x))
    with tf.Session(os.environ["RUNNEL_TARGET"]) as session:
        session.run([start.initializer for start in starts])
        np.testing.assert_array_equal(session.run(ends), [(tasks + 1) / 2] * tasks)
        best = 1e9
        used = processor_time()
        for _ in range(turns):
            before = time.perf_counter()
            session.run([end.op for end in ends])
            best = min(best, time.perf_counter() - before)
        used = processor_time() - used
        empty = 1e9
        for _ in range(turns):
            before = time.perf_counter()
            session.run([start.op for start in starts])
            empty = min(empty, time.perf_counter() - before)
print("%.9f %.9f" % ((best - empty) / chain, used / (chain * turns)))
