// Graph optimizers of plug-ins. Private to capi/.
#ifndef RUNNEL_CAPI_PLUGIN_OPTIMIZER_H_
#define RUNNEL_CAPI_PLUGIN_OPTIMIZER_H_

#include "capi/internal.h"
#include "session/graph_optimizers.h"
#include "tensorflow/c/experimental/grappler/grappler.h"

// A TF_GrapplerItem is this.
static inline const rn_graph_item_t* rn_plugin_item(const TF_GrapplerItem* item) {
  return (const rn_graph_item_t*)item;
}

// Lets |init|, a plug-in's TF_InitGraph, describe its optimizer, checks it as stock does, and
// registers it.
typedef void (*rn_plugin_graph_init_t)(TP_OptimizerRegistrationParams* params, TF_Status* status);
RN_MUST_USE rn_status_t rn_plugin_optimizer_load(rn_plugin_graph_init_t init);

#endif  // RUNNEL_CAPI_PLUGIN_OPTIMIZER_H_
