// What a master does about a task of a session that has failed a step: before the next step that
// needs it, it is asked how it is. One that was started anew gets the session again, and the kinds
// of steps that it took part in are cut and registered again: for the values that travel are named
// by the incarnation of the device they come from. For the files of the master only.
#ifndef RUNNEL_DIST_MASTER_MEND_H_
#define RUNNEL_DIST_MASTER_MEND_H_

#include "dist/master/session.h"

// A part of a step on task |task| has failed, or could not be registered. |status| is lent.
void rn_master_suspect(rn_master_session_t* session, const rn_master_plan_t* plan, int task,
                       rn_status_t status);
// Whether a task of |plan| (NULL: any) should be asked first. Under the session's lock.
bool rn_master_is_suspect_locked(const rn_master_session_t* session, const rn_master_plan_t* plan);
// Asks those that should be asked, and mends what can be mended; then |waiter| goes on, which may
// be before this returns. A task that does not answer stays as it is. The session must be kept.
void rn_master_mend(rn_master_session_t* session, rn_mend_waiter_t* waiter);
// Why a task of |plan| did not say how it is, of those that were just asked; RN_OK if all did.
RN_MUST_USE rn_status_t rn_master_silence_locked(const rn_master_session_t* session,
                                                 const rn_master_plan_t* plan);
// Task |task| may forget the graph |handle|. Nobody waits for the answer.
void rn_master_forget(rn_master_session_t* session, int task, const char* handle);

#endif  // RUNNEL_DIST_MASTER_MEND_H_
