"""All-reduce over the tasks of RUNNEL_CLUSTER: ours.py COUNT CHAIN TURNS prints the seconds of the quickest.

A step runs CHAIN reductions of COUNT floats, one after the other, so that the cost of a step is shared.
"""

import json
import os
import sys
import time

import numpy as np
import runnel as tf

count, chain, turns = (int(word) for word in sys.argv[1:4])
tasks = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
with tf.Graph().as_default():
    ends, starts = [], []
    for i in range(tasks):
        with tf.device("/job:worker/task:%d/cpu:0" % i):
            start = tf.get_variable("x%d" % i, [count], initializer=tf.constant_initializer(1e-6))
            x = tf.raw_ops.Identity(input=start)
            for k in range(chain):
                x = tf.raw_ops.CollectiveReduce(
                    input=x, group_size=tasks, group_key=1, instance_key=k + 1, merge_op="Add", final_op="Id", subdiv_offsets=[0]
                )
            starts.append(start)
            ends.append(tf.reduce_max(x))
    with tf.Session(os.environ["RUNNEL_TARGET"]) as session:
        session.run([start.initializer for start in starts])
        np.testing.assert_allclose(session.run(ends), [1e-6 * tasks**chain] * tasks, rtol=1e-3)
        best = 1e9
        for _ in range(turns):
            before = time.perf_counter()
            session.run([end.op for end in ends])
            best = min(best, time.perf_counter() - before)
        empty = 1e9
        for _ in range(turns):
            before = time.perf_counter()
            session.run([start.op for start in starts])
            empty = min(empty, time.perf_counter() - before)
print("%.9f" % ((best - empty) / chain))
