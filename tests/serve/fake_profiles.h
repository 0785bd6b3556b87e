// What models cost: like those of Clipper's figure 4, from its rates without batches and with large
// ones.
#ifndef RUNNEL_TESTS_SERVE_FAKE_PROFILES_H_
#define RUNNEL_TESTS_SERVE_FAKE_PROFILES_H_

typedef struct fake_profile_t {
  const char* name;
  double fixed_us, row_us;
} fake_profile_t;

#define FAKE_PROFILES 6
static const fake_profile_t fake_profiles[FAKE_PROFILES] = {
    {"no-op", 91, 20},    {"linear SVM", 500, 20},     {"logistic regression", 500, 21},
    {"PySpark", 106, 33}, {"random forest", 3110, 37}, {"kernel SVM", 50, 4876},
};

#endif  // RUNNEL_TESTS_SERVE_FAKE_PROFILES_H_
