// The shared_name that asks for a resource without a name: every call of the op makes a fresh one
// in eager execution, every node has one of its own in a graph. Only the handle leads to it, and it
// goes with the last handle.
#ifndef RUNNEL_FRAMEWORK_ANONYMOUS_H_
#define RUNNEL_FRAMEWORK_ANONYMOUS_H_

#define RN_ANONYMOUS_NAME "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

#endif  // RUNNEL_FRAMEWORK_ANONYMOUS_H_
