// Writes summaries, the values of a training log, as serialised Summary messages.
//
// Every function appends one `value` field to a buffer, so consecutive calls make one Summary. The
// buffer records if memory is short (rn_strbuf_status); returned statuses are about the arguments.
#ifndef RUNNEL_IO_SUMMARY_H_
#define RUNNEL_IO_SUMMARY_H_

#include "base/str.h"
#include "tensor/tensor.h"

// Field numbers of summary.proto that others read or write too.
enum {
  RN_SUMMARY_VALUE = 1,
  RN_VALUE_TAG = 1,
  RN_VALUE_SIMPLE = 2,
  RN_VALUE_IMAGE = 4,
  RN_VALUE_HISTOGRAM = 5,
  RN_VALUE_AUDIO = 6,
  RN_VALUE_NODE = 7,
  RN_VALUE_TENSOR = 8,
  RN_VALUE_METADATA = 9,
  RN_METADATA_PLUGIN = 1,
  RN_PLUGIN_NAME = 1,
};

// How TensorBoard keeps a series: DataClass of summary.proto.
typedef enum rn_summary_class_t {
  RN_SUMMARY_UNKNOWN,
  RN_SUMMARY_SCALARS,
  RN_SUMMARY_TENSORS,
  RN_SUMMARY_BLOBS,
} rn_summary_class_t;

// Element |i| of a tensor of real numbers, or of booleans.
double rn_summary_number(const rn_tensor_t* tensor, int64_t i);

void rn_summary_put_scalar(rn_strbuf_t* buf, rn_str_t tag, float value);
// Element |i| of |values|, rounded once.
void rn_summary_put_element(rn_strbuf_t* buf, rn_str_t tag, const rn_tensor_t* values, int64_t i);
// INVALID_ARGUMENT, with TensorFlow's message, which names |node|, for values that are not finite.
RN_MUST_USE rn_status_t rn_summary_put_histogram(rn_strbuf_t* buf, rn_str_t tag,
                                                 const rn_tensor_t* values, rn_str_t node);
// Numbers counted in the buckets of TensorFlow's histograms. Not thread-safe.
typedef struct rn_histogram_t rn_histogram_t;
RN_MUST_USE rn_status_t rn_histogram_create(rn_allocator_t allocator, rn_histogram_t** out);
void rn_histogram_destroy(rn_histogram_t* histogram);  // NULL is fine
void rn_histogram_add(rn_histogram_t* histogram, double x);
// Writes what was counted so far, if anything was.
RN_MUST_USE rn_status_t rn_summary_put_counts(rn_strbuf_t* buf, rn_str_t tag,
                                              const rn_histogram_t* histogram);
// Writes up to |most| of the audio clips [batch, frames] or [batch, frames, channels], as 16-bit
// WAV files.
RN_MUST_USE rn_status_t rn_summary_put_sounds(rn_strbuf_t* buf, rn_str_t tag,
                                              const rn_tensor_t* sounds, float rate, int64_t most);
// Writes up to |most| of the images [batch, height, width, channels] of uint8, half, float or
// double, as PNG files. Scales floats to the range of a byte; pixels with a value that is not
// finite get the colour |bad|, a vector of bytes.
RN_MUST_USE rn_status_t rn_summary_put_images(rn_strbuf_t* buf, rn_str_t tag,
                                              const rn_tensor_t* images, const rn_tensor_t* bad,
                                              int64_t most);
// |metadata| is a serialised SummaryMetadata, or NULL; |tag| or |node| may be empty.
RN_MUST_USE rn_status_t rn_summary_put_tensor(rn_strbuf_t* buf, rn_str_t tag, rn_str_t node,
                                              const rn_tensor_t* tensor, const rn_str_t* metadata);

// Appends a SummaryMetadata that names the TensorBoard plugin for a series.
void rn_summary_metadata(rn_strbuf_t* buf, rn_str_t plugin, rn_summary_class_t data_class);

#endif  // RUNNEL_IO_SUMMARY_H_
