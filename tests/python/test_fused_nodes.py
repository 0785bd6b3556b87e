"""The ops that stock's graph optimizer makes of several: in graphs, in functions and called directly."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = r"""
import math
import sys
import numpy as np
import runnel as tf
from runnel import raw_ops
from runnel.eager.defun import Defun

r = np.random.RandomState(0)
a, b, bias = r.randn(3, 4).astype("f"), r.randn(4, 5).astype("f"), r.randn(5).astype("f")
image, scale = r.randn(2, 4, 4, 3).astype("f"), r.rand(3).astype("f")
cube, block = r.randn(1, 3, 4, 4, 2).astype("f"), r.randn(2, 2, 2, 2, 3).astype("f")


def dense(a, b, bias, *steps):
    return raw_ops._FusedMatMul(a=a, b=b, args=[bias], fused_ops=["BiasAdd"] + list(steps))


def everything():
    out = [dense(a, b, bias, step) for step in ("Relu", "GeluExact", "GeluApproximate")]
    norm = raw_ops._FusedBatchNormEx(
        x=image, scale=scale, offset=scale, mean=np.zeros(0, "f"), variance=np.zeros(0, "f"), side_input=[image],
        activation_mode="Relu", epsilon=0.1)
    out += [norm.y, norm.batch_mean]
    out.append(raw_ops._FusedConv3D(
        input=cube, filter=block, args=[scale], strides=[1] * 5, padding="VALID", fused_ops=["BiasAdd", "Elu"]))
    out.append(raw_ops._FusedDepthwiseConv2dNative(
        input=image, filter=np.ones((2, 2, 3, 1), "f"), args=[scale], strides=[1] * 4, padding="SAME",
        fused_ops=["BiasAdd", "Relu6"]))
    out.append(raw_ops._UnaryOpsComposition(x=a, op_names=["Square", "Neg", "Exp"]))
    return out


def plainly():
    x = tf.matmul(a, b) + bias
    approximately = 0.5 * x * (1 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    out = [tf.nn.relu(x), 0.5 * x * (1 + tf.erf(x / math.sqrt(2.0))), approximately]
    norm = raw_ops.FusedBatchNormV3(x=image, scale=scale, offset=scale, mean=np.zeros(0, "f"), variance=np.zeros(0, "f"), epsilon=0.1)
    out += [tf.nn.relu(norm.y + image), norm.batch_mean]
    out.append(tf.nn.elu(tf.nn.conv3d(cube, block, [1] * 5, "VALID") + scale))
    out.append(tf.nn.relu6(tf.nn.depthwise_conv2d(image, np.ones((2, 2, 3, 1), "f"), [1] * 4, "SAME") + scale))
    out.append(tf.exp(-tf.square(a)))
    return out


if sys.argv[1] == "eager":
    tf.enable_eager_execution()
    results = [[t.numpy() for t in everything()], [t.numpy() for t in plainly()]]
else:
    with tf.Graph().as_default(), tf.Session() as sess:
        fused = everything()
        if sys.argv[1] == "function":
            apart = Defun(tf.float32, tf.float32, tf.float32, func_name="apart", noinline=True)(
                lambda a, b, bias: dense(a, b, bias, "Relu"))
            fused[0] = apart(a, b, bias)
        results = sess.run([fused, plainly()])
for ours, wanted in zip(*results):
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)
print("same")
"""


def run(how):
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.stdout == "same\n", done.stderr


def test_graph():
    run("graph")


def test_function():
    run("function")


def test_eager():
    run("eager")

