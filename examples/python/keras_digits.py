"""Digits with Keras: Sequential, compile, fit, evaluate, predict."""

import argparse

import numpy as np
import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12, help="epochs")
options = parser.parse_args()
images, labels, test_images, test_labels = load()
tf.set_random_seed(1)
np.random.seed(1)

model = tf.keras.Sequential([
    tf.keras.layers.Reshape((8, 8, 1), input_shape=(64,)),
    tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
    tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dropout(0.3),
    tf.keras.layers.Dense(10, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.summary()
history = model.fit(images, labels, batch_size=32, epochs=options.steps, verbose=2, validation_split=0.1)
loss, accuracy = model.evaluate(test_images, test_labels, verbose=0)
guesses = model.predict(test_images[:5]).argmax(axis=1)
print("losses fell from %.3f to %.3f" % (history.history["loss"][0], history.history["loss"][-1]))
print("first guesses", guesses.tolist(), "are", test_labels[:5].tolist())
print("keras: %.1f %% of %d unseen digits" % (100 * accuracy, len(test_images)))
