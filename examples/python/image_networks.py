"""AlexNet, Overfeat, VGG-A, GoogleNet, Inception-v3, ResNet-18 and ResNet-50 on synthetic images; networks.py builds them.

    python3 image_networks.py --net resnet18 --steps 5               # an eighth of the channels, small images
    python3 image_networks.py --net vgg_a --width 1 --large --steps 1 --device gpu
"""

import argparse

import runnel as tf
from device import add_option, session
from networks import Net, googlenet, inception_v3, resnet

ALEXNET = "96:11/4v max:3/2v 256:5 max:3/2v 384:3 384:3 256:3 max:3/2v"
OVERFEAT = "96:11/4v max:2/2 256:5v max:2/2 512:3 1024:3 1024:3 max:2/2"
VGG_A = "64:3 max:2/2 128:3 max:2/2 256:3 256:3 max:2/2 512:3 512:3 max:2/2 512:3 512:3 max:2/2"
NETS = {  # name: builder, image size, small image size, batch normalization
    "alexnet": (lambda net, x: net.dense(net.seq(x, ALEXNET), 4096, 4096), 227, 67, None),
    "overfeat": (lambda net, x: net.dense(net.seq(x, OVERFEAT), 3072, 4096), 231, 71, None),
    "vgg_a": (lambda net, x: net.dense(net.seq(x, VGG_A), 4096, 4096), 224, 32, None),
    "googlenet": (googlenet, 224, 64, None),
    "inception_v3": (inception_v3, 299, 107, {"scale": False}),
    "resnet18": (lambda net, x: resnet(net, x, (2, 2, 2, 2), 1, "{0}:3/{1} {0}:3-"), 224, 32, {}),
    "resnet50": (lambda net, x: resnet(net, x, (3, 4, 6, 3), 4, "{0}:1 {0}:3/{1} {2}:1-"), 224, 64, {}),
}
parser = argparse.ArgumentParser()
parser.add_argument("--net", choices=list(NETS), default="alexnet")
parser.add_argument("--width", type=float, default=0.125, help="fraction of the published number of channels")
parser.add_argument("--large", action="store_true", help="images of the published size, 1,000 classes")
parser.add_argument("--steps", type=int, default=5)
add_option(parser)
options = parser.parse_args()

tf.set_random_seed(1)
build, large, small, norm = NETS[options.net]
side, classes = (large, 1000) if options.large else (small, 10)
images = tf.get_variable("images", [8, side, side, 3], initializer=tf.random_normal_initializer(seed=1), trainable=False)
labels = tf.constant([i % classes for i in range(8)])
logits = tf.layers.dense(build(Net(options.width, norm), images), classes)
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, tf.trainable_variables()), 2.0)
    train = tf.train.MomentumOptimizer(0.01, 0.9).apply_gradients(zip(gradients, tf.trainable_variables()))
count = sum(v.get_shape().num_elements() for v in tf.trainable_variables())
losses = []
if options.steps:
    with session(options) as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train])[0] for _ in range(options.steps)]
print("%s: %d parameters, losses %s" % (options.net, count, " ".join("%.4f" % value for value in losses)))
