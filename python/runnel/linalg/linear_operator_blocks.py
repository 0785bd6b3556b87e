"""Linear operators made of blocks: diagonal and lower triangular ones.

Their arguments may be lists too, with one tensor per block; the results are then lists.
"""

import runnel as tf
from runnel.core import tensor_shape
from runnel.linalg.linear_operator import LinearOperator, adjoint_of, broadcast_batches, dynamic_batch, static_batch
from runnel.linalg.linear_operator_made import _all, _Factors, _hint


def arg_is_blockwise(block_dimensions, arg, arg_split_dim):
    """Tells whether an argument is a list of blocks, and not a tensor or a nested list that stands for one."""
    from runnel import nest
    if not isinstance(arg, (list, tuple)) or len(arg) != len(block_dimensions):
        return False
    if not any(nest.is_nested(part) for part in arg):
        return True
    given = [tensor_shape.Dimension(tf.convert_to_tensor(part).shape[arg_split_dim]).value for part in arg]
    wanted = [tensor_shape.Dimension(size).value for size in block_dimensions]
    if all(size is None for size in wanted):
        if len(given) == 1:
            return False
        if any(size != given[0] for size in given):
            return True
        raise ValueError("Parsing of the input structure is ambiguous. Please input a blockwise iterable of `Tensor`s or a single "
                         "`Tensor`.")
    if all(size in (None, part) for size, part in zip(wanted, given)):
        return True
    if all(size == given[0] for size in given) and given[0] >= sum(size or 0 for size in wanted):
        return False
    raise ValueError("Input dimension does not match operator dimension.")


def split_arg_into_blocks(block_dims, block_dims_fn, arg, axis=-1):
    """Splits a tensor into blocks. `block_dims_fn` returns their sizes as tensors, if `block_dims` are not all known."""
    sizes = [tensor_shape.Dimension(size).value for size in block_dims]
    return tf.split(arg, block_dims_fn() if None in sizes else sizes, axis=axis)


class _Blockwise(LinearOperator):
    """An operator with blocks: subclasses have `_diagonal`, the blocks on the diagonal, `_multiply` and `_eliminate`."""

    _diagonal: list

    def _block_domain_dimensions(self):
        return [tensor_shape.Dimension(block.domain_dimension) for block in self._diagonal]

    def _block_range_dimensions(self):
        return [tensor_shape.Dimension(block.range_dimension) for block in self._diagonal]

    def _block_domain_dimension_tensors(self):
        return [block.domain_dimension_tensor() for block in self._diagonal]

    def _block_range_dimension_tensors(self):
        return [block.range_dimension_tensor() for block in self._diagonal]

    def _listed(self, x, is_range, adjoint_arg, axis):
        """Returns the blocks of an argument that is a list, or None."""
        sizes = self._block_range_dimensions() if is_range else self._block_domain_dimensions()
        if isinstance(x, LinearOperator) or not arg_is_blockwise(sizes, x, axis):
            return None
        parts = []
        for part, size in zip(x, sizes):
            part = tf.convert_to_tensor(part)
            self._check_input_dtype(part)
            size.assert_is_compatible_with(tensor_shape.Dimension(part.shape[axis] if part.shape.ndims is not None else None))
            parts.append(adjoint_of(part) if adjoint_arg else part)
        return parts

    def _pieces(self, x, is_range):
        """Returns the blocks of a tensor."""
        if is_range:
            return split_arg_into_blocks(self._block_range_dimensions(), self._block_range_dimension_tensors, x, -2)
        return split_arg_into_blocks(self._block_domain_dimensions(), self._block_domain_dimension_tensors, x, -2)

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        """Returns A X; a list of blocks, if X is one."""
        with self._name_scope(name):
            parts = self._listed(x, adjoint, adjoint_arg, -1 if adjoint_arg else -2)
            if parts is not None:
                return self._multiply(parts, adjoint)
        return super().matmul(x, adjoint, adjoint_arg, name)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        """Returns X with A X = rhs; a list of blocks, if rhs is one."""
        with self._name_scope(name):
            parts = None if self.is_non_singular is False or self.is_square is False else (
                self._listed(rhs, not adjoint, adjoint_arg, -1 if adjoint_arg else -2))
            if parts is not None:
                return self._eliminate(parts, adjoint)
        return super().solve(rhs, adjoint, adjoint_arg, name)

    def matvec(self, x, adjoint=False, name="matvec"):
        """Returns A x, for vectors; a list of blocks, if x is one."""
        parts = self._listed(x, adjoint, False, -1)
        if parts is None:
            return super().matvec(x, adjoint, name)
        return [tf.squeeze(part, -1) for part in self.matmul([part[..., tf.newaxis] for part in parts], adjoint)]

    def solvevec(self, rhs, adjoint=False, name="solve"):
        """Returns x with A x = rhs, for vectors; a list of blocks, if rhs is one."""
        parts = self._listed(rhs, not adjoint, False, -1)
        if parts is None:
            return super().solvevec(rhs, adjoint, name)
        return [tf.squeeze(part, -1) for part in self.solve([part[..., tf.newaxis] for part in parts], adjoint)]

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        parts = self._pieces(adjoint_of(x) if adjoint_arg else x, adjoint)
        return tf.concat(broadcast_batches(*self._multiply(parts, adjoint)), axis=-2)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        parts = self._pieces(adjoint_of(rhs) if adjoint_arg else rhs, not adjoint)
        return tf.concat(broadcast_batches(*self._eliminate(parts, adjoint)), axis=-2)

    def _in_one(self, method):
        parts = broadcast_batches(*(getattr(block, method)()[..., tf.newaxis] for block in self._diagonal))
        return tf.squeeze(tf.concat(parts, axis=-2), axis=-1)

    def _diag_part(self):
        return self._in_one("diag_part")

    def _eigvals(self):
        return self._in_one("eigvals")

    def _trace(self):
        return sum((block.trace() for block in self._diagonal[1:]), self._diagonal[0].trace())

    def _assert_non_singular(self):
        return tf.group(*(block.assert_non_singular() for block in self._diagonal))


class LinearOperatorBlockDiag(_Blockwise, _Factors):
    """Operators along the diagonal."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=True,
                 name=None):
        operators = self._diagonal = self._take(operators, "_ds_")
        super().__init__(operators[0].dtype, [part for operator in operators for part in operator.graph_parents],
                         _hint(is_non_singular, _all(o.is_non_singular for o in operators)),
                         _hint(is_self_adjoint, _all(o.is_self_adjoint for o in operators)),
                         _hint(is_positive_definite, _all(o.is_positive_definite for o in operators)), is_square,
                         name or self._label)

    def _shape(self):
        zero = tensor_shape.Dimension(0)
        return self._batch().concatenate([sum(self._block_range_dimensions(), zero), sum(self._block_domain_dimensions(), zero)])

    def _shape_tensor(self):
        return tf.concat([self._batch_tensor(), tf.stack([
            sum(self._block_range_dimension_tensors()), sum(self._block_domain_dimension_tensors())])], 0)

    def _multiply(self, parts, adjoint):
        return [block.matmul(part, adjoint=adjoint) for block, part in zip(self._operators, parts)]

    def _eliminate(self, parts, adjoint):
        return [block.solve(part, adjoint=adjoint) for block, part in zip(self._operators, parts)]

    def _each(self, method, **hints):
        return LinearOperatorBlockDiag([getattr(block, method)() for block in self._operators], **hints)

    def _linop_inverse(self):
        return self._each("inverse", is_non_singular=self.is_non_singular, is_self_adjoint=self.is_self_adjoint,
                          is_positive_definite=self.is_positive_definite)

    def _linop_adjoint(self):
        return self._each("adjoint", is_non_singular=self.is_non_singular, is_self_adjoint=self.is_self_adjoint,
                          is_positive_definite=self.is_positive_definite, is_square=True)

    def _linop_cholesky(self):
        return self._each("cholesky", is_non_singular=True)


class LinearOperatorBlockLowerTriangular(_Blockwise):
    """A matrix of blocks: row i of `operators` has i + 1 of them, the last one square."""

    _matrix_dims = {"operators": 0}

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorBlockLowerTriangular"):
        rows = [list(row) for row in operators]
        if not rows:
            raise ValueError("Argument `operators` must be a list of >=1 operators. Received: %s." % (operators,))
        self._operators, self._diagonal = rows, [row[-1] for row in rows if row]
        _check_blocks(rows)
        if is_square is False:
            raise ValueError("`LinearOperatorBlockLowerTriangular` must be square. Expected argument `is_square` to be True. "
                             "Received: False.")
        super().__init__(rows[0][0].dtype, [part for row in rows for block in row for part in block.graph_parents],
                         self._non_singular(is_non_singular), is_self_adjoint, is_positive_definite, True, name)

    operators = property(lambda self: self._operators)

    def _non_singular(self, said):
        hints = [block.is_non_singular for block in self._diagonal]
        if all(hints):
            if said is False:
                raise ValueError("A blockwise lower-triangular operator with non-singular operators on the main diagonal is always "
                                 "non-singular. Expected argument `is_non_singular` to be True. Received: False.")
            return True
        if any(hint is False for hint in hints):
            if said is True:
                raise ValueError("A blockwise lower-triangular operator with a singular operator on the main diagonal is always "
                                 "singular. Expected argument `is_non_singular` to be True. Received: True.")
            return False
        return said

    def _blocks(self):
        return [block for row in self._operators for block in row]

    def _shape(self):
        size = sum((tensor_shape.Dimension(block.domain_dimension) for block in self._diagonal), tensor_shape.Dimension(0))
        return static_batch(*(block.batch_shape for block in self._blocks())).concatenate([size, size])

    def _shape_tensor(self):
        size = sum(block.domain_dimension_tensor() for block in self._diagonal)
        return tf.concat([dynamic_batch(*(block.batch_shape_tensor() for block in self._blocks())), tf.stack([size, size])], 0)

    def _multiply(self, parts, adjoint):
        count, results = len(parts), []
        for i in range(count):
            # Row i of the matrix, or of its adjoint: what stands in column i on and below the diagonal.
            places = [(j, i) for j in range(i, count)] if adjoint else [(i, j) for j in range(i + 1)]
            products = [self._operators[r][c].matmul(parts[r if adjoint else c], adjoint=adjoint) for r, c in places]
            results.append(sum(products[1:], products[0]))
        return results

    def _eliminate(self, parts, adjoint):
        count = len(parts)
        found = [None] * count
        for i in reversed(range(count)) if adjoint else range(count):
            left = parts[i]
            for j in range(i + 1, count) if adjoint else range(i):
                block = self._operators[j][i] if adjoint else self._operators[i][j]
                left = left - block.matmul(found[j], adjoint=adjoint)
            found[i] = self._diagonal[i].solve(left, adjoint=adjoint)
        return found

    # Values.

    def _to_dense(self):
        blocks = iter(broadcast_batches(*(block.to_dense() for block in self._blocks())))
        rows, before = [], 0
        total = self.domain_dimension_tensor()
        for row in self._operators:
            dense = [next(blocks) for _ in row]
            before += tf.shape(dense[-1])[-1]
            lead = tf.shape(dense[0])[:-1]
            rows.append(tf.concat([*dense, tf.zeros(tf.concat([lead, [total - before]], 0), self.dtype)], axis=-1))
        matrix = tf.concat(rows, axis=-2)
        matrix.set_shape(self.shape)
        return matrix

    def _log_abs_determinant(self):
        return sum((block.log_abs_determinant() for block in self._diagonal[1:]), self._diagonal[0].log_abs_determinant())

    def _determinant(self):
        result = self._diagonal[0].determinant()
        for block in self._diagonal[1:]:
            result *= block.determinant()
        return result

    def _linop_inverse(self):
        """Returns the inverse, block by block: below the diagonal, minus (inverse of the row's last block) times what the row adds."""
        from runnel.linalg.linear_operator_kinds import LinearOperatorFullMatrix
        rows = []
        for i, row in enumerate(self._operators):
            last = row[-1].inverse()
            blocks = []
            for j in range(i):
                products = [row[k].matmul(rows[k][j].to_dense()) for k in range(j, i)]
                blocks.append(LinearOperatorFullMatrix(-last.matmul(sum(products[1:], products[0]))))
            rows.append([*blocks, last])
        return LinearOperatorBlockLowerTriangular(rows, self.is_non_singular, self.is_self_adjoint, self.is_positive_definite, True)


def _check_blocks(rows):
    """Raises an error if blocks do not fit each other."""
    for i, row in enumerate(rows):
        if len(row) != i + 1:
            raise ValueError("Argument `operators[%d]` must contain `%d` blocks. Received: %d blocks." % (i, i + 1, len(row)))
        if row[-1].is_square is False:
            raise ValueError("Matrices on the diagonal (the final elements of each row-partition in the `operators` list) must be square. "
                             "Expected argument `operators[%d][-1].is_square` to be True. Received: False." % i)
        for j, block in enumerate(row):
            if block.dtype != rows[0][0].dtype:
                raise TypeError("Expected all operators to have the same dtype.  Found %s in row %d and %s in row 0." % (
                    [(b.name, b.dtype) for b in row], i, rows[0][0].dtype))
            neighbours = []
            if j < i:
                neighbours = [("domain_dimension", i - 1, j, rows[i - 1][j]), ("range_dimension", i, j + 1, row[j + 1])]
            for what, r, c, other in neighbours:
                one, two = (tensor_shape.Dimension(getattr(o, what)).value for o in (block, other))
                if None not in (one, two) and one != two:
                    raise ValueError("Argument `operators[%d][%d].%s` (%s) must be the same as `operators[%d][%d].%s` (%s)." % (
                        i, j, what, one, r, c, what, two))
