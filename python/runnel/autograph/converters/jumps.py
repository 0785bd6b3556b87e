"""What the replacements of break, continue and return share: statements after a jump run only if it has not happened."""

from runnel.autograph.core import converter
from runnel.autograph.pyct import anno, parser, syntax, templates


class JumpTransformer(converter.Base):
    """The base of these replacements. A visit of a statement that may jump sets |jumped|; |flag| is the name that says so when the code runs."""

    def __init__(self, ctx):
        super().__init__(ctx)
        self.flag = None
        self.jumped = False

    def block(self, statements):
        """Visits statements; those after one that may jump are guarded."""
        made, before = [], self.jumped
        for i, statement in enumerate(statements):
            self.jumped = False
            rest = statements[i + 1:]
            is_last = not rest or self.takes_rest(statement, rest)
            new = self.visit(statement)
            made += new if isinstance(new, (list, tuple)) else [new]
            if self.jumped and not is_last:
                made.append(self.guarded(self.flag, self.block(rest), statement))
            if self.jumped or is_last:
                break
        self.jumped |= before
        return made

    def takes_rest(self, statement, rest):
        """Tells whether the rest of a block has been moved into a statement."""
        return False

    def _inner(self, statements):
        """Returns (what becomes of a block, whether it may jump)."""
        before, self.jumped = self.jumped, False
        made = self.block(statements)
        may_jump, self.jumped = self.jumped, before
        return made, may_jump

    def _blocks(self, node, *fields):
        may_jump = False
        for field in fields:
            made, also = self._inner(getattr(node, field))
            setattr(node, field, made)
            may_jump |= also
        self.jumped |= may_jump
        return node

    def visit_If(self, node):
        return self._blocks(node, "body", "orelse")

    def visit_With(self, node):
        return self._blocks(node, "body")

    visit_AsyncWith = visit_With
    visit_ExceptHandler = visit_With

    def visit_Try(self, node):
        node.body, may_jump = self._inner(node.body)
        node.orelse, also = self._inner(node.orelse)
        if may_jump and node.orelse:
            node.orelse = [self.guarded(self.flag, node.orelse, node)]
        self.jumped |= may_jump or also
        node.handlers = [self.visit(handler) for handler in node.handlers]
        return self._blocks(node, "finalbody")

    visit_TryStar = visit_Try

    def add_loop_test(self, node, flag):
        """Makes a loop end when a flag is set."""
        test = templates.replace_as_expression("not flag", flag=flag)
        if isinstance(node, syntax.While):
            node.test = templates.replace_as_expression("test and rest", test=test, rest=node.test)
            return
        known = anno.getanno(node, anno.Basic.EXTRA_LOOP_TEST, None)
        if known is not None:
            test = templates.replace_as_expression("known and test", known=known, test=test)
        anno.setanno(node, anno.Basic.EXTRA_LOOP_TEST, test)


def assign(name, text):
    """Returns the statement that sets a name to what a text says."""
    return templates.replace("name = value", name=name, value=parser.parse_expression(text))[0]
