// Training logs: event files that TensorBoard and `runnel events` read.
//
//   rn_summary_writer_t* log = rn_summary_writer_create("/tmp/run", NULL, status);
//   rn_summary_graph(log, graph, status);
//   for (…) rn_summary_scalar(log, "loss", step, loss, status);
//   rn_summary_writer_close(log, status);
//
// Values are written as TensorFlow 2 does, with the name of the plugin that shows them. If the
// writer is NULL, functions do nothing. |status| may be NULL. It reports errors; a training run
// need not end because its log cannot be written. Any thread may call these functions, except
// close.
#ifndef RUNNEL_SUMMARY_H_
#define RUNNEL_SUMMARY_H_

#include <stdbool.h>
#include <stdint.h>

#include "runnel/api.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_summary_writer_t rn_summary_writer_t;

typedef struct rn_summary_options_t {
  const char* suffix;       // of file names; NULL: ".v2"
  int64_t max_queue;        // events that may wait to be written; 0: 10
  int64_t flush_millis;     // how long they may wait; 0: two minutes
  uint64_t max_file_bytes;  // start a new file beyond this size; 0: one file
} rn_summary_options_t;

// Begins a log in |folder|, which it creates if necessary. Files in it stay, and are part of the
// same log. |options| may be NULL. NULL after an error.
RN_API rn_summary_writer_t* rn_summary_writer_create(const char* folder,
                                                     const rn_summary_options_t* options,
                                                     TF_Status* status);
// Returns when everything is on disk.
RN_API void rn_summary_writer_flush(rn_summary_writer_t* writer, TF_Status* status);
// Flushes and frees |writer|.
RN_API void rn_summary_writer_close(rn_summary_writer_t* writer, TF_Status* status);

// One point of a curve.
RN_API void rn_summary_scalar(rn_summary_writer_t* writer, const char* tag, int64_t step,
                              float value, TF_Status* status);
// A histogram of the values of a tensor of real numbers, in 30 buckets of equal width.
RN_API void rn_summary_histogram(rn_summary_writer_t* writer, const char* tag, int64_t step,
                                 const TF_Tensor* values, TF_Status* status);
// An image: rows from the top, with 1 (grey), 3 or 4 interleaved channels.
RN_API void rn_summary_image(rn_summary_writer_t* writer, const char* tag, int64_t step,
                             const uint8_t* pixels, int64_t height, int64_t width, int channels,
                             TF_Status* status);
// Text, shown as Markdown.
RN_API void rn_summary_text(rn_summary_writer_t* writer, const char* tag, int64_t step,
                            const char* text, TF_Status* status);
// Any tensor, for the plugin |plugin|; NULL: none.
RN_API void rn_summary_tensor(rn_summary_writer_t* writer, const char* tag, int64_t step,
                              const TF_Tensor* tensor, const char* plugin, TF_Status* status);
// The result of ops such as ScalarSummary and MergeSummary: serialized Summary messages.
RN_API void rn_summary_merged(rn_summary_writer_t* writer, int64_t step, const TF_Tensor* summaries,
                              TF_Status* status);
// The graph, for TensorBoard's graph page.
RN_API void rn_summary_graph(rn_summary_writer_t* writer, TF_Graph* graph, TF_Status* status);
// The RunMetadata of a step, which TF_SessionRun fills.
RN_API void rn_summary_run_metadata(rn_summary_writer_t* writer, const char* tag, int64_t step,
                                    const TF_Buffer* metadata, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_SUMMARY_H_
