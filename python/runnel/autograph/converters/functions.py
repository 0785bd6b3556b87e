"""Gives each function a scope: `with ag__.FunctionScope(...) as fscope`."""

from runnel.autograph.core import converter
from runnel.autograph.pyct import anno, syntax, templates
from runnel.autograph.pyct.static_analysis.annos import NodeAnno

SCOPE_NAME = "function_context_name"  # the note of a function that has the name of its scope


class _Function:
    """A function that is being visited."""


class FunctionTransformer(converter.Base):
    """Wraps the bodies of functions."""

    def _options(self, is_inner):
        options = self.ctx.user.options
        return (options.call_options() if is_inner else options).to_ast()

    def visit_Lambda(self, node):
        with self.state[_Function]:
            is_inner = self.state[_Function].level > 2
            node = self.generic_visit(node)
            name = self.new_name("lscope", anno.getanno(node, NodeAnno.ARGS_AND_BODY_SCOPE, None))
            made = templates.replace_as_expression("ag__.with_function_scope(lambda scope: None, name, options)", scope=name,
                                                   name=syntax.constant(name), options=self._options(is_inner))
            inner = made.args[0]
            inner.body, node.body = node.body, made
            anno.setanno(inner, SCOPE_NAME, name)
            if not is_inner:
                return node
            marked = templates.replace_as_expression("ag__.autograph_artifact(made)", made="made")
            marked.args = [node]
            return marked

    def visit_FunctionDef(self, node):
        with self.state[_Function]:
            is_inner = self.state[_Function].level > 2
            name = self.new_name("fscope", anno.getanno(node, NodeAnno.ARGS_AND_BODY_SCOPE, None))
            node.body = self.visit_block(node.body)
            if is_inner:
                node.decorator_list.append(templates.replace_as_expression("ag__.autograph_artifact"))
            documentation = []
            if is_text(node.body[0]) and len(node.body) > 1:
                documentation, node.body = node.body[:1], node.body[1:]
            made = templates.replace("with ag__.FunctionScope(function, name, options) as scope:\n    body", function=syntax.constant(node.name),
                                     name=syntax.constant(name), options=self._options(is_inner), scope=name, body=[syntax.Pass()])[0]
            made.body = node.body
            node.body = [*documentation, made]
            anno.setanno(node, SCOPE_NAME, name)
            return node


def is_text(node):
    """Tells whether a statement is a text, such as the documentation of a function."""
    return isinstance(node, syntax.Expr) and isinstance(node.value, syntax.Constant) and isinstance(node.value.value, str)


def transform(node, ctx):
    """Returns a tree whose functions have scopes."""
    return FunctionTransformer(ctx).visit(node)
