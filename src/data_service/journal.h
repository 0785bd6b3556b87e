// The journal of a dispatcher in fault tolerant mode: TFRecord files of Update messages, as
// stock's, in WORK_DIR/tf_data_dispatcher_journal/journal_0, journal_1 and so on; every start
// begins a new file.
#ifndef RUNNEL_DATA_SERVICE_JOURNAL_H_
#define RUNNEL_DATA_SERVICE_JOURNAL_H_

#include "base/env.h"
#include "data_service/state.h"

typedef struct rn_ds_journal_t rn_ds_journal_t;

// Applies all changes in |work_dir| to |state|, then opens a new file. A last record that is cut
// off is left out: its change was never answered.
RN_MUST_USE rn_status_t rn_ds_journal_open(const rn_env_t* env, rn_allocator_t allocator,
                                           rn_str_t work_dir, rn_ds_state_t* state,
                                           rn_ds_journal_t** out);
// Returns when the system has the change.
RN_MUST_USE rn_status_t rn_ds_journal_write(rn_ds_journal_t* journal,
                                            const rn_pb_data_Update_t* update);
void rn_ds_journal_close(rn_ds_journal_t* journal);  // NULL is fine

#endif  // RUNNEL_DATA_SERVICE_JOURNAL_H_
