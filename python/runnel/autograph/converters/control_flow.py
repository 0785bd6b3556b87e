"""Replaces if, while and for: their blocks become functions, which `ag__.if_stmt`, `while_stmt` and `for_stmt` call."""

import ast

from runnel.autograph.core import converter
from runnel.autograph.lang import directives
from runnel.autograph.pyct import anno, cfg, parser, qual_names, syntax, templates
from runnel.autograph.pyct.static_analysis import activity, liveness, reaching_definitions, reaching_fndefs
from runnel.autograph.pyct.static_analysis.annos import NodeAnno


class _Function:
    def __init__(self):
        self.scope = None


class AnnotatedDef(reaching_definitions.Definition):
    """An assignment, as the conversion of control flow sees it."""


def _shared(statements):
    """Returns the names that functions of blocks inside share with these statements, if these do not assign them themselves."""
    waiting, shared, assigned = list(statements), set(), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, syntax.FunctionDef):
            shared.update(name for one in node.body if isinstance(one, syntax.Nonlocal) for name in one.names)
            assigned.add(node.name)
        elif isinstance(node, syntax.Name) and isinstance(node.ctx, syntax.Store):
            assigned.add(node.id)
        elif not isinstance(node, (syntax.Lambda, syntax.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return shared - assigned


class ControlFlowTransformer(converter.Base):
    """Replaces the statements of a tree. What a block assigns and others need is its state, which two functions read and write."""

    def _function(self, node):
        with self.state[_Function] as state:
            state.scope = anno.getanno(node, NodeAnno.BODY_SCOPE)
            return self.generic_visit(node)

    visit_Lambda = visit_FunctionDef = _function

    # The state

    def _state_of(self, node, modified):
        """Returns (plain names, composite names) of the state, and the plain names that have no value before."""
        live_in, live_out = anno.getanno(node, anno.Static.LIVE_VARS_IN), anno.getanno(node, anno.Static.LIVE_VARS_OUT)
        scope, defined = self.state[_Function].scope, anno.getanno(node, anno.Static.DEFINED_VARS_IN)
        outer = scope.globals | scope.nonlocals if scope is not None else set()
        plain = sorted(name for name in modified if name.is_simple() and name.is_symbol() and (name in live_in or name in live_out or name in outer))
        composite = sorted(name for name in modified if name.is_composite() and not name.support_set & modified
                           and not (name.owner_set - name.support_set) & modified)
        return plain, composite, [name for name in plain if name not in defined and name not in outer]

    def _declarations(self, names):
        scope = self.state[_Function].scope
        outside = [str(name) for name in names if scope is not None and name in scope.globals]
        inside = [str(name) for name in names if str(name) not in outside]
        return [made for made in (syntax.Global(names=outside) if outside else None, syntax.Nonlocal(names=inside) if inside else None) if made]

    def _state(self, node, modified):
        """Returns (the statements before, the names of the functions that read and write the state, names as a tuple, declarations for blocks)."""
        plain, composite, undefined = self._state_of(node, modified)
        before = [made for name in undefined for made in templates.replace("name = ag__.Undefined(text)", name=name, text=syntax.constant(str(name)))]
        every = plain + composite
        getter, setter = self.ctx.namer.new_symbol("get_state", ()), self.ctx.namer.new_symbol("set_state", ())
        values = [templates.replace_as_expression("ag__.ldu(lambda: name, text)", name=name, text=syntax.constant(str(name))) for name in every]
        declarations = self._declarations(plain)
        put = []
        if every:
            put = templates.replace("targets = vars_", targets=syntax.Tuple(elts=[name.ast() for name in every], ctx=syntax.Store()))
        before += templates.replace("def name():\n    return state", name=getter, state=syntax.Tuple(elts=values, ctx=syntax.Load()))
        before += templates.replace("def name(vars_):\n    body", name=setter, body=[*declarations, *put] or [syntax.Pass()])
        names = syntax.Tuple(elts=[syntax.constant(str(name)) for name in every], ctx=syntax.Load())
        return before, getter, setter, names, declarations, len(every)

    def _block(self, root, declarations, statements, parameters=()):
        """Returns (name, definition) of the function of a block."""
        name = self.ctx.namer.new_symbol(root, ())
        made = templates.replace("def name(parameters):\n    pass" if parameters else "def name():\n    pass", name=name, parameters=[*parameters])[0]
        known = {name for one in declarations for name in one.names} | set(parameters)
        local = [made for name in sorted(_shared(statements) - known) for made in templates.replace("n = ag__.Undefined(t)", n=name, t=syntax.constant(name))]
        made.body = [*[type(one)(names=list(one.names)) for one in declarations], *local, *statements] or [syntax.Pass()]
        return name, made

    # The statements

    def visit_If(self, node):
        body, orelse = anno.getanno(node, NodeAnno.BODY_SCOPE), anno.getanno(node, NodeAnno.ORELSE_SCOPE)
        node = self.generic_visit(node)
        before, getter, setter, names, declarations, count = self._state(node, body.bound | orelse.bound | body.modified | orelse.modified)
        first, if_body = self._block("if_body", declarations, node.body)
        second, else_body = self._block("else_body", declarations, node.orelse or [syntax.Pass()])
        call = templates.replace("ag__.if_stmt(test, first, second, getter, setter, names, count)", test=node.test, first=first, second=second,
                                 getter=getter, setter=setter, names=names, count=syntax.constant(count))
        return self._placed(node, [*before, if_body, else_body, *call])

    def _options(self, node, **own):
        found = anno.getanno(node, anno.Basic.DIRECTIVES, {}).get(directives.set_loop_options, {})
        rows = {**own, **found}
        return syntax.Dict(keys=[syntax.constant(key) for key in rows], values=list(rows.values()))

    def visit_While(self, node):
        scope = anno.getanno(node, NodeAnno.BODY_SCOPE)
        node = self.generic_visit(node)
        before, getter, setter, names, declarations, _ = self._state(node, scope.bound | scope.modified)
        body, loop_body = self._block("loop_body", declarations, node.body)
        test, loop_test = self._block("loop_test", [], templates.replace("return test", test=node.test))
        call = templates.replace("ag__.while_stmt(test, body, getter, setter, names, options)", test=test, body=body, getter=getter, setter=setter,
                                 names=names, options=self._options(node))
        return self._placed(node, [*before, loop_body, loop_test, *call, *node.orelse])

    def visit_For(self, node):
        scope, target = anno.getanno(node, NodeAnno.BODY_SCOPE), anno.getanno(node, NodeAnno.ITERATE_SCOPE)
        extra = anno.getanno(node, anno.Basic.EXTRA_LOOP_TEST, None)
        shown = parser.unparse(node.target, include_encoding_marker=False).strip()
        node = self.generic_visit(node)
        before, getter, setter, names, declarations, _ = self._state(node, scope.bound | scope.modified | target.modified)
        item = self.ctx.namer.new_symbol("itr", scope.referenced)
        first = templates.replace("target = item", target=node.target, item=item)
        body, loop_body = self._block("loop_body", declarations, [*first, *node.body], [item])
        tests = []
        if extra is not None:
            test, made = self._block("extra_test", [], templates.replace("return test", test=self.visit(extra)))
            tests = [made]
        call = templates.replace(
            "ag__.for_stmt(iterated, test, body, getter, setter, names, options)", iterated=node.iter, body=body, getter=getter, setter=setter,
            test=test if extra is not None else syntax.constant(None), names=names, options=self._options(node, iterate_names=syntax.constant(shown)))
        return self._placed(node, [*before, loop_body, *tests, *call, *node.orelse])

    @staticmethod
    def _placed(node, statements):
        for statement in statements:
            if not anno.hasanno(statement, anno.Basic.ORIGIN):
                anno.copyanno(node, statement, anno.Basic.ORIGIN)
        return statements


def transform(node, ctx):
    """Returns a tree without if, while and for."""
    graphs = cfg.build(node)
    node = qual_names.resolve(node)
    node = activity.resolve(node, ctx, None)
    node = reaching_definitions.resolve(node, ctx, graphs, AnnotatedDef)
    node = reaching_fndefs.resolve(node, ctx, graphs)
    node = liveness.resolve(node, ctx, graphs, include_annotations=False)
    return ControlFlowTransformer(ctx).visit(node)
