// Recovery of a session's tasks that failed a step: before the next step that needs such a task,
// the master probes it. A restarted task gets the session again, and the programs that it took part
// in are cut and registered again, because rendezvous keys contain the incarnation of the sending
// device. For the files of the master only.
#ifndef RUNNEL_DIST_MASTER_MEND_H_
#define RUNNEL_DIST_MASTER_MEND_H_

#include "dist/master/session.h"

// A part of a step on task |task| has failed, or could not be registered. |status| is borrowed.
void rn_master_suspect(rn_master_session_t* session, const rn_master_plan_t* plan, int task,
                       rn_status_t status);
// Whether a task of |plan| (NULL: any) should be probed first. Under the session's lock.
bool rn_master_is_suspect_locked(const rn_master_session_t* session, const rn_master_plan_t* plan);
// Probes those tasks, recovers what can be recovered, then calls |waiter|, perhaps before this
// returns. A task that does not answer is left alone. The session must be retained.
void rn_master_mend(rn_master_session_t* session, rn_mend_waiter_t* waiter);
// The error of a task of |plan| that did not answer the last probe; RN_OK if all did.
RN_MUST_USE rn_status_t rn_master_silence_locked(const rn_master_session_t* session,
                                                 const rn_master_plan_t* plan);
// Deregisters the graph |handle| from task |task|, without waiting.
void rn_master_forget(rn_master_session_t* session, int task, const char* handle);

#endif  // RUNNEL_DIST_MASTER_MEND_H_
