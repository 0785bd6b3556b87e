"""Variables, optimizers and checkpoints in eager execution: a separate program, because it is enabled once per process."""

import os
import subprocess
import sys

from both import HERE, ROOT
from support import stock

PROGRAM = '''
import os, sys, tempfile
if sys.argv[1] == "stock":
    import tensorflow.compat.v1 as tf
else:
    import runnel as tf
import numpy as np
tf.enable_eager_execution()
train = tf.train

v = tf.Variable([1.0, 2.0])
print((v + 1).numpy(), v.numpy(), v.shape)
v.assign_add([1.0, 1.0])
v.assign_sub([0.5, 0.5])
print(v.numpy(), float(tf.reduce_sum(v)))
e = tf.Variable(np.ones((4, 2), "f"))
for optimizer in [train.GradientDescentOptimizer(0.1), train.AdamOptimizer(0.1), train.MomentumOptimizer(0.1, 0.9),
                  train.RMSPropOptimizer(0.1), train.AdagradOptimizer(0.1)]:
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(v)) + tf.reduce_sum(tf.square(tf.gather(e, [1, 1])))
        optimizer.apply_gradients(zip(tape.gradient(loss, [v, e]), [v, e]))
    print(np.round(v.numpy(), 4).tolist(), np.round(e.numpy()[1], 4).tolist())
optimizer = train.AdamOptimizer(0.1)
step = train.get_or_create_global_step()
optimizer.minimize(lambda: tf.reduce_sum(tf.square(v)), global_step=step)
print(np.round(v.numpy(), 4).tolist(), int(step.numpy()))
folder = tempfile.mkdtemp()
checkpoint = train.Checkpoint(v=v, optimizer=optimizer)
path = checkpoint.save(os.path.join(folder, "c"))
old = v.numpy().copy()
v.assign([0.0, 0.0])
checkpoint.restore(path).assert_consumed()
print(np.allclose(v.numpy(), old), os.path.basename(path), [name for name, _ in train.list_variables(path)])
saver = train.Saver([v])
path = saver.save(None, os.path.join(folder, "m"), global_step=3)
v.assign([0.0, 0.0])
saver.restore(None, path)
print(np.allclose(v.numpy(), old), os.path.basename(path))
print(round(float(train.exponential_decay(0.1, step, 1, 0.5)()), 5))
w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
print(w.numpy().sum(), w.name, tf.clip_by_global_norm([v], 0.1)[1].numpy().round(3))
'''


def test_same_as_stock():
    ours = subprocess.run([sys.executable, "-c", PROGRAM, "runnel"], check=True, stdout=subprocess.PIPE, text=True, cwd=HERE,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))).stdout
    assert ours.splitlines() == stock.printed("eager_training", PROGRAM, "stock").splitlines()


def test_variables_are_freed():
    program = """
import numpy as np
import runnel as tf
tf.enable_eager_execution()
for _ in range(300):
    tf.Variable(np.ones(1 << 18, "f"))
with open("/proc/self/status") as lines:  # ru_maxrss would count the parent's memory, too
    print(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))
"""
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    done = subprocess.run([sys.executable, "-c", program], check=True, env=env, stdout=subprocess.PIPE, text=True)
    assert int(done.stdout) < 200 << 10  # of 300 MiB that were made
