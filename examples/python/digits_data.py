"""The 8 x 8 images of handwritten digits in examples/data: 1,500 for training, 297 for testing."""

import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def load():
    """Returns (images, labels, test images, test labels): rows of 64 numbers from 0 to 1, and digits."""
    with open(os.path.join(HERE, "..", "data", "digits.bin"), "rb") as stream:
        rows = np.frombuffer(stream.read()[20:], np.uint8).reshape(-1, 65)
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    images, labels = rows[:, :64].astype(np.float32) / 16, rows[:, 64].astype(np.int64)
    return images[:1500], labels[:1500], images[1500:], labels[1500:]
