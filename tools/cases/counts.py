"""Bincounts per row of ragged and sparse matrices."""

from .base import *


def fill(t):
    splits, values = vec("int64", [0, 2, 2, 5]), vec("int32", [1, 1, 3, 0, 9])
    none = vec("float", [])
    op = "RaggedBincount"
    for d in dtypes("f i"):
        t.row(d, op, [splits, values, scalar("int32", 4), vec(d, [1, 2, 3, 4, 5])])
    t.row("int64_values", op, [splits, vec("int64", [1, 1, 3, 0, 2]), scalar("int64", 4), none])
    t.row("binary", op, [splits, values, scalar("int32", 4), none], {"binary_output": True})
    t.row("unordered", op, [vec("int64", [0, 3, 2, 5]), values, scalar("int32", 4), none])
    t.row("no_rows", op, [vec("int64", [0]), vec("int32", []), scalar("int32", 4), none])
    t.row("no_bins", op, [splits, values, scalar("int32", 0), none])
    t.row("negative", op, [splits, vec("int32", [1, 1, -3, 0, 2]), scalar("int32", 4), none])
    t.row("negative_size", op, [splits, values, scalar("int32", -1), none])
    t.row("size_rank", op, [splits, values, vec("int32", [4]), none])
    t.row("no_splits", op, [vec("int64", []), values, scalar("int32", 4), none])
    t.row("first_split", op, [vec("int64", [1, 5]), values, scalar("int32", 4), none])
    t.row("last_split", op, [vec("int64", [0, 4]), values, scalar("int32", 4), none])
    t.row("beyond", op, [vec("int64", [0, 2, 9]), values, scalar("int32", 4), none])

    op = "SparseBincount"
    indices, shape = given("int64", [3, 2], [0, 1, 0, 2, 2, 0]), vec("int64", [3, 4])
    values = vec("int32", [1, 1, 3])
    for d in dtypes("f i"):
        t.row(d, op, [indices, values, shape, scalar("int32", 4), vec(d, [1, 2, 3])])
    t.row("int64_values", op, [indices, vec("int64", [1, 0, 3]), shape, scalar("int64", 4), none])
    t.row("binary", op, [indices, values, shape, scalar("int32", 4), none], {"binary_output": True})
    t.row("vector", op, [given("int64", [3, 1], [0, 1, 3]), vec("int32", [1, 1, 9]), vec("int64", [5]), scalar("int32", 4), none])
    t.row("weighted_vector", op, [given("int64", [3, 1], [0, 1, 3]), values, vec("int64", [5]), scalar("int32", 4), vec("float", [1, 2, 3])])
    t.row("cube", op, [given("int64", [1, 3], [0, 1, 1]), vec("int32", [1]), vec("int64", [3, 4, 2]), scalar("int32", 4), none])
    t.row("empty", op, [given("int64", [0, 2], []), vec("int32", []), shape, scalar("int32", 2), none])
    t.row("negative", op, [indices, vec("int32", [1, -1, 3]), shape, scalar("int32", 4), none])
    t.row("negative_size", op, [indices, values, shape, scalar("int32", -4), none])
    t.row("size_rank", op, [indices, values, shape, vec("int32", [4]), none])
    t.row("row_outside", op, [indices, values, vec("int64", [2, 4]), scalar("int32", 4), none])
    t.row("column_outside", op, [indices, values, vec("int64", [3, 2]), scalar("int32", 4), none])
    t.row("negative_index", op, [given("int64", [1, 2], [-2, 0]), vec("int32", [1]), shape, scalar("int32", 4), none])
    t.row("values_count", op, [indices, vec("int32", [1, 1]), shape, scalar("int32", 4), none])
    t.row("shape_rank", op, [indices, values, vec("int64", [3, 4, 5]), scalar("int32", 4), none])
    t.row("indices_rank", op, [vec("int64", [0, 1, 2]), values, vec("int64", [3]), scalar("int32", 4), none])
    t.row("values_rank", op, [indices, given("int32", [1, 3], [1, 1, 3]), shape, scalar("int32", 4), none])
