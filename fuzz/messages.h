// Selects a message type from the input.
#ifndef RUNNEL_FUZZ_MESSAGES_H_
#define RUNNEL_FUZZ_MESSAGES_H_

#include "fuzz/util.h"
#include "proto/messages.pb.h"

static const rn_pb_message_desc_t* fuzz_message(fuzz_bytes_t* bytes) {
  uint32_t wanted = fuzz_u32(bytes), nearest = UINT32_MAX;
  const rn_pb_message_desc_t* found = rn_pb_messages[0];
  for (uint32_t i = 0; i < (uint32_t)rn_pb_message_count; ++i) {
    uint32_t distance = fuzz_distance(rn_pb_messages[i]->name, wanted);
    if (distance > nearest) continue;
    nearest = distance;
    found = rn_pb_messages[i];
  }
  return found;
}

#endif  // RUNNEL_FUZZ_MESSAGES_H_
