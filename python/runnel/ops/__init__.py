"""The functions of `tf` itself, and those behind tf.math, tf.strings, tf.sparse and tf.random."""
