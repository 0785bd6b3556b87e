// Training logs from C: runnel/summary.h over io/summary_writer.h. An rn_summary_writer_t is an
// rn_event_writer_t under another name.
#include "runnel/summary.h"

#include "capi/internal.h"
#include "graph/import.h"
#include "io/summary_writer.h"

static rn_event_writer_t* events_of(rn_summary_writer_t* writer) {
  return (rn_event_writer_t*)writer;
}

RN_API rn_summary_writer_t* rn_summary_writer_create(const char* folder,
                                                     const rn_summary_options_t* options,
                                                     TF_Status* status) {
  static const rn_summary_options_t usual = {0};
  const rn_summary_options_t* o = options ? options : &usual;
  rn_event_writer_t* events = NULL;
  rn_event_options_t event_options = {.suffix = rn_str(o->suffix ? o->suffix : ".v2"),
                                      .max_queue = o->max_queue,
                                      .flush_ms = o->flush_millis,
                                      .max_bytes = o->max_file_bytes};
  rn_capi_set(status,
              folder ? rn_event_writer_open(rn_capi_env(), rn_str(folder), &event_options, &events)
                     : RN_CAPI_NULL("folder"));
  return (rn_summary_writer_t*)events;
}

RN_API void rn_summary_writer_flush(rn_summary_writer_t* writer, TF_Status* status) {
  rn_capi_set(status, writer ? rn_event_writer_flush(events_of(writer)) : RN_OK);
}

RN_API void rn_summary_writer_close(rn_summary_writer_t* writer, TF_Status* status) {
  rn_capi_set(status, writer ? rn_event_writer_close(events_of(writer)) : RN_OK);
}

RN_API void rn_summary_scalar(rn_summary_writer_t* writer, const char* tag, int64_t step,
                              float value, TF_Status* status) {
  rn_capi_set(status,
              writer ? rn_summary_write_scalar(events_of(writer), tag, step, value) : RN_OK);
}

RN_API void rn_summary_histogram(rn_summary_writer_t* writer, const char* tag, int64_t step,
                                 const TF_Tensor* values, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = values ? rn_summary_write_histogram(events_of(writer), tag, step, &values->tensor)
                     : RN_CAPI_NULL("values");
  rn_capi_set(status, outcome);
}

RN_API void rn_summary_image(rn_summary_writer_t* writer, const char* tag, int64_t step,
                             const uint8_t* pixels, int64_t height, int64_t width, int channels,
                             TF_Status* status) {
  rn_capi_set(status, writer ? rn_summary_write_image(events_of(writer), tag, step, pixels, height,
                                                      width, channels)
                             : RN_OK);
}

RN_API void rn_summary_text(rn_summary_writer_t* writer, const char* tag, int64_t step,
                            const char* text, TF_Status* status) {
  rn_capi_set(status, writer ? rn_summary_write_text(events_of(writer), tag, step, text) : RN_OK);
}

RN_API void rn_summary_tensor(rn_summary_writer_t* writer, const char* tag, int64_t step,
                              const TF_Tensor* tensor, const char* plugin, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = tensor
                  ? rn_summary_write_tensor(events_of(writer), tag, step, &tensor->tensor, plugin)
                  : RN_CAPI_NULL("tensor");
  rn_capi_set(status, outcome);
}

RN_API void rn_summary_merged(rn_summary_writer_t* writer, int64_t step, const TF_Tensor* summaries,
                              TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = summaries ? rn_summary_write_merged(events_of(writer), step, &summaries->tensor)
                        : RN_CAPI_NULL("summaries");
  rn_capi_set(status, outcome);
}

RN_API void rn_summary_graph(rn_summary_writer_t* writer, TF_Graph* graph, TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = RN_OK;
  if (writer) outcome = graph ? rn_graph_export(rn_capi_graph(graph), &buf) : RN_CAPI_NULL("graph");
  if (writer && rn_ok(outcome))
    outcome = rn_event_writer_put(events_of(writer), 0, RN_EVENT_GRAPH, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

RN_API void rn_summary_run_metadata(rn_summary_writer_t* writer, const char* tag, int64_t step,
                                    const TF_Buffer* metadata, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = tag && metadata
                  ? rn_summary_write_run_metadata(events_of(writer), tag, step,
                                                  rn_str_n(metadata->data, metadata->length))
                  : RN_CAPI_NULL(tag ? "metadata" : "tag");
  rn_capi_set(status, outcome);
}
