"""Errors in traced functions: the text names the lines of the user's code."""

import linecache
import os

from runnel.autograph.conversion import converted_codes

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _rows(traceback):
    """Returns [(file, line, function, whether it was converted)], outermost first, without frames of this package."""
    rows = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        is_converted = code in converted_codes
        if is_converted or not code.co_filename.startswith((_PACKAGE, "<")):
            if code.co_name.startswith("ag__") and rows and rows[-1][3]:
                rows.pop()  # the statement whose block this is
            rows.append((code.co_filename, traceback.tb_lineno, converted_codes.get(code, code.co_name), is_converted))
        traceback = traceback.tb_next
    first = next((i for i, row in enumerate(rows) if row[3]), len(rows))
    rows = rows[first:]
    return [row for i, row in enumerate(rows) if i == 0 or row != rows[i - 1]]


def with_lines(error):
    """Returns an error of the same kind whose text has the lines of the user's code; the error itself if that is not possible."""
    if getattr(error, "_ag_has_lines", False):
        return error
    rows = _rows(error.__traceback__)
    if not rows:
        return error
    lines = ["in user code:", ""]
    for file, line, name, is_converted in rows:
        lines.append('    File "%s", line %d, in %s%s' % (file, line, name, "  *" if is_converted else ""))
        lines.append("        %s" % linecache.getline(file, line).strip())
    kind = type(error)
    own = getattr(error, "message", None) or str(error)
    text = "\n".join(lines + ["", "    %s: %s" % (kind.__name__, own.replace("\n", "\n    ")), ""])
    try:
        new = _same_kind(kind, error, text)
    except Exception:  # a class of the user's whose constructor wants something else
        return error
    new._ag_has_lines = True
    return new.with_traceback(error.__traceback__)


def _same_kind(kind, error, text):
    from runnel.errors import OpError
    if isinstance(error, OpError):
        return kind(error.node_def, error.op, text)
    if kind.__init__ not in (Exception.__init__, ValueError.__init__, TypeError.__init__, BaseException.__init__) and kind.__module__ != "builtins":
        raise TypeError("unknown constructor")
    if issubclass(kind, (KeyError, OSError, UnicodeError, ImportError, StopIteration)):
        raise TypeError("its text is not its only argument")
    return kind(text)
