"""A picture of a graph, for notebooks: name scopes are frames, and every box is below what it reads.

Scopes are opened from the outside in while the picture stays small; the others are boxes with the number of their
operations. Constants that a single operation reads are left out. Operations in a scope that has the name of an
operation (the parts of a variable) belong to that operation's box.
"""

from html import escape

MOST_BOXES, MOST_INSIDE, MOST_SCOPES = 40, 14, 120
_LETTER, _HEIGHT, _GAP, _DOWN, _HEAD = 6.4, 34, 16, 26, 20
_COLOURS = {"Const": "#eeeeee", "Placeholder": "#d5e8f7", "VariableV2": "#ffe6b3", "VarHandleOp": "#ffe6b3"}


class _Scope:
    """An operation, or a scope with its children."""

    def __init__(self, name):
        self.name, self.kind, self.count, self.is_open = name, "", 0, False
        self.children: dict = {}
        self.edges: dict = {}  # (child, child) -> whether it is a data edge
        self.x = self.y = self.width = self.height = 0.0


def _shown(ops):
    """Returns the operations without the constants that belong to a single other operation."""
    readers: dict = {}
    for op in ops:
        for source in {t.op.name for t in op.inputs}:
            readers[source] = readers.get(source, 0) + 1
    return [op for op in ops if op.type != "Const" or readers.get(op.name, 0) != 1]


def _tree(ops):
    root, leaves = _Scope(""), {}
    names = {op.name for op in ops}
    for op in ops:
        scope, parts = root, op.name.split("/")
        path = []
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            scope.count += 1
            scope = scope.children.setdefault(parts[depth - 1], _Scope(name))
            path.append(parts[depth - 1])
            if name in names:  # an operation: operations below its name belong to it
                break
        scope.count += 1
        if scope.name == op.name:
            scope.kind = op.type
        leaves[op.name] = path
    for op in ops:
        for source, is_data in [(t.op, True) for t in op.inputs] + [(o, False) for o in op.control_inputs]:
            if source.name in leaves:
                _connect(root, leaves[source.name], leaves[op.name], is_data)
    return root


def _connect(scope, source, target, is_data):
    """Adds an edge to the smallest scope that contains both ends."""
    for a, b in zip(source, target):
        if a != b:
            scope.edges[a, b] = scope.edges.get((a, b), False) or is_data
            return
        scope = scope.children[a]


def _open(root):
    """Opens scopes, outer and smaller ones first. Returns whether at least the outermost fit."""
    root.is_open, boxes = True, len(root.children)
    todo = list(root.children.values())
    while todo:
        todo.sort(key=lambda s: (s.name.count("/"), len(s.children)))
        scope = todo.pop(0)
        if scope.kind or len(scope.children) > MOST_INSIDE or not scope.children or boxes + len(scope.children) > MOST_BOXES:
            continue
        scope.is_open = True
        boxes += len(scope.children)
        todo += scope.children.values()
    return len(root.children) <= MOST_SCOPES


def _layers(scope):
    """Returns {child: layer}: one below the lowest child that it reads. Cycles are cut where they are found."""
    sources: dict = {child: [] for child in scope.children}
    for source, target in scope.edges:
        sources[target].append(source)
    layer: dict = {}
    for first in scope.children:
        todo, active = [(first, iter(sources[first]))], {first}
        while todo and first not in layer:
            child, rest = todo[-1]
            following = next((s for s in rest if s not in layer and s not in active), None)
            if following is not None:
                active.add(following)
                todo.append((following, iter(sources[following])))
                continue
            layer[child] = 1 + max((layer.get(s, -1) for s in sources[child]), default=-1)
            active.discard(child)
            todo.pop()
    # Operations without inputs go just above their first reader, not to the top.
    for child in scope.children:
        if not sources[child]:
            layer[child] = max(0, min((layer[t] for s, t in scope.edges if s == child), default=1) - 1)
    return layer


def _label(scope):
    text = scope.name.rsplit("/", 1)[-1]
    return text if len(text) <= 24 else text[:23] + "…"


def _note(scope):
    return scope.kind or "%d operations" % scope.count


def _place(scope):
    """Computes the size of a scope and the places of its children, relative to it."""
    if not scope.is_open:
        scope.width, scope.height = _LETTER * max(len(_label(scope)), len(_note(scope)), 6) + 16, _HEIGHT
        return
    layer = _layers(scope)
    rows: list = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name, child in scope.children.items():
        _place(child)
        rows[layer[name]].append(name)
    widths = [sum(scope.children[name].width + _GAP for name in row) for row in rows]
    inner = max(widths + [_LETTER * len(_label(scope)) + 16])
    middle: dict = {}
    y = float(_HEAD + 6) if scope.name else 0.0
    for row, width in zip(rows, widths):
        before = {name: [middle[s] for s, t in scope.edges if t == name and s in middle] for name in row}
        row.sort(key=lambda name: sum(before[name]) / len(before[name]) if before[name] else inner / 2)
        x = (inner - width) / 2 + _GAP
        for name in row:
            child = scope.children[name]
            child.x, child.y = x, y
            middle[name] = x + child.width / 2
            x += child.width + _GAP
        y += max((scope.children[name].height for name in row), default=0) + _DOWN
    scope.width, scope.height = inner + _GAP, y - _DOWN + 12


def _draw(scope, x, y, out):
    for (source, target), is_data in sorted(scope.edges.items()) if scope.is_open else ():
        a, b = scope.children[source], scope.children[target]
        x1, y1, x2, y2 = x + a.x + a.width / 2, y + a.y + a.height, x + b.x + b.width / 2, y + b.y
        out.append('<path d="M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f" fill="none" stroke="#999999"%s/>' % (
            x1, y1, x1, y1 + 16, x2, y2 - 16, x2, y2, "" if is_data else ' stroke-dasharray="4 3"'))
    for child in scope.children.values() if scope.is_open else ():
        left, top = x + child.x, y + child.y
        fill = "#fafafa" if child.is_open else _COLOURS.get(child.kind, "#f0f6f0") if child.kind else "#e8e8ff"
        out.append('<g><title>%s</title><rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="5" fill="%s" stroke="#666666"/>' % (
            escape(child.name), left, top, child.width, child.height, fill))
        out.append('<text x="%.0f" y="%.0f" text-anchor="middle">%s</text>' % (left + child.width / 2, top + 14, escape(_label(child))))
        if not child.is_open:
            out.append('<text x="%.0f" y="%.0f" text-anchor="middle" fill="#777777">%s</text>' % (
                left + child.width / 2, top + 28, escape(_note(child))))
        out.append("</g>")
        _draw(child, left, top, out)


def draw(graph):
    """Returns the SVG text of a graph."""
    ops = graph.get_operations()
    root = _tree(_shown(ops))
    if not _open(root):
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="420" height="30"><text x="5" y="20" font-family="sans-serif" '
                'font-size="13">a graph of %d operations in %d scopes</text></svg>' % (len(ops), len(root.children)))
    _place(root)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">' % (
        root.width + 8, root.height + 8)]
    _draw(root, 0, 4, out)
    return "".join(out) + "</svg>"
