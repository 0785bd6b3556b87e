"""tf.train: optimizers, checkpoints, sessions that look after themselves, and clusters.

What it has is kept in other modules, which are imported when a name of them is first used.
"""

import importlib as _importlib

_MODULES = {
    "optimizer": "Optimizer",
    "optimizers": "GradientDescentOptimizer ProximalGradientDescentOptimizer MomentumOptimizer "
                  "AdagradOptimizer ProximalAdagradOptimizer AdagradDAOptimizer AdadeltaOptimizer "
                  "RMSPropOptimizer FtrlOptimizer AdamOptimizer",
    "learning_rate_decay": "exponential_decay natural_exp_decay inverse_time_decay polynomial_decay "
                           "piecewise_constant piecewise_constant_decay cosine_decay "
                           "cosine_decay_restarts linear_cosine_decay noisy_linear_cosine_decay",
    "moving_averages": "ExponentialMovingAverage",
    "saver": "Saver export_meta_graph import_meta_graph",
    "checkpoint_management": "checkpoint_exists generate_checkpoint_state_proto "
                             "get_checkpoint_mtimes get_checkpoint_state latest_checkpoint "
                             "remove_checkpoint update_checkpoint_state",
    "checkpoint": "Checkpoint CheckpointManager",
    "checkpoint_reader": "CheckpointReader NewCheckpointReader checkpoints_iterator "
                         "init_from_checkpoint list_variables load_checkpoint load_variable",
    "coordinator": "Coordinator LooperThread",
    "queue_runner": "QueueRunner add_queue_runner start_queue_runners",
    "train_input": "batch batch_join maybe_batch maybe_batch_join shuffle_batch shuffle_batch_join "
                   "maybe_shuffle_batch maybe_shuffle_batch_join input_producer "
                   "string_input_producer range_input_producer slice_input_producer limit_epochs "
                   "match_filenames_once",
    "session_run_hook": "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
    "basic_session_run_hooks": "CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook "
                               "GlobalStepWaiterHook LoggingTensorHook NanLossDuringTrainingError "
                               "NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook "
                               "StopAtStepHook SummarySaverHook",
    "monitored_session": "ChiefSessionCreator MonitoredSession MonitoredTrainingSession Scaffold "
                         "SessionCreator SingularMonitoredSession WorkerSessionCreator",
    "supervisor": "Supervisor basic_train_loop",
    "server_lib": "ClusterSpec Server replica_device_setter",
    "sync_replicas_optimizer": "SyncReplicasOptimizer",
    "session_manager": "SessionManager",
    "warm_starting": "VocabInfo warm_start",
    "training_util": "summary_iterator write_graph assert_global_step create_global_step get_global_step "
                     "get_or_create_global_step global_step",
}
_names = {name: module for module, names in _MODULES.items() for name in names.split()}
_MESSAGES = ("BytesList ClusterDef Example Feature FeatureList FeatureLists Features FloatList "
             "Int64List JobDef SaverDef SequenceExample ServerDef").split()


def __getattr__(name):
    if name in _MESSAGES:
        from runnel.protobuf import message_class
        value = message_class(name)
    elif name == "queue_runner":
        value = _importlib.import_module("runnel.queue_runner")
    elif name in _names:
        value = getattr(_importlib.import_module("runnel." + _names[name]), name)
    else:
        raise AttributeError(
            "runnel.train has no %r: see the table of names in doc/python.md" % name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(_names) | set(_MESSAGES) | {"queue_runner"})
