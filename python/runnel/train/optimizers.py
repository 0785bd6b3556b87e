"""The optimizers of tf.train."""

from runnel import raw_ops
from runnel.core import convert, framework
from runnel.core.composite import IndexedSlices
from runnel.train.optimizer import Optimizer


class _Kernel:
    """Optimizers whose update is one op, for dense and sparse gradients and both kinds of variables.

    A class names the op, its inputs that are slots, and its inputs that are parameters: the name of the op's input, then
    the attribute whose "_tensor" _prepare creates.
    """

    _op = None
    _slot_inputs = ()       # (input of the op, name of the slot)
    _parameter_inputs = ()  # (input of the op, parameter)
    _parameters = ()        # (parameter, name of its tensor)
    _casts = True
    _attrs = ()             # (attribute of the op, attribute of the object)

    def _prepare(self):
        for parameter, name in self._parameters:
            value = self._call_if_callable(getattr(self, "_" + parameter))
            tensor = convert.convert_to_tensor(value, name=name)
            setattr(self, "_%s_tensor" % parameter, tensor)
            setattr(self, "_%s_t" % parameter, tensor)  # the name that subclasses of Adam use

    def _op_name(self):
        return self._op

    def _parameter(self, parameter, dtype, casts=True):
        from runnel.ops import math_ops
        value = getattr(self, "_%s_tensor" % parameter)
        return math_ops.cast(value, dtype) if casts else value

    def _call(self, prefix, var, dtype, casts, **inputs):
        is_resource = prefix.startswith("Resource")
        inputs["var"] = var.handle if is_resource else var
        for name, slot in self._slot_inputs:
            found = self.get_slot(var, slot)
            inputs[name] = found.handle if is_resource else found
        for name, parameter in self._parameter_inputs:
            inputs[name] = self._parameter(parameter, dtype, casts)
        for name, attribute in self._attrs:
            inputs[name] = getattr(self, attribute)
        self._more_inputs(inputs, var, dtype)
        out = getattr(raw_ops, prefix + self._op_name())(use_locking=self._use_locking, **inputs)
        return out if is_resource else out.op

    def _more_inputs(self, inputs, var, dtype):
        pass

    _gradient_input = "grad"

    def _apply_dense(self, grad, var):
        return self._call("", var, var.dtype.base_dtype, self._casts, **{self._gradient_input: grad})

    def _resource_apply_dense(self, grad, var):
        return self._call("Resource", var, grad.dtype.base_dtype, self._casts,
                          **{self._gradient_input: grad})

    def _apply_sparse(self, grad, var):
        return self._call("Sparse", var, var.dtype.base_dtype, self._casts, grad=grad.values,
                          indices=grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._call("ResourceSparse", var, grad.dtype.base_dtype, True, grad=grad,
                          indices=indices)


def _by_kernel(cls):
    """Adds the methods of _Kernel to a class, so that Optimizer remains its only base, which programs check."""
    for name, value in vars(_Kernel).items():
        if name not in vars(cls) and not name.startswith("__"):
            setattr(cls, name, value)
    return cls


@_by_kernel
class GradientDescentOptimizer(Optimizer):
    """Gradient descent: w -= learning_rate * gradient.

    Args:
      learning_rate: a number, a tensor, or a function that returns one.
      use_locking: whether updates lock the variable.
      name: name of the operations.
    """

    _op = "ApplyGradientDescent"
    _gradient_input = "delta"
    _parameters = (("learning_rate", "learning_rate"),)
    _parameter_inputs = (("alpha", "learning_rate"),)

    def __init__(self, learning_rate, use_locking=False, name="GradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor = None

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        step = -grad * self._parameter("learning_rate", grad.dtype.base_dtype)
        return raw_ops.ResourceScatterAdd(resource=handle.handle, indices=indices, updates=step)

    def _apply_sparse_duplicate_indices(self, grad, var):
        step = grad.values * self._parameter("learning_rate", var.dtype.base_dtype)
        return var.scatter_sub(IndexedSlices(step, grad.indices, grad.dense_shape),
                               use_locking=self._use_locking)


@_by_kernel
class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent with L1 and L2 regularization as a proximal step."""

    _op = "ApplyProximalGradientDescent"
    _gradient_input = "delta"
    _casts = False
    _parameters = (("learning_rate", "learning_rate"),
                   ("l1_regularization_strength", "l1_regularization_strength"),
                   ("l2_regularization_strength", "l2_regularization_strength"))
    _parameter_inputs = (("alpha", "learning_rate"), ("l1", "l1_regularization_strength"),
                         ("l2", "l2_regularization_strength"))

    def __init__(self, learning_rate, l1_regularization_strength=0.0, l2_regularization_strength=0.0,
                 use_locking=False, name="ProximalGradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength


@_by_kernel
class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum.

    Args:
      learning_rate: a number or a tensor.
      momentum: the fraction of the previous step that is kept.
      use_locking: whether updates lock the variable.
      name: name of the operations and slots.
      use_nesterov: uses Nesterov momentum.
    """

    _op = "ApplyMomentum"
    _slot_inputs = (("accum", "momentum"),)
    _parameters = (("learning_rate", "learning_rate"), ("momentum", "momentum"))
    _parameter_inputs = (("lr", "learning_rate"), ("momentum", "momentum"))
    _attrs = (("use_nesterov", "_use_nesterov"),)

    def __init__(self, learning_rate, momentum, use_locking=False, name="Momentum",
                 use_nesterov=False):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)


@_by_kernel
class AdagradOptimizer(Optimizer):
    """Adagrad: steps shrink with the sum of squared gradients.

    Args:
      learning_rate: a number or a tensor.
      initial_accumulator_value: the initial sum of squares.
      use_locking: whether updates lock the variable.
      name: name of the operations and slots.
    """

    _op = "ApplyAdagrad"
    _slot_inputs = (("accum", "accumulator"),)
    _parameters = (("learning_rate", "learning_rate"),)
    _parameter_inputs = (("lr", "learning_rate"),)

    def __init__(self, learning_rate, initial_accumulator_value=0.1, use_locking=False,
                 name="Adagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError("initial_accumulator_value must be positive: %s" % (
                initial_accumulator_value,))
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list):
        from runnel.ops import init_ops
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                init = init_ops.constant_initializer(self._initial_accumulator_value, dtype=dtype)
            else:
                init = self._filled(v, dtype)
            self._get_or_make_slot_with_initializer(v, init, v.get_shape(), dtype, "accumulator",
                                                    self._name)

    def _filled(self, v, dtype):
        from runnel.ops import array_ops, math_ops
        return lambda: math_ops.cast(
            raw_ops.Fill(dims=array_ops.shape(v), value=self._initial_accumulator_value), dtype)


@_by_kernel
class ProximalAdagradOptimizer(Optimizer):
    """Adagrad with L1 and L2 regularization as a proximal step."""

    _op = "ApplyProximalAdagrad"
    _casts = False
    _slot_inputs = (("accum", "accumulator"),)
    _parameters = ProximalGradientDescentOptimizer._parameters
    _parameter_inputs = (("lr", "learning_rate"), ("l1", "l1_regularization_strength"),
                         ("l2", "l2_regularization_strength"))

    def __init__(self, learning_rate, initial_accumulator_value=0.1, l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, use_locking=False, name="ProximalAdagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError("initial_accumulator_value must be positive: %s" % (
                initial_accumulator_value,))
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list):
        for v in var_list:
            with framework.colocate_with(v.op):
                value = convert.constant(self._initial_accumulator_value, v.dtype.base_dtype,
                                         v.get_shape())
            self._get_or_make_slot(v, value, "accumulator", self._name)


@_by_kernel
class AdagradDAOptimizer(Optimizer):
    """Adagrad with dual averaging: regularization counts from the first step."""

    _op = "ApplyAdagradDA"
    _slot_inputs = (("gradient_accumulator", "gradient_accumulator"),
                    ("gradient_squared_accumulator", "gradient_squared_accumulator"))
    _parameters = (("learning_rate", "learning_rate"),)
    _parameter_inputs = (("lr", "learning_rate"),)

    def __init__(self, learning_rate, global_step, initial_gradient_squared_accumulator_value=0.1,
                 l1_regularization_strength=0.0, l2_regularization_strength=0.0, use_locking=False,
                 name="AdagradDA"):
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError("initial_gradient_squared_accumulator_value must be positive: %s" % (
                initial_gradient_squared_accumulator_value,))
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = initial_gradient_squared_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step
        self._global_step_on_worker = None

    def _create_slots(self, var_list):
        for v in var_list:
            with framework.colocate_with(v.op):
                sums = convert.constant(0.0, v.dtype.base_dtype, v.get_shape())
                squares = convert.constant(self._initial_gradient_squared_accumulator_value,
                                           v.dtype.base_dtype, v.get_shape())
            self._get_or_make_slot(v, sums, "gradient_accumulator", self._name)
            self._get_or_make_slot(v, squares, "gradient_squared_accumulator", self._name)

    def _prepare(self):
        _Kernel._prepare(self)
        with framework.colocate_with(self._learning_rate_tensor):
            self._global_step_on_worker = raw_ops.Identity(input=self._global_step) + 1

    def _more_inputs(self, inputs, var, dtype):
        from runnel.ops import math_ops
        with framework.device(var.device):
            inputs["global_step"] = raw_ops.Identity(input=self._global_step_on_worker)
        inputs["l1"] = math_ops.cast(self._l1_regularization_strength, dtype)
        inputs["l2"] = math_ops.cast(self._l2_regularization_strength, dtype)


@_by_kernel
class AdadeltaOptimizer(Optimizer):
    """The Adadelta optimizer."""

    _op = "ApplyAdadelta"
    _slot_inputs = (("accum", "accum"), ("accum_update", "accum_update"))
    _parameters = (("lr", "lr"), ("rho", "rho"), ("epsilon", "epsilon"))
    _parameter_inputs = (("lr", "lr"), ("rho", "rho"), ("epsilon", "epsilon"))

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-8, use_locking=False,
                 name="Adadelta"):
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)


@_by_kernel
class RMSPropOptimizer(Optimizer):
    """RMSProp: divides steps by the root of a moving average of squared gradients.

    Args:
      learning_rate: a number or a tensor.
      decay: the fraction of the average that a step keeps.
      momentum: the fraction of the previous step that is kept.
      epsilon: added to the average of squares.
      use_locking: whether updates lock the variable.
      centered: subtracts the squared average of the gradients.
      name: name of the operations and slots.
    """

    _slot_inputs = (("ms", "rms"), ("mom", "momentum"))
    _parameters = (("learning_rate", "learning_rate"), ("decay", "decay"), ("momentum", "momentum"),
                   ("epsilon", "epsilon"))
    _parameter_inputs = (("lr", "learning_rate"), ("rho", "decay"), ("momentum", "momentum"),
                         ("epsilon", "epsilon"))

    def __init__(self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False,
                 centered=False, name="RMSProp"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered
        if centered:
            self._slot_inputs = (("mg", "mg"),) + self._slot_inputs

    def _op_name(self):
        return "ApplyCenteredRMSProp" if self._centered else "ApplyRMSProp"

    def _create_slots(self, var_list):
        from runnel.ops import array_ops, init_ops
        for v in var_list:
            if v.get_shape().is_fully_defined():
                init = init_ops.ones_initializer(dtype=v.dtype.base_dtype)
            else:
                init = array_ops.ones_like(v)
            self._get_or_make_slot_with_initializer(v, init, v.get_shape(), v.dtype.base_dtype, "rms",
                                                    self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)


@_by_kernel
class FtrlOptimizer(Optimizer):
    """The FTRL-proximal optimizer."""

    _slot_inputs = (("accum", "accum"), ("linear", "linear"))
    _parameter_inputs = (("lr", "learning_rate"), ("l1", "l1_regularization_strength"),
                         ("l2", "adjusted_l2_regularization_strength"),
                         ("lr_power", "learning_rate_power"))

    def __init__(self, learning_rate, learning_rate_power=-0.5, initial_accumulator_value=0.1,
                 l1_regularization_strength=0.0, l2_regularization_strength=0.0, use_locking=False,
                 name="Ftrl", accum_name=None, linear_name=None,
                 l2_shrinkage_regularization_strength=0.0, beta=None):
        super().__init__(use_locking, name)
        for what, value in (("initial_accumulator_value", initial_accumulator_value),
                            ("l1_regularization_strength", l1_regularization_strength),
                            ("l2_regularization_strength", l2_regularization_strength),
                            ("l2_shrinkage_regularization_strength",
                             l2_shrinkage_regularization_strength)):
            if value < 0.0:
                raise ValueError("%s %f needs to be positive or zero" % (what, value))
        if learning_rate_power > 0.0:
            raise ValueError("learning_rate_power %f needs to be negative or zero" % (
                learning_rate_power,))
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._beta = 0.0 if beta is None else beta
        self._accum_name = accum_name
        self._linear_name = linear_name
        if l2_shrinkage_regularization_strength > 0.0:
            self._parameter_inputs += (("l2_shrinkage", "l2_shrinkage_regularization_strength"),)

    def _op_name(self):
        return "ApplyFtrlV2" if self._l2_shrinkage_regularization_strength > 0.0 else "ApplyFtrl"

    def _create_slots(self, var_list):
        from runnel.ops import array_ops

        def first(shape, dtype, partition_info=None):
            return array_ops.ones(shape=shape, dtype=dtype) * self._initial_accumulator_value

        for v in var_list:
            self._get_or_make_slot_with_initializer(v, first, v.shape, v.dtype, "accum",
                                                    self._accum_name or self._name)
            self._zeros_slot(v, "linear", self._linear_name or self._name)

    def _prepare(self):
        tensor = convert.convert_to_tensor
        self._learning_rate_tensor = tensor(self._learning_rate, name="learning_rate")
        self._l1_regularization_strength_tensor = tensor(
            self._l1_regularization_strength, name="l1_regularization_strength")
        self._adjusted_l2_regularization_strength_tensor = tensor(
            self._l2_regularization_strength + self._beta / (
                2.0 * raw_ops.Maximum(x=self._learning_rate, y=1e-36)),
            name="adjusted_l2_regularization_strength")
        self._beta_tensor = tensor(self._beta, name="beta")
        self._l2_shrinkage_regularization_strength_tensor = tensor(
            self._l2_shrinkage_regularization_strength, name="l2_shrinkage_regularization_strength")
        self._learning_rate_power_tensor = tensor(self._learning_rate_power,
                                                  name="learning_rate_power")


def _as_type(variable, dtype):
    """Returns the variable itself if it has the type already, so that it is read where it is used."""
    from runnel.ops import math_ops
    return variable if variable.dtype.base_dtype == dtype else math_ops.cast(variable, dtype)


@_by_kernel
class AdamOptimizer(Optimizer):
    """Adam: moving averages of gradients and of squared gradients.

    Args:
      learning_rate: a number or a tensor.
      beta1: the fraction of the average of gradients that a step keeps.
      beta2: the fraction of the average of squared gradients that a step keeps.
      epsilon: added to the root of the latter.
      use_locking: whether updates lock the variable.
      name: name of the operations and slots.
    """

    _op = "ApplyAdam"
    _slot_inputs = (("m", "m"), ("v", "v"))
    _parameters = (("lr", "learning_rate"), ("beta1", "beta1"), ("beta2", "beta2"),
                   ("epsilon", "epsilon"))
    _parameter_inputs = (("lr", "lr"), ("beta1", "beta1"), ("beta2", "beta2"),
                         ("epsilon", "epsilon"))

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False,
                 name="Adam", use_own_namescope_for_non_slot_vars=False):
        super().__init__(use_locking, name, use_own_namescope_for_non_slot_vars)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _get_beta_accumulators(self):
        with framework.init_scope():
            graph = None if framework.executing_eagerly() else framework.get_default_graph()
        return (self._get_non_slot_variable("beta1_power", graph),
                self._get_non_slot_variable("beta2_power", graph))

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _call(self, prefix, var, dtype, casts, **inputs):
        first, second = self._get_beta_accumulators()
        inputs["beta1_power"] = _as_type(first, dtype)
        inputs["beta2_power"] = _as_type(second, dtype)
        return _Kernel._call(self, prefix, var, dtype, casts, **inputs)

    def _apply_sparse_shared(self, grad, var, indices, scatter_add):
        """Applies some rows of the gradient; the averages of all rows decay."""
        from runnel.ops import state_ops
        from runnel.ops.control_flow import group
        dtype = var.dtype.base_dtype
        first, second = self._get_beta_accumulators()
        first, second = _as_type(first, dtype), _as_type(second, dtype)
        lr, beta1, beta2, epsilon = (
            self._parameter(p, dtype) for p in ("lr", "beta1", "beta2", "epsilon"))
        rate = lr * raw_ops.Sqrt(x=1 - second) / (1 - first)
        m = self.get_slot(var, "m")
        more = grad * (1 - beta1)
        m_t = state_ops.assign(m, m * beta1, use_locking=self._use_locking)
        with framework.control_dependencies([m_t]):
            m_t = scatter_add(m, indices, more)
        v = self.get_slot(var, "v")
        more = grad * grad * (1 - beta2)
        v_t = state_ops.assign(v, v * beta2, use_locking=self._use_locking)
        with framework.control_dependencies([v_t]):
            v_t = scatter_add(v, indices, more)
        root = raw_ops.Sqrt(x=v_t)
        update = state_ops.assign_sub(var, rate * m_t / (root + epsilon),
                                      use_locking=self._use_locking)
        return group(update, m_t, v_t)

    def _apply_sparse(self, grad, var):
        from runnel.ops import state_ops
        return self._apply_sparse_shared(
            grad.values, var, grad.indices,
            lambda x, i, v: state_ops.scatter_add(x, i, v, use_locking=self._use_locking))

    def _resource_scatter_add(self, x, i, v):
        change = raw_ops.ResourceScatterAdd(resource=x.handle, indices=i, updates=v)
        with framework.control_dependencies([change] if change is not None else []):
            return x.value()

    def _resource_apply_sparse(self, grad, var, indices):
        return self._apply_sparse_shared(grad, var, indices, self._resource_scatter_add)

    def _finish(self, update_ops, name_scope):
        from runnel.ops.control_flow import group
        after = [op for op in update_ops if op is not None]
        with framework.control_dependencies(after):
            first, second = self._get_beta_accumulators()
            in_graph = first._in_graph_mode
            with framework.colocate_with(first.op if in_graph else None, not in_graph):
                one = first.assign(first * self._beta1_tensor, use_locking=self._use_locking)
                two = second.assign(second * self._beta2_tensor, use_locking=self._use_locking)
        return group(*after, one, two, name=name_scope)
