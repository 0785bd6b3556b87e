// Who watches the health of a server or of a model (gRPC's Health.Watch), and is told of changes.
#ifndef RUNNEL_SERVE_FRONT_HEALTH_H_
#define RUNNEL_SERVE_FRONT_HEALTH_H_

#include "serve/front/front.h"

RN_MUST_USE rn_status_t rn_health_watchers_create(rn_allocator_t allocator,
                                                  rn_health_watchers_t** out);
void rn_health_watchers_destroy(rn_health_watchers_t* health);  // after the last call; NULL is fine
// Lets every watch look again, soon and on the timers' thread. Any thread may call it, also with
// the manager's lock: |health| is an rn_health_watchers_t.
void rn_health_watchers_wake(void* health);

#endif  // RUNNEL_SERVE_FRONT_HEALTH_H_
