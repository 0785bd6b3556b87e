// runnel saved_model: the table of the sub-command. saved_model_show.c, run.c and freeze.c have the
// verbs.
#include "cli/model.h"

static const rn_cli_verb_t verbs[] = {
    RN_VERB("show", "DIR", rn_cli_saved_model_show, FOLDER,
            "prints graphs with their tags, signatures with their inputs and outputs, assets, ops, "
            "and what this library lacks to run them"),
    RN_VERB("run", "DIR", rn_cli_run, FOLDER,
            "runs a step, with inputs and outputs named as in the signature; prints all outputs "
            "without --fetch and --save. Takes the options of 'runnel run'",
            .like = &rn_cli_run_command),
    RN_VERB("freeze", "DIR FILE", rn_cli_saved_model_freeze, FOLDER,
            "writes a GraphDef in which variables are constants and functions are inlined; inputs "
            "and outputs are nodes with the names of the signature"),
    {0},
};

static const rn_cli_option_t options[] = {
    RN_CLI_JSON_OPTION("show"),
    RN_OPTION(TEXT, "--tags", "T,...",
              "the graph with these tags (default: serve, or the only one; show: all)",
              .also = "--tag_set"),
    RN_OPTION(TEXT, "--signature", "NAME",
              "the signature (default: serving_default, or the only one; show: all)",
              .also = "--signature_def"),
    RN_OPTION(FLAG, "--functions", NULL, "also list the functions", .verbs = "show"),
    RN_OPTION(TEXT, "--allow", "WHAT",
              "what the model may do besides reading its own folder (default: nothing): "
              "read:FOLDER, write:FOLDER, network, all, separated by ';'",
              .verbs = "run"),
    RN_OPTION(FLAG, "--fold-batch-norms", NULL,
              "multiply batch normalizations into the convolutions before them", .verbs = "freeze"),
    RN_OPTION(FLAG, "--text", NULL, "write text (pbtxt); also if FILE ends in .pbtxt",
              .verbs = "freeze"),
    RN_OPTION(FOLDER, "--dir", "DIR", "the model, as saved_model_cli takes it", .is_word = true),
    RN_OPTION(FLAG, "--all", NULL, "accepted for saved_model_cli; everything is shown anyway",
              .verbs = "show"),
    RN_OPTION(TEXT, "--inputs", "NAME=FILE;...",
              "feed .npy files; their numbers are converted to the type of the input",
              .repeats = true, .verbs = "run"),
    RN_OPTION(TEXT, "--input_exprs", "NAME=VALUE;...",
              "feed Python literals: numbers, strings, lists, tuples", .repeats = true,
              .verbs = "run"),
    RN_OPTION(TEXT, "--input_examples", "NAME=[{...}];...",
              "feed tf.Examples: a list of {\"feature\": [values]}", .repeats = true,
              .verbs = "run"),
    RN_OPTION(FOLDER, "--outdir", "DIR", "also write each output to DIR/NAME.npy", .verbs = "run"),
    RN_OPTION(FLAG, "--overwrite", NULL, "replace files in --outdir", .verbs = "run"),
    {0},
};

const rn_cli_command_t rn_cli_saved_model_command = {
    .name = "saved_model",
    .summary = "show, run or freeze a SavedModel",
    .about =
        "Works on SavedModels, as TensorFlow and Keras export them. The options of TensorFlow's "
        "own saved_model_cli for show and run work too.",
    .verbs = verbs,
    .options = options,
    .examples =
        "runnel saved_model show build/train/model                # after make train\n"
        "runnel saved_model run build/train/model --feed images=@examples/models/digits.npy\n"
        "runnel saved_model freeze build/train/model digits.pb --fold-batch-norms",
};
