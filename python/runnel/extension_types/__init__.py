"""tf.experimental.ExtensionType: classes of values made of tensors. Its names are names of tf.experimental."""
