"""The frame of a source-to-source compiler: finds the tree of a function, and makes a function of what becomes of it."""

import inspect
import threading
import types

from runnel.autograph.pyct import cache, inspect_utils, loader, naming, origin_info, parser, syntax, templates, transformer


class GenericTranspiler:
    """Transforms functions into anything. Subclasses define transform_ast."""

    def get_transformed_name(self, node):
        """Returns the name of what a tree is transformed into."""
        if isinstance(node, syntax.Lambda):
            return "lam"
        if isinstance(node, (syntax.FunctionDef, syntax.AsyncFunctionDef)):
            return node.name
        raise ValueError("nodes of type %s have no name" % type(node).__name__)

    def transform_ast(self, node, ctx):
        """Returns what becomes of a tree."""
        raise NotImplementedError("subclasses transform trees")

    def transform(self, obj, user_context):
        """Transforms a function or a method, with what it has from transform_function."""
        if inspect.isfunction(obj) or inspect.ismethod(obj):
            return self.transform_function(obj, user_context)
        if isinstance(obj, types.ModuleType):
            return self.transform_module(obj, user_context)
        raise NotImplementedError("cannot transform %r of type %s" % (obj, type(obj)))

    def transform_module(self, mod, user_context):
        """Transforms all functions of a module. Returns a list of results."""
        return [self.transform(value, user_context) for value in vars(mod).values()
                if inspect.isfunction(value) and value.__module__ == mod.__name__]

    def _erase_arg_defaults(self, node):
        """Replaces the values of arguments: those of the function that is transformed hold."""
        node.args.defaults = [syntax.constant(None) for _ in node.args.defaults]
        node.args.kw_defaults = [None if default is None else syntax.constant(None) for default in node.args.kw_defaults]
        return node

    def transform_function(self, fn, user_context):
        """Returns (what becomes of a function, context)."""
        features = inspect_utils.getfutureimports(fn)
        node, source = parser.parse_entity(fn, future_features=features)
        origin_info.resolve_entity(node, source, fn)
        namespace = inspect_utils.getnamespace(fn)
        namer = naming.Namer(namespace)
        name = namer.new_symbol(self.get_transformed_name(node), ())
        info = transformer.EntityInfo(name=name, source_code=source, source_file="<fragment>", future_features=features, namespace=namespace)
        context = transformer.Context(info, namer, user_context)
        return self.transform_ast(self._erase_arg_defaults(node), context), context


class _Factory:
    """A module of generated code, of which functions are made, each with variables of its own around it."""

    def __init__(self, nodes, name, free, extra_locals):
        names = sorted({*free, *extra_locals})
        outer = templates.replace("""
            def outer_factory():
                declarations
                def inner_factory(extra):
                    body
                    return name
                return inner_factory
        """, declarations=[templates.replace("n = None", n=n)[0] for n in names] or [syntax.Pass()], extra=sorted(extra_locals) or ["unused"],
            body=nodes, name=name)
        self.module, self.source, self.source_map = loader.load_ast(outer, include_source_map=True)
        self._extra = {key: types.CellType(value) for key, value in extra_locals.items()}
        self._code = _find_code(self.module.outer_factory.__code__, name)

    def instantiate(self, function):
        """Returns a function with the variables and the defaults of another one."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        cells.update(self._extra)
        closure = tuple(cells[name] if name in cells else types.CellType() for name in self._code.co_freevars)
        made = types.FunctionType(self._code, function.__globals__, self._code.co_name, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__doc__ = self._code.co_consts[0] if self._code.co_consts and isinstance(self._code.co_consts[0], str) else None
        return made


def _find_code(code, name):
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found = inner if inner.co_name == name else _find_code(inner, name)
            if found is not None:
                return found
    return None


class PyToPy(GenericTranspiler):
    """Transforms functions into functions, with the same variables around them. Subclasses define transform_ast and the methods below.

    What is generated is kept: once per code and key.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._cache = cache.CodeObjectCache()

    def get_extra_locals(self):
        """Returns {name: value} of variables for the generated code."""
        raise NotImplementedError("subclasses say what generated code uses")

    def get_caching_key(self, user_context):
        """Returns what results depend on, beside the code."""
        raise NotImplementedError("subclasses say what results depend on")

    def _make(self, fn, user_context):
        node, context = super().transform_function(fn, user_context)
        name = context.info.name
        if isinstance(node, syntax.Lambda):
            nodes = [self._named_lambda(node, name)]
        else:
            nodes = node if isinstance(node, (list, tuple)) else [node]
            nodes[-1].name = name
            nodes[-1].decorator_list = []
        return _Factory(nodes, name, getattr(fn, "__func__", fn).__code__.co_freevars, self.get_extra_locals())

    @staticmethod
    def _named_lambda(node, name):
        made = templates.replace("def name():\n    return value", name=name, value=node.body)[0]
        made.args = node.args
        origin_info.copy_origin(node, [made.body[0]])
        return made

    def transform_function(self, fn, user_context):
        """Returns (function, module of generated code, source map)."""
        key = self.get_caching_key(user_context)
        with self._lock:
            if not self._cache.has(fn, key):
                made = self._make(fn, user_context)
                self._cache[fn].setdefault(key, made)
            factory = self._cache[fn][key]
        return factory.instantiate(getattr(fn, "__func__", fn)), factory.module, factory.source_map
