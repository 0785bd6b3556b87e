"""Which names statements read and write, and which are needed after a statement.

Runs after jumps.py, so control only flows through if, loops, with and try. A name in a nested function counts as read
wherever it may be called: everywhere. Places such as `self.x` and `table["key"]` count as names when they are assigned;
they are needed after every statement, because others may see them.
"""

import ast

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Activity:
    """The names that a node reads and writes, and the places that it assigns: {text: (node, name at its root)}."""

    def __init__(self, *nodes):
        self.reads, self.writes, self.places = set(), set(), {}
        self.hidden = set()  # names that nested functions read
        for node in nodes:
            self._visit(node)

    def _visit(self, node):
        if isinstance(node, ast.Name):
            (self.reads if isinstance(node.ctx, ast.Load) else self.writes).add(node.id)
        elif isinstance(node, _SCOPES):
            self._scope(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            root = _root(node)
            if root is not None:
                self.places[ast.unparse(node)] = (node, root)
            self._children(node)
        elif isinstance(node, ast.AugAssign):
            self._children(node)
            if isinstance(node.target, ast.Name):
                self.reads.add(node.target.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.writes.update((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.ExceptHandler):
            if node.name:
                self.writes.add(node.name)
            self._children(node)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.reads.add(target.id)
                    self.writes.add(target.id)
                else:
                    self._children(target)
        else:
            self._children(node)

    def _children(self, node):
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _scope(self, node):
        if not isinstance(node, ast.Lambda):
            self.writes.add(node.name)
        inner = Activity()
        inner._children(node)
        own = inner.writes if not isinstance(node, ast.ClassDef) else set()
        if not isinstance(node, ast.ClassDef):
            own = own | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        outer = {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}
        self.writes |= outer
        free = ((inner.reads | inner.hidden) - own) | outer
        self.reads |= free
        self.hidden |= free

    def _comprehension(self, node):
        inner = Activity()
        inner._children(node)
        walrus = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        targets = inner.writes - walrus
        self.reads |= inner.reads - targets
        self.writes |= walrus
        self.hidden |= inner.hidden - targets


def _root(node):
    """Returns the name that `a.b.c` or `a["k"]` starts from; None if the place is computed."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.Name)):
            if isinstance(node.slice, ast.Name):
                return None
            node = node.value
        else:
            return None


def annotate(function):
    """Gives each If, While and For of a function `live`, the names needed after it; loops also get `live_in`, Ifs `needed` per branch."""
    always = Activity(*function.body).hidden
    _before(function.body, set(always), always)


def _before(statements, live, always):
    """Returns the names needed before a block, given those needed after it."""
    for s in reversed(statements):
        live = _before_one(s, live, always) | always
    return live


def _before_one(s, live, always):
    if isinstance(s, ast.If):
        s.live = set(live)  # type: ignore[attr-defined]
        s.needed = [_before(s.body, live, always), _before(s.orelse, live, always)]  # type: ignore[attr-defined]
        return s.needed[0] | s.needed[1] | Activity(s.test).reads
    if isinstance(s, (ast.While, ast.For)):
        return _before_loop(s, live, always)
    if isinstance(s, ast.With):
        heads = Activity(*s.items)
        return (_before(s.body, live, always) - heads.writes) | heads.reads
    if isinstance(s, ast.Try):
        after = _before(s.finalbody, live, always) | live
        handlers = set().union(*[_before(h.body, after, always) | Activity(*([h.type] if h.type else [])).reads for h in s.handlers])
        body = _before(s.body, _before(s.orelse, after, always) | handlers, always)
        return body | handlers | after | Activity(*s.body).reads
    activity = Activity(s)
    if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
        return live | activity.reads
    return (live - activity.writes) | activity.reads


def _before_loop(s, live, always):
    head = Activity(s.test if isinstance(s, ast.While) else s.iter)
    target = Activity(s.target).writes if isinstance(s, ast.For) else set()
    flags = set(getattr(s, "stops", ()))
    needed = live | flags | (head.reads if isinstance(s, ast.While) else set())
    before = needed
    while True:
        s.live = set(live)  # type: ignore[attr-defined]
        inside = (_before(s.body, needed | before, always) - target) | needed
        if inside == before:
            break
        before = inside
    s.live_in = set(before)  # type: ignore[attr-defined]
    return before | head.reads
