"""Which types expressions may have. What the types are, and how operations combine them, is up to a Resolver."""

import ast
import itertools
from typing import Any, Callable

from runnel.autograph.pyct import anno, cfg, qual_names, syntax, transformer
from runnel.autograph.pyct.static_analysis.annos import NodeAnno


class Resolver:
    """Answers questions about types. Answers are sets of types, or None if nothing is known.

    |ns| is {name: value} of what the function sees from outside, |types_ns| {QN: types} of its own names.
    """

    def res_name(self, ns, types_ns, name):
        """Returns (types, value or None) of a name from outside."""
        raise NotImplementedError("subclasses know names")

    def res_value(self, ns, value):
        """Returns the types of a value."""
        raise NotImplementedError("subclasses know values")

    def res_arg(self, ns, types_ns, f_name, name, type_anno, f_is_local):
        """Returns the types of a parameter."""
        raise NotImplementedError("subclasses know parameters")

    def res_call(self, ns, types_ns, node, f_type, args, keywords):
        """Returns (types of the result of a call, {QN: types} that names have afterwards, or None)."""
        raise NotImplementedError("subclasses know calls")

    def res_slice(self, ns, types_ns, node_or_slice, value, slice_):
        """Returns the types of value[slice_]. |node_or_slice| is the node, or the index if an assignment takes a value apart."""
        raise NotImplementedError("subclasses know subscripts")

    def res_compare(self, ns, types_ns, node, left, right):
        """Returns the types of a comparison; |right| is a list."""
        raise NotImplementedError("subclasses know comparisons")

    def res_unop(self, ns, types_ns, node, opnd):
        """Returns the types of an operation on one operand."""
        raise NotImplementedError("subclasses know operators")

    def res_binop(self, ns, types_ns, node, left, right):
        """Returns the types of an operation on two operands."""
        raise NotImplementedError("subclasses know operators")

    def res_list_literal(self, ns, elt_types):
        """Returns the types of a list of elements; |elt_types| are the sets of theirs."""
        raise NotImplementedError("subclasses know lists")


NO_VALUE = object()


def _checked(types):
    if types is not None and not isinstance(types, set):
        raise ValueError("the resolver is expected to return set, got %r" % (types,))
    return types


class StmtInferrer(ast.NodeVisitor):
    """Infers the types in one node of a graph. |types_in| are those of the names before it, |new_symbols| becomes what it assigns."""

    def __init__(self, resolver, scope, namespace, closure_types, types_in):
        self._resolver, self._scope, self._namespace = resolver, scope, namespace
        self._closure_types, self._types_in = closure_types, types_in
        self.new_symbols = {}
        self.rtype = None  # the types of the value that is being assigned
        self._is_target = False

    def visit(self, node):
        types = super().visit(node)
        if isinstance(node, ast.expr_context):
            return None
        if _checked(types):
            anno.setanno(node, anno.Static.TYPES, tuple(types))
        return types or None

    def generic_visit(self, node):
        super().generic_visit(node)

    def visit_Constant(self, node):
        types = self._resolver.res_value(self._namespace, node.value)
        if types:
            anno.setanno(node, anno.Static.VALUE, node.value)
        return types

    def _unpacked(self, node):
        """Gives the elements of a target the parts of the value."""
        whole = self.rtype
        for i, element in enumerate(node.elts):
            self.rtype = None
            if whole is not None:
                index = self._resolver.res_value(self._namespace, i)
                self.rtype = self._resolver.res_slice(self._namespace, self._types_in, i, whole, index)
            self.visit(element)
        self.rtype = whole
        return whole

    def visit_Tuple(self, node):
        if isinstance(node.ctx, syntax.Store):
            return self._unpacked(node)
        types = [self.visit(element) for element in node.elts]
        return None if None in types else set(itertools.product(*types))

    def visit_List(self, node):
        if isinstance(node.ctx, syntax.Store):
            return self._unpacked(node)
        types = [self.visit(element) for element in node.elts]
        return None if None in types else self._resolver.res_list_literal(self._namespace, types)

    def visit_Set(self, node):
        self.generic_visit(node)

    def visit_Name(self, node):
        name = anno.getanno(node, anno.Basic.QN)
        kind = type(node.ctx).__name__
        if kind == "Load":
            if name in self._types_in:
                return self._types_in[name]
            if name in self._closure_types:
                return self._closure_types[name] if name not in self._scope.bound else None
            if name in self._scope.bound - self._scope.nonlocals - self._scope.globals:
                return None
            types, value = self._resolver.res_name(self._namespace, self._types_in, name)
            if value is not None:
                anno.setanno(node, anno.Static.VALUE, value)
            return _checked(types)
        if kind == "Store":
            if self.rtype is not None:
                self.new_symbols[name] = self.rtype
            return self.rtype
        if kind == "Param":
            owner = anno.getanno(node, "function_name", ("", False))
            annotation = getattr(node, "annotation", None)
            shown = anno.getanno(annotation, anno.Basic.QN, None) if annotation is not None else None
            types = _checked(self._resolver.res_arg(self._namespace, self._types_in, owner[0], name, shown, owner[1]))
            if types is not None:
                self.new_symbols[name] = types
            return types
        return None

    def visit_arguments(self, node):
        for name in syntax.parameters(node):
            self.visit(name)

    def visit_Attribute(self, node):
        parents = self.visit(node.value)
        value = anno.getanno(node.value, anno.Static.VALUE, NO_VALUE)
        if value is not NO_VALUE:
            found = getattr(value, node.attr, NO_VALUE)
        else:  # an attribute of the class, if there is but one
            found = getattr(next(iter(parents)), node.attr, NO_VALUE) if parents and len(parents) == 1 else NO_VALUE
        if found is NO_VALUE:
            return None
        anno.setanno(node, anno.Static.VALUE, found)
        return self._resolver.res_value(self._namespace, found)

    def visit_FunctionDef(self, node):
        name = qual_names.QN(node.name)
        returned: Any = Any
        if node.returns is not None:
            types, value = self._resolver.res_name(self._namespace, self._types_in, anno.getanno(node.returns, anno.Basic.QN))
            returned = value if value is not None else Any
        count = len(syntax.parameters(node.args))
        self.new_symbols[name] = {Callable[[Any] * max(count, 1), returned]}  # type: ignore[misc]

    def visit_Lambda(self, node):
        return None

    @staticmethod
    def _returned(types):
        """Returns what functions of known signatures return."""
        found = set()
        for one in types:
            arguments = getattr(one, "__args__", None)
            if getattr(one, "__origin__", None) is None or not arguments or arguments[-1] is Any:
                return None
            found.add(arguments[-1])
        return found

    def visit_Call(self, node):
        self.visit(node.func)
        types = anno.getanno(node.func, anno.Static.TYPES, None)
        arguments = [self.visit(argument) for argument in node.args]
        keywords = {keyword.arg: self.visit(keyword.value) for keyword in node.keywords}
        name = anno.getanno(node.func, anno.Basic.QN, None)
        if name is not None and name in self._types_in and types is not None:  # a local function
            return self._returned(types)
        returned, effects = self._resolver.res_call(self._namespace, self._types_in, node, types, arguments, keywords)
        self.new_symbols.update(effects or {})
        return _checked(returned)

    def visit_Expr(self, node):
        return self.visit(node.value)

    def visit_Return(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node):
        self.rtype = self.visit(node.value)
        for target in node.targets:
            self.visit(target)
        return self.rtype

    def visit_Subscript(self, node):
        value, index = self.visit(node.value), self.visit(node.slice)
        if value is None or index is None:
            return None
        return self._resolver.res_slice(self._namespace, self._types_in, node, value, index)

    def visit_Compare(self, node):
        left, right = self.visit(node.left), [self.visit(one) for one in node.comparators]
        return None if left is None or None in right else self._resolver.res_compare(self._namespace, self._types_in, node, left, right)

    def visit_BinOp(self, node):
        left, right = self.visit(node.left), self.visit(node.right)
        return None if left is None or right is None else self._resolver.res_binop(self._namespace, self._types_in, node, left, right)

    def visit_UnaryOp(self, node):
        operand = self.visit(node.operand)
        return None if operand is None else self._resolver.res_unop(self._namespace, self._types_in, node, operand)


def _merged(states):
    found = {}
    for state in states:
        for name, types in state.items():
            found[name] = found.get(name, set()) | types
    return found


class Analyzer(cfg.GraphVisitor):
    """Passes {QN: types} along the graph of a function."""

    def __init__(self, graph, resolver, namespace, scope, closure_types):
        self._resolver, self._namespace, self._scope = resolver, namespace, scope
        self._closure_types = {name: types for name, types in closure_types.items() if name not in scope.bound or name in scope.nonlocals}
        self.node_types = {}
        super().__init__(graph)

    def init_state(self, node):
        return {}

    @staticmethod
    def _note_closure(function, types):
        """Remembers the types that names have where a function may be called."""
        known = anno.getanno(function, anno.Static.CLOSURE_TYPES, None)
        if known is None:
            known = {}
            anno.setanno(function, anno.Static.CLOSURE_TYPES, known)
        for name, found in types.items():
            known[name] = known.get(name, set()) | set(found)

    def visit_node(self, node):
        before = self.out[node]
        entering = _merged(self.out[one] for one in node.prev)
        inferrer = StmtInferrer(self._resolver, self._scope, self._namespace, self._closure_types, entering)
        inferrer.visit(node.ast_node)
        leaving = {**entering, **inferrer.new_symbols}
        self.in_[node], self.out[node] = entering, leaving
        functions = anno.getanno(node.ast_node, anno.Static.DEFINED_FNS_IN, ())
        if functions and any(isinstance(one, syntax.Call) for one in ast.walk(node.ast_node)):
            seen = {**self._closure_types, **entering, **inferrer.new_symbols}
            for function in functions:
                if _may_call(node.ast_node, function):
                    self._note_closure(function, seen)
        return before != leaving


def _may_call(node, function):
    """Tells whether a node names a function, and may thus call it."""
    name = getattr(function, "name", None)
    return any(isinstance(one, syntax.Name) and one.id == name for one in ast.walk(node))


class FunctionVisitor(transformer.Base):
    """Infers the types in all functions, those inside after what is around them."""

    def __init__(self, source_info, graphs, resolver):
        super().__init__(source_info)
        self._graphs, self._resolver = graphs, resolver
        self._depth = 0

    def visit_FunctionDef(self, node):
        for name in syntax.parameters(node.args):
            anno.setanno(name, "function_name", (node.name, self._depth > 0))
        scope = anno.getanno(node, NodeAnno.ARGS_AND_BODY_SCOPE)
        closure = anno.getanno(node, anno.Static.CLOSURE_TYPES, {})
        Analyzer(self._graphs[node], self._resolver, self.ctx.info.namespace, scope, closure).visit_forward()
        self._depth += 1
        node.body = self.visit_block(node.body)
        self._depth -= 1
        return node


def resolve(node, source_info, graphs, resolver):
    """Notes the types in a tree whose scopes, definitions, functions and graphs are known. Returns the tree."""
    return FunctionVisitor(source_info, graphs, resolver).visit(node)
