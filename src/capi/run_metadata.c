// Step statistics as the RunMetadata that profilers read.
#include "capi/session.h"
#include "proto/config.pb.h"
#include "session/step_stats_proto.h"
#include "wire/writer.h"

void rn_capi_write_metadata(rn_strbuf_t* buf, const rn_step_stats_t* stats) {
  size_t step = rn_pb_begin(buf, rn_pb_RunMetadata_step_stats_field);
  rn_step_stats_write(stats, buf);
  rn_pb_end(buf, step);
}
