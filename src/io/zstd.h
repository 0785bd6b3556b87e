// Decompresses a Zstandard frame with libzstd, which is opened when first used.
#ifndef RUNNEL_IO_ZSTD_H_
#define RUNNEL_IO_ZSTD_H_

#include "base/status.h"
#include "base/str.h"

// Decompresses |data|, one frame that gives its size, and appends the result to |out|.
// INVALID_ARGUMENT if it is none, RESOURCE_EXHAUSTED beyond |limit| bytes, UNIMPLEMENTED without
// the library.
RN_MUST_USE rn_status_t rn_unzstd(rn_str_t data, size_t limit, rn_strbuf_t* out);
// UNIMPLEMENTED if the library cannot be opened.
RN_MUST_USE rn_status_t rn_zstd_need(void);

#endif  // RUNNEL_IO_ZSTD_H_
