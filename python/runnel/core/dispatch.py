"""tf.experimental.dispatch_for_*: other functions in place of TensorFlow's for arguments of certain types.

A public function is replaced by a wrapper when something is first registered for it: programs that register nothing pay nothing.
"""

import collections.abc
import contextlib
import functools
import inspect
import sys
import typing

from runnel.core.type_checkers import make_type_checker, register_dispatchable_type  # noqa: F401

# The functions of one and of two tensors that work element by element, as stock lists them.
UNARY = """
abs acos acosh asin asinh as_string atan atanh cast cos cosh exp floor identity logical_not negative ones_like round saturate_cast sigmoid sign
sin sinh sqrt square tan tanh zeros_like clip_by_value
math.abs math.acos math.acosh math.angle math.asin math.asinh math.atan math.atanh math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e
math.ceil math.conj math.cos math.cosh math.digamma math.erf math.erfc math.erfcinv math.erfinv math.exp math.expm1 math.floor math.imag
math.is_finite math.is_inf math.is_nan math.lgamma math.log math.log1p math.log_sigmoid math.logical_not math.ndtri math.negative math.nextafter
math.real math.reciprocal math.reciprocal_no_nan math.rint math.round math.rsqrt math.sigmoid math.sign math.sin math.sinh math.softplus
math.softsign math.special.dawsn math.special.expint math.special.fresnel_cos math.special.fresnel_sin math.special.spence math.special.bessel_i0
math.special.bessel_i0e math.special.bessel_i1 math.special.bessel_i1e math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0
math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e math.special.bessel_y0 math.special.bessel_y1 math.sqrt math.square math.tan
math.tanh nn.elu nn.gelu nn.leaky_relu nn.log_softmax nn.relu nn.relu6 nn.selu nn.sigmoid nn.silu nn.softplus nn.softsign nn.swish nn.tanh
bitwise.invert debugging.check_numerics dtypes.cast dtypes.complex dtypes.saturate_cast image.adjust_brightness image.adjust_gamma
image.convert_image_dtype image.random_brightness image.stateless_random_brightness io.decode_base64 io.decode_compressed io.encode_base64
strings.as_string strings.length strings.lower strings.regex_full_match strings.regex_replace strings.strip strings.substr strings.to_hash_bucket
strings.to_hash_bucket_fast strings.to_hash_bucket_strong strings.to_number strings.unicode_script strings.unicode_transcode strings.upper
""".split()
UNARY = [name for name in UNARY if name not in ("identity", "math.nextafter", "dtypes.complex")]
BINARY = """
add atan2 complex divide equal greater greater_equal less less_equal logical_and logical_or maximum minimum multiply not_equal pow realdiv
scalar_mul subtract truediv truncatediv truncatemod
bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift dtypes.complex math.add math.atan2
math.divide math.divide_no_nan math.equal math.floordiv math.floormod math.greater math.greater_equal math.less math.less_equal math.logical_and
math.logical_or math.logical_xor math.maximum math.minimum math.mod math.multiply math.multiply_no_nan math.nextafter math.not_equal math.pow
math.scalar_mul math.squared_difference math.subtract math.truediv math.xdivy math.xlog1py math.xlogy math.zeta
nn.sigmoid_cross_entropy_with_logits
""".split()
ASSERTIONS = """
assert_equal assert_greater assert_less debugging.assert_equal debugging.assert_greater debugging.assert_greater_equal debugging.assert_less
debugging.assert_less_equal debugging.assert_near debugging.assert_none_equal
""".split()
_NAMES = {"unary": UNARY, "binary": BINARY, "assert": ASSERTIONS}
_more: dict = {"unary": [], "binary": [], "assert": []}  # _Apis of functions that programs registered


class _Api:
    """A public function with the functions that stand in for it, [(types of parameters, function)]."""

    def __init__(self, original, wrapper=None):
        self.original, self.rows = original, []
        self.signature = inspect.signature(original)
        if wrapper is None:
            @functools.wraps(original)
            def wrapper(*args, **kwargs):
                return self.call(args, kwargs)
            wrapper.__signature__ = self.signature
        self.wrapper = wrapper

    def call(self, args, kwargs):
        """Calls the function that stands in for these arguments, or the original one."""
        if self.rows:
            args = tuple(list(arg) if isinstance(arg, collections.abc.Iterator) else arg for arg in args)
        target = self.target(args, kwargs)
        return (target or self.original)(*args, **kwargs)

    def target(self, args, kwargs):
        """Returns the function for these arguments, or None."""
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError:
            return None
        for types, target in self.rows:
            if all(make_type_checker(kind).fits(given.get(name)) for name, kind in types.items()):
                return target
        return None


_apis: dict = {}  # the original function -> _Api
_wrappers: dict = {}  # the wrapper -> _Api
_elementwise: dict = {}  # (kind, types) -> (handler, function that makes a row of an _Api)


def replacement(value):
    """Returns what stands for a public function: its wrapper, if something is registered for it."""
    api = _apis.get(value) if _apis and isinstance(value, collections.abc.Hashable) else None
    return value if api is None else api.wrapper


def inner(name, value):
    """Returns what stands for a function that was found at a path behind the public names, which may be another one than the public function."""
    known = replacement(value)
    if known is not value or not _elementwise or not _is_ours(value):
        return known
    kinds = {kind for kind, names in _NAMES.items() if any(path.rpartition(".")[2] == name for path in names)}
    made = [make for (kind, _), (_, make) in _elementwise.items() if kind in kinds]
    if not made:
        return value
    entry = _api(value)
    entry.rows += [make(entry) for make in made]
    return entry.wrapper


def _is_ours(function):
    if isinstance(function, type):
        return False
    return (getattr(function, "__module__", None) or "").startswith("runnel") or type(function).__name__ == "OpFunction"


def _api(function):
    found = _wrappers.get(function) or _apis.get(function)
    if found is not None:
        return found
    if hasattr(function, "_tf_type_based_dispatcher"):  # add_dispatch_support
        return function._tf_type_based_dispatcher
    if not _is_ours(function):
        raise ValueError("%r does not support dispatch." % (function,))
    found = _apis[function] = _Api(function)
    _wrappers[found.wrapper] = found
    from runnel.compat.v2 import places
    places.replace_found(function, found.wrapper)
    inner_paths = sys.modules.get("runnel.alias.inner_paths")
    if inner_paths is not None:
        inner_paths.replace_found(function, found.wrapper)
    return found


def add_type_based_api_dispatcher(target):
    """Makes a function one for which others may be registered. Returns it. Raises ValueError if it is one already."""
    if hasattr(target, "_tf_type_based_dispatcher"):
        raise ValueError("%s already has a type-based API dispatcher." % (target,))
    entry = _Api(target, target)
    with contextlib.suppress(AttributeError):
        target._tf_type_based_dispatcher = entry
        _wrappers[target] = entry
    return target


def dispatch_for_api(api, *signatures):
    """A decorator of a function to call in place of `api` for arguments of certain types.

    Args:
      api: a public function.
      *signatures: dicts from names of parameters to types; by default, the annotations of the decorated function.
    """
    entry = _api(api)
    if any(not isinstance(row, dict) or any(not isinstance(key, (str, int)) for key in row) for row in signatures):
        raise TypeError("signatures must be dictionaries mapping parameter names to type annotations.")

    def decorate(target):
        if not callable(target):
            raise TypeError("Expected dispatch_target to be callable; got %r" % (target,))
        rows = [_named(dict(signature), entry.signature) for signature in [*signatures] or _annotated(target)]
        entry.rows += [(row, _with_name(target, entry.signature)) for row in rows]
        return target
    return decorate


def _named(row, signature):
    """Returns the types of parameters by name. Raises ValueError if dispatch by one of them is impossible."""
    names = list(signature.parameters)
    row = {names[key] if isinstance(key, int) else key: kind for key, kind in row.items()}
    for name, kind in row.items():
        if name not in names:
            raise ValueError("signature includes annotation for unknown parameter %r." % name)
        if signature.parameters[name].kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            raise ValueError("Dispatch currently only supports type annotations for positional parameters; can't handle annotation for %r "
                             "parameter %s." % (signature.parameters[name].kind, name))
        make_type_checker(kind)
    return row


def _annotated(target):
    hints = {name: kind for name, kind in typing.get_type_hints(target).items() if name != "return"}
    if not hints:
        raise ValueError("The dispatch_for_api decorator must be called with at least one signature, or applied to a function that has "
                         "type annotations on its parameters.")
    return [hints]


def _with_name(target, api):
    """Returns a function that takes the API's parameters; `name` may be missing from `target`."""
    own = inspect.signature(target)
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in own.parameters.values()):
        return target
    lacks_name = "name" in api.parameters and "name" not in own.parameters
    names = list(own.parameters) + ["name"] * lacks_name
    if names != list(api.parameters):
        shown = own.replace(parameters=[*own.parameters.values(), *([api.parameters["name"]] if lacks_name else [])])
        raise ValueError("Dispatch function's signature %s does not match API's signature %s." % (shown, api))
    if not lacks_name:
        return target

    @functools.wraps(target)
    def without_name(*args, **kwargs):
        given = api.bind(*args, **kwargs).arguments
        with _scope(given.pop("name", None)):
            return target(**given)
    without_name._dispatch_target = target
    return without_name


def _elementwise_apis(names):
    from runnel.compat.v2 import places
    seen = {}
    for name in names:
        try:
            entry = _api(places.find(name))
        except AttributeError:
            continue
        seen[id(entry)] = entry
    kind = next(kind for kind, known in _NAMES.items() if known is names)
    return [*seen.values(), *_more[kind]]


def _scope(name):
    from runnel.core.framework import name_scope
    return contextlib.nullcontext() if name is None else name_scope(name)


def _register(kind, types, handler):
    key = (kind, types)
    if key in _elementwise:
        raise ValueError("A%s elementwise dispatch handler (%r) has already been registered for %s." % (
            {"unary": " unary", "binary": " binary"}.get(kind, " binary assert"), _elementwise[key][0], ", ".join(str(t) for t in types)))

    def make(entry):
        return dict(zip(entry.signature.parameters, types)), _called(entry, handler, len(types))

    names = _NAMES[kind]
    for entry in _elementwise_apis(names):
        entry.rows.append(make(entry))
    _elementwise[key] = handler, make
    inner_paths = sys.modules.get("runnel.alias.inner_paths")
    if inner_paths is not None:
        inner_paths.forget_named({name.rpartition(".")[2] for name in names})
    return handler


def _called(entry, handler, count):
    """Returns the function that calls a handler with a function of `count` tensors, which has the other arguments."""
    parameters = list(entry.signature.parameters)

    def run(*args, **kwargs):
        given = dict(entry.signature.bind(*args, **kwargs).arguments)
        tensors = [given.pop(name) for name in parameters[:count]]
        with _scope(given.pop("name", None)):
            if not given:
                return handler(entry.wrapper, *tensors)
            return handler(lambda *new: entry.wrapper(**dict(zip(parameters, new)), **given), *tensors)
    run._dispatch_target = handler
    return run


def _elementwise_api(kind, function):
    entry = _api(function)
    _more[kind].append(entry)
    entry.rows += [make(entry) for (other, _), (_, make) in _elementwise.items() if other == kind]
    return function


def register_unary_elementwise_api(func):
    """A decorator of functions of one tensor that work element by element: handlers are called for them."""
    return _elementwise_api("unary", func)


def register_binary_elementwise_api(func):
    """A decorator of functions of two tensors that work element by element: handlers are called for them."""
    return _elementwise_api("binary", func)


def register_binary_elementwise_assert_api(func):
    """A decorator of assertions about two tensors: handlers are called for them."""
    return _elementwise_api("assert", func)


def unary_elementwise_apis():
    """Returns the functions of one tensor that work element by element."""
    return _functions(UNARY, "unary")


def binary_elementwise_apis():
    """Returns the functions of two tensors that work element by element."""
    return _functions(BINARY, "binary")


def apis_with_type_based_dispatch():
    """Returns the public functions that may be replaced for values of some types: those of one namespace or another that take tensors."""
    from runnel.compat.v2 import names, places
    found = {}
    for space in ("", "math", "nn", "linalg", "strings", "image", "sparse", "io", "signal"):
        for name in names.NAMES.get(space, ()):
            with contextlib.suppress(AttributeError, ImportError, NotImplementedError):
                value = places.find("%s.%s" % (space, name) if space else name)
                if callable(value) and not isinstance(value, type):
                    found[id(replacement(value))] = replacement(value)
    return list(found.values())


def _functions(names, kind):
    from runnel.compat.v2 import places
    found = [entry.wrapper for entry in _more[kind]]
    for name in names:
        with contextlib.suppress(AttributeError):
            found.append(replacement(places.find(name)))
    return tuple(found)


def type_based_dispatch_signatures_for(cls):
    """Returns {function: [types of parameters]} of what is registered for values of a class."""
    found: dict = {}
    for entry in {id(entry): entry for entry in (*_apis.values(), *_wrappers.values())}.values():
        rows = [types for types, _ in entry.rows if any(
            issubclass(cls, known) for kind in types.values() for known in make_type_checker(kind).classes)]
        if rows:
            found[entry.wrapper] = rows
    return found


def dispatch_for_unary_elementwise_apis(x_type):
    """A decorator of a handler `f(api, x)` for the functions of one tensor that work element by element."""
    return lambda handler: _register("unary", (x_type,), handler)


def dispatch_for_binary_elementwise_apis(x_type, y_type):
    """A decorator of a handler `f(api, x, y)` for the functions of two tensors that work element by element."""
    return lambda handler: _register("binary", (x_type, y_type), handler)


def dispatch_for_binary_elementwise_assert_apis(x_type, y_type):
    """A decorator of a handler `f(assertion, x, y)` for assertions about two tensors."""
    return lambda handler: _register("assert", (x_type, y_type), handler)


def unregister_dispatch_for(dispatch_target):
    """Removes a function from everything that it was registered for. Raises ValueError if it was not."""
    found = False
    for entry in (*_apis.values(), *_wrappers.values()):
        kept = [row for row in entry.rows if row[1] is not dispatch_target and getattr(row[1], "_dispatch_target", None) is not dispatch_target]
        found = found or len(kept) != len(entry.rows)
        entry.rows = kept
    for key in [key for key, (handler, _) in _elementwise.items() if handler is dispatch_target]:
        del _elementwise[key]
        found = True
    if not found:
        raise ValueError("Function %r was not registered using a `@tf.experimental.dispatch_for...` decorator." % (dispatch_target,))
