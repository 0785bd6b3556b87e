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


def _infer_var_name(var):
    """Returns the name in checkpoints of the one variable, or of the parts of one variable, in a list."""
    from runnel.checkpoint.saveables import op_list_to_dict
    names = op_list_to_dict(var)
    if len(names) > 1:
        raise TypeError("`var` = %s passed as arg violates the constraints.  name_to_var_dict = %s" % (var, names))
    return next(iter(names))


def _is_variable(x):
    from runnel.ops.variables import Variable
    return isinstance(x, Variable)


def _get_var_info(var, prev_tensor_name=None):
    """Returns (the name in the checkpoint, the variable or the list of its parts)."""
    if _is_variable(var):
        own = _infer_var_name([var])
    elif isinstance(var, list) and all(_is_variable(v) for v in var):
        own = _infer_var_name(var)
    elif hasattr(var, "_get_variable_list"):
        own, var = _infer_var_name([var]), var._get_variable_list()
    else:
        raise TypeError("var MUST be one of the following: a Variable, list of Variable or PartitionedVariable, but is %s" % type(var))
    return prev_tensor_name or own, var


def _warm_start_var_with_vocab(var, current_vocab_path, current_vocab_size, prev_ckpt, prev_vocab_path, previous_vocab_size=-1,
                               current_oov_buckets=0, prev_tensor_name=None, initializer=None, axis=0):
    """Makes a matrix start with the rows or columns (`axis`) that a checkpoint has for the same words."""
    from runnel import raw_ops
    from runnel.ops.partitioned_variables import _PartitionInfo
    from runnel.train.checkpoint_ops import _load_and_remap_matrix_initializer
    from runnel.train.checkpoint_reader import _path
    if not (current_vocab_path and current_vocab_size and prev_ckpt and prev_vocab_path):
        raise ValueError("Invalid args: Must provide all of [current_vocab_path, current_vocab_size, prev_ckpt, prev_vocab_path}.")
    name, parts = _get_var_info(var, prev_tensor_name)
    parts = parts if isinstance(parts, list) else [parts]
    all_rows = sum(v.shape.as_list()[0] for v in parts)
    for v in parts:
        shape, info = v.shape.as_list(), v._get_save_slice_info()
        old, new, words = prev_vocab_path, current_vocab_path, current_vocab_size
        by_axis = {
            "new_row_vocab_size": words, "new_col_vocab_size": shape[1], "old_row_vocab_size": previous_vocab_size, "old_row_vocab_file": old,
            "new_row_vocab_file": new, "num_row_oov_buckets": current_oov_buckets} if axis == 0 else {
            "new_row_vocab_size": all_rows, "new_col_vocab_size": words, "old_col_vocab_file": old, "new_col_vocab_file": new,
            "num_col_oov_buckets": current_oov_buckets}
        made = _load_and_remap_matrix_initializer(
            ckpt_path=_path(prev_ckpt), old_tensor_name=name, initializer=initializer, **by_axis)
        value = made(shape, partition_info=_PartitionInfo(list(info.full_shape), list(info.var_offset)) if info else None)
        v._initializer_op = (raw_ops.AssignVariableOp(resource=v.handle, value=value) if hasattr(v, "handle")
                             else raw_ops.Assign(ref=v._ref(), value=value).op)


def _keys_of_objects(checkpoint, names):
    """Returns {name: key} of the variables of these names in a checkpoint of objects."""
    from runnel.checkpoint.trackable_saver import read_object_graph
    from runnel.core.trackable import OBJECT_GRAPH_PROTO_KEY
    from runnel.train.checkpoint_reader import load_checkpoint
    reader = load_checkpoint(checkpoint)
    if not reader.has_tensor(OBJECT_GRAPH_PROTO_KEY):
        return {}
    rows = [row for node in read_object_graph(reader, checkpoint).nodes for row in node.attributes]
    return {row.full_name: row.checkpoint_key for row in rows if row.full_name in names}


def warm_start(ckpt_to_initialize_from, vars_to_warm_start=".*", var_name_to_vocab_info=None, var_name_to_prev_var_name=None):
    """Makes variables start with the values of a checkpoint.

    Args:
      ckpt_to_initialize_from: a checkpoint, or a folder with some.
      vars_to_warm_start: a regular expression for names of trainable variables; or a list of such for any variables, or
        of variables.
      var_name_to_vocab_info: {name: VocabInfo} of the matrices that have a row or column per word.
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
    if not vars_to_warm_start:  # only those with vocabularies
        groups = {name: found for name, found in groups.items() if name in vocabularies}
    keys = _keys_of_objects(ckpt_to_initialize_from, {names.get(name, name) for name in groups})
    names = {name: keys.get(names.get(name, name), names.get(name, name)) for name in groups}
    for name in [name for name in groups if name in vocabularies]:
        info = vocabularies[name]
        _warm_start_var_with_vocab(
            groups[name], info.new_vocab, info.new_vocab_size, ckpt_to_initialize_from, info.old_vocab, info.old_vocab_size, info.num_oov_buckets,
            names[name], info.backup_initializer, info.axis)
    whole = [(names[name], found[0] if len(found) == 1 else found) for name, found in groups.items() if name not in vocabularies]
    if whole:
        init_from_checkpoint(ckpt_to_initialize_from, whole)
    logging.info("Warm-started %d variables." % len(groups))
