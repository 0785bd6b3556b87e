"""tensorflow.python.util.tf_stack: stacks of the program, with replaced lines, and as messages."""

import types

from runnel.core.protobuf import message_class
from runnel.graph import stack_trace

FrameSummary, StackTrace = stack_trace.Frame, stack_trace.StackTrace


def extract_stack(stacklevel=1):
    """Returns the StackTrace of the caller, or of its `stacklevel`-th caller."""
    return stack_trace.extract_stack(stacklevel + 1)


class _SourceMap:
    """What lines stand for: {(file, line): (file, line, function)}."""

    def __init__(self):
        self.rows = {}

    def update_to(self, rows):
        """Replaces the map by pairs."""
        self.rows = dict(rows)


class _FileSet(set):
    """Files whose frames do not count."""

    def update_to(self, files):
        """Replaces the files."""
        self.clear()
        self.update(files)


def _extract_mapped(source_map, file_set, stacklevel=1):
    rows = [frame[:3] for frame in stack_trace.extract_stack(stacklevel + 1) if frame.filename not in file_set]
    return stack_trace.from_rows(source_map.rows.get(row[:2], row) for row in rows)


_tf_stack = types.SimpleNamespace(PyBindSourceMap=_SourceMap, PyBindFileSet=_FileSet, extract_stack=_extract_mapped)


class GraphDebugInfoBuilder:
    """Collects the stacks of nodes in a GraphDebugInfo."""

    def __init__(self):
        self._info = message_class("GraphDebugInfo")()

    def AccumulateStackTrace(self, function, op, trace):
        """Adds the stack of a node of a function."""
        files, stack = self._info.files, self._info.traces[op + "@" + function]
        for frame in reversed(trace):
            if frame.filename not in files:
                files.append(frame.filename)
            stack.file_line_cols.add(file_index=list(files).index(frame.filename), line=frame.lineno, func=frame.name, code=frame.line)

    def Build(self):
        """Returns the message as bytes."""
        return self._info.SerializeToString()


def LoadTracesFromDebugInfo(debug_info_proto):
    """Returns {name of a node: its StackTrace} of the bytes of a GraphDebugInfo."""
    info = message_class("GraphDebugInfo").FromString(debug_info_proto)
    return {name: stack_trace.from_rows((info.files[row.file_index], row.line, row.func) for row in reversed(trace.file_line_cols))
            for name, trace in info.traces.items()}
