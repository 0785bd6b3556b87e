// The parts of decompose.c, for one type, in the order in which they use each other.
#include "kernels/cpu/linalg/householder_body.h"

#include "kernels/cpu/linalg/eigen_body.h"

#include "kernels/cpu/linalg/singular_body.h"

#include "kernels/cpu/linalg/decompose_body.h"
