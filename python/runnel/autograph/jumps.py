"""Replaces break, continue and return, so that each block has one entry and one exit.

After an `if` of which one branch always jumps, what follows moves into the other branch. Elsewhere a jump sets a flag, and
what follows runs only if no flag is set. The value of a return is kept in `ag__value`.
"""

import ast

VALUE = "ag__value"
RETURNED = "ag__returned"
FLAGS = (RETURNED, "ag__broke_", "ag__skipped_")  # how the names of flags begin


def lower(function):
    """Rewrites the body of a FunctionDef in place."""
    body = list(function.body)
    if not _may_jump(body, (ast.Return,)) and not _has_loop_jumps(body):
        return
    last = body[-1]
    if not isinstance(last, ast.Return):
        body.append(_at(ast.Return(value=None), last))
    lowered = _Lowering()
    block, _, _ = lowered.block(body, None)
    head = [_assign(RETURNED, ast.Constant(False), function)] if lowered.uses_returned else []
    if not lowered.uses_returned:
        block = _without(block, RETURNED)
    function.body = head + block + [_at(ast.Return(value=_name(VALUE)), last)]
    ast.fix_missing_locations(function)


class _Lowering:
    """The state of one function: how many loops there were, and whether the flag of returns is read."""

    def __init__(self):
        self.loops = 0
        self.uses_returned = False

    def block(self, statements, loop):
        """Returns (statements, flags that they may set, whether they always jump)."""
        done = []
        for i, s in enumerate(statements):
            new, flags, always = self.statement(s, loop, statements[i + 1:])
            done += new
            if always or flags is None:
                return done, self._pending, always
            if flags:
                rest, more, rest_always = self.block(statements[i + 1:], loop)
                if rest:
                    done.append(self.guarded(flags, rest, s))
                return done, flags | more, rest_always
        return done, set(), False

    def statement(self, s, loop, rest):
        """Returns (statements, flags, always); flags are None if `rest` has been used, and then _pending has them."""
        if isinstance(s, ast.Return):
            value = s.value if s.value is not None else ast.Constant(None)
            self._pending = {RETURNED}
            return [_assign(VALUE, value, s), _assign(RETURNED, ast.Constant(True), s)], {RETURNED}, True
        if isinstance(s, (ast.Break, ast.Continue)):
            flag = loop.broke if isinstance(s, ast.Break) else loop.skipped
            loop.used.add(flag)
            self._pending = {flag}
            return [_assign(flag, ast.Constant(True), s)], {flag}, True
        if isinstance(s, ast.If):
            return self._if(s, loop, rest)
        if isinstance(s, (ast.While, ast.For)):
            return self._loop(s)
        if isinstance(s, ast.With):
            s.body, flags, always = self.block(s.body, loop)
            self._pending = flags
            return [s], flags, always
        if isinstance(s, ast.Try):
            return self._try(s, loop)
        return [s], set(), False

    def _if(self, s, loop, rest):
        body_jumps, else_jumps = _always_jumps(s.body), _always_jumps(s.orelse)
        uses_rest = body_jumps != else_jumps
        body = s.body + (rest if else_jumps and not body_jumps else [])
        orelse = s.orelse + (rest if body_jumps and not else_jumps else [])
        s.body, flags, always = self.block(body, loop)
        s.orelse, more, else_always = self.block(orelse, loop)
        s.body = s.body or [_at(ast.Pass(), s)]
        self._pending = flags | more
        if uses_rest:
            return [s], None, always and else_always
        return [s], flags | more, always and else_always

    def _try(self, s, loop):
        s.body, flags, body_always = self.block(s.body, loop)
        tail, more, else_always = self.block(s.orelse, loop)
        s.orelse = [] if body_always else [self.guarded(flags, tail, s)] if flags and tail else tail  # it runs only if the body ends
        ends = [body_always or else_always or _raises(s.orelse or s.body)]
        flags |= more
        for handler in s.handlers:
            handler.body, more, always = self.block(handler.body, loop)
            ends.append(always or _raises(handler.body))
            flags |= more
        s.finalbody, more, final_always = self.block(s.finalbody, loop)
        self._pending = flags | more
        return [s], flags | more, final_always or all(ends)

    def _loop(self, s):
        self.loops += 1
        loop = _Loop(self.loops)
        body, flags, _ = self.block(s.body, loop)
        ends = ({loop.broke} & loop.used) | ({RETURNED} & flags)
        if loop.skipped in loop.used:
            body.insert(0, _assign(loop.skipped, ast.Constant(False), s))
        s.body = body or [_at(ast.Pass(), s)]
        s.stops = sorted(ends)  # type: ignore[attr-defined]  # flow.py reads it
        if RETURNED in ends:
            self.uses_returned = True
        orelse, s.orelse = s.orelse, []
        before = [_assign(loop.broke, ast.Constant(False), s)] if loop.broke in loop.used else []
        after = []
        if orelse:
            tail, more, _ = self.block(orelse, None)
            after = [self.guarded(ends, tail, s)] if ends else tail
            flags |= more
        return before + [s] + after, flags & {RETURNED}, False

    def guarded(self, flags, statements, like):
        """Returns `if not (flags): statements`."""
        self.uses_returned |= RETURNED in flags
        test = _no_flag(sorted(flags))
        return _at(ast.If(test=test, body=statements, orelse=[]), like)


class _Loop:
    def __init__(self, number):
        self.broke, self.skipped = "ag__broke_%d" % number, "ag__skipped_%d" % number
        self.used = set()


def _no_flag(flags):
    tests = [ast.UnaryOp(op=ast.Not(), operand=_name(flag)) for flag in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(op=ast.And(), values=tests)


def no_flag(flags, like):
    """Returns the expression that none of the flags is set."""
    return ast.fix_missing_locations(_at(_no_flag(flags), like))


def _raises(statements):
    return bool(statements) and isinstance(statements[-1], ast.Raise)


def _always_jumps(statements):
    for s in statements:
        if isinstance(s, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(s, ast.If) and _always_jumps(s.body) and _always_jumps(s.orelse):
            return True
        if isinstance(s, ast.With) and _always_jumps(s.body):
            return True
        if isinstance(s, ast.Try):
            blocks = [s.body + s.orelse, *(handler.body for handler in s.handlers)]
            if _always_jumps(s.finalbody) or all(_always_jumps(block) or _raises(block) for block in blocks):
                return True
    return False


def _may_jump(statements, kinds):
    for s in statements:
        if isinstance(s, kinds):
            return True
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if _may_jump([c for c in ast.iter_child_nodes(s) if isinstance(c, (ast.stmt, ast.excepthandler))], kinds):
            return True
    return False


def _has_loop_jumps(statements):
    return _may_jump(statements, (ast.Break, ast.Continue)) or any(
        isinstance(n, (ast.While, ast.For)) and n.orelse for s in statements for n in ast.walk(s))


def _without(statements, name):
    """Returns the statements without assignments to a name."""
    kept = []
    for s in statements:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id == name:
            continue
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(s, field, None)
            if isinstance(inner, list) and inner and not isinstance(s, (ast.FunctionDef, ast.ClassDef)):
                left = _without(inner, name)
                setattr(s, field, left or ([_at(ast.Pass(), s)] if field == "body" else []))
        for handler in getattr(s, "handlers", ()):
            handler.body = _without(handler.body, name) or [_at(ast.Pass(), s)]
        kept.append(s)
    return kept


def _name(name):
    return ast.Name(id=name, ctx=ast.Load())


def _assign(name, value, like):
    return _at(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value), like)


def _at(node, like):
    return ast.copy_location(node, like)
