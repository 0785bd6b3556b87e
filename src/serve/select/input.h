// From the input of an application to the input of a model.
#ifndef RUNNEL_SERVE_SELECT_INPUT_H_
#define RUNNEL_SERVE_SELECT_INPUT_H_

#include "serve/model/backend.h"

// Makes the tensor that |port| takes for one query: a batch of one row. |row| is [n] numbers
// (int64, float, double, or uint8 for bytes), or one string.
//
// A row of n numbers becomes [1, n]; if the port has more dimensions and they are known, [1, ...]
// of n elements; if it has one, n must be 1. Numbers are converted to the port's type, integers
// only if they are in range, fractions never to integers. Bytes become one string for a port of
// strings. A string becomes [1].
RN_MUST_USE rn_status_t rn_app_input_fit(const rn_tensor_t* row, const rn_serve_port_t* port,
                                         rn_allocator_t allocator, rn_tensor_t* out);

#endif  // RUNNEL_SERVE_SELECT_INPUT_H_
