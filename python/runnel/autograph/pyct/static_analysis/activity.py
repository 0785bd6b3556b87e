"""Which names the parts of a tree read, assign and delete.

Each statement gets a Scope under anno.Static.SCOPE, blocks get theirs under the keys of annos.NodeAnno.
"""

import ast
import weakref

from runnel.autograph.pyct import anno, qual_names, syntax, transformer
from runnel.autograph.pyct.static_analysis.annos import NodeAnno

_SETS = ("read", "modified", "deleted", "bound", "globals", "nonlocals", "annotations")


class Scope:
    """The QNs that a part of a program reads, assigns (|modified|), makes its own (|bound|), deletes, declares, or reads in annotations.

    What a scope does, its parent does, too, once it is final; of an |isolated| scope, a function, only what it reads of its surroundings.
    |isolated_names| are known inside only, |params| are the parameters, {QN: what has them}.
    """

    def __init__(self, parent, isolated=True, function_name=None):
        self.parent, self.isolated, self.function_name = parent, isolated, function_name
        for name in _SETS:
            setattr(self, name, set())
        self.isolated_names = set()
        self.params = weakref.WeakValueDictionary()
        self.is_final = False

    @property
    def enclosing_scope(self):
        """The function's scope that this one is in, or its parent if it is a function's itself."""
        if self.parent is not None and not self.isolated:
            return self.parent
        return self

    @property
    def referenced(self):
        """What is read or made here or around."""
        return self.read | self.bound | (self.parent.referenced if self.parent is not None else set())

    @property
    def free_vars(self):
        """What is read here and belongs to the surroundings."""
        enclosing = self.enclosing_scope
        return enclosing.read - enclosing.bound

    def copy_from(self, other):
        """Takes over what another scope has."""
        for name in _SETS:
            setattr(self, name, set(getattr(other, name)))
        self.isolated_names = set(other.isolated_names)
        self.params.clear()
        self.params.update(other.params)

    @classmethod
    def copy_of(cls, other):
        """Returns a copy of a scope, and of those around it."""
        made = cls(cls.copy_of(other.parent) if other.parent is not None else None, other.isolated, other.function_name)
        made.copy_from(other)
        return made

    def merge_from(self, other):
        """Adds what another scope has."""
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))
        self.params.update(other.params)

    def _visible(self, names):
        """Returns the names of which no part is known inside only."""
        return {name for name in names if not ({name} | name.owner_set) & self.isolated_names}

    def finalize(self):
        """Ends the scope: its parent gets what concerns it."""
        if self.is_final:
            raise ValueError("the scope is final already")
        self.is_final = True
        if self.parent is None:
            return
        if self.isolated:
            self.parent.read.update(name for name in self.read if not ({name} | name.owner_set) & (self.bound - self.nonlocals - self.globals))
            return
        for name in _SETS:
            getattr(self.parent, name).update(self._visible(getattr(self, name)))

    def mark_param(self, name, owner):
        """Notes a parameter."""
        self.bound.add(name)
        self.params[name] = owner

    def __repr__(self):
        return "Scope{%s}" % "; ".join("%s=%s" % (name[0], ", ".join(sorted(map(str, getattr(self, name))))) for name in _SETS[:4])


class _Comprehension:
    no_root = True


class _FunctionOrClass:
    def __init__(self):
        self.node = None


class ActivityAnalyzer(transformer.Base):
    """Notes the scopes of a tree whose QNs are resolved."""

    def __init__(self, context, parent_scope=None):
        super().__init__(context)
        self.scope = Scope(parent_scope, isolated=False)
        self._in_annotation = self._in_aug_assign = False

    # Scopes

    def _open(self, isolated=False, name=None):
        self.scope = Scope(self.scope, isolated=isolated, function_name=name)
        return self.scope

    def _close(self, node=None, *keys):
        done = self.scope
        done.finalize()
        self.scope = done.parent
        for key in keys:
            anno.setanno(node, key, done)
        return done

    def _statement(self, node):
        self._open()
        self.generic_visit(node)
        self._close(node, anno.Static.SCOPE)
        return node

    visit_Import = visit_ImportFrom = visit_Expr = visit_Raise = visit_Return = visit_Assign = visit_Delete = visit_Assert = visit_withitem = _statement

    # Names

    def _in_constructor(self):
        stack = self.state[_FunctionOrClass].stack
        return len(stack) > 2 and isinstance(stack[-2].node, syntax.ClassDef) and getattr(stack[-1].node, "name", None) == "__init__"

    def _track(self, node):
        qn = anno.getanno(node, anno.Basic.QN, None)
        if qn is None:
            return
        context = type(node.ctx).__name__
        if context in ("Store", "AugStore"):
            self.scope.modified.add(qn)
            self.scope.bound.add(qn)
            if qn.is_composite() and self._in_constructor() and qn.has_attr():  # the object that is made is changed, too
                self.scope.modified.add(qn.parent)
            if self._in_aug_assign:
                self.scope.read.add(qn)
        elif context == "Param":
            self.scope.mark_param(qn, self.state[_FunctionOrClass].node)
        else:
            self.scope.read.add(qn)
            if context == "Del":  # deleting a name that does not exist is an error, so it is read
                self.scope.bound.add(qn)
                self.scope.deleted.add(qn)
            elif self._in_annotation:
                self.scope.annotations.add(qn)

    def visit_Name(self, node):
        self._track(node)
        return node

    def _part(self, node):
        self._track(node)
        inside, self._in_aug_assign = self._in_aug_assign, False
        self.generic_visit(node)
        self._in_aug_assign = inside
        return node

    visit_Attribute = visit_Subscript = _part

    def visit_alias(self, node):
        name = qual_names.QN((node.asname or node.name).partition(".")[0])
        self.scope.modified.add(name)
        self.scope.bound.add(name)
        return node

    def _declaration(self, node):
        self._open()
        names = {qual_names.QN(name) for name in node.names}
        (self.scope.globals if isinstance(node, syntax.Global) else self.scope.nonlocals).update(names)
        self.scope.read.update(names)
        self._close(node, anno.Static.SCOPE)
        return node

    visit_Global = visit_Nonlocal = _declaration

    def _annotation(self, node):
        before, self._in_annotation = self._in_annotation, True
        self.visit(node)
        self._in_annotation = before

    def visit_AnnAssign(self, node):
        self._open()
        self._annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)
        self._close(node, anno.Static.SCOPE)
        return node

    def visit_AugAssign(self, node):
        self._open()
        self._in_aug_assign = True
        self.visit(node.target)
        self._in_aug_assign = False
        self.visit(node.value)
        self._close(node, anno.Static.SCOPE)
        return node

    # Expressions

    def visit_Call(self, node):
        self._open()
        for one in [*node.args, *node.keywords]:
            self.visit(one)
        self._close(node, NodeAnno.ARGS_SCOPE)
        self.visit(node.func)
        return node

    def _comprehension(self, node):
        self._open()
        targets = [name for generator in node.generators for name in ast.walk(generator.target) if isinstance(name, syntax.Name)]
        self.scope.isolated_names.update(qual_names.QN(name.id) for name in targets)
        self.generic_visit(node)
        self._close()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # Functions and classes

    def _signature(self, node):
        """Visits what is evaluated where a function is defined."""
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(default)
        for name in syntax.parameters(node.args):
            if getattr(name, "annotation", None) is not None:
                self._annotation(name.annotation)

    def _function(self, node, name, body):
        with self.state[_FunctionOrClass] as state:
            state.node = node
            self._open(isolated=True, name=name)
            self._open()
            for parameter in syntax.parameters(node.args):
                self._track(parameter)
            self._close(node.args, anno.Static.SCOPE)
            self._open()
            for one in body:
                self.visit(one)
            if len(body) == 1 and isinstance(body[0], ast.expr):  # of a lambda, where it is all that a node of the graph has
                anno.setanno(body[0], anno.Static.SCOPE, self.scope)
            self._close(node, NodeAnno.BODY_SCOPE)
            self._close(node, NodeAnno.ARGS_AND_BODY_SCOPE)

    def visit_FunctionDef(self, node):
        name = qual_names.QN(node.name)
        self._open()
        for decorator in node.decorator_list:
            self.visit(decorator)
        if node.returns is not None:
            self._annotation(node.returns)
        self._signature(node)
        self.scope.modified.add(name)
        self.scope.bound.add(name)
        self._close(node, anno.Static.SCOPE)
        self._function(node, node.name, node.body)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self._open()
        self._signature(node)
        self._close(node, anno.Static.SCOPE)
        self._function(node, "lambda", [node.body])
        return node

    def visit_ClassDef(self, node):
        name = qual_names.QN(node.name)
        with self.state[_FunctionOrClass] as state:
            state.node = node
            self._open()
            self.scope.modified.add(name)
            self.scope.bound.add(name)
            for one in [*node.decorator_list, *node.bases, *node.keywords]:
                self.visit(one)
            self._open(isolated=True)
            for one in node.body:
                self.visit(one)
            self._close()
            self._close(node, anno.Static.SCOPE)
        return node

    # Compound statements

    def _block(self, node, statements, key):
        self._open()
        for one in statements:
            self.visit(one)
        self._close(node, key)

    def _blocks(self, node):
        self._block(node, node.body, NodeAnno.BODY_SCOPE)
        self._block(node, node.orelse, NodeAnno.ORELSE_SCOPE)
        return node

    def _conditional(self, node):
        self._open()
        self.visit(node.test)
        done = self._close(node, NodeAnno.COND_SCOPE)
        anno.setanno(node.test, anno.Static.SCOPE, done)
        return self._blocks(node)

    visit_If = visit_While = _conditional

    def visit_For(self, node):
        self._open()
        self._open()
        self.visit(node.target)
        self._close(node, NodeAnno.ITERATE_SCOPE)
        self.visit(node.iter)
        done = self._close()
        anno.setanno(node.iter, anno.Static.SCOPE, done)
        if anno.hasanno(node, anno.Basic.EXTRA_LOOP_TEST):
            self._open()
            test = anno.getanno(node, anno.Basic.EXTRA_LOOP_TEST)
            self.visit(test)
            self._close(test, anno.Static.SCOPE)
        return self._blocks(node)

    visit_AsyncFor = visit_For

    def visit_With(self, node):
        self._open()
        self.generic_visit(node)
        self._close(node, NodeAnno.BODY_SCOPE)
        return node

    visit_AsyncWith = visit_With

    def visit_Match(self, node):
        self._open()
        self.visit(node.subject)
        done = self._close(node, NodeAnno.COND_SCOPE)
        anno.setanno(node.subject, anno.Static.SCOPE, done)
        for case in node.cases:
            self.visit(case)
        return node

    def visit_ExceptHandler(self, node):
        self._open()
        if node.name is not None:
            self.scope.isolated_names.add(anno.getanno(node.name, anno.Basic.QN))
        self.generic_visit(node)
        self._close(node, NodeAnno.BODY_SCOPE)
        return node


def resolve(node, context, parent_scope=None):
    """Notes the scopes of a tree. Returns the tree."""
    return ActivityAnalyzer(context, parent_scope).visit(node)
