"""Replaces return: the value goes to a name, a flag ends the loops around, and the only return is at the end of the function."""

from runnel.autograph.converters import functions, jumps
from runnel.autograph.pyct import anno, syntax, templates
from runnel.autograph.pyct.static_analysis.annos import NodeAnno


def _always_returns(statements):
    for statement in statements:
        if isinstance(statement, syntax.Return):
            return True
        if isinstance(statement, syntax.If) and _always_returns(statement.body) and _always_returns(statement.orelse):
            return True
        if isinstance(statement, syntax.With) and _always_returns(statement.body):
            return True
    return False


class ReturnStatementsTransformer(jumps.JumpTransformer):
    """Replaces the return statements of a tree. Functions that need not return anything then return None, if |allow_missing_return|."""

    def __init__(self, ctx, allow_missing_return):
        super().__init__(ctx)
        self._allow_missing_return = allow_missing_return
        self._value = None

    def visit_Return(self, node):
        self.jumped = True
        value = node.value if node.value is not None else syntax.constant(None)
        return [jumps.assign(self.flag, "True"), templates.replace("name = value", name=self._value, value=value)[0]]

    def takes_rest(self, statement, rest):
        """After an `if` of which one branch always returns, the rest belongs to the other one."""
        if not isinstance(statement, syntax.If):
            return False
        ends = _always_returns(statement.body), _always_returns(statement.orelse)
        if ends[0] == ends[1]:
            return False
        if ends[0]:
            statement.orelse = statement.orelse + rest
        else:
            statement.body = statement.body + rest
        return True

    def _loop(self, node):
        node.body, may_jump = self._inner(node.body)
        if may_jump:
            self.add_loop_test(node, self.flag)
        node.orelse, also = self._inner(node.orelse)
        if may_jump and node.orelse:
            node.orelse = [self.guarded(self.flag, node.orelse, node)]
        self.jumped |= may_jump or also
        return node

    visit_While = visit_For = visit_AsyncFor = _loop

    def visit_FunctionDef(self, node):
        outer = self.flag, self._value, self.jumped
        scope = anno.getanno(node, NodeAnno.BODY_SCOPE)
        self.flag, self._value = self.new_name("do_return", scope), self.new_name("retval_", scope)
        wrapper = node.body[-1] if anno.hasanno(node, functions.SCOPE_NAME) else node
        body, may_return = self._inner(wrapper.body)
        if may_return:
            first = [syntax.Expr(one.value) for one in body[:1] if functions.is_text(one)]
            start = [jumps.assign(self.flag, "False"), jumps.assign(self._value, "ag__.UndefinedReturnValue()")]
            wrapper.body = [*first, *start, *body[len(first):], self._end(node)]
        self.flag, self._value, self.jumped = outer
        return node

    def _end(self, node):
        name = anno.getanno(node, functions.SCOPE_NAME, None)
        if name is None:
            return templates.replace("return value", value=self._value)[0]
        return templates.replace("return scope.ret(value, flag)", scope=name, value=self._value, flag=self.flag)[0]


def transform(node, ctx, default_to_null_return=True):
    """Returns a tree whose functions return at their ends only."""
    return ReturnStatementsTransformer(ctx, default_to_null_return).visit(node)
