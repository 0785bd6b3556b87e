"""Replaces `a if c else b`: `ag__.if_exp(c, lambda: a, lambda: b, text)`."""

from runnel.autograph.core import converter
from runnel.autograph.pyct import parser, syntax, templates


class ConditionalExpressionTransformer(converter.Base):
    """Replaces the conditional expressions of a tree."""

    def visit_IfExp(self, node):
        text = parser.unparse(node.test, include_encoding_marker=False).strip()
        node = self.generic_visit(node)
        return templates.replace_as_expression("ag__.if_exp(test, lambda: body, lambda: orelse, text)", test=node.test, body=node.body,
                                               orelse=node.orelse, text=syntax.constant(text))


def transform(node, ctx):
    """Returns a tree without conditional expressions."""
    return ConditionalExpressionTransformer(ctx).visit(node)
