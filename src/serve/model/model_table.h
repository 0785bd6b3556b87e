// The versions that requests can reach: an immutable table that is replaced as a whole.
//
// Readers take no lock and wait for nothing. One writer at a time replaces the table and then waits
// for the readers that may still see the old one, which are inside for less than a microsecond: the
// versions of the old table stay valid until then.
//
// doc/invariants.md: invariant 55.
#ifndef RUNNEL_SERVE_MODEL_MODEL_TABLE_H_
#define RUNNEL_SERVE_MODEL_MODEL_TABLE_H_

#include <stdatomic.h>

#include "base/map.h"
#include "serve/model/models.h"

typedef struct rn_table_label_t {
  rn_str_t label;
  int64_t version;
} rn_table_label_t;

// A configured model. Everything is in the table's arena, or borrowed as long as the table is used.
typedef struct rn_table_model_t {
  rn_str_t name;
  rn_version_t** versions;  // by descending number
  int version_count;
  rn_table_label_t* labels;
  int label_count;
} rn_table_model_t;

typedef struct rn_model_table_t {
  rn_arena_t arena;
  rn_map_t models;  // name -> rn_table_model_t
} rn_model_table_t;

RN_MUST_USE rn_status_t rn_model_table_create(rn_allocator_t allocator, rn_model_table_t** out);
void rn_model_table_destroy(rn_model_table_t* table);  // NULL is fine
// Adds a model with room for its versions and labels, whose counts start at 0.
RN_MUST_USE rn_status_t rn_model_table_add(rn_model_table_t* table, rn_str_t name, int versions,
                                           int labels, rn_table_model_t** out);

// The place that readers find the table at.
typedef struct rn_model_view_t {
  rn_model_table_t* _Atomic table;
  // A reader adds 1 to the counter of the turn that it sees, looks whether the turn is still that
  // one, reads the table, and subtracts 1. The writer stores a table, begins the next turn, and
  // waits until the counter of the old one is 0. A reader that saw the old turn after adding was
  // counted before the new one began; one that sees the new turn sees the new table.
  _Atomic uint64_t turn;
  _Atomic int64_t readers[2];  // by the lowest bit of the turn
} rn_model_view_t;

// Shows |table| to readers and destroys the one that it replaces, after its last reader left. One
// writer at a time. |table| may be NULL at the end.
void rn_model_view_replace(rn_model_view_t* view, rn_model_table_t* table);
// See rn_models_find.
RN_MUST_USE rn_status_t rn_model_view_find(rn_model_view_t* view, const rn_model_spec_t* spec,
                                           rn_version_t** out);

#endif  // RUNNEL_SERVE_MODEL_MODEL_TABLE_H_
