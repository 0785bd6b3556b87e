"""tensorflow.examples.tutorials.mnist: handwritten digits."""

from runnel.examples.tutorials.mnist import input_data
