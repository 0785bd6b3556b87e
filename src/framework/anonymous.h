// The shared_name that requests an anonymous resource: in eager execution every call of the op
// makes a new one, in a graph every node has its own. Only the handle refers to it, and it is
// destroyed with the last handle.
#ifndef RUNNEL_FRAMEWORK_ANONYMOUS_H_
#define RUNNEL_FRAMEWORK_ANONYMOUS_H_

#define RN_ANONYMOUS_NAME "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

#endif  // RUNNEL_FRAMEWORK_ANONYMOUS_H_
