"""Replaces calls and operators: what they do is decided when their values are known.

    f(x)             ag__.callee(f)(x)
    a and b          ag__.and_(a, lambda: b)
    not a            ag__.not_(a)
    a < b < c        ag__.and_(a < b, lambda: b < c)
    a if c else b    ag__.if_expression(c, lambda: a, lambda: b)
    assert c, m      ag__.assert_statement(c, lambda: m)
    del x            x = ag__.Undefined("x")
"""

import ast


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function. Blocks that became functions belong to it, functions of the user do not."""

    def __init__(self, states, function):
        self._states = states  # names that may be undefined
        arguments = function.args.posonlyargs + function.args.args
        self._first = arguments[0].arg if arguments else None

    def convert(self, function):
        """Rewrites the body of a function in place."""
        function.body = [made for s in function.body for made in _as_list(self.visit(s))]

    def visit(self, node):
        if getattr(node, "is_plain", False):
            return node
        return super().visit(node)

    def visit_FunctionDef(self, node):
        if node.name.startswith("ag__"):
            return self.generic_visit(node)
        node.decorator_list = [self.visit(d) if not _is_mark(d) else d for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        return node  # converted before

    def visit_ClassDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef

    def visit_Lambda(self, node):
        if getattr(node, "is_made", False):
            return self.generic_visit(node)
        states, self._states = self._states, set()
        node.body = self.visit(node.body)
        self._states = states
        return _call("is_converted", node, like=node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self._states:
            return _call("load", node, like=node)
        return node

    def visit_Delete(self, node):
        self.generic_visit(node)
        gone = [target.id for target in node.targets if isinstance(target, ast.Name) and target.id in self._states]
        node.targets = [target for target in node.targets if not isinstance(target, ast.Name) or target.id not in gone]
        made = [ast.copy_location(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())],
                                             value=_call("Undefined", ast.Constant(name), like=node)), node) for name in gone]
        return made + ([node] if node.targets else [])

    def _comprehension(self, node):
        states = self._states
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self._states = states - targets
        self.generic_visit(node)
        self._states = states
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Call(self, node):
        if not getattr(node, "is_made", False):
            if isinstance(node.func, ast.Name) and node.func.id == "super":
                if not node.args and self._first:  # a block is a function of its own, where super() would not know its class
                    node.args = [ast.Name(id="__class__", ctx=ast.Load()), ast.Name(id=self._first, ctx=ast.Load())]
                return node
            if isinstance(node.func, ast.Name) and node.func.id in ("locals", "globals", "vars", "eval", "exec", "dir"):
                return self.generic_visit(node)
            node.func = _call("callee", node.func, like=node.func)
        return self.generic_visit(node)

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        made = node.values[-1]
        for value in reversed(node.values[:-1]):
            made = _call(name, value, _later(made), like=node)
        return made

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return _call("not_", node.operand, like=node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1 or not all(_is_simple(c) for c in node.comparators[:-1]):
            return node
        made, left = None, [node.left, *node.comparators[:-1]]
        for one, op, other in reversed(list(zip(left, node.ops, node.comparators))):
            compared = ast.copy_location(ast.Compare(left=one, ops=[op], comparators=[other]), node)
            made = compared if made is None else _call("and_", compared, _later(made), like=node)
        return made

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return _call("if_expression", node.test, _later(node.body), _later(node.orelse), like=node)

    def visit_Assert(self, node):
        self.generic_visit(node)
        message = _later(node.msg if node.msg is not None else ast.Constant(None))
        return ast.copy_location(ast.Expr(_call("assert_statement", node.test, message, like=node)), node)


def _as_list(made):
    return made if isinstance(made, list) else [made]


def _is_mark(node):
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ag__"


def _is_simple(node):
    """Tells whether evaluating the expression twice does no harm."""
    if isinstance(node, ast.Call) and getattr(node, "is_made", False):
        return node.func.attr == "load"
    return isinstance(node, (ast.Name, ast.Constant)) or isinstance(node, ast.Attribute) and _is_simple(node.value)


def _later(body):
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(args=empty, body=body), body)


def _call(name, *args, like):
    function = ast.Attribute(value=ast.Name(id="ag__", ctx=ast.Load()), attr=name, ctx=ast.Load())
    call = ast.copy_location(ast.Call(func=function, args=list(args), keywords=[]), like)
    call.is_made = True  # type: ignore[attr-defined]
    return call
