"""tf.data and record files: writes digits as tf.Examples; a pipeline then reads, parses, shuffles and batches them.

One reinitializable iterator serves both the training data and the test data.
"""

import argparse
import os
import tempfile

import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6, help="epochs")
options = parser.parse_args()
images, labels, test_images, test_labels = load()
folder = tempfile.mkdtemp()
tf.set_random_seed(1)


def write(path, images, labels):
    with tf.python_io.TFRecordWriter(path) as writer:
        for image, label in zip(images, labels):
            example = tf.train.Example(features=tf.train.Features(feature={
                "image": tf.train.Feature(float_list=tf.train.FloatList(value=image)),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }))
            writer.write(example.SerializeToString())
    return path


def parse(record):
    row = tf.parse_single_example(record, {
        "image": tf.FixedLenFeature([64], tf.float32), "label": tf.FixedLenFeature([], tf.int64)})
    return row["image"], row["label"]


train_file = write(os.path.join(folder, "train.tfrecords"), images, labels)
test_file = write(os.path.join(folder, "test.tfrecords"), test_images, test_labels)
train_set = tf.data.TFRecordDataset(train_file).map(parse, num_parallel_calls=2).shuffle(500, seed=1).batch(50).prefetch(1)
test_set = tf.data.TFRecordDataset(test_file).map(parse).batch(100)

iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(train_set), tf.data.get_output_shapes(train_set))
image, label = iterator.get_next()
hidden = tf.layers.dense(image, 64, activation=tf.nn.relu)
logits = tf.layers.dense(hidden, 10)
loss = tf.losses.sparse_softmax_cross_entropy(labels=label, logits=logits)
train = tf.train.AdamOptimizer(0.005).minimize(loss)
right = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 1), label), tf.int64))
to_train, to_test = iterator.make_initializer(train_set), iterator.make_initializer(test_set)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(options.steps):
        sess.run(to_train)
        batches = 0
        while True:
            try:
                _, value = sess.run([train, loss])
                batches += 1
            except tf.errors.OutOfRangeError:
                break
        print("epoch %d: %d batches, loss %.4f" % (epoch, batches, value))
    sess.run(to_test)
    count = 0
    try:
        while True:
            count += sess.run(right)
    except tf.errors.OutOfRangeError:
        pass
print("dataset: %.1f %% of %d unseen digits" % (100.0 * count / len(test_labels), len(test_labels)))
