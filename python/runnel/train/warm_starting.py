"""tf.train.warm_start: variables that start with the values of another model."""

import collections

from runnel import logging
from runnel.core import framework
from runnel.core.framework import GraphKeys


class VocabInfo(collections.namedtuple("VocabInfo", """new_vocab new_vocab_size num_oov_buckets old_vocab old_vocab_size
                                       backup_initializer axis""")):
    """The old and new words of a variable's rows, as two vocabulary files."""

    def __new__(cls, new_vocab, new_vocab_size, num_oov_buckets, old_vocab, old_vocab_size=-1, backup_initializer=None, axis=0):
        if axis not in (0, 1):
            raise ValueError("The only supported values for the axis argument are 0 and 1.  Provided axis: %s" % (axis,))
        return super().__new__(cls, new_vocab, new_vocab_size, num_oov_buckets, old_vocab, old_vocab_size, backup_initializer, axis)


def _chosen(vars_to_warm_start):
    """Returns {name: its variables, several if it is partitioned}."""
    if isinstance(vars_to_warm_start, str) or vars_to_warm_start is None:
        logging.info("Warm-starting variables only in TRAINABLE_VARIABLES.")
        found = framework.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=vars_to_warm_start)
    elif not isinstance(vars_to_warm_start, list):
        raise ValueError("`vars_to_warm_start must be a `list` or `str`.  Given type is %s" % type(vars_to_warm_start))
    elif all(isinstance(v, str) for v in vars_to_warm_start):
        found = [v for scope in vars_to_warm_start for v in framework.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope)]
    elif all(hasattr(v, "initializer") for v in vars_to_warm_start):
        found = vars_to_warm_start
    else:
        raise ValueError("If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given types are %s" % (
            [type(v) for v in vars_to_warm_start],))
    groups: dict = {}
    for variable in found:
        part = getattr(variable, "_save_slice_info", None)
        groups.setdefault(part.full_name if part is not None else variable.op.name, []).append(variable)
    return groups


def warm_start(ckpt_to_initialize_from, vars_to_warm_start=".*", var_name_to_vocab_info=None, var_name_to_prev_var_name=None):
    """Makes variables start with the values of a checkpoint.

    Args:
      ckpt_to_initialize_from: a checkpoint, or a folder with some.
      vars_to_warm_start: a regular expression for names of trainable variables; or a list of such for any variables, or
        of variables.
      var_name_to_vocab_info: not supported; raises NotImplementedError.
      var_name_to_prev_var_name: {name: name in the checkpoint} where they differ.
    """
    from runnel.train.checkpoint_reader import init_from_checkpoint
    logging.info("Warm-starting from: %s" % (ckpt_to_initialize_from,))
    groups = _chosen(vars_to_warm_start)
    names = dict(var_name_to_prev_var_name or {})
    vocabularies = dict(var_name_to_vocab_info or {})
    if set(names) - set(groups):
        raise ValueError("You provided the following variables in var_name_to_prev_var_name that were not used: %s.  Perhaps you "
                         "misspelled them?  Here is the list of viable variable names: %s" % (
                             set(names) - set(groups), list(groups)))
    if set(vocabularies) - set(groups):
        raise ValueError("You provided the following variables in var_name_to_vocab_info that were not used: %s.  Perhaps you "
                         "misspelled them?  Here is the list of viable variable names: %s" % (
                             set(vocabularies) - set(groups), list(groups)))
    if vocabularies:
        raise NotImplementedError("VocabInfo is not supported")
    if not vars_to_warm_start:
        groups = {}
    if groups:
        init_from_checkpoint(ckpt_to_initialize_from, {
            names.get(name, name): found[0] if len(found) == 1 else found for name, found in groups.items()})
    logging.info("Warm-started %d variables." % len(groups))
