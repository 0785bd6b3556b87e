"""Synchronous training: gradients of several replicas are averaged before they are applied."""


from runnel import logging, raw_ops
from runnel.core import framework
from runnel.core.composite import IndexedSlices
from runnel.core.framework import GraphKeys, Tensor
from runnel.ops import control_flow, data_flow, state_ops, variables
from runnel.train import queue_runner, session_manager
from runnel.train.optimizer import Optimizer
from runnel.train.session_run_hook import SessionRunHook


class SyncReplicasOptimizer(Optimizer):
    """Makes another optimizer wait for the gradients of `replicas_to_aggregate` replicas.

    A replica puts its gradients into accumulators and then waits for a token. The chief, in a queue runner's thread,
    takes the averages, applies them, and hands out tokens with the new step. Gradients of an older step are dropped, so
    if `total_num_replicas` exceeds `replicas_to_aggregate`, the slowest replicas are not waited for.

    Args:
      opt: the optimizer that applies the averages.
      replicas_to_aggregate: the number of gradients per step.
      total_num_replicas: the number of replicas; by default the same.
      variable_averages: an ExponentialMovingAverage to update after each step.
      variables_to_average: the variables that it averages.
    """

    def __init__(self, opt, replicas_to_aggregate, total_num_replicas=None, variable_averages=None,
                 variables_to_average=None, use_locking=False, name="sync_replicas"):
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        super().__init__(use_locking, name)
        logging.info("SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
                  replicas_to_aggregate, total_num_replicas)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total_num_replicas
        self._tokens_per_step = max(total_num_replicas, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._gradients_applied = False
        self._global_step = None
        self._local_step = None
        self._sync_token_queue = None
        self._chief_queue_runner = None
        self._accumulator_list = []
        self.local_step_init_op = None
        self.ready_for_local_init_op = None
        self.chief_init_op = None

    def compute_gradients(self, *args, **kwargs):
        """Returns the gradients of the wrapped optimizer."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Returns a replica's operation: it delivers the gradients and waits for the next step."""
        pairs = list(grads_and_vars or ())
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        anchor = control_flow.no_op()
        with framework.colocate_with(anchor):
            self._local_step = variables.Variable(
                initial_value=0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype, name="sync_rep_local_step")
        self.local_step_init_op = state_ops.assign(self._local_step, global_step)
        self.ready_for_local_init_op = variables.report_uninitialized_variables(
            variables.global_variables())
        with framework.name_scope(None, self._name):
            given, means = [], []
            for gradient, variable in pairs:
                with framework.device(variable.device):
                    given_op, mean = self._accumulate(gradient, variable)
                    if given_op is not None:
                        given.append(given_op)
                    means.append((mean, variable))
            with self._beside_step():
                update = self._opt.apply_gradients(means, global_step)
            train_op = self._exchange(given, update)
            init_ops = [self.local_step_init_op]
            for accumulator, device in self._accumulator_list:
                with framework.device(device):
                    init_ops.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = control_flow.group(*init_ops)
        self._gradients_applied = True
        return train_op

    def _beside_step(self):
        """A context manager for operations placed with the global step, outside of other scopes."""
        import contextlib
        out = contextlib.ExitStack()
        out.enter_context(framework.device(self._global_step.device))
        out.enter_context(framework.name_scope(""))
        return out

    def _accumulate(self, gradient, variable):
        """Returns (operation that delivers a gradient, average of all)."""
        if gradient is None:
            return None, None
        shared = variable.name + "/grad_accum"
        if isinstance(gradient, Tensor):
            accumulator = data_flow.ConditionalAccumulator(
                gradient.dtype, shape=variable.get_shape(), shared_name=shared)
            given = accumulator.apply_grad(gradient, local_step=self._local_step)
            mean = accumulator.take_grad(self._replicas_to_aggregate)
        elif isinstance(gradient, IndexedSlices):
            accumulator = data_flow.SparseConditionalAccumulator(
                gradient.dtype, shape=(), shared_name=shared)
            given = accumulator.apply_indexed_slices_grad(gradient, local_step=self._local_step)
            mean = accumulator.take_indexed_slices_grad(self._replicas_to_aggregate)
        else:
            raise ValueError("Unknown grad type!")
        self._accumulator_list.append((accumulator, variable.device))
        return given, mean

    def _exchange(self, given, update):
        """Builds the tokens: a replica waits for one, the chief hands them out after the update."""
        step = self._global_step
        with self._beside_step():
            queue = data_flow.FIFOQueue(-1, step.dtype.base_dtype, shapes=(), name="sync_token_q",
                                        shared_name="sync_token_q")
            self._sync_token_queue = queue
        with self._beside_step():
            with framework.control_dependencies(given):
                token = queue.dequeue()
            train_op = state_ops.assign(self._local_step, token)
            with framework.control_dependencies([update]):
                tokens = raw_ops.Fill(dims=[self._tokens_per_step], value=step)
                hand_out = queue.enqueue_many((tokens,))
            if self._variable_averages is not None:
                with framework.control_dependencies([hand_out]), framework.name_scope(""):
                    hand_out = self._variable_averages.apply(self._variables_to_average)
            self._chief_queue_runner = queue_runner.QueueRunner(queue, [hand_out])
        return train_op

    def get_chief_queue_runner(self):
        """Returns the queue runner that the chief must start."""
        if not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_slot(self, *args, **kwargs):
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self):
        return self._opt.variables()

    def get_init_tokens_op(self, num_tokens=-1):
        """Returns the operation that hands out the first tokens."""
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError("Too few tokens to finish the first step: %d (given) vs %d (needed)" % (
                num_tokens, needed))
        if num_tokens <= 0:
            return control_flow.no_op(name="no_init_tokens")
        with self._beside_step():
            tokens = raw_ops.Fill(dims=[num_tokens], value=self._global_step)
            return self._sync_token_queue.enqueue_many((tokens,))

    def make_session_run_hook(self, is_chief, num_tokens=-1):
        """Returns the hook for monitored sessions."""
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Starts what a replica or the chief needs."""

    def __init__(self, sync_optimizer, is_chief, num_tokens):
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self):
        optimizer = self._sync_optimizer
        if not optimizer._gradients_applied:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the "
                             "hook.")
        self._ready_for_local_init_op = optimizer.ready_for_local_init_op
        self._local_init_op, self._q_runner, self._init_tokens_op = (
            optimizer.local_step_init_op, None, None)
        if self._is_chief:
            self._local_init_op = optimizer.chief_init_op
            self._q_runner = optimizer.get_chief_queue_runner()
            self._init_tokens_op = optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session, coord):
        ready, message = session_manager._ready(self._ready_for_local_init_op, session, "")
        if not ready:
            raise RuntimeError("Init operations did not make model ready for SyncReplicasOptimizer "
                               "local_init. Init op: %s, error: %s" % (
                                   self._local_init_op.name, message))
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._q_runner is not None:
            self._q_runner.create_threads(session, coord=coord, daemon=True, start=True)
