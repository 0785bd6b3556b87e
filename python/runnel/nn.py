"""tf.nn: what neural networks are made of."""

from runnel.array_ops import depth_to_space, space_to_batch, space_to_depth  # noqa: F401
from runnel.embedding_ops import *  # noqa: F401,F403
from runnel.embedding_ops import (  # noqa: F401
    embedding_lookup, embedding_lookup_sparse, safe_embedding_lookup_sparse)
from runnel.nn_conv import *  # noqa: F401,F403
from runnel.nn_ops import *  # noqa: F401,F403
from runnel.nn_sampling import *  # noqa: F401,F403

_RNN = frozenset("""dynamic_rnn bidirectional_dynamic_rnn raw_rnn static_rnn static_bidirectional_rnn
static_state_saving_rnn""".split())
_DILATION = frozenset(("pool", "with_space_to_batch"))


def __getattr__(name):
    import importlib
    if name == "rnn_cell":
        return importlib.import_module("runnel.rnn_cell")
    if name in _RNN:
        return getattr(importlib.import_module("runnel.rnn"), name)
    if name in _DILATION:
        return getattr(importlib.import_module("runnel.nn_dilation"), name)
    if name.startswith("quantized_"):
        from runnel import raw_ops
        return getattr(raw_ops, name)
    raise AttributeError("tf.nn has no %r: see the table of names in doc/python.md" % name)
