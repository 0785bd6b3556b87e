// Slices: boxes within tensors, as checkpoints name them.
//
// As text a slice is "-" or "start,length" per dimension with ':' between, "-" the whole of it; a
// shape and slice is the dimensions of the whole tensor and the slice, "4 3 0,2:-".
#ifndef RUNNEL_IO_SLICE_H_
#define RUNNEL_IO_SLICE_H_

#include "proto/tensor_slice.pb.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

#define RN_SLICE_WHOLE (-1)  // a length: all of the dimension

// A value; the numbers live in an arena.
typedef struct rn_slice_t {
  int32_t rank;
  const int64_t* starts;
  const int64_t* lengths;
} rn_slice_t;

// Everything of a tensor of |rank| dimensions.
RN_MUST_USE rn_status_t rn_slice_whole(rn_arena_t* arena, int32_t rank, rn_slice_t* out);
// Parses |text|; INVALID_ARGUMENT in TensorFlow's words.
RN_MUST_USE rn_status_t rn_slice_parse(rn_str_t text, rn_arena_t* arena, rn_slice_t* out);
// Parses a shape and slice, and gives the shape of the slice too, with all lengths known.
RN_MUST_USE rn_status_t rn_shape_and_slice_parse(rn_str_t text, rn_arena_t* arena,
                                                 rn_shape_t* out_shape, rn_slice_t* out_slice,
                                                 rn_shape_t* out_slice_shape);
// The shape of |slice| of a tensor of |shape|; INTERNAL, as TensorFlow has it, if it does not fit.
RN_MUST_USE rn_status_t rn_slice_shape(rn_slice_t slice, rn_shape_t shape, rn_arena_t* arena,
                                       rn_shape_t* out);
// Whether |slice| is all of a tensor of |shape|.
bool rn_slice_is_whole(rn_slice_t slice, rn_shape_t shape);
void rn_slice_print(rn_strbuf_t* buf, rn_slice_t slice);

RN_MUST_USE rn_status_t rn_slice_from_proto(const rn_pb_TensorSliceProto_t* proto,
                                            rn_arena_t* arena, rn_slice_t* out);
RN_MUST_USE rn_status_t rn_slice_to_proto(rn_slice_t slice, rn_arena_t* arena,
                                          rn_pb_TensorSliceProto_t* out);

// Appends the key under which a table holds |slice| of the tensor |name|. It sorts as its parts do:
// the number 0; the name, its bytes 0 and 255 escaped as 0 255 and 255 0, and then 0 1; the rank;
// start and length of each dimension. Numbers have their length in front and their high bytes
// first.
void rn_slice_key(rn_strbuf_t* buf, rn_str_t name, rn_slice_t slice);

// The number of elements that |a| and |b|, slices of a tensor of |shape| that they fit, share.
int64_t rn_slice_overlap(rn_slice_t a, rn_slice_t b, rn_shape_t shape);
// Copies those elements: from |from|, which holds slice |a|, to |to|, which holds slice |b|. False
// when there is no memory for strings.
RN_MUST_USE bool rn_slice_copy(rn_shape_t shape, rn_slice_t a, const rn_tensor_t* from,
                               rn_slice_t b, rn_tensor_t* to);
// Where |part| starts in a tensor that holds |whole|, in elements, if it lies in one piece there
// and entirely; else -1.
int64_t rn_slice_place(rn_slice_t part, rn_slice_t whole, rn_shape_t shape);

#endif  // RUNNEL_IO_SLICE_H_
