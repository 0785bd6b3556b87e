"""Word vectors from skip-grams: a table in four shards, noise-contrastive loss, sparse updates.

The words form families of eight, and only words of one family occur next to each other. After
training, the nearest neighbor of a word by cosine similarity should be in its family.
"""

import argparse

import numpy as np
import runnel as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1500)
options = parser.parse_args()
VOCABULARY, FAMILY, SIZE, BATCH, SHARDS = 160, 8, 16, 128, 4

random = np.random.RandomState(7)


def skip_grams():
    """Returns (words, a neighbor of each)."""
    words = random.randint(0, VOCABULARY, BATCH)
    beside = words // FAMILY * FAMILY + random.randint(0, FAMILY, BATCH)
    return words.astype(np.int32), beside.reshape(-1, 1).astype(np.int64)


tf.set_random_seed(2)
train_inputs = tf.placeholder(tf.int32, shape=[BATCH])
train_labels = tf.placeholder(tf.int64, shape=[BATCH, 1])
embeddings = tf.get_variable(
    "embeddings", [VOCABULARY, SIZE], initializer=tf.random_uniform_initializer(-1.0, 1.0),
    partitioner=tf.fixed_size_partitioner(SHARDS))
embed = tf.nn.embedding_lookup(embeddings, train_inputs, partition_strategy="div")

nce_weights = tf.Variable(tf.truncated_normal([VOCABULARY, SIZE], stddev=1.0 / SIZE ** 0.5))
nce_biases = tf.Variable(tf.zeros([VOCABULARY]))
loss = tf.reduce_mean(tf.nn.nce_loss(
    weights=nce_weights, biases=nce_biases, labels=train_labels, inputs=embed,
    num_sampled=16, num_classes=VOCABULARY))
optimizer = tf.train.AdagradOptimizer(0.5).minimize(loss)

table = tf.convert_to_tensor(embeddings)
normalized = table / tf.sqrt(tf.reduce_sum(tf.square(table), 1, keep_dims=True))
similarity = tf.matmul(normalized, normalized, transpose_b=True)
_, nearest = tf.nn.top_k(similarity, k=2)

with tf.Session() as session:
    tf.global_variables_initializer().run()
    average = 0.0
    for step in range(1, options.steps + 1):
        inputs, labels = skip_grams()
        _, value = session.run([optimizer, loss], feed_dict={train_inputs: inputs, train_labels: labels})
        average += value
        if step % 500 == 0:
            print("step %d: average loss %.3f" % (step, average / 500))
            average = 0.0
    pairs = nearest.eval()
    shards = [v.name for v in tf.trainable_variables() if "embeddings" in v.name]
right = np.mean(pairs[:, 1] // FAMILY == np.arange(VOCABULARY) // FAMILY)
print("word2vec: %.1f %% of the nearest words are of the family; %d shards, the first is %s" % (
    100 * right, len(shards), shards[0]))
