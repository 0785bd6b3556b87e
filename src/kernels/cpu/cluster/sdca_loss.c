// The losses of SDCA: see sdca_loss.h.
#include "kernels/cpu/cluster/sdca_loss.h"

#include <float.h>
#include <math.h>

// A Newton step that leaves the bracket, or is not half of the step before, is replaced by a
// bisection, so the root is always found.
#define MOST_STEPS 200
#define PRECISION 1e-13

// The root in (low, high) of |slope|, which falls from +inf to -inf there.
static double root_of(double (*slope)(const rn_sdca_point_t*, double, double*),
                      const rn_sdca_point_t* point, double low, double high) {
  double x = low + (high - low) / 2, before = high - low;
  for (int i = 0; i < MOST_STEPS && high - low > PRECISION * (1 + fabs(x)); ++i) {
    double steepness = 0, value = slope(point, x, &steepness);
    if (value == 0) return x;
    if (value > 0)
      low = x;
    else
      high = x;
    double next = x - value / steepness;
    bool is_good = next > low && next < high && fabs(next - x) * 2 <= before;
    if (!is_good) next = low + (high - low) / 2;
    before = fabs(next - x);
    x = next;
    if (is_good && before <= PRECISION * (1 + fabs(x))) return x;
  }
  return x;
}

// Squares: (w·x - y)^2 / 2.
static double squared_best(const rn_sdca_point_t* p) {
  return p->dual + (p->label - p->dual - p->product) / (1 + p->curvature);
}
static double squared_primal(double label, double product) {
  return (product - label) * (product - label) / 2;
}
static double squared_conjugate(double label, double dual) { return dual * (dual / 2 - label); }
static double squared_derivative(double label, double product) { return product - label; }

// Logistic: log(1 + exp(-y w·x)). The dual variable times the label is between 0 and 1.
static double logistic_slope(const rn_sdca_point_t* p, double a, double* out) {
  *out = -1 / (a * (1 - a)) - p->curvature;
  return log1p(-a) - log(a) - p->label * p->product - p->curvature * (a - p->dual * p->label);
}
static double logistic_best(const rn_sdca_point_t* p) {
  return p->label * root_of(logistic_slope, p, 0, 1);
}
static double logistic_primal(double label, double product) {
  double x = -label * product;
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double logistic_conjugate(double label, double dual) {
  double a = dual * label;
  return (a > 0 ? a * log(a) : 0) + (a < 1 ? (1 - a) * log1p(-a) : 0);
}
static double logistic_derivative(double label, double product) {
  return -label / (1 + exp(label * product));
}

// Hinge: max(0, 1 - y w·x); smooth: a parabola of width 1 at the kink.
static double between(double label, double dual) {
  double a = label * dual;
  return a < 0 ? 0 : a > 1 ? label : dual;
}
static double hinge_best(const rn_sdca_point_t* p) {
  return between(p->label, p->dual + (p->label - p->product) / p->curvature);
}
static double hinge_primal(double label, double product) { return fmax(0, 1 - label * product); }
static double hinge_conjugate(double label, double dual) {
  double a = label * dual;
  return a < 0 || a > 1 ? DBL_MAX : -a;
}
static double hinge_derivative(double label, double product) {
  return label * product < 1 ? -label : 0;
}

static double smooth_best(const rn_sdca_point_t* p) {
  return between(p->label, p->dual + (p->label - p->product - p->dual) / (p->curvature + 1));
}
static double smooth_primal(double label, double product) {
  double margin = 1 - label * product;
  return margin <= 0 ? 0 : margin >= 1 ? margin - 0.5 : margin * margin / 2;
}
static double smooth_conjugate(double label, double dual) {
  double a = label * dual;
  return a < 0 || a > 1 ? DBL_MAX : -a + a * a / 2;
}
static double smooth_derivative(double label, double product) {
  double margin = 1 - label * product;
  return margin <= 0 ? 0 : margin >= 1 ? -label : -label * margin;
}

// Poisson: exp(w·x) - y w·x. The dual variable is below the label. It is sought as z = log(y -
// dual).
static double poisson_slope(const rn_sdca_point_t* p, double z, double* out) {
  *out = -1 - p->curvature * exp(z);
  return p->product + p->curvature * (p->label - exp(z) - p->dual) - z;
}
static double poisson_best(const rn_sdca_point_t* p) {
  // Where the exponential vanishes, z is largest; where it is 1 + |z| it is below its negative.
  double high = p->product + p->curvature * (p->label - p->dual);
  double low = high, step = 1, unused;
  if (!isfinite(high)) return NAN;
  while (step < 1e300 && poisson_slope(p, low, &unused) < 0) {
    low -= step;
    step *= 2;
  }
  return p->label - exp(root_of(poisson_slope, p, low, high));
}
static double poisson_primal(double label, double product) {
  return exp(product) - product * label;
}
static double poisson_conjugate(double label, double dual) {
  double rest = label - dual;
  return rest == 0 ? 0 : rest < 0 ? DBL_MAX : rest * (log(rest) - 1);
}
static double poisson_derivative(double label, double product) { return exp(product) - label; }

#define LOSS(name, is_binary, short) \
  { name, is_binary, short##_best, short##_primal, short##_conjugate, short##_derivative }
static const rn_sdca_loss_t losses[] = {
    LOSS("squared_loss", false, squared), LOSS("logistic_loss", true, logistic),
    LOSS("hinge_loss", true, hinge),      LOSS("smooth_hinge_loss", true, smooth),
    LOSS("poisson_loss", false, poisson),
};

const rn_sdca_loss_t* rn_sdca_loss_named(rn_str_t name) {
  for (size_t i = 0; i < sizeof losses / sizeof *losses; ++i)
    if (rn_str_is(name, losses[i].name)) return &losses[i];
  return NULL;
}

rn_status_t rn_sdca_label(const rn_sdca_loss_t* loss, float label, double* out) {
  *out = (double)label;
  if (loss->is_binary) {
    if (label != 0 && label != 1)
      return rn_invalid_argument(
          "Only labels of 0.0 or 1.0 are supported right now. Found example with label: %g",
          (double)label);
    *out = label == 0 ? -1 : 1;
  }
  if (loss->primal == poisson_primal && label < 0)
    return rn_invalid_argument(
        "Only non-negative labels can be used with the Poisson log loss. Found example with "
        "label: %g",
        (double)label);
  return RN_OK;
}
