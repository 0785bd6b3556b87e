"""Builders of image classification networks from 2012 to 2015, for image_networks.py.

A string describes a sequence of layers: "96:11/4v" is a convolution to 96 channels with an 11 x 11 kernel, stride 4 and
no padding ("v"); "64:1x7" has a 1 x 7 kernel; a final "-" omits the ReLU; "max:3/2" and "avg:3" are pooling layers.
"""

import re

import runnel as tf

WORD = re.compile(r"(max|avg|\d+):(\d+)(?:x(\d+))?(?:/(\d))?(v?)(-?)$")


class Net:
    """`width` is the fraction of the published number of channels; `norm` is None, or arguments of batch normalization."""

    def __init__(self, width=1.0, norm=None):
        self.width, self.norm = width, norm

    def seq(self, x, text):
        for word in text.split():
            kind, h, w, stride, valid, linear = WORD.match(word).groups()
            size, stride, padding = (int(h), int(w or h)), int(stride or 1), "valid" if valid else "same"
            if not kind.isdigit():
                x = (tf.layers.max_pooling2d if kind == "max" else tf.layers.average_pooling2d)(x, size, stride, padding)
                continue
            x = tf.layers.conv2d(x, round(int(kind) * self.width), size, stride, padding, use_bias=self.norm is None,
                                 kernel_initializer=tf.variance_scaling_initializer(2.0))
            if self.norm is not None:
                x = tf.layers.batch_normalization(x, training=True, **self.norm)
            x = x if linear else tf.nn.relu(x)
        return x

    def join(self, x, *texts):
        """Concatenates the outputs of branches; "a | b | c" applies b and c to the output of a."""
        ends = []
        for text in texts:
            stem, *forks = text.split("|")
            stem = self.seq(x, stem)
            ends += [self.seq(stem, fork) for fork in forks] or [stem]
        return tf.concat(ends, 3)

    def dense(self, x, *sizes):
        x = tf.layers.flatten(x)
        for size in sizes:
            x = tf.layers.dense(x, round(size * self.width), activation=tf.nn.relu)
        return x


def googlenet(net, x):
    x = net.seq(x, "64:7/2 max:3/2 64:1 192:3 max:3/2")
    for row in ["64 96 128 16 32 32", "128 128 192 32 96 64", "", "192 96 208 16 48 64", "160 112 224 24 64 64", "128 128 256 24 64 64",
                "112 144 288 32 64 64", "256 160 320 32 128 128", "", "256 160 320 32 128 128", "384 192 384 48 128 128"]:
        x = net.join(x, *"{}:1,{}:1 {}:3,{}:1 {}:5,max:3 {}:1".format(*row.split()).split(",")) if row else net.seq(x, "max:3/2")
    return tf.reduce_mean(x, [1, 2])


def inception_v3(net, x):
    x = net.seq(x, "32:3/2v 32:3v 64:3 max:3/2v 80:1v 192:3v max:3/2v")
    for pool in (32, 64, 64):
        x = net.join(x, "64:1", "48:1 64:5", "64:1 96:3 96:3", "avg:3 %d:1" % pool)
    x = net.join(x, "384:3/2v", "64:1 96:3 96:3/2v", "max:3/2v")
    for c in (128, 160, 160, 192):
        x = net.join(x, "192:1", f"{c}:1 {c}:1x7 192:7x1", f"{c}:1 {c}:7x1 {c}:1x7 {c}:7x1 192:1x7", "avg:3 192:1")
    x = net.join(x, "192:1 320:3/2v", "192:1 192:1x7 192:7x1 192:3/2v", "max:3/2v")
    for _ in range(2):
        x = net.join(x, "320:1", "384:1 | 384:1x3 | 384:3x1", "448:1 384:3 | 384:1x3 | 384:3x1", "avg:3 192:1")
    return tf.reduce_mean(x, [1, 2])


def resnet(net, x, counts, wide, branch):
    """`counts`: blocks per stage; a `branch` of c channels with a stride gives `wide` times as many."""
    x = net.seq(x, "64:7/2 max:3/2")
    for stage, count in enumerate(counts):
        for i in range(count):
            c, stride = 64 << stage, 2 if stage and i == 0 else 1
            short = net.seq(x, "%d:1/%d-" % (wide * c, stride)) if i == 0 and wide << stage > 1 else x
            x = tf.nn.relu(short + net.seq(x, branch.format(c, stride, wide * c)))
    return tf.reduce_mean(x, [1, 2])
