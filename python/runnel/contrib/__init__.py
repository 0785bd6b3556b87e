"""tf.contrib: the part of TensorFlow 1.x's extras that published programs use."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "submodules: crf data distributions eager framework layers legacy_seq2seq lookup losses metrics opt rnn seq2seq slim tpu training "
    "util",
)
