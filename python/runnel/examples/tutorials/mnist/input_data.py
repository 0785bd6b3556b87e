"""Reads the four files of MNIST from a folder. It downloads nothing."""

import collections
import gzip
import os

import numpy as np

_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
          "t10k-labels-idx1-ubyte.gz")

Datasets = collections.namedtuple("Datasets", ("train", "validation", "test"))


def _read(folder, name, rank):
    """Reads an IDX file of bytes, compressed or not."""
    packed = os.path.join(folder, name)
    plain = packed[:-len(".gz")]
    path = packed if os.path.exists(packed) else plain
    if not os.path.exists(path):
        raise FileNotFoundError("%s is missing (and %s): put the four files of MNIST (%s) there" % (
            packed, plain, ", ".join(_FILES)))
    with gzip.open(path) if path == packed else open(path, "rb") as file:
        data = file.read()
    header = np.frombuffer(data[:4 + 4 * rank], ">u4") if len(data) >= 4 + 4 * rank else ()
    if len(header) != rank + 1 or header[0] != 0x800 + rank:
        raise ValueError("%s is not an IDX file of bytes with %d dimensions" % (path, rank))
    shape = tuple(int(n) for n in header[1:])
    if len(data) - 4 - 4 * rank != int(np.prod(shape)):
        raise ValueError("%s should have %s numbers, but has %d" % (path, shape, len(data) - 4 - 4 * rank))
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def _one_hot(labels, classes):
    return np.eye(classes)[labels]


class DataSet:
    """Images and labels in shuffled batches, epoch after epoch."""

    def __init__(self, images, labels, fake_data=False, one_hot=False, dtype=np.float32, reshape=True,
                 seed=None):
        dtype = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if dtype not in (np.uint8, np.float32):
            raise TypeError("Invalid image dtype %r, expected uint8 or float32" % dtype)
        if reshape and images.ndim > 2:
            images = images.reshape(images.shape[0], -1)
        if dtype == np.float32 and images.dtype != np.float32:
            images = images.astype(np.float32) * np.float32(1 / 255)
        self._images, self._labels = images, labels
        self._random = np.random.RandomState(seed)
        self._at, self._epochs = 0, 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: self._images.shape[0])
    epochs_completed = property(lambda self: self._epochs)

    def _shuffle(self):
        order = self._random.permutation(self.num_examples)
        self._images, self._labels = self._images[order], self._labels[order]

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """Returns (images, labels) of the next examples; a batch may span two epochs."""
        if self._epochs == 0 and self._at == 0 and shuffle:
            self._shuffle()
        begin = self._at
        if begin + batch_size <= self.num_examples:
            self._at = begin + batch_size
            return self._images[begin:self._at], self._labels[begin:self._at]
        self._epochs += 1
        images, labels = self._images[begin:], self._labels[begin:]
        if shuffle:
            self._shuffle()
        self._at = batch_size - len(images)
        return (np.concatenate([images, self._images[:self._at]]),
                np.concatenate([labels, self._labels[:self._at]]))


def read_data_sets(train_dir, fake_data=False, one_hot=False, dtype=np.float32, reshape=True,
                   validation_size=5000, seed=None, source_url=None):
    """Returns MNIST as (train, validation, test), from the files in `train_dir`."""
    arrays = [_read(train_dir, name, 3 if "images" in name else 1) for name in _FILES]
    images, labels, test_images, test_labels = arrays
    if one_hot:
        labels, test_labels = _one_hot(labels, 10), _one_hot(test_labels, 10)
    if not 0 <= validation_size <= len(images):
        raise ValueError("Validation size should be between 0 and %d. Received: %d." % (
            len(images), validation_size))
    options = {"dtype": dtype, "reshape": reshape, "seed": seed}
    images = images[..., None]
    return Datasets(DataSet(images[validation_size:], labels[validation_size:], **options),
                    DataSet(images[:validation_size], labels[:validation_size], **options),
                    DataSet(test_images[..., None], test_labels, **options))
