"""A graph as a picture, for notebooks: boxes from top to bottom, each below what it reads.

A large graph is drawn by its name scopes, opened as far as there is room.
"""

from html import escape

MOST_BOXES = 120
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 150, 34, 20, 30
_COLOURS = {"Const": "#eeeeee", "Placeholder": "#d5e8f7", "VariableV2": "#ffe6b3", "VarHandleOp": "#ffe6b3", "": "#ffffff"}


def _group(name, depth):
    """The box of an operation when scopes are open to this depth."""
    parts = name.split("/")
    return "/".join(parts[:depth]) if len(parts) > depth else name


def _boxes(ops, depth):
    """(box -> (op or "", count), edges between boxes)"""
    boxes, edges = {}, set()
    for op in ops:
        box = _group(op.name, depth)
        kind, count = boxes.get(box, (op.type if box == op.name else "", 0))
        boxes[box] = (kind, count + 1)
        for source in [t.op for t in op.inputs] + list(op.control_inputs):
            other = _group(source.name, depth)
            if other != box:
                edges.add((other, box))
    return boxes, edges


def _open(ops):
    """The deepest opening of scopes that fits."""
    best = _boxes(ops, 1)
    for depth in range(2, 8):
        opened = _boxes(ops, depth)
        if len(opened[0]) > MOST_BOXES:
            break
        best = opened
    return best


def _layers(boxes, edges):
    """box -> layer: one below the lowest of what it reads; loops are cut."""
    sources: dict = {box: [] for box in boxes}
    for source, target in edges:
        if source in sources and target in sources:
            sources[target].append(source)
    layer: dict = {}

    def place(box):
        todo = [(box, iter(sources[box]))]
        active = {box}
        while todo:
            current, rest = todo[-1]
            for source in rest:
                if source not in layer and source not in active:
                    active.add(source)
                    todo.append((source, iter(sources[source])))
                    break
            else:
                layer[current] = 1 + max((layer.get(s, -1) for s in sources[current]), default=-1)
                active.discard(current)
                todo.pop()

    for box in boxes:
        if box not in layer:
            place(box)
    return layer


def draw(graph):
    """The SVG text of a graph."""
    ops = graph.get_operations()
    boxes, edges = _open(ops)
    if len(boxes) > MOST_BOXES:
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="420" height="30"><text x="5" y="20" font-family="sans-serif" '
                'font-size="13">a graph of %d operations in %d scopes</text></svg>' % (len(ops), len(boxes)))
    layer = _layers(boxes, edges)
    counts: dict = {}
    place = {}
    for box in boxes:
        column = counts.get(layer[box], 0)
        counts[layer[box]] = column + 1
        place[box] = (10 + column * (_WIDTH + _ACROSS), 10 + layer[box] * (_HEIGHT + _DOWN))
    width = 20 + max(counts.values(), default=1) * (_WIDTH + _ACROSS)
    height = 20 + (max(layer.values(), default=0) + 1) * (_HEIGHT + _DOWN)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (width, height)]
    for source, target in sorted(edges):
        if source in place and target in place:
            (x1, y1), (x2, y2) = place[source], place[target]
            out.append('<path d="M%d %d C %d %d %d %d %d %d" fill="none" stroke="#999999"/>' % (
                x1 + _WIDTH / 2, y1 + _HEIGHT, x1 + _WIDTH / 2, y1 + _HEIGHT + 15, x2 + _WIDTH / 2, y2 - 15, x2 + _WIDTH / 2, y2))
    for box, (kind, count) in boxes.items():
        x, y = place[box]
        label = box if len(box) <= 22 else "…" + box[-21:]
        note = kind or "%d operations" % count
        out.append('<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="%s" stroke="#666666"/>'
                   '<text x="%d" y="%d" text-anchor="middle">%s</text><text x="%d" y="%d" text-anchor="middle" fill="#777777">%s</text></g>' % (
                       escape(box), x, y, _WIDTH, _HEIGHT, _COLOURS.get(kind, "#f4f8f4") if kind else "#e8e8ff",
                       x + _WIDTH / 2, y + 14, escape(label), x + _WIDTH / 2, y + 28, escape(note)))
    return "".join(out) + "</svg>"
