"""Which names may be read later."""

from runnel.autograph.pyct import anno, cfg, syntax, transformer
from runnel.autograph.pyct.static_analysis.annos import NodeAnno


class Analyzer(cfg.GraphVisitor):
    """Passes the set of live names along the graph of a function, from its end."""

    def __init__(self, graph, include_annotations):
        self._include_annotations = include_annotations
        super().__init__(graph)

    def init_state(self, node):
        return frozenset()

    def _read(self, node, scope):
        found = set(scope.read if self._include_annotations else scope.read - scope.annotations)
        for function in anno.getanno(node, anno.Static.DEFINED_FNS_IN, ()):
            if not isinstance(function, syntax.Lambda):  # a function may be called from now on, and then reads
                inner = anno.getanno(function, NodeAnno.ARGS_AND_BODY_SCOPE)
                found |= inner.read - (inner.bound - inner.nonlocals)
        return found

    def visit_node(self, node):
        before = self.in_[node]
        leaving = frozenset().union(*(self.in_[one] for one in node.next))
        scope = anno.getanno(node.ast_node, anno.Static.SCOPE, None)
        if scope is None or self.can_ignore(node):
            entering = leaving
        else:
            entering = frozenset(self._read(node.ast_node, scope) | (leaving - scope.modified - scope.deleted))
        self.in_[node], self.out[node] = entering, leaving
        return before != entering


class TreeAnnotator(transformer.Base):
    """Notes the names that are live before and after nodes and statements."""

    def __init__(self, source_info, graphs, include_annotations):
        super().__init__(source_info)
        self._graphs, self._include_annotations = graphs, include_annotations
        self._analyzer = None

    def _function(self, node):
        outer = self._analyzer
        self._analyzer = Analyzer(self._graphs[node], self._include_annotations)
        self._analyzer.visit_reverse()
        self.generic_visit(node)
        self._analyzer = outer
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit(self, node):
        made = super().visit(node)
        if self._analyzer is not None and node in self._analyzer.graph.index:
            place = self._analyzer.graph.index[node]
            anno.setanno(node, anno.Static.LIVE_VARS_IN, self._analyzer.in_[place])
            anno.setanno(node, anno.Static.LIVE_VARS_OUT, self._analyzer.out[place])
        return made

    def _statement(self, node, first):
        self.generic_visit(node)
        after = self._analyzer.graph.stmt_next.get(node, ())
        anno.setanno(node, anno.Static.LIVE_VARS_OUT, frozenset().union(*(self._analyzer.in_[one] for one in after)))
        place = self._analyzer.graph.index.get(first)
        entering = self._analyzer.in_[place] if place is not None else anno.getanno(first, anno.Static.LIVE_VARS_IN, frozenset())
        anno.setanno(node, anno.Static.LIVE_VARS_IN, entering)
        return node

    def visit_If(self, node):
        return self._statement(node, node.test)

    visit_While = visit_If

    def visit_For(self, node):
        return self._statement(node, node.iter)

    visit_AsyncFor = visit_For

    def visit_Try(self, node):
        return self._statement(node, node.body[0])

    visit_ExceptHandler = visit_Try

    def visit_With(self, node):
        self.generic_visit(node)
        anno.setanno(node, anno.Static.LIVE_VARS_IN, self._analyzer.in_[self._analyzer.graph.index[node.items[0]]])
        return node


def resolve(node, source_info, graphs, include_annotations=True):
    """Notes the live names in a tree whose scopes, functions (reaching_fndefs) and graphs are known. Returns the tree."""
    return TreeAnnotator(source_info, graphs, include_annotations).visit(node)
