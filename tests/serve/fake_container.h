// What the first number of a batch makes tests/serve/fake_container.c do.
#ifndef RUNNEL_TESTS_SERVE_FAKE_CONTAINER_H_
#define RUNNEL_TESTS_SERVE_FAKE_CONTAINER_H_

enum {
  FAKE_CRASH = 1001,
  FAKE_EXIT,
  FAKE_HANG,   // with beats
  FAKE_STOP,   // without
  FAKE_SLOW,   // 0.3 s
  FAKE_FAIL,   // an error of its own
  FAKE_SHAPE,  // one row too many
  FAKE_TYPE,   // fewer bytes than the shape has
  FAKE_MISSING,
  FAKE_NAN,
  FAKE_TALK,  // 1,000 lines
};

#endif  // RUNNEL_TESTS_SERVE_FAKE_CONTAINER_H_
