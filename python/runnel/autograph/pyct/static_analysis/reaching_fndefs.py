"""Which local functions may exist where."""

from runnel.autograph.pyct import anno, cfg, syntax, transformer


class Definition:
    """A local function."""

    def __init__(self, def_node):
        self.def_node = def_node


class Analyzer(cfg.GraphVisitor):
    """Passes the set of functions along the graph of a function; |external_defs| exist at its start."""

    def __init__(self, graph, external_defs):
        self._external = frozenset(external_defs)
        super().__init__(graph)

    def init_state(self, node):
        return frozenset()

    def visit_node(self, node):
        before = self.out[node]
        entering = self._external.union(*(self.out[one] for one in node.prev))
        leaving = entering | {node.ast_node} if syntax.is_function(node.ast_node) else entering
        self.in_[node], self.out[node] = entering, leaving
        return before != leaving


class TreeAnnotator(transformer.Base):
    """Notes the functions that may exist before each node of a graph."""

    def __init__(self, source_info, graphs):
        super().__init__(source_info)
        self._graphs = graphs
        self._analyzer = None

    def _function(self, node):
        outer = self._analyzer
        self._analyzer = Analyzer(self._graphs[node], anno.getanno(node, anno.Static.DEFINED_FNS_IN, ()))
        self._analyzer.visit_forward()
        self.generic_visit(node)
        self._analyzer = outer
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit(self, node):
        if self._analyzer is not None and node in self._analyzer.graph.index:
            anno.setanno(node, anno.Static.DEFINED_FNS_IN, self._analyzer.in_[self._analyzer.graph.index[node]])
        return super().visit(node)


def resolve(node, source_info, graphs):
    """Notes the functions in a tree whose graphs are known. Returns the tree."""
    return TreeAnnotator(source_info, graphs).visit(node)
