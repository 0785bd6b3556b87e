"""Replaces and, or, not, == and !=: `ag__.and_(lambda: a, lambda: b)`."""

from runnel.autograph.core import converter
from runnel.autograph.pyct import syntax, templates

_COMPARISONS = {"Eq": "eq", "NotEq": "not_eq"}


def _lazy(name, values):
    """Returns a call of and_ or or_ of functions, from the right to the left."""
    made = values[-1]
    for value in reversed(values[:-1]):
        made = templates.replace_as_expression("ag__.name(lambda: a, lambda: b)", name=name, a=value, b=made)
    return made


class LogicalExpressionTransformer(converter.Base):
    """Replaces the operators of a tree."""

    def _compared(self, left, operator, right):
        name = _COMPARISONS.get(type(operator).__name__)
        if name is None or not self.ctx.user.options.uses(converter.Feature.EQUALITY_OPERATORS):
            return syntax.Compare(left=left, ops=[operator], comparators=[right])
        return templates.replace_as_expression("ag__.name(left, right)", name=name, left=left, right=right)

    def visit_Compare(self, node):
        node = self.generic_visit(node)
        operands = [node.left, *node.comparators]
        return _lazy("and_", [self._compared(*row) for row in zip(operands, node.ops, operands[1:])])

    def visit_UnaryOp(self, node):
        node = self.generic_visit(node)
        return templates.replace_as_expression("ag__.not_(a)", a=node.operand) if isinstance(node.op, syntax.Not) else node

    def visit_BoolOp(self, node):
        node = self.generic_visit(node)
        return _lazy("and_" if isinstance(node.op, syntax.And) else "or_", node.values)


def transform(node, ctx):
    """Returns a tree without these operators."""
    return LogicalExpressionTransformer(ctx).visit(node)
