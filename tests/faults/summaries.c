// A scenario for summaries in a database, which is in memory.
#include "sweep.h"

enum { OPEN, SCALAR, TEXTS, HISTOGRAM, GRAPH, CLOSE, WRITES };

static rn_edge_t text(rn_scope_t* s, const char* value) { return rn_const_strings(s, &value, 1); }

static bool build(ft_t* t, TF_Operation** writes) {
  static const char* const words[] = {"one", "two"};
  rn_scope_destroy(t->scope);
  t->scope = rn_scope_create(rn_graph_of(t->graph));
  if (!t->scope) return false;
  rn_scope_t* s = t->scope;
  int64_t seven = 7;
  rn_edge_t writer = rn_SummaryWriter(s, .shared_name = "w"), value = rn_const_float(s, 1.5f);
  rn_edge_t step = rn_const(s, TF_INT64, NULL, 0, &seven), tag = text(s, "tag");
  rn_node_t* const nodes[WRITES] = {
      rn_CreateSummaryDbWriter(s, writer, text(s, "file:faults?mode=memory"), text(s, "e"),
                               text(s, "r"), text(s, "u")),
      rn_WriteScalarSummary(s, writer, step, tag, value),
      rn_WriteSummary(s, writer, step, rn_const_strings(s, words, 2), text(s, "texts"),
                      text(s, "\n\x05\n\x03plg")),
      rn_WriteHistogramSummary(s, writer, step, text(s, "histogram"), value),
      rn_WriteGraphSummary(s, writer, step, text(s, "\n\x03\n\x01x\n\x06\n\x01y\x1a\x01x")),
      rn_CloseSummaryWriter(s, writer),
  };
  TF_SetStatus(t->status, (TF_Code)rn_scope_code(s), rn_scope_message(s));
  for (int i = 0; rn_scope_ok(s) && i < WRITES; ++i) writes[i] = rn_operation_of(nodes[i]);
  return rn_scope_ok(s);
}

void scenario_summaries(ft_t* t) {
  TF_Operation* writes[WRITES];
  FT(ft_start(t));
  FT(build(t, writes));
  FT(ft_session(t, 1));
  for (int i = 0; i < WRITES; ++i) FT(ft_target(t, writes[i]));
}
