"""Matrices of a checkpoint whose rows or columns belong to words, rearranged for another vocabulary."""

import math

from runnel import dtypes, raw_ops


def _load_and_remap_matrix(ckpt_path, old_tensor_name, new_row_vocab_offset, num_rows_to_load, new_col_vocab_size, initializer,
                           old_row_vocab_size=-1, old_row_vocab_file=None, new_row_vocab_file=None, old_col_vocab_file=None,
                           new_col_vocab_file=None, num_row_oov_buckets=0, num_col_oov_buckets=0, max_rows_in_memory=-1):
    """Returns `num_rows_to_load` rows of a matrix for new vocabularies; `initializer` fills what the old ones lack, and the rows and columns
    of words in no vocabulary."""
    from runnel.ops import array_ops, math_ops
    for name, count in (("num_row_oov_buckets", num_row_oov_buckets), ("num_col_oov_buckets", num_col_oov_buckets)):
        if count < 0:
            raise ValueError("%s must be >= 0, but received %d" % (name, count))
    for name, files in (("row", (old_row_vocab_file, new_row_vocab_file)), ("col", (old_col_vocab_file, new_col_vocab_file))):
        if (files[0] is None) != (files[1] is None):
            raise ValueError("Both `old_%s_vocab_file` and `new_%s_vocab_file` must be given, or neither." % (name, name))
    if new_row_vocab_file:
        rows, known_rows = raw_ops.GenerateVocabRemapping(
            new_vocab_file=new_row_vocab_file, old_vocab_file=old_row_vocab_file, new_vocab_offset=new_row_vocab_offset,
            num_new_vocab=num_rows_to_load, old_vocab_size=old_row_vocab_size)
    else:
        rows = math_ops.range(new_row_vocab_offset, new_row_vocab_offset + num_rows_to_load, dtype=dtypes.int64)
        known_rows = num_rows_to_load
    if new_col_vocab_file:
        columns, known_columns = raw_ops.GenerateVocabRemapping(
            new_vocab_file=new_col_vocab_file, old_vocab_file=old_col_vocab_file, new_vocab_offset=0, num_new_vocab=new_col_vocab_size)
    else:
        columns, known_columns = math_ops.range(0, dtype=dtypes.int64), new_col_vocab_size
    missing = num_rows_to_load * new_col_vocab_size - known_rows * known_columns
    result = raw_ops.LoadAndRemapMatrix(
        ckpt_path=ckpt_path, old_tensor_name=old_tensor_name, row_remapping=rows, col_remapping=columns,
        initializing_values=array_ops.reshape(initializer([missing, 1]), [-1]), num_rows=num_rows_to_load, num_cols=new_col_vocab_size,
        max_rows_in_memory=max_rows_in_memory)
    if num_row_oov_buckets:
        result = array_ops.concat([result, initializer([num_row_oov_buckets, new_col_vocab_size])], 0)
    if num_col_oov_buckets:
        result = array_ops.concat([result, initializer([num_rows_to_load + num_row_oov_buckets, num_col_oov_buckets])], 1)
    return result


def _load_and_remap_matrix_initializer(ckpt_path, old_tensor_name, new_row_vocab_size, new_col_vocab_size, old_row_vocab_size=-1,
                                       old_row_vocab_file=None, new_row_vocab_file=None, old_col_vocab_file=None, new_col_vocab_file=None,
                                       num_row_oov_buckets=0, num_col_oov_buckets=0, initializer=None, max_rows_in_memory=-1):
    """Returns an initializer of a variable, or of a part of it; `initializer` is zeros by default."""
    if initializer is None:
        from runnel.ops.init_ops import Zeros
        initializer = Zeros()
    fill = initializer

    def initialize(shape, dtype=dtypes.float32, partition_info=None):
        if len(shape) != 2:
            raise ValueError("Currently, only support 2-dim matrix.  Got shape: %s" % (shape,))
        if dtype != dtypes.float32:
            raise TypeError("Currently, only float32 is supported. Received dtype: %s" % (dtype,))
        if new_col_vocab_size + num_col_oov_buckets != shape[1]:
            raise ValueError("Expected column count %d, but got %s" % (new_col_vocab_size + num_col_oov_buckets, shape[1]))
        offset = 0 if partition_info is None else partition_info.single_offset(shape)
        if offset + shape[0] > new_row_vocab_size + num_row_oov_buckets:
            raise ValueError("Trying to initialize %d additional rows after %d rows have already been initialized, which would exceed expected "
                             "total row count of new_row_vocab_size (%d) + num_row_oov_buckets (%d) = %d." % (
                                 shape[0], offset, new_row_vocab_size, num_row_oov_buckets, new_row_vocab_size + num_row_oov_buckets))
        others = min(shape[0], max(0, offset + shape[0] - new_row_vocab_size))  # rows of words in no vocabulary
        return _load_and_remap_matrix(
            ckpt_path, old_tensor_name, new_row_vocab_offset=offset, num_rows_to_load=shape[0] - others,
            new_col_vocab_size=new_col_vocab_size, initializer=lambda size: fill(size, dtype=dtype), old_row_vocab_size=old_row_vocab_size,
            old_row_vocab_file=old_row_vocab_file, new_row_vocab_file=new_row_vocab_file, old_col_vocab_file=old_col_vocab_file,
            new_col_vocab_file=new_col_vocab_file, num_row_oov_buckets=others, num_col_oov_buckets=num_col_oov_buckets,
            max_rows_in_memory=max_rows_in_memory)
    return initialize


def _load_embedding_initializer(ckpt_path, embedding_tensor_name, new_vocab_size, embedding_dim, old_vocab_file, new_vocab_file,
                                old_vocab_size=-1, num_oov_buckets=0, initializer=None, max_rows_in_memory=-1):
    """Returns an initializer of an embedding, a row per word; `initializer` is truncated normal by default."""
    if initializer is None:
        from runnel.ops.init_ops import TruncatedNormal
        initializer = TruncatedNormal(stddev=1.0 / math.sqrt(embedding_dim))
    return _load_and_remap_matrix_initializer(
        ckpt_path=ckpt_path, old_tensor_name=embedding_tensor_name, new_row_vocab_size=new_vocab_size, new_col_vocab_size=embedding_dim,
        old_row_vocab_size=old_vocab_size, old_row_vocab_file=old_vocab_file, new_row_vocab_file=new_vocab_file,
        num_row_oov_buckets=num_oov_buckets, initializer=initializer, max_rows_in_memory=max_rows_in_memory)
