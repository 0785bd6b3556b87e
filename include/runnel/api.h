// Marks what a program may call: RN_API stands before the declaration of every public function in
// include/runnel/ and before its definition in src/. Everything else in src/ is internal.
#ifndef RUNNEL_API_H_
#define RUNNEL_API_H_

#ifndef RN_API
#define RN_API __attribute__((visibility("default")))
#endif

#endif  // RUNNEL_API_H_
