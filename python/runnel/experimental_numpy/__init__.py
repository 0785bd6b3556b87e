"""tf.experimental.numpy: NumPy's functions over tensors. The README of this folder is a map."""
