"""Visitors of trees that carry a context, keep state while they are inside nodes, and note where new nodes come from."""

import ast
import collections
import enum

from runnel.autograph.pyct import anno, ast_util, origin_info, parser, pretty_printer, templates


class AnalysisLevel(enum.IntEnum):
    """How much is known of a tree."""

    NONE = 0
    ACTIVITY = 1
    DEFINEDNESS = 2
    LIVENESS = 3


class Context:
    """What all transformations of a function share: |info|, |namer|, |user| and the origin of the node that is being visited."""

    def __init__(self, info, namer, user_context):
        self.info, self.namer, self.user = info, namer, user_context
        self.current_origin = None


class EntityInfo(collections.namedtuple("EntityInfo", ("name", "source_code", "source_file", "future_features", "namespace"))):
    """A function that is transformed."""


class _StateStack:
    """States of one class, the innermost last. Attributes are those of the innermost state; inside a `with` there is a new one.

    There is always one, unless the class says `no_root = True`.
    """

    def __init__(self, type_):
        self.__dict__.update(type=type_, stack=[])
        if not getattr(type_, "no_root", False):
            self.enter()

    def __enter__(self):
        self.enter()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.exit()

    def enter(self):
        """Adds a state."""
        self.stack.append(self.type())

    def exit(self):
        """Removes the innermost state."""
        self.stack.pop()

    @property
    def level(self):
        """The number of states."""
        return len(self.stack)

    @property
    def value(self):
        """The innermost state."""
        return self.stack[-1]

    def __iter__(self):
        return iter(self.stack)

    def __getattr__(self, key):
        return getattr(self.stack[-1], key)

    def __setattr__(self, key, value):
        setattr(self.stack[-1], key, value)


class _States(dict):
    """{class: _StateStack}, made when asked for."""

    def __missing__(self, key):
        made = self[key] = _StateStack(key)
        return made


class NodeStateTracker:
    """The base of visitors with a context and states."""

    def __init__(self, ctx):
        self.ctx = ctx
        self.state = _States()

    def debug_print(self, node):
        """Prints a tree. Returns it."""
        print(pretty_printer.fmt(node))
        return node

    def debug_print_src(self, node):
        """Prints the source of a tree. Returns the tree."""
        print(parser.unparse(node))
        return node

    def visit_block(self, nodes, before_visit=None, after_visit=None):
        """Visits statements one after the other. Returns what becomes of them.

        |after_visit| gets each result, and returns (it or others, None or a list that takes the statements from here on).
        """
        if nodes is None:
            return None
        results = destination = []
        for node in nodes:
            if before_visit:
                before_visit()
            made = self.visit(node)
            further = None
            if after_visit and made:
                made, further = after_visit(made)
            if made:
                destination.extend(made if isinstance(made, (list, tuple)) else [made])
            if further is not None:
                destination = further
        return results

    def _enter(self, node):
        """Notes the origin of a node; returns the one before. Raises ValueError for what is no node."""
        if not isinstance(node, ast.AST):
            raise ValueError('invalid value for "node": expected "ast.AST", got "%s"; lists of nodes need visit_block' % type(node))
        before = self.ctx.current_origin
        self.ctx.current_origin = anno.getanno(node, anno.Basic.ORIGIN, before)
        return before


class Base(NodeStateTracker, ast.NodeTransformer):
    """The base of transformations. New nodes get the origin of the node that they replace."""

    def create_assignment(self, target, expression):
        """Returns the statement that assigns an expression to a target."""
        return templates.replace("target = expression", target=target, expression=expression)[0]

    def apply_to_single_assignments(self, targets, values, apply_fn):
        """See ast_util."""
        ast_util.apply_to_single_assignments(targets, values, apply_fn)

    def visit(self, node):
        before = self._enter(node)
        try:
            if anno.hasanno(node, anno.Basic.SKIP_PROCESSING):
                return node
            made = super().visit(node)
            for one in made if isinstance(made, (list, tuple)) else [made]:
                if one is not node and isinstance(one, ast.AST) and not anno.hasanno(one, anno.Basic.ORIGIN):
                    origin_info.copy_origin(node, one)
            return made
        finally:
            self.ctx.current_origin = before


class CodeGenerator(NodeStateTracker, ast.NodeVisitor):
    """The base of visitors that write a text."""

    def __init__(self, ctx):
        super().__init__(ctx)
        self._parts = []
        self.source_map = {}

    def emit(self, code):
        """Adds text."""
        self._parts.append(code)

    @property
    def code_buffer(self):
        """The text so far."""
        return "".join(self._parts)

    def visit(self, node):
        before = self._enter(node)
        first = self.code_buffer.count("\n") + 1
        try:
            made = super().visit(node)
            if self.ctx.current_origin is not None:
                for line in range(first, self.code_buffer.count("\n") + 1):
                    self.source_map.setdefault(line, self.ctx.current_origin)
            return made
        finally:
            self.ctx.current_origin = before


