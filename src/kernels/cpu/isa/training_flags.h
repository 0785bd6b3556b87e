// Flags of the optimizers' update rules; C and CUDA share them.
#ifndef RUNNEL_KERNELS_CPU_ISA_TRAINING_FLAGS_H_
#define RUNNEL_KERNELS_CPU_ISA_TRAINING_FLAGS_H_

enum {
  RN_RULE_NESTEROV = 1,
  RN_RULE_UPDATE_SLOTS = 2,
  RN_RULE_MULTIPLY_LINEAR = 4,
  RN_RULE_SPARSE = 8,  // updates rows of the variables; Ftrl keeps NaN then
};

#endif  // RUNNEL_KERNELS_CPU_ISA_TRAINING_FLAGS_H_
