"""Replaces break: a flag that ends the loop, and continue."""

from runnel.autograph.converters import jumps
from runnel.autograph.pyct import anno, syntax
from runnel.autograph.pyct.static_analysis.annos import NodeAnno


class _Loop:
    def __init__(self):
        self.flag, self.is_used = None, False


class BreakTransformer(jumps.JumpTransformer):
    """Replaces the break statements of a tree."""

    def visit_Break(self, node):
        self.state[_Loop].is_used = True
        return [jumps.assign(self.state[_Loop].flag, "True"), syntax.Continue()]

    def _loop(self, node):
        with self.state[_Loop] as state:
            state.flag = flag = self.new_name("break_", anno.getanno(node, NodeAnno.BODY_SCOPE))
            node.body = self.visit_block(node.body)
            is_used = state.is_used
        node.orelse = self.visit_block(node.orelse)
        if not is_used:
            return node
        self.add_loop_test(node, flag)
        after, node.orelse = node.orelse, []
        return [jumps.assign(flag, "False"), node, *([self.guarded(flag, after, node)] if after else [])]

    visit_While = visit_For = visit_AsyncFor = _loop

    visit_If = visit_With = visit_AsyncWith = visit_Try = visit_TryStar = visit_ExceptHandler = jumps.JumpTransformer.generic_visit


def transform(node, ctx):
    """Returns a tree without break."""
    return BreakTransformer(ctx).visit(node)
