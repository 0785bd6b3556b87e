"""The networks of the ImageNet years on synthetic pictures: AlexNet, Overfeat, VGG-A, GoogleNet, Inception-v3, ResNet-18.

A network is a line of text: "96:11/4v" is a convolution to 96 channels, 11 x 11, stride 4, without padding ("v"),
"3:1x7" one of 1 x 7, a "-" at the end leaves out the ReLU; "max:3/2" and "avg:3" pool.

    python image_networks.py --net resnet18 --steps 5               # an eighth of the channels, small pictures
    python image_networks.py --net vgg_a --width 1 --large --steps 1
"""

import argparse
import re

import runnel as tf

parser = argparse.ArgumentParser()
parser.add_argument("--net", default="alexnet")
parser.add_argument("--width", type=float, default=0.125, help="share of the channels")
parser.add_argument("--large", action="store_true", help="pictures of the published size, 1,000 classes")
parser.add_argument("--steps", type=int, default=5)
options = parser.parse_args()
norm = {"inception_v3": dict(scale=False), "resnet18": {}}.get(options.net)  # these two normalise their batches


def seq(x, text):
    for word in text.split():
        kind, h, w, stride, valid, linear = re.match(r"(max|avg|\d+):(\d+)(?:x(\d+))?(?:/(\d))?(v?)(-?)$", word).groups()
        size, stride, padding = (int(h), int(w or h)), int(stride or 1), "valid" if valid else "same"
        if not kind.isdigit():
            x = (tf.layers.max_pooling2d if kind == "max" else tf.layers.average_pooling2d)(x, size, stride, padding)
            continue
        x = tf.layers.conv2d(x, round(int(kind) * options.width), size, stride, padding, use_bias=norm is None,
                             kernel_initializer=tf.variance_scaling_initializer(2.0))
        if norm is not None:
            x = tf.layers.batch_normalization(x, training=True, **norm)
        x = x if linear else tf.nn.relu(x)
    return x


def join(x, *texts):
    """Branches side by side; "a | b" inside one parts it again at its end."""
    ends = []
    for text in texts:
        stem, *forks = text.split("|")
        ends += [seq(seq(x, stem), fork) for fork in forks] if forks else [seq(x, stem)]
    return tf.concat(ends, 3)


def dense(x, *sizes):
    x = tf.layers.flatten(x)
    for size in sizes:
        x = tf.layers.dense(x, round(size * options.width), activation=tf.nn.relu)
    return x


def googlenet(x):
    x = seq(x, "64:7/2 max:3/2 64:1 192:3 max:3/2")
    for row in ["64 96 128 16 32 32", "128 128 192 32 96 64", "", "192 96 208 16 48 64", "160 112 224 24 64 64", "128 128 256 24 64 64",
                "112 144 288 32 64 64", "256 160 320 32 128 128", "", "256 160 320 32 128 128", "384 192 384 48 128 128"]:
        x = join(x, *"{}:1,{}:1 {}:3,{}:1 {}:5,max:3 {}:1".format(*row.split()).split(",")) if row else seq(x, "max:3/2")
    return tf.reduce_mean(x, [1, 2])


def inception_v3(x):
    x = seq(x, "32:3/2v 32:3v 64:3 max:3/2v 80:1v 192:3v max:3/2v")
    for pool in (32, 64, 64):
        x = join(x, "64:1", "48:1 64:5", "64:1 96:3 96:3", "avg:3 %d:1" % pool)
    x = join(x, "384:3/2v", "64:1 96:3 96:3/2v", "max:3/2v")
    for c in (128, 160, 160, 192):
        x = join(x, "192:1", "{0}:1 {0}:1x7 192:7x1".format(c), "{0}:1 {0}:7x1 {0}:1x7 {0}:7x1 192:1x7".format(c), "avg:3 192:1")
    x = join(x, "192:1 320:3/2v", "192:1 192:1x7 192:7x1 192:3/2v", "max:3/2v")
    for _ in range(2):
        x = join(x, "320:1", "384:1 | 384:1x3 | 384:3x1", "448:1 384:3 | 384:1x3 | 384:3x1", "avg:3 192:1")
    return tf.reduce_mean(x, [1, 2])


def resnet18(x):
    x = seq(x, "64:7/2 max:3/2")
    for c, stride in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)]:
        short = seq(x, "%d:1/%d-" % (c, stride)) if stride == 2 else x
        x = tf.nn.relu(short + seq(x, "%d:3/%d %d:3-" % (c, stride, c)))
    return tf.reduce_mean(x, [1, 2])


NETS = {  # builder, side of a picture, and of a small one
    "alexnet": (lambda x: dense(seq(x, "96:11/4v max:3/2v 256:5 max:3/2v 384:3 384:3 256:3 max:3/2v"), 4096, 4096), 227, 67),
    "overfeat": (lambda x: dense(seq(x, "96:11/4v max:2/2 256:5v max:2/2 512:3 1024:3 1024:3 max:2/2"), 3072, 4096), 231, 71),
    "vgg_a": (lambda x: dense(seq(x, "64:3 max:2/2 128:3 max:2/2 256:3 256:3 max:2/2 512:3 512:3 max:2/2 512:3 512:3 max:2/2"),
                              4096, 4096), 224, 32),
    "googlenet": (googlenet, 224, 64), "inception_v3": (inception_v3, 299, 75), "resnet18": (resnet18, 224, 32)}

tf.set_random_seed(1)
build, large, small = NETS[options.net]
side, classes = (large, 1000) if options.large else (small, 10)
images = tf.get_variable("images", [8, side, side, 3], initializer=tf.random_normal_initializer(seed=1), trainable=False)
labels = tf.constant([i % classes for i in range(8)])
logits = tf.layers.dense(build(images), classes)
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
count = sum(int(v.get_shape().num_elements()) for v in tf.trainable_variables())
losses = []
if options.steps:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train])[0] for _ in range(options.steps)]
print("%s: %d parameters, %d operations, losses %s" % (
    options.net, count, len(tf.get_default_graph().get_operations()), " ".join("%.4f" % v for v in losses)))
