// Slices: rectangular parts of tensors, as checkpoints describe them.
//
// In text form, a slice has "-" (all of it) or "start,length" per dimension, separated by ':'; a
// shape and slice is the shape of the whole tensor followed by the slice, "4 3 0,2:-".
#ifndef RUNNEL_IO_SLICE_H_
#define RUNNEL_IO_SLICE_H_

#include "proto/tensor_slice.pb.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

#define RN_SLICE_WHOLE (-1)  // as a length: all of the dimension

// A value; the numbers are in an arena.
typedef struct rn_slice_t {
  int32_t rank;
  const int64_t* starts;
  const int64_t* lengths;
} rn_slice_t;

// Makes the slice that is all of a tensor of |rank| dimensions.
RN_MUST_USE rn_status_t rn_slice_whole(rn_arena_t* arena, int32_t rank, rn_slice_t* out);
// Parses |text|; INVALID_ARGUMENT with TensorFlow's message.
RN_MUST_USE rn_status_t rn_slice_parse(rn_str_t text, rn_arena_t* arena, rn_slice_t* out);
// Parses a shape and slice; also returns the shape of the slice, with all lengths known.
RN_MUST_USE rn_status_t rn_shape_and_slice_parse(rn_str_t text, rn_arena_t* arena,
                                                 rn_shape_t* out_shape, rn_slice_t* out_slice,
                                                 rn_shape_t* out_slice_shape);
// Copies |slice| into |arena|.
RN_MUST_USE rn_status_t rn_slice_dup(rn_arena_t* arena, rn_slice_t slice, rn_slice_t* out);
// The shape of |slice| of a tensor of |shape|; INTERNAL, as in TensorFlow, if it does not fit.
RN_MUST_USE rn_status_t rn_slice_shape(rn_slice_t slice, rn_shape_t shape, rn_arena_t* arena,
                                       rn_shape_t* out);
// Whether |slice| is all of a tensor of |shape|.
bool rn_slice_is_whole(rn_slice_t slice, rn_shape_t shape);
void rn_slice_print(rn_strbuf_t* buf, rn_slice_t slice);

RN_MUST_USE rn_status_t rn_slice_from_proto(const rn_pb_TensorSliceProto_t* proto,
                                            rn_arena_t* arena, rn_slice_t* out);
RN_MUST_USE rn_status_t rn_slice_to_proto(rn_slice_t slice, rn_arena_t* arena,
                                          rn_pb_TensorSliceProto_t* out);

// Appends the key of |slice| of the tensor |name| in a table. The encoding preserves order: the
// number 0; the name, with bytes 0 and 255 escaped as 0 255 and 255 0, followed by 0 1; the rank;
// start and length of each dimension. Numbers are big-endian, preceded by their length.
void rn_slice_key(rn_strbuf_t* buf, rn_str_t name, rn_slice_t slice);

// The number of elements that two slices of a tensor of |shape| have in common; both must fit the
// shape.
int64_t rn_slice_overlap(rn_slice_t a, rn_slice_t b, rn_shape_t shape);
// Copies those elements: from |from|, which holds slice |a|, to |to|, which holds slice |b|. False
// if memory for strings is short.
RN_MUST_USE bool rn_slice_copy(rn_shape_t shape, rn_slice_t a, const rn_tensor_t* from,
                               rn_slice_t b, rn_tensor_t* to);
// If |part| is entirely and contiguously inside a tensor that holds |whole|, its offset there in
// elements; else -1.
int64_t rn_slice_place(rn_slice_t part, rn_slice_t whole, rn_shape_t shape);

#endif  // RUNNEL_IO_SLICE_H_
