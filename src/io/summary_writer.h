// Writes single values of a training log to an event file, in the form that TensorBoard's plugins
// read.
//
// INVALID_ARGUMENT for a tag that is NULL and for a value that its plugin cannot show.
#ifndef RUNNEL_IO_SUMMARY_WRITER_H_
#define RUNNEL_IO_SUMMARY_WRITER_H_

#include "io/event_file.h"
#include "tensor/tensor.h"

RN_MUST_USE rn_status_t rn_summary_write_scalar(rn_event_writer_t* events, const char* tag,
                                                int64_t step, float value);
// Counts real numbers in buckets of equal width.
RN_MUST_USE rn_status_t rn_summary_write_histogram(rn_event_writer_t* events, const char* tag,
                                                   int64_t step, const rn_tensor_t* values);
// Bytes in row-major order; 1, 3 or 4 channels per pixel.
RN_MUST_USE rn_status_t rn_summary_write_image(rn_event_writer_t* events, const char* tag,
                                               int64_t step, const uint8_t* pixels, int64_t height,
                                               int64_t width, int channels);
RN_MUST_USE rn_status_t rn_summary_write_text(rn_event_writer_t* events, const char* tag,
                                              int64_t step, const char* text);
// |plugin| may be NULL.
RN_MUST_USE rn_status_t rn_summary_write_tensor(rn_event_writer_t* events, const char* tag,
                                                int64_t step, const rn_tensor_t* tensor,
                                                const char* plugin);
// Writes strings that are serialised Summary messages, the output of summary ops.
RN_MUST_USE rn_status_t rn_summary_write_merged(rn_event_writer_t* events, int64_t step,
                                                const rn_tensor_t* summaries);
// A serialised RunMetadata; |tag| must not be NULL.
RN_MUST_USE rn_status_t rn_summary_write_run_metadata(rn_event_writer_t* events, const char* tag,
                                                      int64_t step, rn_str_t metadata);

#endif  // RUNNEL_IO_SUMMARY_WRITER_H_
