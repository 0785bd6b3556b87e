"""tf.train: optimizers, checkpoints, monitored sessions, input queues and clusters."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "train.optimizer: Optimizer",
    "train.optimizers: AdadeltaOptimizer AdagradDAOptimizer AdagradOptimizer AdamOptimizer FtrlOptimizer GradientDescentOptimizer "
    "MomentumOptimizer ProximalAdagradOptimizer ProximalGradientDescentOptimizer RMSPropOptimizer",
    "train.sync_replicas_optimizer: SyncReplicasOptimizer",
    "train.learning_rate_decay: cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay linear_cosine_decay "
    "natural_exp_decay noisy_linear_cosine_decay piecewise_constant piecewise_constant_decay polynomial_decay",
    "train.moving_averages: ExponentialMovingAverage",
    "train.saver: Saver export_meta_graph import_meta_graph",
    "sdca_fprint=raw_ops.SdcaFprint sdca_optimizer=raw_ops.SdcaOptimizer sdca_shrink_l1=raw_ops.SdcaShrinkL1",
    "train.checkpoint_options: CheckpointOptions",
    "train.checkpoint: Checkpoint", "train.checkpoint_manager: CheckpointManager",
    "train.checkpoint_management: checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes get_checkpoint_state "
    "latest_checkpoint remove_checkpoint update_checkpoint_state",
    "train.checkpoint_reader: CheckpointReader NewCheckpointReader checkpoints_iterator init_from_checkpoint list_variables "
    "load_checkpoint load_variable",
    "train.warm_starting: VocabInfo warm_start",
    "train.coordinator: Coordinator LooperThread",
    "train.queue_runner: QueueRunner add_queue_runner start_queue_runners",
    "submodules: experimental queue_runner",
    "train.train_input: batch batch_join input_producer limit_epochs match_filenames_once maybe_batch maybe_batch_join "
    "maybe_shuffle_batch maybe_shuffle_batch_join range_input_producer shuffle_batch shuffle_batch_join slice_input_producer "
    "string_input_producer",
    "train.session_run_hook: SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
    "train.basic_session_run_hooks: CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook "
    "LoggingTensorHook NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook StopAtStepHook "
    "SummarySaverHook",
    "train.monitored_session: ChiefSessionCreator MonitoredSession MonitoredTrainingSession Scaffold SessionCreator "
    "SingularMonitoredSession WorkerSessionCreator",
    "train.session_manager: SessionManager",
    "train.supervisor: Supervisor basic_train_loop",
    "train.server_lib: ClusterSpec Server replica_device_setter",
    "train.training_util: assert_global_step create_global_step get_global_step get_or_create_global_step global_step "
    "summary_iterator write_graph",
    "core.protobuf: BytesList ClusterDef Example Feature FeatureList FeatureLists Features FloatList Int64List JobDef SaverDef "
    "SequenceExample ServerDef",
)
