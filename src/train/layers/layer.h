// What layers share.
#ifndef RUNNEL_TRAIN_LAYERS_LAYER_H_
#define RUNNEL_TRAIN_LAYERS_LAYER_H_

#include "runnel/nn.h"
#include "train/words.h"

// Opens the variable scope of a layer: |name| or, if that is NULL, the first unused name of
// |fallback|, "|fallback|_1" … Returns NULL after an error, including an invalid edge |x|.
rn_scope_t* rn_layer_begin(rn_scope_t* scope, const char* name, const char* fallback, rn_edge_t x);
// Ends a layer: returns |y| with the bias and the activation of |options| applied.
rn_edge_t rn_layer_end(rn_scope_t* s, rn_edge_t y, int64_t units,
                       const rn_layer_options_t* options);
// A dimension that must be known; otherwise returns 0 and sets an error that names the layer.
int64_t rn_layer_depth(rn_scope_t* s, rn_edge_t x, int axis);
// The layer's variable |name|.
rn_edge_t rn_layer_weights(rn_scope_t* s, const char* name, rn_edge_t like, const int64_t* dims,
                           int rank, const rn_layer_options_t* options);

#endif  // RUNNEL_TRAIN_LAYERS_LAYER_H_
