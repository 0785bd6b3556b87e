// What the files of Clipper's REST share.
//
//   POST /APP/predict  {"input": ROW} or {"input_batch": [ROW, ...]}, "version"?, "uid"?
//   POST /APP/update   {"uid", "input", "label"}, or {"query_id", "label"}
//   POST /admin/...    applications, links, versions, models (clipper_admin.c)
//   GET  /metrics, /admin/metrics, /admin/ping
//
// A ROW is a list of numbers, a string, or base64 text, by the application's input type. "uid" in
// predict, "query_id" in update, and "confidence" and "missing" in replies are ours.
#ifndef RUNNEL_SERVE_FRONT_CLIPPER_H_
#define RUNNEL_SERVE_FRONT_CLIPPER_H_

#include "serve/front/front.h"
#include "serve/front/json.h"
#include "serve/select/apps.h"

// The members of a request that Clipper's calls know; each call uses some of them.
typedef struct rn_clipper_body_t {
  bool has_name, has_app_name, has_model_name, has_model_version, has_model_names, has_input_type,
      has_default_output, has_latency_slo_micros, has_uid, has_label, has_query_id;
  rn_str_t name, app_name, model_name, model_version, input_type, default_output, uid, policy, loss,
      policy_model;
  rn_str_t* model_names;  // in the arena
  int model_count;
  int64_t latency_slo_micros, query_id, replica_id;
  double confidence_threshold;
  bool is_verbose, is_strict;
  rn_answer_t label;            // Owned
  rn_str_t input, input_batch;  // their text; "": missing
} rn_clipper_body_t;

// Reads the members that it knows and skips the others. Strings are in the text or in |arena|.
// INVALID_ARGUMENT if the text is not an object, or a member has the wrong type.
RN_MUST_USE rn_status_t rn_clipper_read(rn_str_t text, rn_arena_t* arena, rn_allocator_t allocator,
                                        rn_clipper_body_t* out);

// Clipper's name of an input type; and from its names. 0: there is no such type.
const char* rn_clipper_input_name(int type);
int rn_clipper_input_type(rn_str_t name);

// Appends an answer as JSON.
void rn_clipper_put_answer(rn_strbuf_t* out, const rn_answer_t* answer);

// A call of /admin/|name|: the text that answers it goes to |out|. NOT_FOUND with an empty message
// if there is no such call.
RN_MUST_USE rn_status_t rn_clipper_admin(rn_front_t* front, rn_str_t name, rn_str_t body,
                                         rn_arena_t* arena, rn_strbuf_t* out);

#endif  // RUNNEL_SERVE_FRONT_CLIPPER_H_
