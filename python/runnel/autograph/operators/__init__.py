"""tensorflow.python.autograph.operators: what converted code calls, with the arguments that TensorFlow's converted code has."""
