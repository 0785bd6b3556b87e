"""Linear operators made of others: adjoints, inverses, products, updates."""

import runnel as tf
from runnel.core import tensor_shape
from runnel.linalg.linear_operator import (
    LinearOperator, adjoint_of, dynamic_batch, matrix_solve_with_broadcast, static_batch)


def _all(values):
    """Returns True if all values are true, else None (unknown)."""
    values = list(values)
    if all(values):
        return True
    return None


def _hint(given, known):
    return known if given is None else given


class _OfOne(LinearOperator):
    """An operator made of one other, with its properties unless the caller gives others."""

    _matrix_dims = {"operator": 0}

    _suffix: str  # of the name

    def __init__(self, operator, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        self._operator = operator
        super().__init__(operator.dtype, operator.graph_parents, _hint(is_non_singular, operator.is_non_singular),
                         _hint(is_self_adjoint, operator.is_self_adjoint),
                         _hint(is_positive_definite, operator.is_positive_definite),
                         _hint(is_square, operator.is_square), name or operator.name + self._suffix)

    operator = property(lambda self: self._operator)

    def _cond(self):
        return self._operator.cond()


class LinearOperatorAdjoint(_OfOne):
    """The conjugate transpose of an operator."""

    _suffix = "_adjoint"

    def _shape(self):
        shape = self._operator.shape
        return shape[:-2].concatenate([shape[-1], shape[-2]]) if shape.ndims is not None else shape

    def _shape_tensor(self):
        shape = self._operator.shape_tensor()
        return tf.concat([shape[:-2], [shape[-1], shape[-2]]], 0)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _conjugate(self, values):
        return tf.conj(values) if self.dtype.is_complex else values

    def _to_dense(self):
        return adjoint_of(self._operator.to_dense())

    def _diag_part(self):
        return self._conjugate(self._operator.diag_part())

    def _determinant(self):
        return self._conjugate(self._operator.determinant())

    def _log_abs_determinant(self):
        return self._operator.log_abs_determinant()

    def _linop_adjoint(self):
        return self._operator


class LinearOperatorInversion(_OfOne):
    """The inverse of an operator."""

    _suffix = "_inv"

    def __init__(self, operator, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        if operator.is_square is False or is_square is False:
            raise ValueError("operator must be square.")
        super().__init__(operator, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    def _shape(self):
        return self._operator.shape

    def _shape_tensor(self):
        return self._operator.shape_tensor()

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self):
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self):
        return -self._operator.log_abs_determinant()

    def _linop_inverse(self):
        return self._operator


class _Several(LinearOperator):
    """An operator made of a list of others."""

    _matrix_dims = {"operators": 0}

    def _take(self, operators, what):
        operators = list(operators)
        if not operators:
            raise ValueError("Expected a non-empty list of operators. Found: %s" % operators)
        if any(operator.dtype != operators[0].dtype for operator in operators):
            raise TypeError("Expected all operators to have the same dtype.  Found %s" % "   ".join(
                "%s: %s" % (operator.name, operator.dtype) for operator in operators))
        self._operators = operators
        self._label = what.join(operator.name for operator in operators)
        return operators

    operators = property(lambda self: self._operators)

    def _batch(self):
        return static_batch(*(operator.batch_shape for operator in self._operators))

    def _batch_tensor(self):
        return dynamic_batch(*(operator.batch_shape_tensor() for operator in self._operators))


class _Factors(_Several):
    """An operator whose determinant is the product of those of the others."""

    def _determinant(self):
        result = self._operators[0].determinant()
        for operator in self._operators[1:]:
            result *= operator.determinant()
        return result

    def _log_abs_determinant(self):
        return sum((o.log_abs_determinant() for o in self._operators[1:]), self._operators[0].log_abs_determinant())


class LinearOperatorComposition(_Factors):
    """A product of operators."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        operators = self._take(operators, "_o_")
        if is_non_singular is None:
            is_non_singular = _all(operator.is_non_singular for operator in operators)
        super().__init__(operators[0].dtype, [part for operator in operators for part in operator.graph_parents],
                         is_non_singular, is_self_adjoint, is_positive_definite, is_square, name or self._label)
        for left, right in zip(operators, operators[1:]):
            tensor_shape.Dimension(left.domain_dimension).assert_is_compatible_with(
                tensor_shape.Dimension(right.range_dimension))

    def _shape(self):
        return self._batch().concatenate([self._operators[0].range_dimension, self._operators[-1].domain_dimension])

    def _shape_tensor(self):
        return tf.concat([self._batch_tensor(), tf.stack([self._operators[0].range_dimension_tensor(),
                                                          self._operators[-1].domain_dimension_tensor()])], 0)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        for operator in self._operators if adjoint else self._operators[::-1]:
            x = operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
            adjoint_arg = False
        return x

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        for operator in self._operators[::-1] if adjoint else self._operators:
            rhs = operator.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
            adjoint_arg = False
        return rhs


class LinearOperatorKronecker(_Several):
    """A Kronecker product of operators."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        operators = self._take(operators, "_x_")
        super().__init__(operators[0].dtype, [part for operator in operators for part in operator.graph_parents],
                         _hint(is_non_singular, _all(o.is_non_singular for o in operators)),
                         _hint(is_self_adjoint, _all(o.is_self_adjoint for o in operators)),
                         _hint(is_positive_definite, _all(o.is_positive_definite for o in operators)),
                         _hint(is_square, _all(o.is_square for o in operators)), name or self._label)

    def _shape(self):
        rows = columns = tensor_shape.Dimension(1)
        for operator in self._operators:
            rows *= tensor_shape.Dimension(operator.range_dimension)
            columns *= tensor_shape.Dimension(operator.domain_dimension)
        return self._batch().concatenate([rows, columns])

    def _shape_tensor(self):
        rows = columns = 1
        for operator in self._operators:
            rows *= operator.range_dimension_tensor()
            columns *= operator.domain_dimension_tensor()
        return tf.concat([self._batch_tensor(), tf.stack([rows, columns])], 0)

    def _apply(self, x, function, adjoint):
        """Applies each factor to its own dimension of x."""
        sizes = [o.range_dimension_tensor() if adjoint else o.domain_dimension_tensor() for o in self._operators]
        batch = dynamic_batch(self._batch_tensor(), tf.shape(x)[:-2])
        columns = tf.shape(x)[-1]
        x = tf.broadcast_to(x, tf.concat([batch, tf.shape(x)[-2:]], 0))
        rest = tf.shape(x)[-2]
        before = 1
        for size, operator in zip(sizes, self._operators):
            # Of the dimensions [before, size, after * columns], the factor applies to `size`.
            rest = rest // size
            parts = tf.reshape(x, tf.concat([batch, tf.stack([before, size, rest * columns])], 0))
            order = _swapped(parts)
            parts = tf.reshape(tf.transpose(parts, order), tf.concat([batch, tf.stack([size, before * rest * columns])], 0))
            parts = function(operator, parts)
            new = tf.shape(parts)[-2]
            parts = tf.reshape(parts, tf.concat([batch, tf.stack([new, before, rest * columns])], 0))
            before = before * new
            x = tf.reshape(tf.transpose(parts, order), tf.concat([batch, tf.stack([before * rest, columns])], 0))
        return x

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        result = self._apply(adjoint_of(x) if adjoint_arg else x,
                             lambda operator, part: operator.matmul(part, adjoint=adjoint), adjoint)
        if self.shape.is_fully_defined() and x.shape.is_fully_defined():
            result.set_shape(static_batch(self.batch_shape, x.shape[:-2]).concatenate(
                [self.shape[-1 if adjoint else -2], x.shape[-2 if adjoint_arg else -1]]))
        return result

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._apply(adjoint_of(rhs) if adjoint_arg else rhs,
                           lambda operator, part: operator.solve(part, adjoint=adjoint), adjoint)

    def _determinant(self):
        total = self.domain_dimension_tensor()
        result = 1.0
        for operator in self._operators:
            result *= operator.determinant() ** tf.cast(total // operator.domain_dimension_tensor(), self.dtype)
        return result

    def _log_abs_determinant(self):
        total = self.domain_dimension_tensor()
        return sum(operator.log_abs_determinant() * tf.cast(total // operator.domain_dimension_tensor(), self.dtype)
                   for operator in self._operators)

    def _trace(self):
        result = 1.0
        for operator in self._operators:
            result *= operator.trace()
        return result

    def _linop_inverse(self):
        return LinearOperatorKronecker([o.inverse() for o in self._operators], self.is_non_singular, self.is_self_adjoint,
                                       self.is_positive_definite)

    def _linop_adjoint(self):
        return LinearOperatorKronecker([o.adjoint() for o in self._operators], self.is_non_singular, self.is_self_adjoint,
                                       self.is_positive_definite, self.is_square)

    def _linop_cholesky(self):
        return LinearOperatorKronecker([o.cholesky() for o in self._operators], is_non_singular=True)


def _swapped(x):
    """Returns the permutation that swaps the third and second dimension from the end."""
    if x.shape.ndims is None:
        rank = tf.rank(x)
        return tf.concat([tf.range(rank - 3), tf.stack([rank - 2, rank - 3, rank - 1])], 0)
    order = list(range(x.shape.ndims))
    order[-3], order[-2] = order[-2], order[-3]
    return order


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H for an operator L, thin matrices U and V, and a diagonal D."""

    _matrix_dims = {"base_operator": 0, "u": 2, "diag_update": 1, "v": 2}

    def __init__(self, base_operator, u, diag_update=None, v=None, is_diag_update_positive=None, is_non_singular=None,
                 is_self_adjoint=None, is_positive_definite=None, is_square=None, name="LinearOperatorLowRankUpdate"):
        from runnel.linalg.linear_operator_kinds import LinearOperatorDiag, LinearOperatorIdentity, _given
        dtype = base_operator.dtype
        if is_diag_update_positive and dtype.is_complex:
            tf.logging.warning("Note: setting is_diag_update_positive with a complex dtype means that diagonal is real and positive.")
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive.  However, user set "
                                 "'is_diag_update_positive' to False.")
            is_diag_update_positive = True
        self._use_cholesky = bool(base_operator.is_positive_definite and base_operator.is_self_adjoint and
                                  is_diag_update_positive and v is None)
        self._base_operator = base_operator
        self._u = _given(u, "u")
        self._v = self._u if v is None else _given(v, "v")
        self._diag_update = None if diag_update is None else _given(diag_update, "diag_update")
        self._is_diag_update_positive = is_diag_update_positive
        if self._diag_update is None:
            rank = self._u.shape[-1]
            self._diag_operator = LinearOperatorIdentity(
                tf.shape(self._u)[-1] if tensor_shape.Dimension(rank).value is None else tensor_shape.Dimension(rank).value,
                dtype=dtype)
        else:
            self._diag_operator = LinearOperatorDiag(self._diag_update, is_positive_definite=is_diag_update_positive)
        if self._use_cholesky:
            is_positive_definite = is_self_adjoint = is_non_singular = True
        elif v is None and base_operator.is_self_adjoint and is_self_adjoint is None and not dtype.is_complex:
            is_self_adjoint = True
        super().__init__(dtype, [*base_operator.graph_parents, self._u, self._v], is_non_singular, is_self_adjoint,
                         is_positive_definite, is_square, name)

    base_operator = property(lambda self: self._base_operator)
    u = property(lambda self: self._u)
    v = property(lambda self: self._v)
    diag_update = property(lambda self: self._diag_update)
    diag_operator = property(lambda self: self._diag_operator)
    is_diag_update_positive = property(lambda self: self._is_diag_update_positive)

    def _shape(self):
        batch = static_batch(self._base_operator.batch_shape, self._diag_operator.batch_shape, self._u.shape[:-2],
                             self._v.shape[:-2])
        return batch.concatenate(self._base_operator.shape[-2:])

    def _shape_tensor(self):
        batch = dynamic_batch(self._base_operator.batch_shape_tensor(), self._diag_operator.batch_shape_tensor(),
                              tf.shape(self._u)[:-2], tf.shape(self._v)[:-2])
        return tf.concat([batch, self._base_operator.shape_tensor()[-2:]], 0)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        u, v = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = tf.matmul(v, x, adjoint_a=True, adjoint_b=adjoint_arg)
        return self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg) + tf.matmul(
            u, self._diag_operator.matmul(inner, adjoint=adjoint))

    def _capacitance(self):
        """Returns D^-1 + V^H L^-1 U, a small matrix."""
        inner = tf.matmul(self._v, self._base_operator.solve(self._u), adjoint_a=True)
        return self._diag_operator.inverse().add_to_tensor(inner)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        u, v = (self._v, self._u) if adjoint else (self._u, self._v)
        first = self._base_operator.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = tf.matmul(v, first, adjoint_a=True)
        if self._use_cholesky:
            from runnel.linalg.linear_operator import cholesky_solve_with_broadcast
            inner = cholesky_solve_with_broadcast(tf.cholesky(self._capacitance()), inner)
        else:
            inner = matrix_solve_with_broadcast(self._capacitance(), inner, adjoint=adjoint)
        return first - self._base_operator.solve(tf.matmul(u, inner), adjoint=adjoint)

    def _determinant(self):
        return tf.matrix_determinant(self._capacitance()) * self._diag_operator.determinant() * (
            self._base_operator.determinant())

    def _log_abs_determinant(self):
        if self._use_cholesky:
            small = 2 * tf.reduce_sum(tf.log(tf.matrix_diag_part(tf.cholesky(self._capacitance()))), axis=-1)
        else:
            small = tf.linalg.slogdet(self._capacitance())[1]
        return small + self._diag_operator.log_abs_determinant() + self._base_operator.log_abs_determinant()

    def _diag_part(self):
        product = tf.reduce_sum(self._diag_operator.matmul(tf.linalg.transpose(self._u)) * adjoint_of(self._v), axis=-2)
        return product + self._base_operator.diag_part()


def add_operators(operators, operator_name=None, addition_tiers=None, name=None):
    """Returns the sum of operators as a list of one: a diagonal if all are, else a matrix."""
    from runnel.linalg.linear_operator_kinds import LinearOperatorDiag, LinearOperatorFullMatrix
    operators = list(operators)
    if len(operators) < 2:
        return operators
    hints = dict(is_positive_definite=_all(o.is_positive_definite for o in operators),
                 is_self_adjoint=_all(o.is_self_adjoint for o in operators))
    if all(hasattr(o, "diag") or type(o).__name__.endswith("Identity") for o in operators):
        return [LinearOperatorDiag(sum((o.diag_part() for o in operators[1:]), operators[0].diag_part()), **hints)]
    total = operators[0].to_dense()
    for operator in operators[1:]:
        total = operator.add_to_tensor(total)
    return [LinearOperatorFullMatrix(total, **hints)]
