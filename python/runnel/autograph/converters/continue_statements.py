"""Replaces continue: a flag, without which the rest of the loop's body runs."""

from runnel.autograph.converters import jumps
from runnel.autograph.pyct import anno
from runnel.autograph.pyct.static_analysis.annos import NodeAnno


class ContinueCanonicalizationTransformer(jumps.JumpTransformer):
    """Replaces the continue statements of a tree."""

    def visit_Continue(self, node):
        self.jumped = True
        return jumps.assign(self.flag, "True")

    def _loop(self, node):
        outer, outer_jumped = self.flag, self.jumped
        self.flag, self.jumped = self.new_name("continue_", anno.getanno(node, NodeAnno.BODY_SCOPE)), False
        body = self.block(node.body)
        node.body = [jumps.assign(self.flag, "False"), *body] if self.jumped else body
        self.flag, self.jumped = outer, outer_jumped
        return self._blocks(node, "orelse")

    visit_While = visit_For = visit_AsyncFor = _loop

    def visit_FunctionDef(self, node):
        outer, outer_jumped = self.flag, self.jumped
        node.body = self.block(node.body)
        self.flag, self.jumped = outer, outer_jumped
        return node


def transform(node, ctx):
    """Returns a tree without continue."""
    return ContinueCanonicalizationTransformer(ctx).visit(node)
