"""Which assignments may have given a name its value."""

import weakref

from runnel.autograph.pyct import anno, cfg, qual_names, syntax, transformer


class Definition:
    """An assignment of a name. |param_of| is a weak reference to the function whose parameter it is; |directives| are what users say of it."""

    def __init__(self):
        self.param_of = None
        self.directives = {}

    def __repr__(self):
        return "%s[%d]" % (type(self).__name__, id(self))


def _merged(states):
    """Returns {name: definitions} of any of several states."""
    found = {}
    for state in states:
        for name, definitions in state.items():
            found[name] = found[name] | definitions if name in found else definitions
    return found


class Analyzer(cfg.GraphVisitor):
    """Passes {name: definitions} along the graph of a function."""

    def __init__(self, graph, definition_factory):
        self._factory = definition_factory
        self._made = {}  # node -> {name: definitions}, of what it assigns
        super().__init__(graph)

    def init_state(self, node):
        return {}

    def _assigned(self, node, scope):
        if node in self._made:
            return self._made[node]
        made = self._made[node] = {}
        for name in scope.modified | scope.globals | scope.nonlocals:
            made[name] = frozenset([self._factory()])
        for name, owner in scope.params.items():
            definition = self._factory()
            definition.param_of = weakref.ref(owner)
            made[name] = frozenset([definition])
        return made

    def visit_node(self, node):
        before = self.out[node]
        entering = _merged(self.out[one] for one in node.prev)
        scope = anno.getanno(node.ast_node, anno.Static.SCOPE, None)
        if scope is None or self.can_ignore(node):
            leaving = entering
        else:
            kept = {name: found for name, found in entering.items() if name not in scope.deleted}
            leaving = {**kept, **self._assigned(node, scope)}
        self.in_[node], self.out[node] = entering, leaving
        return before != leaving


class TreeAnnotator(transformer.Base):
    """Notes the definitions of names, and the names that are defined before compound statements."""

    def __init__(self, source_info, graphs, definition_factory):
        super().__init__(source_info)
        self._graphs, self._factory = graphs, definition_factory
        self._analyzer = self._node = None

    def visit_FunctionDef(self, node):
        outer = self._analyzer, self._node
        for one in [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(one)
        self._analyzer = Analyzer(self._graphs[node], self._factory)
        self._analyzer.visit_forward()
        self._node = None
        self.visit(node.args)
        node.body = self.visit_block(node.body)
        self._analyzer, self._node = outer
        return node

    def visit_arguments(self, node):
        if self._analyzer is not None and node in self._analyzer.graph.index:
            for name in syntax.parameters(node):
                self.visit(name)
        return node

    def visit_Name(self, node):
        if self._analyzer is None or self._node is None or anno.hasanno(node, anno.Static.DEFINITIONS):
            return node
        is_read = type(node.ctx).__name__ in ("Load", "Del")
        state = (self._analyzer.in_ if is_read else self._analyzer.out)[self._node]
        anno.setanno(node, anno.Static.DEFINITIONS, tuple(state.get(qual_names.QN(node.id), ())))
        return node

    def _statement(self, node):
        if self._analyzer is not None and node in self._analyzer.graph.stmt_prev:
            before = _merged(self._analyzer.out[one] for one in self._analyzer.graph.stmt_prev[node])
            anno.setanno(node, anno.Static.DEFINED_VARS_IN, set(before))
        return self.generic_visit(node)

    visit_If = visit_While = visit_Try = visit_ExceptHandler = _statement

    def visit_For(self, node):
        outer = self._node
        if self._analyzer is not None:  # the iterated value stands for the assignment of the target, too
            self._node = self._analyzer.graph.index[node.iter]
            self.visit(node.target)
        self._node = outer
        return self._statement(node)

    visit_AsyncFor = visit_For

    def visit(self, node):
        outer = self._node
        if self._analyzer is not None and node in self._analyzer.graph.index:
            self._node = self._analyzer.graph.index[node]
        made = super().visit(node)
        self._node = outer
        return made


def resolve(node, source_info, graphs, definition_factory=Definition):
    """Notes the definitions in a tree whose scopes and graphs are known. Returns the tree."""
    return TreeAnnotator(source_info, graphs, definition_factory).visit(node)
