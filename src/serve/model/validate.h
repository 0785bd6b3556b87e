// Checks a request against the signature that it names, in TensorFlow Serving's words.
#ifndef RUNNEL_SERVE_MODEL_VALIDATE_H_
#define RUNNEL_SERVE_MODEL_VALIDATE_H_

#include "serve/model/backend.h"
#include "serve/predict.h"

// Finds the signature, brings the inputs into its order, sets |signature_index| and |rows|, and
// makes the array of outputs with their names. FAILED_PRECONDITION if there is no such signature,
// INVALID_ARGUMENT for names, types and shapes that do not fit. |joins|: whether rows of several
// requests will be joined, so that the inputs must agree on dimension 0.
RN_MUST_USE rn_status_t rn_predict_validate(rn_predict_t* predict, const rn_backend_t* backend,
                                            bool joins);

#endif  // RUNNEL_SERVE_MODEL_VALIDATE_H_
