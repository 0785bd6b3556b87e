// Matrix products by cuBLASLt: D = epilogue(alpha op(A) op(B) + beta C), column-major, batched.
// C has the layout of D and may be D itself.
//
// A plan, that is descriptors and algorithms, is made once per card and product and kept. Which
// algorithm was the fastest is remembered across processes (choices.h). Any thread may call.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUBLASLT_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUBLASLT_H_

#include "device/cuda/card.h"
#include "kernels/cuda/libs/cublaslt_api.h"

typedef struct rn_cublaslt_t rn_cublaslt_t;

// What a plan is made for. It is hashed byte by byte, so it starts zeroed.
typedef struct rn_cublaslt_product_t {
  int64_t m, n, k, batch;
  int64_t ld[3], stride[3];  // of A, B and D: between columns, between the matrices of a batch
  int32_t type[3];           // of A, B and D: CUDA_R_32F ...
  int32_t compute_type, scale_type;
  int32_t transpose[2];  // of A and B: CUBLAS_OP_N ...
  int32_t epilogue;      // CUBLASLT_EPILOGUE_DEFAULT ...
  int32_t alignment[3];  // of the addresses of A, B, and both C and D: a power of 2 up to 256
  int32_t has_beta;
} rn_cublaslt_product_t;

// Addresses are on the card. alpha and beta are of the scale type, on the host.
typedef struct rn_cublaslt_operands_t {
  const void *a, *b, *c;
  void* d;
  void* bias;  // m elements: read by epilogues with BIAS, written by BGRADA
  const void *alpha, *beta;
} rn_cublaslt_operands_t;

// The card's cuBLASLt, opened at the first call. NULL if the machine has none: the log says once
// what is missing.
RN_MUST_USE rn_status_t rn_cublaslt_get(rn_cuda_card_t* card, const rn_env_t* env,
                                        rn_cublaslt_t** out);

// Opens it; for rn_cuda_open_ahead.
void rn_cublaslt_open(rn_cuda_card_t* card);

// Issues the product. |*out_done| is false if the library has no algorithm for it; then nothing was
// issued. The first product of a kind is tuned, unless the stream is being captured, the product is
// small, or TF_DETERMINISTIC_OPS=1 or TF_MATMUL_AUTOTUNE_ENABLE=0 is set.
RN_MUST_USE rn_status_t rn_cublaslt_multiply(rn_cublaslt_t* lt, const rn_env_t* env,
                                             const rn_cublaslt_product_t* product,
                                             const rn_cublaslt_operands_t* operands,
                                             bool* out_done);

// Times the algorithms that the library proposes for the product, and remembers the fastest for
// later calls of rn_cublaslt_multiply. Waits for the card. D holds the product afterwards, or is
// unchanged if it is C and there is a beta.
RN_MUST_USE rn_status_t rn_cublaslt_tune(rn_cublaslt_t* lt, const rn_env_t* env,
                                         const rn_cublaslt_product_t* product,
                                         const rn_cublaslt_operands_t* operands);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUBLASLT_H_
