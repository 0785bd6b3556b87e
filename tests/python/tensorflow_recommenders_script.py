"""Programs of the package tensorflow_recommenders, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs
import tf_keras as keras

USERS, FILMS = [str(i) for i in range(7)], [str(i) for i in range(5)]
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Ratings(tfrs.Model):
    """Learns to rate films, and to find the one that a user has seen."""

    def __init__(self):
        super().__init__()
        self.users, self.films = keras.layers.StringLookup(vocabulary=USERS), keras.layers.StringLookup(vocabulary=FILMS)
        self.user = keras.layers.Embedding(8, 4, embeddings_initializer=keras.initializers.Constant(0.1))
        self.film = keras.layers.Embedding(6, 4, embeddings_initializer=keras.initializers.RandomUniform(seed=3))
        self.rating = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed=1))
        self.ranking = tfrs.tasks.Ranking(loss=keras.losses.MeanSquaredError(), metrics=[keras.metrics.RootMeanSquaredError()])
        self.retrieval = tfrs.tasks.Retrieval()

    def compute_loss(self, features, training=False):
        user, film = self.user(self.users(features["user"])), self.film(self.films(features["film"]))
        rated = self.ranking(labels=features["rating"][:, None], predictions=self.rating(tf.concat([user, film], 1)))
        return rated + self.retrieval(user, film, compute_metrics=False)


@program
def ratings():
    rows = {"user": [USERS[i % 7] for i in range(64)], "film": [FILMS[i % 5] for i in range(64)], "rating": [(i * 7) % 5 * 1.0 for i in range(64)]}
    model = Ratings()
    model.compile(optimizer=keras.optimizers.Adagrad(0.1))
    history = model.fit(tf.data.Dataset.from_tensor_slices(rows).batch(16), epochs=3, verbose=0).history
    films = tf.data.Dataset.from_tensor_slices((tf.constant(FILMS), model.film.embeddings[1:])).batch(2)
    best = tfrs.layers.factorized_top_k.Streaming(k=2).index_from_dataset(films)
    scores, names = best(tf.ones([2, 4]))
    return [*history["total_loss"], *history["root_mean_squared_error"], *scores.numpy().ravel(), *[float(name) for name in names.numpy().ravel()]]


@program
def crossed():
    x = tf.constant([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    cross = tfrs.layers.dcn.Cross(kernel_initializer=keras.initializers.Constant(0.5))(x, x)
    dot = tfrs.layers.feature_interaction.DotInteraction()([x, x * 2])
    return [*cross.numpy().ravel(), *dot.numpy().ravel()]


@program
def tables():
    embedding = tf.tpu.experimental.embedding
    table = embedding.TableConfig(10, 4, initializer=tf.constant_initializer(0.5), combiner="sum")
    features = {"a": embedding.FeatureConfig(table), "b": embedding.FeatureConfig(table, max_sequence_length=2)}
    layer = tfrs.layers.embedding.TPUEmbedding(feature_config=features, optimizer=embedding.SGD(0.1))
    found = layer({"a": tf.ragged.constant([[1, 2], [3]]), "b": tf.ragged.constant([[1, 2], [3]])})
    return [number for name in sorted(found) for number in np.ravel(found[name])]


for name, function in PROGRAMS.items():
    print(name, *["%.8g" % number for number in function()])
