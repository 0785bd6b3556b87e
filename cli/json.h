// The output of --json.
#ifndef RUNNEL_CLI_JSON_H_
#define RUNNEL_CLI_JSON_H_

#include <jansson.h>

#include "cli/cli.h"
#include "tensor/tensor.h"

// Prints |root| on the standard output and releases it: indented, or on one line.
// RESOURCE_EXHAUSTED if it is NULL, which jansson's constructors return if memory runs out.
RN_MUST_USE rn_status_t rn_cli_json_print(json_t* root);
RN_MUST_USE rn_status_t rn_cli_json_print_line(json_t* root);

// A string; bytes that are not UTF-8 become U+FFFD.
json_t* rn_cli_json_str(rn_str_t text);
// [2,null,3]; null if the rank is not known.
json_t* rn_cli_json_shape(rn_shape_t shape);
// {"dtype": "float", "shape": [2], "values": [1.0, 2.0]}: values are nested lists; numbers that
// JSON does not have are the strings "nan", "inf" and "-inf", complex numbers are [re, im].
json_t* rn_cli_json_tensor(const rn_tensor_t* tensor);

#endif  // RUNNEL_CLI_JSON_H_
