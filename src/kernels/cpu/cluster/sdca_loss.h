// The losses of SDCA: f(w·x) per example, its conjugate, and the dual variable that maximizes the
// objective along one coordinate (Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent
// methods for regularized loss minimization", 2013).
#ifndef RUNNEL_KERNELS_CPU_CLUSTER_SDCA_LOSS_H_
#define RUNNEL_KERNELS_CPU_CLUSTER_SDCA_LOSS_H_

#include "base/status.h"
#include "base/str.h"

// One coordinate: an example as its loss sees it.
typedef struct rn_sdca_point_t {
  double label;
  double weight;
  double dual;       // its dual variable so far
  double product;    // w·x
  double curvature;  // how much w·x grows per unit of the dual variable
} rn_sdca_point_t;

typedef struct rn_sdca_loss_t {
  const char* name;
  bool is_binary;  // labels 0 and 1 become -1 and 1
  double (*best_dual)(const rn_sdca_point_t* point);
  double (*primal)(double label, double product);  // without the weight, as the next two
  double (*conjugate)(double label, double dual);
  double (*derivative)(double label, double product);
} rn_sdca_loss_t;

// NULL if there is no loss of that name.
const rn_sdca_loss_t* rn_sdca_loss_named(rn_str_t name);
// Turns the label of an example into the number that the loss uses. INVALID_ARGUMENT if it cannot.
RN_MUST_USE rn_status_t rn_sdca_label(const rn_sdca_loss_t* loss, float label, double* out);

#endif  // RUNNEL_KERNELS_CPU_CLUSTER_SDCA_LOSS_H_
