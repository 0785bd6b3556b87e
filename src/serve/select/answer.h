// The answer of a model, or of an application, to one query: a number or a text.
#ifndef RUNNEL_SERVE_SELECT_ANSWER_H_
#define RUNNEL_SERVE_SELECT_ANSWER_H_

#include "tensor/tensor.h"

// What being wrong costs, from 0 to 1. It also says what answers are.
typedef enum rn_loss_t {
  RN_LOSS_ZERO_ONE,  // answers are classes: 1 unless they are equal
  RN_LOSS_ABSOLUTE,  // answers are numbers: their distance, at most 1; 1 for texts that differ
} rn_loss_t;

typedef struct rn_answer_t {
  bool is_set, is_text;
  bool is_integer;  // of a number: it has no fraction by its type
  bool is_json;     // of a text: it is a JSON list
  double number;
  char* text;  // Owned, NUL-terminated
  size_t size;
} rn_answer_t;

void rn_answer_clear(rn_answer_t* answer, rn_allocator_t allocator);
RN_MUST_USE rn_status_t rn_answer_copy(const rn_answer_t* answer, rn_allocator_t allocator,
                                       rn_answer_t* out);
// A number if |text| is one, else a text.
RN_MUST_USE rn_status_t rn_answer_of_text(rn_str_t text, rn_allocator_t allocator,
                                          rn_answer_t* out);
// The answer in a model's output for one row. One element is that number or text. Several are
// scores: with RN_LOSS_ZERO_ONE the answer is the index of the largest, else the list.
// INVALID_ARGUMENT for other types, for NaN, and for no elements.
RN_MUST_USE rn_status_t rn_answer_of_tensor(const rn_tensor_t* tensor, rn_loss_t loss,
                                            rn_allocator_t allocator, rn_answer_t* out);

bool rn_answer_eq(const rn_answer_t* a, const rn_answer_t* b);
double rn_answer_loss(rn_loss_t loss, const rn_answer_t* label, const rn_answer_t* answer);

// One member of an ensemble.
typedef struct rn_vote_t {
  const rn_answer_t* answer;   // NULL: it has not arrived
  const rn_answer_t* average;  // of the member's past answers, in place of |answer|; NULL: unknown
  double weight;
} rn_vote_t;
// Combines answers: the class with the most weight, or the weighted mean of numbers. A missing
// answer counts as the member's average. |*out_confidence| is the share of all weight whose answers
// arrived and agree: 1 - their loss against the result. Unset if no answer arrived.
RN_MUST_USE rn_status_t rn_answers_combine(rn_loss_t loss, const rn_vote_t* votes, int count,
                                           rn_allocator_t allocator, rn_answer_t* out,
                                           double* out_confidence);

// The average of a stream of answers: the mean of numbers, or the most frequent class. What is
// older counts less. Zeroed: there were none.
typedef struct rn_average_t {
  rn_answer_t value;
  double weight;  // of |value|: answers so far, or by how much the class leads
} rn_average_t;
void rn_average_add(rn_average_t* average, rn_loss_t loss, const rn_answer_t* answer,
                    rn_allocator_t allocator);

#endif  // RUNNEL_SERVE_SELECT_ANSWER_H_
