// Summaries in an SQLite database, in TensorBoard's schema. The caller makes sure that one thread
// at a time uses a writer.
#ifndef RUNNEL_KERNELS_CPU_SUMMARY_DB_WRITER_H_
#define RUNNEL_KERNELS_CPU_SUMMARY_DB_WRITER_H_

#include "base/env.h"
#include "tensor/tensor.h"

typedef struct rn_summary_db_t rn_summary_db_t;

// Opens the database |uri|, makes the tables that it lacks, and starts a run. An empty name stands
// for none; without a run, tags belong to none.
RN_MUST_USE rn_status_t rn_summary_db_open(const rn_env_t* env, rn_str_t uri, rn_str_t experiment,
                                           rn_str_t run, rn_str_t user, rn_summary_db_t** out);
// Notes that the run is finished, and closes the database. NULL is fine.
void rn_summary_db_close(rn_summary_db_t* db);

// Writes |tensor| under |tag| with the current time; an older one of the same step is replaced.
// |metadata| is a serialised SummaryMetadata. UNIMPLEMENTED for types that the schema does not
// have.
RN_MUST_USE rn_status_t rn_summary_db_put_tensor(rn_summary_db_t* db, int64_t step, rn_str_t tag,
                                                 rn_str_t metadata, const rn_tensor_t* tensor);
// The same for the first element of |tensor|, as a scalar.
RN_MUST_USE rn_status_t rn_summary_db_put_scalar(rn_summary_db_t* db, int64_t step, rn_str_t tag,
                                                 const rn_tensor_t* tensor);
// Writes the values of a serialised Summary, or a serialised GraphDef, the run's graph. |time| is
// in seconds since 1970; 0 stands for the current time.
RN_MUST_USE rn_status_t rn_summary_db_put_summary(rn_summary_db_t* db, int64_t step, double time,
                                                  rn_str_t summary);
RN_MUST_USE rn_status_t rn_summary_db_put_graph(rn_summary_db_t* db, double time, rn_str_t graph);

#endif  // RUNNEL_KERNELS_CPU_SUMMARY_DB_WRITER_H_
