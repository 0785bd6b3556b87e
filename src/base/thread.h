// Properties of threads that only some systems have.
#ifndef RUNNEL_BASE_THREAD_H_
#define RUNNEL_BASE_THREAD_H_

// Gives the calling thread, and those that it starts, the shortest time slice. Linux (6.12 on) then
// lets it run soon after it wakes, even if others compute on all processors; and them, if it
// computes. Elsewhere it changes nothing.
void rn_thread_be_prompt(void);

// Lowers the weight of the calling thread, and of those that it starts, to a third for good. For
// threads that compute beside others which must answer soon: the system lets one of these run when
// it wakes if it had less than its share lately, and its share beside such threads is large.
void rn_thread_be_patient(void);

#endif  // RUNNEL_BASE_THREAD_H_
