"""Makes functions of the blocks of if, while and for.

    if c:            def ag__read(): return (y,)
        y = 1        def ag__write(values): nonlocal y; (y,) = values
                     def ag__body(): nonlocal y; y = 1
                     def ag__else(): nonlocal y; pass
                     ag__.if_statement(c, ag__body, ag__else, ag__read, ag__write, ("y",))
"""

import ast

from runnel.autograph import jumps, liveness
from runnel.autograph.expressions import Expressions


def convert(function):
    """Rewrites a FunctionDef in place, and the functions inside it."""
    _NestedFunctions().generic_visit(function)
    jumps.lower(function)
    liveness.annotate(function)
    parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    flow = _Flow(function)
    body = flow.block(function.body)
    head = [_assign(name, _call("Undefined", ast.Constant(name)), function) for name in sorted(flow.states - parameters - flow.declared)]
    documentation = body[:1] if ast.get_docstring(function) is not None else []
    function.body = documentation + head + body[len(documentation):]
    Expressions(flow.states - parameters, function).convert(function)
    ast.fix_missing_locations(function)


def can_convert(function):
    """Tells whether a FunctionDef has only what can be converted: no generators."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return False
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += list(ast.iter_child_nodes(node))
    return True


class _NestedFunctions(ast.NodeTransformer):
    """Converts the functions inside a function, and marks them so that a call does not convert them again."""

    def visit_FunctionDef(self, node):
        if can_convert(node):
            convert(node)
            node.decorator_list.append(_at(_call_attribute("is_converted"), node))
        return node

    def visit_ClassDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef


class _Flow:
    """Rewrites the statements of one function."""

    def __init__(self, function):
        self.number = 0
        self.states = set()  # local names that are part of a state
        self.outer = {}  # name -> the declaration, "global" or "nonlocal", in the function
        for node in _own_nodes(function):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self.outer.update(dict.fromkeys(node.names, "global" if isinstance(node, ast.Global) else "nonlocal"))

    @property
    def declared(self):
        """Names that are not local to the function."""
        return set(self.outer)

    def block(self, statements):
        return [new for s in statements for new in self.statement(s)]

    def statement(self, s):
        if isinstance(s, ast.If):
            return self._if(s)
        if isinstance(s, ast.While):
            return self._while(s)
        if isinstance(s, ast.For):
            return self._for(s)
        if isinstance(s, (ast.With, ast.Try)):
            for field in ("body", "orelse", "finalbody"):
                if getattr(s, field, None):
                    setattr(s, field, self.block(getattr(s, field)))
            for handler in getattr(s, "handlers", ()):
                handler.body = self.block(handler.body)
        return [s]

    def _if(self, s):
        activity = liveness.Activity(*s.body, *s.orelse)
        names = sorted(n for n in activity.writes if n in s.live or n in self.outer)
        parts, state = self._state(s, activity, names)
        body = self._branch(s, "body", s.body, s.needed[0], activity, names)
        orelse = self._branch(s, "else", s.orelse or [ast.Pass()], s.needed[1], activity, names)
        call = _call("if_statement", s.test, _load(body.name), _load(orelse.name), *state)
        return parts + [body, orelse, _at(ast.Expr(call), s)]

    def _branch(self, s, kind, statements, needed, activity, names):
        """Returns the function of a branch. A name that it reads and then assigns, and that is not needed afterwards, is its own: a parameter
        whose default is the value before."""
        own = sorted(n for n in liveness.Activity(*statements).writes & needed if n not in names and n not in self.outer)
        self.states.update(own)
        return self._function(s, kind, statements, activity.writes, own=own)

    def _while(self, s):
        activity = liveness.Activity(*s.body)
        stops, options = list(getattr(s, "stops", ())), self._options(s)
        test = s.test
        if stops:
            test = ast.BoolOp(op=ast.And(), values=[jumps.no_flag(stops, s.test), s.test])
        parts, state = self._state(s, activity, self._loop_names(s, activity))
        body = self._function(s, "body", s.body, activity.writes)
        call = _call("while_statement", _lambda(test), _load(body.name), *state, options)
        return parts + [body, _at(ast.Expr(call), s)]

    def _for(self, s):
        target = liveness.Activity(s.target)
        activity = liveness.Activity(s.target, *s.body)
        stops, options = list(getattr(s, "stops", ())), self._options(s)
        test = _lambda(jumps.no_flag(stops, s.iter)) if stops else ast.Constant(None)
        parts, state = self._state(s, activity, self._loop_names(s, activity))
        item = ast.Assign(targets=[s.target], value=_load("ag__item"))
        body = self._function(s, "body", [_at(item, s), *s.body], activity.writes | target.writes, ["ag__item"])
        call = _call("for_statement", s.iter, test, _load(body.name), *state, options)
        return parts + [body, _at(ast.Expr(call), s)]

    def _loop_names(self, s, activity):
        return sorted(n for n in activity.writes if n in s.live or n in s.live_in or n in self.outer)

    @staticmethod
    def _options(s):
        """Returns the arguments of set_loop_options at the start of a loop as a function, or None."""
        first = s.body[0] if s.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) and ast.unparse(first.value.func).endswith("set_loop_options"):
            del s.body[0]
            s.body = s.body or [_at(ast.Pass(), s)]
            return _lambda(ast.Call(func=ast.Name(id="dict", ctx=ast.Load()), args=[], keywords=first.value.keywords))
        return ast.Constant(None)

    def _state(self, s, activity, names):
        """Returns (functions that read and write the state, the arguments that pass them)."""
        self.states.update(names)
        places = {text: node for text, (node, root) in activity.places.items() if root not in activity.writes}
        self.number += 1
        texts = names + sorted(places)
        values = [_known(_load(n), n) if n in self.outer else _load(n) for n in names] + [
            _known(_as_load(places[t]), t) for t in sorted(places)]
        for value in values:
            value.is_plain = True  # type: ignore[attr-defined]
        reader = ast.FunctionDef(name="ag__read_%d" % self.number, args=_arguments(), decorator_list=[], returns=None, type_params=[],
                                 body=[ast.Return(ast.Tuple(elts=values, ctx=ast.Load()))])
        targets = [ast.Name(id=n, ctx=ast.Store()) for n in names]
        body: list = self._declarations(names)
        if targets:
            body.append(ast.Assign(targets=[ast.Tuple(elts=targets, ctx=ast.Store())],
                                   value=_subscript("ag__values", ast.Slice(upper=ast.Constant(len(names))))))
        for i, text in enumerate(sorted(places)):
            put = ast.Assign(targets=[places[text]], value=_subscript("ag__values", ast.Constant(len(names) + i)))
            is_known = _call("is_defined", _subscript("ag__values", ast.Constant(len(names) + i)))
            body.append(ast.If(test=is_known, body=[put], orelse=[_removal(places[text])]))
        writer = ast.FunctionDef(name="ag__write_%d" % self.number, args=_arguments("ag__values"), decorator_list=[], returns=None, type_params=[],
                                 body=body or [ast.Pass()])
        shown = ast.Tuple(elts=[ast.Constant(t) for t in texts], ctx=ast.Load())
        return [_at(reader, s), _at(writer, s)], [_load(reader.name), _load(writer.name), shown]

    def _function(self, s, kind, statements, writes, parameters=(), own=()):
        """Returns a function of a block. Names that it shares with the function are declared; others are its own."""
        statements = self.block(statements)
        self.number += 1
        shared = sorted(((writes | self.states) & self._written(statements) & (self.states | set(self.outer))) - set(own))
        arguments = _arguments(*parameters, *own)
        arguments.defaults = [_load(name) for name in own]
        for value in arguments.defaults:
            value.is_plain = True  # type: ignore[attr-defined]
        return _at(ast.FunctionDef(name="ag__%s_%d" % (kind, self.number), args=arguments, decorator_list=[], returns=None, type_params=[],
                                   body=self._declarations(shared) + statements), s)

    @staticmethod
    def _written(statements):
        """Returns the names that statements assign, also in the functions that stand for blocks."""
        found = liveness.Activity(*statements).writes
        for s in statements:
            for node in ast.walk(s):
                if isinstance(node, ast.Nonlocal):
                    found.update(node.names)
        return found

    def _declarations(self, names):
        rows: list = []
        outside = [n for n in names if self.outer.get(n) == "global"]
        inside = [n for n in names if self.outer.get(n) != "global"]
        if outside:
            rows.append(ast.Global(names=outside))
        if inside:
            rows.append(ast.Nonlocal(names=inside))
        return rows


def _own_nodes(function):
    todo = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo += list(ast.iter_child_nodes(node))


# --- Small pieces of syntax

def _arguments(*names):
    return ast.arguments(posonlyargs=[], args=[ast.arg(arg=n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[])


def _load(name):
    return ast.Name(id=name, ctx=ast.Load())


def _assign(name, value, like):
    return _at(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value), like)


def _as_load(node):
    copy = ast.parse(ast.unparse(node), mode="eval").body
    return copy


def _call_attribute(name):
    return ast.Attribute(value=_load("ag__"), attr=name, ctx=ast.Load())


def _call(name, *args):
    call = ast.Call(func=_call_attribute(name), args=list(args), keywords=[])
    call.is_made = True  # type: ignore[attr-defined]  # expressions.py does not convert it again
    return call


def _known(node, text):
    return _call("known", _lambda(node), ast.Constant(text))


def _removal(place):
    """Returns statements that remove a place, which another branch may have made."""
    target = _as_load(place)
    target.ctx = ast.Del()
    errors = ast.Tuple(elts=[_load(name) for name in ("NameError", "AttributeError", "LookupError", "TypeError")], ctx=ast.Load())
    for name in ast.walk(errors):
        name.is_plain = True  # type: ignore[attr-defined]
    return ast.Try(body=[ast.Delete(targets=[target])], handlers=[ast.ExceptHandler(type=errors, name=None, body=[ast.Pass()])], orelse=[], finalbody=[])


def _lambda(body):
    made = ast.Lambda(args=_arguments(), body=body)
    made.is_made = True  # type: ignore[attr-defined]
    return made


def _subscript(name, index):
    return ast.Subscript(value=_load(name), slice=index, ctx=ast.Load())


def _at(node, like):
    """Gives a node the first line of another: errors in a statement as a whole are errors in its first line."""
    node.lineno = node.end_lineno = like.lineno
    node.col_offset = node.end_col_offset = like.col_offset
    return node
