// Graphs from files: GraphDefs as bytes (.pb) or as text (.pbtxt), and those of SavedModels.
#ifndef RUNNEL_CLI_LOAD_H_
#define RUNNEL_CLI_LOAD_H_

#include "cli/cli.h"
#include "graph/graph.h"
#include "proto/graph.pb.h"

typedef struct rn_cli_file_t {
  const char* path;  // Borrowed
  rn_allocator_t allocator;
  rn_arena_t arena;       // holds |def|
  rn_strbuf_t bytes;      // the file; |def| points into it
  rn_pb_GraphDef_t* def;  // callers may change it before rn_cli_import
  bool is_text;
} rn_cli_file_t;

// Reads |path|; "-" is the standard input, a folder a SavedModel. Text if the name ends in .pbtxt,
// .txt or .prototxt, or if the content is text and not a binary message. Errors name the file.
// Clear |*out| either way.
RN_MUST_USE rn_status_t rn_cli_load(const rn_cli_t* cli, const char* path, rn_cli_file_t* out);
void rn_cli_file_clear(rn_cli_file_t* file);

// A graph with the nodes of |file|. The caller owns a reference. Errors name the file.
RN_MUST_USE rn_status_t rn_cli_import(const rn_cli_file_t* file, rn_graph_t** out_graph);

// Writes the serialised GraphDef |bytes| to |path|, as text if requested or if the file name has a
// text extension; "-" is the standard output.
RN_MUST_USE rn_status_t rn_cli_write_graph(const rn_cli_t* cli, const char* path, rn_str_t bytes,
                                           bool is_text);

// The attribute |name| of a node, the last if it comes twice; NULL if there is none.
const rn_pb_AttrValue_t* rn_cli_attr(const rn_pb_NodeDef_t* node, const char* name);

#endif  // RUNNEL_CLI_LOAD_H_
