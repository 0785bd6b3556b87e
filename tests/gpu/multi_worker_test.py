"""MultiWorkerMirroredStrategy of two processes with a GPU each: multi_worker_test.py, with RUNNEL_BUILD in the environment.

Their values go by NCCL if the strategy asks for it, and otherwise through the CPUs; the numbers are the same.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests")]
COUNT = os.environ["EMULATED_NCCL_COUNT"]


def work(implementation):
    import numpy as np
    import runnel.compat.v2 as tf
    tf.compat.v1.enable_v2_behavior()
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    with strategy.scope():
        w = tf.Variable(np.full([3], rank + 1, "float32"))  # the first process decides
    x = tf.constant(np.arange(3, dtype="float32") + rank)

    @tf.function
    def step():
        def replica():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(w * x))
            gradient = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, w))
            w.assign_sub(0.02 * gradient)
            return loss
        return strategy.reduce("SUM", strategy.run(replica), axis=None)

    losses = [float(step()) for _ in range(3)]
    print(json.dumps([losses, w.numpy().tolist()]))


def run(implementation):
    from support.ports import free_ports
    addresses = ["127.0.0.1:%d" % port for port in free_ports(2)]
    before = os.path.getsize(COUNT) if os.path.exists(COUNT) else 0
    tasks = []
    for i in range(2):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
        environment = dict(os.environ, TF_CONFIG=json.dumps(config), RN_EMULATED_MACHINE="ab"[i])
        tasks.append(subprocess.Popen([sys.executable, __file__, implementation], stdout=subprocess.PIPE, env=environment))
    results = [json.loads(task.communicate(timeout=60)[0].splitlines()[-1]) for task in tasks]
    assert results[0] == results[1], results
    after = os.path.getsize(COUNT) if os.path.exists(COUNT) else 0
    return results[0], after - before


def main():
    by_cpus, operations = run("RING")
    assert operations == 0, operations
    by_nccl, operations = run("NCCL")
    assert operations > 0
    assert by_cpus == by_nccl, (by_cpus, by_nccl)
    losses = by_nccl[0]
    assert losses[-1] < losses[0], losses


if len(sys.argv) > 1:
    work(sys.argv[1])
else:
    main()
