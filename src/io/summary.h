// Summaries: what a training log is made of, as values of a serialised Summary message.
//
// Every function appends one `value` field to a buffer, so that calls in a row make one Summary.
// The buffer keeps a want of memory until it is asked (rn_strbuf_status); statuses are about what
// is put in.
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
// INVALID_ARGUMENT, with stock's words, for what is no number; |node| is who asks.
RN_MUST_USE rn_status_t rn_summary_put_histogram(rn_strbuf_t* buf, rn_str_t tag,
                                                 const rn_tensor_t* values, rn_str_t node);
// Up to |most| of the sounds [batch, frames] or [batch, frames, channels], as WAV files of 16 bits.
RN_MUST_USE rn_status_t rn_summary_put_sounds(rn_strbuf_t* buf, rn_str_t tag,
                                              const rn_tensor_t* sounds, float rate, int64_t most);
// Up to |most| of the images [batch, height, width, channels] of uint8, half, float or double, as
// PNG files. Floats are stretched to what a byte holds; pixels with a value that is not finite are
// |bad|, a vector of bytes.
RN_MUST_USE rn_status_t rn_summary_put_images(rn_strbuf_t* buf, rn_str_t tag,
                                              const rn_tensor_t* images, const rn_tensor_t* bad,
                                              int64_t most);
// |metadata| is a serialised SummaryMetadata, NULL: there is none; |tag| or |node| may be empty.
RN_MUST_USE rn_status_t rn_summary_put_tensor(rn_strbuf_t* buf, rn_str_t tag, rn_str_t node,
                                              const rn_tensor_t* tensor, const rn_str_t* metadata);

// A SummaryMetadata for the plugin of TensorBoard that is to show a series.
void rn_summary_metadata(rn_strbuf_t* buf, rn_str_t plugin, rn_summary_class_t data_class);

#endif  // RUNNEL_IO_SUMMARY_H_
