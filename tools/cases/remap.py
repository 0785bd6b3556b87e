"""Vocabularies and matrices of checkpoints that are rearranged; options of file systems."""

from .base import *

PREFIX = "/tmp/runnel_case_remap"


def path(name):
    return scalar("string", PREFIX + name, const=True)


def text(value):
    return scalar("string", value, const=True)


def vocabularies(t):
    op = "GenerateVocabRemapping"

    def row(name, new, old, offset, count, **more):
        attrs = {"new_vocab_offset": offset, "num_new_vocab": count}
        if "size" in more:
            attrs["old_vocab_size"] = more.pop("size")
        before = [node("WriteFile", [path("_new.txt"), text(new)]), node("WriteFile", [path("_old.txt"), text(old)])]
        t.row(name, op, [path("_new.txt"), path("_old.txt")], attrs, before=before, **more)

    row("all", "a\nb\nc\nd\n", "c\na\nx\n", 0, 4)
    row("some", "a\nb\nc\nd\n", "c\na\nx\n", 1, 2)
    row("none", "a\nb\nc\n", "c\na\nx\n", 1, 0)
    row("size", "a\nb\nc\n", "c\na\nb\n", 0, 3, size=2)
    row("no_newline", "a\nb", "b\na", 0, 2)
    row("spaces", "a b\n\tc\n", "\tc\na\na b\n", 0, 2)
    row("too_many", "a\nb\n", "b\na\n", 0, 3)
    row("offset_too_large", "a\nb\n", "b\na\n", 2, 1)
    row("old_too_few", "a\nb\n", "b\na\n", 0, 2, size=5)
    row("repeated", "a\nb\n", "b\na\nb\n", 0, 2)
    row("no_old", "a\nb\n", "", 0, 2, message="code-only")
    row("no_new", "", "b\na\n", 0, 0, message="code-only")
    attrs = {"new_vocab_offset": 0, "num_new_vocab": 1}
    t.row("no_name", op, [text(""), text("x")], attrs)
    t.row("missing", op, [path("_nowhere"), path("_nowhere")], attrs, message="code-only")
    t.row("vector", op, [vec("string", ["a"]), text("x")], attrs)


def matrices(t):
    op = "LoadAndRemapMatrix"

    def row(name, rows, columns, cells=(), size=(4, 3), **more):
        attrs = {"num_rows": more.pop("num_rows", len(rows)), "num_cols": more.pop("num_cols", len(columns) or size[1])}
        if "most" in more:
            attrs["max_rows_in_memory"] = more.pop("most")
        value = more.pop("value", given("float", list(size), list(range(size[0] * size[1]))))
        saved = node("SaveV2", [path("_ckpt"), vec("string", ["m"]), vec("string", [""]), [value]])
        inputs = [path("_ckpt"), text(more.pop("tensor", "m")), vec("int64", rows), vec("int64", columns),
                  vec("float", list(cells))]
        t.row(name, op, inputs, attrs, before=[saved], **more)

    row("same", [0, 1, 2, 3], [])
    row("rows", [3, 0, 1], [])
    row("columns", [0, 1, 2, 3], [2, 0])
    row("both", [3, 1], [2, 0, 1])
    row("new_row", [3, -1, 0], [], [100, 101, 102])
    row("new_column", [3, 1], [2, -1, 0], [100, 101])
    row("new_both", [3, -1, 0, -1], [2, -1, 0], [100 + i for i in range(8)])
    row("all_new", [-1, -1], [-1], [7, 8])
    row("new_rows", [-1, -1], [], list(range(6)))
    for most in (1, 2, 3, 100, -1, 0):
        row("at_once_%d" % most, [3, 0, -1, 1], [1, 2], [5, 6], most=most)
    row("no_rows", [], [], num_rows=0)
    row("beyond", [9], [], message="code-only")
    row("row_twice", [1, 1], [])
    row("column_twice", [1, 0], [2, 2])
    row("few_cells", [3, -1, 0], [], [100, 101])
    row("many_cells", [3, -1, 0], [], [100, 101, 102, 103])
    row("num_rows", [0, 1], [], num_rows=3)
    row("num_cols", [0, 1], [0], num_cols=3)
    row("width", [0, 1], [], num_cols=2)
    row("name", [0, 1], [], tensor="x")
    row("vector", [0, 1], [], value=vec("float", [1, 2, 3]))
    row("type", [0, 1], [], value=given("double", [2, 3], [1]))
    missing = [path("_nowhere"), text("m"), vec("int64", [0]), vec("int64", []), vec("float", [])]
    t.row("missing", op, missing, {"num_rows": 1, "num_cols": 1}, message="code-only")
    one = {"num_rows": 1, "num_cols": 1}
    t.row("paths", op, [vec("string", ["a", "b"])] + missing[1:], one)
    t.row("columns_matrix", op, missing[:3] + [given("int64", [1, 1], [0])] + missing[4:], one, message="code-only")
    t.row("names", op, missing[:1] + [vec("string", ["a", "b"])] + missing[2:], one, message="code-only")
    t.row("cells_matrix", op, missing[:4] + [given("float", [1, 1], [0])], one, message="code-only")
    t.row("matrix", op, missing[:2] + [given("int64", [1, 1], [0])] + missing[3:], {"num_rows": 1, "num_cols": 1})


def fill(t):
    vocabularies(t)
    matrices(t)
    for name in ("", "file", "nope"):
        t.row(name or "local", "FileSystemSetConfiguration", [text(name), text("k"), text("v")])
    t.row("vector", "FileSystemSetConfiguration", [vec("string", ["a"]), text("k"), text("v")])
