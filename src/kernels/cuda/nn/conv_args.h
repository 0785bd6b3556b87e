// Arguments of the kernels in conv.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_CONV_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_CONV_ARGS_H_

typedef struct conv_axis_args {
  i64 in, filter, stride, dilation, before, out;
} conv_axis_args;

// x is [batch, planes, rows, columns, in_depth] or, with channels first, [batch, in_depth, planes,
// rows, columns]; y likewise; w is [planes, rows, columns, in_depth / groups, out_depth].
typedef struct conv_args {
  const void *x, *w, *y;  // two of them are read
  void* to;               // the third, or the parts of a filter gradient
  conv_axis_args axes[3];
  i64 in_depth, out_depth, groups;
  i64 positions;  // batch * the output's planes, rows and columns
  i64 count;      // elements of the result
  i64 parts;      // of a filter gradient, |piece| positions each
  i64 piece;
  i32 is_channels_first;
} conv_args;

typedef struct conv_sum_args {
  const void* parts;  // [parts, count]
  void* to;
  i64 count, parts_count;
} conv_sum_args;

// A filter between TensorFlow's order and cuDNN's, which has the output's depth first.
typedef struct conv_turn_args {
  const void* from;
  void* to;
  i64 positions, depth, out_depth;  // the filter is [positions, depth, out_depth]
  i32 is_channels_first;            // cuDNN's is [out_depth, depth, positions]
  i32 is_back;                      // from cuDNN's order
} conv_turn_args;

// Many filters at once: each is a matrix that is transposed, tile by tile.
#define CONV_MOST_TURNED 64
typedef struct conv_turned_args {
  const void* from;
  void* to;
  i32 rows, columns;  // of |from|
  i32 first;          // tile of this filter
  i32 across;         // tiles along the columns
} conv_turned_args;
typedef struct conv_turn_many_args {
  conv_turned_args filters[CONV_MOST_TURNED];
  i32 count, tiles;
} conv_turn_many_args;

// Copies images [outer, planes, rows, columns, inner] to others of other sizes, element p to
// element p + offset, and zeros elsewhere.
typedef struct conv_pad_args {
  const void* from;
  void* to;
  i64 count;         // elements of |to|
  i64 sizes[3];      // of |from|
  i64 offsets[3];    // negative to cut
  rn_div32 divs[4];  // by the sizes of |to|: planes, rows, columns, inner
  i32 is_wide;       // |count| is too large for |divs|
} conv_pad_args;

// The largest difference of two arrays, and the largest size in |b|: bits of floats, which are in
// the order of the numbers. A difference that is not finite counts as infinity.
typedef struct conv_compare_args {
  const float *a, *b;
  u32* most;  // two; zeros
  i64 count;
} conv_compare_args;

#endif  // RUNNEL_KERNELS_CUDA_NN_CONV_ARGS_H_
