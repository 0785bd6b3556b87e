"""Programs of the package keras_rs, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import keras_rs
import numpy as np
import tensorflow as tf

X = np.arange(12, dtype="f").reshape(4, 3) / 10
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def interactions():
    cross = keras_rs.layers.FeatureCross(projection_dim=2, kernel_initializer="ones")(X, X)
    dot = keras_rs.layers.DotInteraction()([X, X * 2, X + 1])
    return [*cross.numpy().ravel(), *dot.numpy().ravel()]


@program
def retrieval():
    candidates = keras.random.normal((20, 3), seed=1)
    search = keras_rs.layers.BruteForceRetrieval(candidate_embeddings=candidates, candidate_ids=np.arange(100, 120), k=4, return_scores=True)
    scores, ids = search(X)
    return [*scores.numpy().ravel(), *ids.numpy().ravel()]


@program
def embeddings():
    table = keras_rs.layers.TableConfig(name="t", vocabulary_size=20, embedding_dim=4, optimizer="adam", combiner="sum", placement="default_device",
                                        initializer=keras.initializers.RandomNormal(seed=5))
    features = {name: keras_rs.layers.FeatureConfig(name, table, (8, width), (8, 4)) for name, width in (("a", 3), ("b", 1))}

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras_rs.layers.DistributedEmbedding(features)
            self.dense = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed=2))

        def call(self, inputs):
            found = self.embedding(inputs)
            return self.dense(keras.ops.concatenate([found["a"], found["b"]], -1))

    draw = np.random.RandomState(0)
    inputs = {name: draw.randint(0, 20, (32, width)).astype("int32") for name, width in (("a", 3), ("b", 1))}
    model = Model()
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
    data = tf.data.Dataset.from_tensor_slices((inputs, draw.rand(32, 1).astype("f"))).batch(8, drop_remainder=True)
    return model.fit(data, epochs=3, shuffle=False, verbose=0).history["loss"]


@program
def measures():
    wanted, found = np.array([[0.0, 1, 2]]), np.array([[0.1, 0.4, 0.2]])
    return [float(keras_rs.losses.PairwiseHingeLoss()(wanted, found)), float(keras_rs.metrics.NDCG()(wanted, found))]


for name, function in PROGRAMS.items():
    print(name, *["%.8g" % number for number in function()])
