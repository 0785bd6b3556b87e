// See answer.h.
#include "serve/select/answer.h"

#include <math.h>

#include "tensor/float16.h"
#include "tensor/tstring.h"

#define AVERAGE_MOST 100  // answers that an average remembers

void rn_answer_clear(rn_answer_t* answer, rn_allocator_t allocator) {
  if (answer->text) rn_free(allocator, answer->text, answer->size + 1);
  *answer = (rn_answer_t){0};
}

static rn_status_t text_answer(rn_str_t text, bool is_json, rn_allocator_t allocator,
                               rn_answer_t* out) {
  *out = (rn_answer_t){0};
  RN_RETURN_IF_ERROR(rn_str_dup(allocator, text, &out->text));
  out->size = text.size;
  out->is_set = out->is_text = true;
  out->is_json = is_json;
  return RN_OK;
}

static rn_answer_t number_answer(double number, bool is_integer) {
  return (rn_answer_t){.is_set = true, .is_integer = is_integer, .number = number};
}

rn_status_t rn_answer_copy(const rn_answer_t* answer, rn_allocator_t allocator, rn_answer_t* out) {
  if (answer->is_text)
    return text_answer(rn_str_n(answer->text, answer->size), answer->is_json, allocator, out);
  *out = *answer;
  return RN_OK;
}

rn_status_t rn_answer_of_text(rn_str_t text, rn_allocator_t allocator, rn_answer_t* out) {
  int64_t whole;
  double number;
  *out = (rn_answer_t){0};
  if (rn_str_to_i64(text, &whole) && whole > -(INT64_C(1) << 53) && whole < INT64_C(1) << 53)
    *out = number_answer((double)whole, true);
  else if (rn_str_to_f64(text, &number) && isfinite(number))
    *out = number_answer(number, false);
  else
    return text_answer(text, false, allocator, out);
  return RN_OK;
}

static bool read_number(const rn_tensor_t* tensor, int64_t i, double* out) {
  switch (tensor->dtype) {
#define READ(dtype, type)                    \
  case dtype:                                \
    *out = (double)RN_DATA(tensor, type)[i]; \
    return true;
    READ(RN_FLOAT, float)
    READ(RN_DOUBLE, double)
    READ(RN_INT8, int8_t)
    READ(RN_INT16, int16_t)
    READ(RN_INT32, int32_t)
    READ(RN_INT64, int64_t)
    READ(RN_UINT8, uint8_t)
    READ(RN_UINT16, uint16_t)
    READ(RN_UINT32, uint32_t)
    READ(RN_UINT64, uint64_t)
    READ(RN_BOOL, bool)
#undef READ
    case RN_HALF:
      *out = rn_half_to_float(RN_DATA(tensor, uint16_t)[i]);
      return true;
    default:
      return false;
  }
}

static rn_status_t list_answer(const rn_tensor_t* tensor, rn_allocator_t allocator,
                               rn_answer_t* out) {
  rn_strbuf_t list;
  rn_strbuf_init(&list, allocator);
  bool is_whole = rn_dtype_is_integer(tensor->dtype);
  for (int64_t i = 0; i < tensor->count; ++i) {
    double number = 0;
    read_number(tensor, i, &number);
    rn_strbuf_printf(&list, is_whole ? "%s%.0f" : "%s%.9g", i ? ", " : "[", number);
  }
  rn_strbuf_append(&list, RN_STR("]"));
  rn_status_t status = rn_strbuf_status(&list);
  if (rn_ok(status)) status = text_answer(rn_strbuf_view(&list), true, allocator, out);
  rn_strbuf_clear(&list);
  return status;
}

rn_status_t rn_answer_of_tensor(const rn_tensor_t* tensor, rn_loss_t loss, rn_allocator_t allocator,
                                rn_answer_t* out) {
  *out = (rn_answer_t){0};
  if (tensor->count == 1 && tensor->dtype == RN_STRING)
    return rn_answer_of_text(rn_tstring_view(RN_DATA(tensor, rn_tstring_t)), allocator, out);
  double number, most = -INFINITY;
  int64_t best = -1;
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!read_number(tensor, i, &number))
      return rn_invalid_argument("A model's answer has %lld elements of type %s",
                                 (long long)tensor->count, rn_dtype_name(tensor->dtype));
    if (!isfinite(number)) return rn_invalid_argument("A model's answer is no finite number");
    if (number <= most) continue;
    most = number;
    best = i;
  }
  if (best < 0) return rn_invalid_argument("A model's answer is empty");
  if (tensor->count == 1) {
    *out = number_answer(most, !rn_dtype_is_floating(tensor->dtype));
  } else if (loss == RN_LOSS_ZERO_ONE) {
    *out = number_answer((double)best, true);
  } else {
    return list_answer(tensor, allocator, out);
  }
  return RN_OK;
}

bool rn_answer_eq(const rn_answer_t* a, const rn_answer_t* b) {
  if (a->is_set != b->is_set || a->is_text != b->is_text) return false;
  if (!a->is_text) return a->number == b->number;
  return rn_str_eq(rn_str_n(a->text, a->size), rn_str_n(b->text, b->size));
}

double rn_answer_loss(rn_loss_t loss, const rn_answer_t* label, const rn_answer_t* answer) {
  if (rn_answer_eq(label, answer)) return 0;
  if (loss == RN_LOSS_ZERO_ONE || label->is_text || answer->is_text) return 1;
  return fmin(1, fabs(label->number - answer->number));
}

// The answer that a vote stands for, or NULL.
static const rn_answer_t* vote_answer(const rn_vote_t* vote) {
  return vote->answer ? vote->answer : vote->average;
}

static const rn_answer_t* heaviest(const rn_vote_t* votes, int count) {
  const rn_answer_t* best = NULL;
  double most = -1;
  for (int i = 0; i < count; ++i) {
    const rn_answer_t* answer = vote_answer(&votes[i]);
    double weight = 0;
    for (int j = 0; answer && j < count; ++j) {
      const rn_answer_t* other = vote_answer(&votes[j]);
      if (other && rn_answer_eq(other, answer)) weight += votes[j].weight;
    }
    if (!answer || weight <= most) continue;  // of equal ones the first
    best = answer;
    most = weight;
  }
  return best;
}

rn_status_t rn_answers_combine(rn_loss_t loss, const rn_vote_t* votes, int count,
                               rn_allocator_t allocator, rn_answer_t* out, double* out_confidence) {
  *out = (rn_answer_t){0};
  *out_confidence = 0;
  int arrived = 0, texts = 0;
  double known = 0, total = 0, sum = 0;
  const rn_answer_t* only = NULL;
  for (int i = 0; i < count; ++i) {
    const rn_answer_t* answer = vote_answer(&votes[i]);
    total += votes[i].weight;
    if (votes[i].answer) {
      ++arrived;
      only = votes[i].answer;
    }
    if (!answer) continue;
    texts += answer->is_text;
    known += votes[i].weight;
    sum += votes[i].weight * answer->number;
  }
  if (!arrived) return RN_OK;
  if (count > 1 && loss == RN_LOSS_ABSOLUTE && !texts && known > 0)
    *out = number_answer(sum / known, false);
  else
    RN_RETURN_IF_ERROR(rn_answer_copy(count == 1 ? only : heaviest(votes, count), allocator, out));
  double agrees = 0;
  for (int i = 0; i < count; ++i)
    if (votes[i].answer)
      agrees += votes[i].weight * (1 - rn_answer_loss(loss, out, votes[i].answer));
  *out_confidence = total > 0 ? fmin(1, agrees / total) : 0;
  return RN_OK;
}

void rn_average_add(rn_average_t* average, rn_loss_t loss, const rn_answer_t* answer,
                    rn_allocator_t allocator) {
  if (loss == RN_LOSS_ABSOLUTE && !answer->is_text && !average->value.is_text) {
    average->weight = fmin(average->weight + 1, AVERAGE_MOST);
    average->value.number += (answer->number - average->value.number) / average->weight;
    average->value.is_set = true;
    return;
  }
  // Boyer and Moore's majority vote, with a bounded lead so that it can change its mind.
  if (average->value.is_set && rn_answer_eq(&average->value, answer)) {
    average->weight = fmin(average->weight + 1, AVERAGE_MOST);
  } else if (average->weight >= 1) {
    average->weight -= 1;
  } else {
    rn_answer_clear(&average->value, allocator);
    rn_status_free(rn_answer_copy(answer, allocator, &average->value));  // unset without memory
    average->weight = 1;
  }
}
