"""Control flow graphs of functions.

A node is a statement without statements inside, or the part of a compound statement that runs: the test of an `if`, the iterated value of a `for`.
An error is taken to leave a `try` block at its end, or at a `raise`.
"""

import ast
import collections
import weakref

from runnel.autograph.pyct import anno, parser, syntax


def _text(node):
    """Returns the source of a node, with all parentheses if the package astunparse, which writes them, is there."""
    try:
        import astunparse
    except ImportError:
        return parser.unparse(node, include_encoding_marker=False)
    return astunparse.unparse(ast.fix_missing_locations(syntax.gast_to_ast(node))).strip()


class Node:
    """A place in a function: |next| are those that may come after it, |prev| those before."""

    def __init__(self, next_, prev, ast_node):
        self.next, self.prev, self.ast_node = next_, prev, ast_node

    def freeze(self):
        """Ends the construction."""
        self.next, self.prev = frozenset(self.next), weakref.WeakSet(self.prev)

    def __repr__(self):
        node = self.ast_node
        if isinstance(node, syntax.FunctionDef):
            return "def %s" % node.name
        if isinstance(node, syntax.ClassDef):
            return "class %s" % node.name
        if isinstance(node, syntax.withitem):
            node = node.context_expr
        return _text(node)


class Graph(collections.namedtuple("Graph", ["entry", "exit", "error", "index", "stmt_prev", "stmt_next"])):
    """The graph of one function.

    |index| is {syntax node: Node}. |stmt_prev| and |stmt_next| have the Nodes before and after each compound statement. |error| are the raise statements.
    """

    def __repr__(self):
        return self.as_dot()

    def as_dot(self):
        """Returns the graph in the language of Graphviz."""
        rows = ["digraph CFG {"]
        for node in self.index.values():
            rows.append('  %s [label="%s"];' % (id(node), str(node).replace('"', "'")))
            rows += ["  %s -> %s;" % (id(node), id(after)) for after in node.next]
        return "\n".join(rows + ["}"])


class GraphVisitor:
    """The base of analyses that pass values along a graph until they change no more.

    |in_| and |out| are {Node: value}. visit_node(node) computes them, and tells whether the neighbours have to be visited again.
    """

    def __init__(self, graph):
        self.graph = graph
        self.reset()

    def init_state(self, node):
        """Returns the value that a node starts with."""
        raise NotImplementedError("subclasses say what values are")

    def visit_node(self, node):
        """Computes the values of a node. Returns whether they have changed."""
        raise NotImplementedError("subclasses compute values")

    def reset(self):
        """Forgets all values."""
        self.in_ = {node: self.init_state(node) for node in self.graph.index.values()}
        self.out = {node: self.init_state(node) for node in self.graph.index.values()}

    def can_ignore(self, node):
        """Tells whether a node passes values on unchanged."""
        return anno.hasanno(node.ast_node, anno.Basic.SKIP_PROCESSING)

    def _visit(self, starts, following):
        waiting, seen = collections.deque(starts), set()
        while waiting:
            node = waiting.popleft()
            is_changed = self.visit_node(node)
            seen.add(node)
            waiting.extend(other for other in following(node) if is_changed or other not in seen)

    def visit_forward(self):
        """Visits from the entry on."""
        self._visit([self.graph.entry], lambda node: node.next)

    def visit_reverse(self):
        """Visits from the exits back."""
        self._visit(self.graph.exit, lambda node: node.prev)


class _Loop:
    def __init__(self):
        self.breaks, self.continues = [], []  # (node, finally blocks that it passes)


class _Finally:
    """A finally block: its first node, its last ones, and the jumps that pass through it."""

    def __init__(self):
        self.first, self.ends = None, ()


class _Handlers:
    """The except blocks of a try: their raises, and then the first nodes."""

    def __init__(self):
        self.raises = []


class _Builder:
    """Builds the graph of one function. |leaves| are the nodes that the next one comes after."""

    def __init__(self, entry):
        self.index = {}
        self.leaves = set()
        self._open = []  # compound statements that have begun: (statement, their nodes)
        self._statements = []
        self.scopes = []  # _Loop, _Finally and _Handlers around the current statement, the innermost last
        self.exits, self.errors = [], []
        self._passed = []  # (jump, finally blocks), to be connected at the end
        self.entry = self.add(entry)

    def add(self, ast_node):
        """Adds a node after the leaves. It is the only leaf then."""
        node = self.index[ast_node] = Node(set(), set(), ast_node)
        self.connect(self.leaves, node)
        self.leaves = {node}
        for _, nodes in self._open:
            nodes.append(node)
        return node

    @staticmethod
    def connect(before, node):
        """Adds edges from nodes to another."""
        for one in before:
            one.next.add(node)
            node.prev.add(one)

    def begin(self, statement):
        """Begins a compound statement."""
        self._open.append((statement, []))

    def end(self):
        """Ends the innermost compound statement."""
        self._statements.append(self._open.pop())

    def crossed(self, stop=None):
        """Returns the finally blocks around the current statement, the innermost first, up to a scope."""
        found = []
        for scope in reversed(self.scopes):
            if scope is stop:
                break
            if isinstance(scope, _Finally):
                found.append(scope)
        return found

    def jump(self, ast_node, stop=None):
        """Adds a node that leaves for elsewhere. Returns (node, finally blocks on the way)."""
        node, crossed = self.add(ast_node), self.crossed(stop)
        self.leaves = set()
        if crossed:
            self._passed.append((node, crossed))
        return node, crossed

    def leave(self, jumps):
        """Returns the nodes from which jumps arrive at their goal."""
        return {end for node, crossed in jumps for end in (crossed[-1].ends if crossed else [node])}

    def build(self):
        """Returns the graph."""
        for node, crossed in self._passed:
            before = [node]
            for block in crossed:
                if block.first is not None:
                    self.connect(before, block.first)
                    before = block.ends
        exits = self.leaves | self.leave(self.exits)
        before, after = {}, {}
        for statement, nodes in self._statements:
            inside = set(nodes)
            before[statement] = frozenset(p for node in nodes for p in node.prev if p not in inside)
            after[statement] = frozenset(n for node in nodes for n in node.next if n not in inside)
        for node in self.index.values():
            node.freeze()
        return Graph(self.entry, frozenset(exits), frozenset(self.errors), self.index, before, after)


class AstToCfg(ast.NodeVisitor):
    """Builds the graphs of all functions in a tree: |cfgs| is {function: Graph}."""

    def __init__(self):
        self.cfgs = {}
        self._builder = None

    def _plain(self, node):
        self.generic_visit(node)  # lambdas
        if self._builder is not None:
            self._builder.add(node)

    visit_Expr = visit_Assign = visit_AnnAssign = visit_AugAssign = visit_Pass = visit_Global = visit_Nonlocal = _plain
    visit_Import = visit_ImportFrom = visit_Assert = visit_Delete = visit_withitem = _plain

    def visit_ClassDef(self, node):
        if self._builder is not None:
            self._builder.add(node)
        else:
            self.generic_visit(node)

    def _function(self, node):
        if self._builder is not None:
            self._builder.add(node)
        outer, self._builder = self._builder, _Builder(node.args)
        if isinstance(node, syntax.Lambda):
            self._plain_expression(node.body)
        else:
            self._block(node.body)
        self.cfgs[node] = self._builder.build()
        self._builder = outer

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def _plain_expression(self, node):
        self.visit(node)
        return self._builder.add(node) if node not in self._builder.index else self._builder.index[node]

    def _block(self, statements):
        for statement in statements:
            self.visit(statement)

    def _compound(self, node, write):
        if self._builder is None:  # outside of functions
            self.generic_visit(node)
            return
        self._builder.begin(node)
        write()
        self._builder.end()

    def visit_Return(self, node):
        self.generic_visit(node)
        self._builder.exits.append(self._builder.jump(node))

    def visit_Raise(self, node):
        self.generic_visit(node)
        builder = self._builder
        made = builder.jump(node)
        builder.exits.append(made)
        builder.errors.append(node)
        for scope in builder.scopes:
            if isinstance(scope, _Handlers):
                scope.raises.append(made[0])

    def _innermost_loop(self, what):
        for scope in reversed(self._builder.scopes):
            if isinstance(scope, _Loop):
                return scope
        raise ValueError("a %s is outside of all loops" % what)

    def visit_Break(self, node):
        loop = self._innermost_loop("break")
        loop.breaks.append(self._builder.jump(node, loop))

    def visit_Continue(self, node):
        loop = self._innermost_loop("continue")
        loop.continues.append(self._builder.jump(node, loop))

    def visit_If(self, node):
        self._compound(node, lambda: self._branches(node.test, [node.body, node.orelse]))

    def _branches(self, test, blocks):
        start, ends = {self._plain_expression(test)}, set()
        for block in blocks:
            self._builder.leaves = set(start)
            self._block(block)
            ends |= self._builder.leaves
        self._builder.leaves = ends

    def visit_Match(self, node):
        blocks = [case.body for case in node.cases]
        self._compound(node, lambda: self._branches(node.subject, [*blocks, []]))

    def _loop(self, node, head):
        builder, loop = self._builder, _Loop()
        entry = self._plain_expression(head)
        builder.scopes.append(loop)
        if anno.hasanno(node, anno.Basic.EXTRA_LOOP_TEST):
            self._plain_expression(anno.getanno(node, anno.Basic.EXTRA_LOOP_TEST))
        self._block(node.body)
        builder.scopes.pop()
        builder.connect(builder.leaves, entry)
        builder.connect(builder.leave(loop.continues), entry)
        builder.leaves = {entry}
        self._block(node.orelse)
        builder.leaves = builder.leaves | builder.leave(loop.breaks)

    def visit_While(self, node):
        self._compound(node, lambda: self._loop(node, node.test))

    def visit_For(self, node):
        self._compound(node, lambda: self._loop(node, node.iter))

    visit_AsyncFor = visit_For

    def visit_With(self, node):
        self._block(node.items)
        self._block(node.body)

    visit_AsyncWith = visit_With

    def visit_Try(self, node):
        self._compound(node, lambda: self._try(node))

    visit_TryStar = visit_Try

    def _try(self, node):
        builder, last, handlers = self._builder, _Finally(), _Handlers()
        if node.finalbody:
            builder.scopes.append(last)
        if node.handlers:
            builder.scopes.append(handlers)
        self._block(node.body)
        if node.handlers:
            builder.scopes.pop()
        thrown = builder.leaves | set(handlers.raises)
        self._block(node.orelse)
        ends = builder.leaves
        for handler in node.handlers:
            builder.leaves = set(thrown)
            builder.begin(handler)
            self._block(handler.body)
            builder.end()
            ends = ends | builder.leaves
        builder.leaves = set(ends)
        if node.finalbody:
            builder.scopes.pop()
            self._finally(last, node.finalbody, is_reached=bool(ends))

    def _finally(self, block, statements, is_reached):
        builder = self._builder
        known = len(builder.index)
        self._block(statements)
        block.first = next(iter(list(builder.index.values())[known:]), None)
        block.ends = set(builder.leaves)
        if not is_reached:
            builder.leaves = set()


def build(node):
    """Returns {function: Graph} of all functions in a tree."""
    builder = AstToCfg()
    builder.visit(node)
    return builder.cfgs
