"""Which operation of a traced function an error is about: its text then has the lines of the program that made it."""

import re

_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_BODIES = __name__  # among a graph's scopes: {name of a function that it calls: the function's graph}


def note_call(graph, name, body):
    """Remembers the graph of a function that |graph| calls."""
    graph._scopes.setdefault(_BODIES, {})[name] = body


def _find(graph, parts):
    """Returns the operation of a path below a call, "call/inner/MatMul": that of the innermost function that is known, or None."""
    for end in range(len(parts), 0, -1):
        op = graph._find("/".join(parts[:end]))
        if op is not None and op._calls:
            body = None
            if end < len(parts) and op.type in ("PartitionedCall", "StatefulPartitionedCall"):
                body = graph._scopes.get(_BODIES, {}).get(op.get_attr("f").name)
            return body is not None and _find(body, parts[end:]) or op
    return None


def with_place(error, graph):
    """Returns an error of an eager call of the function of |graph| with the operation that it names, if that is found."""
    for name in _NODE.findall(error.message) if error.op is None and graph is not None else ():
        op = _find(graph, name.strip().split("/")[1:])
        if op is not None:
            return type(error)(None, op, error.message)
    return error
