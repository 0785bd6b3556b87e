"""Prints what the tools of tensorflow.python.autograph.pyct find out about functions. See test_inner_paths_v2.py."""

import textwrap

from tensorflow.python.autograph.pyct import (
    anno, ast_util, cfg, inspect_utils, naming, origin_info, parser, qual_names, templates, transformer, transpiler)
from tensorflow.python.autograph.pyct.common_transformers import anf
from tensorflow.python.autograph.pyct.static_analysis import activity, annos, liveness, reaching_definitions, reaching_fndefs, type_inference


def search(rows, wanted):
    found, left = None, len(rows)
    for i, row in enumerate(rows):
        left -= 1
        if row.name == wanted:
            found = i
            break
        elif not row:
            continue
        try:
            row.visits[wanted] += 1
        except KeyError as error:
            if left:
                left = error
        finally:
            row.last = found

    def report():
        nonlocal left
        left = left or None
        return [part for part in rows if part != found]

    with rows.lock as lock:
        while lock:
            lock = report()
        else:
            del left
    return (lambda x=found: x + wanted)(1)


def analysed(function):
    node, source = parser.parse_entity(function, future_features=())
    info = transformer.EntityInfo(name=function.__name__, source_code=source, source_file=None, future_features=(), namespace={})
    context = transformer.Context(info, naming.Namer({}), None)
    node = activity.resolve(qual_names.resolve(node), context)
    graphs = cfg.build(node)
    node = reaching_definitions.resolve(node, context, graphs)
    node = reaching_fndefs.resolve(node, context, graphs)
    return liveness.resolve(node, context, graphs), graphs, context


def shown(names):
    return " ".join(sorted(map(str, names)))


def flat(nodes):
    return " | ".join(sorted(parser.unparse(n.ast_node, include_encoding_marker=False).strip().replace("\n", " ")[:30] for n in nodes))


tree, graphs, context = analysed(search)
graph = graphs[tree]
for node in sorted(graph.index.values(), key=lambda n: (getattr(n.ast_node, "lineno", 0), repr(n))):
    if isinstance(node.ast_node, type(tree.body[0])) or "def " not in repr(node):
        scope = anno.getanno(node.ast_node, anno.Static.SCOPE, None) or activity.Scope(None)
        print(repr(node), "<", flat(node.prev), ">", flat(node.next), ":", shown(scope.read), "=", shown(scope.modified), "~", shown(scope.deleted))
print(flat(graph.exit))
for statement in sorted(graph.stmt_next, key=lambda s: (s.lineno, s.col_offset)):
    print(type(statement).__name__, statement.lineno, "<", flat(graph.stmt_prev[statement]), ">", flat(graph.stmt_next[statement]))
loop = tree.body[1]
print(shown(anno.getanno(loop, anno.Static.LIVE_VARS_IN)), "/", shown(anno.getanno(loop, anno.Static.LIVE_VARS_OUT)), "/",
      shown(anno.getanno(loop, anno.Static.DEFINED_VARS_IN)))
for key in (annos.NodeAnno.ITERATE_SCOPE, annos.NodeAnno.BODY_SCOPE, annos.NodeAnno.ORELSE_SCOPE):
    scope = anno.getanno(loop, key)
    print(key.name, shown(scope.read), "=", shown(scope.modified), "+", shown(scope.bound))
print(shown(anno.getanno(tree, annos.NodeAnno.ARGS_AND_BODY_SCOPE).bound), "/", len(graphs))

for text in ("a.b[c]", "a[b.c][d]"):
    name = qual_names.from_str(text)
    print(name, name.ssf(), shown(name.support_set), shown(name.owner_set), parser.unparse(name.ast(), include_encoding_marker=False))

made = templates.replace("""
    def name(args):
        block
        return call(args, keywords=None)
""", name="f", args=("x", "y"), block=parser.parse("x = 1\ny[x] = 2", single_node=False), call=parser.parse_expression("g.h"),
                         keywords=parser.parse_expression("f(a=1, **b)").keywords)
print(parser.unparse(made, include_encoding_marker=False))
print([type(name.ctx).__name__ for name in made[0].args.args], type(made[0].body[1].targets[0].ctx).__name__)
for node, pattern in (("f(a, b)", "f(_)"), ("f(a)(b)", "_(b)"), ("a.b + 1", "_ + 1"), ("a.b + 1", "a + _")):
    print(ast_util.matches(parser.parse_expression(node), parser.parse_expression(pattern)), end=" ")
print()


def sums(f, a, b):
    for x in f(a + b, [a, -b]):
        a.c[b + 1] = x.d * f(*(a, x), k=b - 1)
    if not a:
        return a + b, f(b)[a]
    raise f("%s" % a)


node, _ = parser.parse_entity(sums, future_features=())
simple = transformer.Context(transformer.EntityInfo("sums", None, None, (), None), None, None)
print(parser.unparse(anf.transform(node, simple), include_encoding_marker=False))

node, source = parser.parse_entity(sums, future_features=())
origin_info.resolve(node, source, "file.py", 100, 8)
source_map = origin_info.create_source_map(node, source, "made.py")
print([(place.lineno, origin.loc.lineno, origin.function_name, origin.source_code_line) for place, origin in sorted(source_map.items())])
print(textwrap.dedent(parser.dedent_block("    if a:\n      b = '''\n  c\n'''\n")))


class Swap(transpiler.PyToPy):
    """Turns sums into differences."""

    def get_caching_key(self, context):
        return context

    def get_extra_locals(self):
        return {"scale": 10}

    def transform_ast(self, node, ctx):
        class Visitor(transformer.Base):
            def visit_BinOp(self, node):
                return templates.replace("scale * (a - b)", a=self.visit(node.left), b=self.visit(node.right))[0].value
        return Visitor(ctx).visit(node)


def closure(base):
    def add(x, y=7, *, z=1):
        """Adds."""
        return base + x + y + z
    return add


swap = Swap()
first, module, _ = swap.transform(closure(1000), 0)
second, module_2, _ = swap.transform(closure(2000), 0)
print(first(1), second(1, z=2), module is module_2, first.__doc__, swap.transform(lambda x: x + 1, 0)[0](3))
print(inspect_utils.isbuiltin(len), inspect_utils.islambda(lambda: 0), inspect_utils.isconstructor(dict), sorted(inspect_utils.getnamespace(second))[-1])


class Types(type_inference.Resolver):
    """Values have their types, parameters their annotations, sums the wider type."""

    def res_name(self, ns, types_ns, name):
        value = ns[str(name)] if str(name) in ns else getattr(__builtins__, str(name), None)
        return {type(value)}, value

    def res_value(self, ns, value):
        return {type(value)}

    def res_arg(self, ns, types_ns, f_name, name, type_anno, f_is_local):
        return {{"int": int, "float": float}[str(type_anno)]} if type_anno is not None else None

    def res_call(self, ns, types_ns, node, f_type, args, keywords):
        return {str}, {qual_names.QN("count"): {complex}}

    def res_binop(self, ns, types_ns, node, left, right):
        return {float} if float in left | right else {int}

    def res_compare(self, ns, types_ns, node, left, right):
        return {bool}

    def res_list_literal(self, ns, elt_types):
        return {list}


class Inferred(transpiler.GenericTranspiler):
    def transform_ast(self, node, ctx):
        node = activity.resolve(qual_names.resolve(node), ctx)
        graphs = cfg.build(node)
        node = reaching_fndefs.resolve(reaching_definitions.resolve(node, ctx, graphs), ctx, graphs)
        return type_inference.resolve(node, ctx, graphs, Types())


def computed(a: int, b: float, c):
    count = a + 1
    if a < b:
        other = a + b
    else:
        other = a
    pair = (count, other)

    def inner(x: int):
        return x + count, [x]
    text = closure(a)
    return inner, pair, text, count, other, c


node, _ = Inferred().transform(computed, None)
for statement in node.body:
    for part in (*getattr(statement, "targets", ()), getattr(statement, "value", None), getattr(statement, "test", None)):
        if part is not None and anno.hasanno(part, anno.Static.TYPES):
            print(parser.unparse(part, include_encoding_marker=False), sorted(map(str, anno.getanno(part, anno.Static.TYPES))))
for part in node.body[-1].value.elts:
    print(part.id, sorted(map(str, anno.getanno(part, anno.Static.TYPES, ()))))
print([sorted(map(str, anno.getanno(part, anno.Static.TYPES, ()))) for part in node.body[3].body[0].value.elts])
