"""tf.saved_model: models in folders, with their graphs, variables, signatures and objects."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "saved_model.meta_graphs: ASSETS_DIRECTORY ASSETS_KEY CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES "
    "CLASSIFY_OUTPUT_SCORES DEBUG_DIRECTORY DEBUG_INFO_FILENAME_PB DEFAULT_SERVING_SIGNATURE_DEF_KEY EVAL GPU LEGACY_INIT_OP_KEY "
    "MAIN_OP_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS "
    "SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION SERVING SUPERVISED_EVAL_METHOD_NAME "
    "SUPERVISED_TRAIN_METHOD_NAME TPU TRAINING TRAIN_OP_KEY VARIABLES_DIRECTORY VARIABLES_FILENAME",
    "saved_model.meta_graphs: Builder SavedModelBuilder SavedModelLoader build_signature_def build_tensor_info "
    "classification_signature_def contains_saved_model get_tensor_from_tensor_info get_variables_dir get_variables_path "
    "is_valid_signature load load_v2 main_op_with_restore maybe_saved_model_directory predict_signature_def regression_signature_def "
    "save simple_save",
    "saved_model.meta_graphs: builder constants loader main_op signature_constants signature_def_utils tag_constants utils",
    "saved_model.asset: Asset", "saved_model.options: LoadOptions SaveOptions",
)
