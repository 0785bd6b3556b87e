"""Moving averages of variables: tf.train.ExponentialMovingAverage."""

import runnel as tf
from runnel.core import framework
from runnel.core.framework import GraphKeys
from runnel.ops import state_ops, variables
from runnel.train import slot_creator

_FLOATS = ("bfloat16", "float16", "float32", "float64")


def assign_moving_average(variable, value, decay, zero_debias=True, name=None):
    """Sets variable = decay * variable + (1 - decay) * value. `zero_debias` corrects for the initial zero."""
    with tf.name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        rate = tf.convert_to_tensor(1.0 - decay, name="decay")
        if rate.dtype != variable.dtype.base_dtype:
            rate = tf.cast(rate, variable.dtype.base_dtype)
        if zero_debias:
            return _zero_debias(variable, value, rate)
        return state_ops.assign_sub(variable, (variable - value) * rate, name=scope)


def weighted_moving_average(value, decay, weight, truediv=True, collections=None, name=None):
    """Returns the moving average of `value * weight`, divided by that of `weight`; both are kept in variables.

    Args:
      value: a tensor of numbers.
      decay: the share of the averages that stays in an update.
      weight: a tensor whose shape fits that of `value`.
      truediv: whether integers are divided as floats.
      collections: the names of the variables' collections; by default that of the global variables.
      name: the name of the result and the scope of the variables.
    """
    with tf.variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        averages = []
        for own, tensor in (("value_x_weight", value), ("weight", weight)):
            variable = tf.get_variable(own, shape=tensor.get_shape(), dtype=tensor.dtype, initializer=tf.zeros_initializer(), trainable=False,
                                       collections=[GraphKeys.GLOBAL_VARIABLES] if collections is None else collections)
            averages.append(assign_moving_average(variable, tensor * weight if own != "weight" else tensor, decay, zero_debias=False))
        return (tf.truediv if truediv else tf.divide)(*averages, name=scope.name)


def _zero_debias(variable, value, rate):
    from runnel.ops import variable_scopes
    with variable_scopes.variable_scope(variable.name[:-2], values=[variable, value, rate]):
        with framework.colocate_with(variable.op):
            biased = variable_scopes.get_variable(
                _free_name("biased"), initializer=tf.zeros_initializer(), shape=variable.get_shape(),
                dtype=variable.dtype, trainable=False)
            step = variable_scopes.get_variable(
                _free_name("local_step"), shape=[], dtype=variable.dtype,
                initializer=tf.zeros_initializer(), trainable=False)
    changed = state_ops.assign_sub(biased, (biased - value) * rate)
    count = step.assign_add(1)
    factor = 1 - tf.pow(1.0 - rate, count)
    return state_ops.assign(variable, changed / factor,
                            name=framework.get_default_graph().get_name_scope() + "/")


def _free_name(name):
    from runnel.ops import variable_scopes
    scope = variable_scopes.get_variable_scope()
    if scope.reuse:
        return name
    taken = {v.op.name for v in scope.global_variables()}
    full, number = scope.name + "/" + name, 1
    if full not in taken:
        return name
    while "%s_%d" % (full, number) in taken:
        number += 1
    return "%s_%d" % (name, number)


class ExponentialMovingAverage:
    """Keeps exponentially decaying averages of variables or tensors.

        ema = tf.train.ExponentialMovingAverage(0.999)
        with tf.control_dependencies([train_op]):
            step = ema.apply(tf.trainable_variables())

    Args:
      decay: the fraction of the average that each update keeps.
      num_updates: a count of updates; the decay is then at most (1 + count) / (10 + count).
      zero_debias: corrects averages of tensors for the initial zero.
      name: name of the averages.
    """

    def __init__(self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"):
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages = {}

    @property
    def name(self):
        return self._name

    def apply(self, var_list=None):
        """Creates the averages and returns an operation that updates them; by default of all trainable variables."""
        if var_list is None:
            var_list = variables.trainable_variables()
        debiased = set()
        for var in var_list:
            if var.dtype.base_dtype.name not in _FLOATS:
                raise TypeError("The variables must be half, float, or double: %s" % var.name)
            if var not in self._averages:
                with framework.init_scope():
                    self._averages[var] = self._make(var, debiased)
        with tf.name_scope(self._name) as scope:
            decay = tf.convert_to_tensor(self._decay, dtype=tf.float32, name="decay")
            if self._num_updates is not None:
                count = tf.cast(self._num_updates, tf.float32, name="num_updates")
                decay = tf.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = [assign_moving_average(self._averages[var], var, decay,
                                             self._averages[var] in debiased) for var in var_list]
            return tf.group(*updates, name=scope)

    def _make(self, var, debiased):
        if isinstance(var, variables.Variable):
            with framework.device(var.device):
                first = var.initialized_value()
            average = slot_creator.create_slot(var, first, self._name)
            framework.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            return average
        average = slot_creator.create_zeros_slot(
            var, self._name,
            colocate_with_primary=var.op.type in ("Variable", "VariableV2", "VarHandleOp"))
        if self._zero_debias:
            debiased.add(average)
        return average

    def average(self, var):
        """Returns the variable that holds the average of `var`, or None."""
        return self._averages.get(var)

    def average_name(self, var):
        """Returns the name that the average of a variable has or would have."""
        if var in self._averages:
            return self._averages[var].name[:-2]
        return framework.get_default_graph().unique_name(var.name[:-2] + "/" + self._name,
                                                         mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables=None):
        """Returns {name in a checkpoint: variable} for loading averages into the variables themselves."""
        if moving_avg_variables is None:
            moving_avg_variables = (variables.trainable_variables() +
                                    variables.moving_average_variables())
        averaged = dict.fromkeys(moving_avg_variables)
        out = {self.average_name(v): v for v in averaged}
        names = {v.name for v in averaged}
        for v in dict.fromkeys(variables.global_variables()):
            if v.name not in names and v.op.name not in out:
                out[v.op.name] = v
        return out
