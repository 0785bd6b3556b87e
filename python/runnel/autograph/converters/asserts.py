"""Replaces assert: `ag__.assert_stmt(condition, lambda: message)`."""

from runnel.autograph.core import converter
from runnel.autograph.pyct import syntax, templates


class AssertTransformer(converter.Base):
    """Replaces the assert statements of a tree."""

    def visit_Assert(self, node):
        node = self.generic_visit(node)
        message = node.msg if node.msg is not None else syntax.constant("Assertion error")
        return templates.replace("ag__.assert_stmt(test, lambda: message)", test=node.test, message=message)


def transform(node, ctx):
    """Returns a tree without assert."""
    return AssertTransformer(ctx).visit(node)
