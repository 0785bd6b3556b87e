// Inputs as saved_model_cli takes them: files, Python literals, tf.Examples.
#ifndef RUNNEL_CLI_EXPR_H_
#define RUNNEL_CLI_EXPR_H_

#include "cli/cli.h"
#include "tensor/tensor.h"

// A function that parses the text after "name=" into a tensor of type |wanted|.
typedef rn_status_t (*rn_cli_reader_t)(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                       rn_tensor_t* out);

// The next "name=text" of a list with ';' between them; false at the end. Semicolons in quotes and
// brackets are part of a text.
bool rn_cli_next_input(rn_str_t* inout_list, rn_str_t* out_item);

// --inputs: the name of an .npy file, whose numbers are converted to |wanted|.
RN_MUST_USE rn_status_t rn_cli_read_file(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                         rn_tensor_t* out);
// --input_exprs: a Python literal: numbers, strings, lists and tuples.
RN_MUST_USE rn_status_t rn_cli_read_expr(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                         rn_tensor_t* out);
// --input_examples: [{"age": [22], "name": ["a"]}, ...], one serialised tf.Example per object.
RN_MUST_USE rn_status_t rn_cli_read_examples(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                             rn_tensor_t* out);

#endif  // RUNNEL_CLI_EXPR_H_
