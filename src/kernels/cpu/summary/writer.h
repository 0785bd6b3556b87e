// Summary writers as other kernels see them.
#ifndef RUNNEL_KERNELS_CPU_SUMMARY_WRITER_H_
#define RUNNEL_KERNELS_CPU_SUMMARY_WRITER_H_

#include "framework/kernel.h"

#define RN_SUMMARY_WRITER_TYPE "SummaryWriterInterface"

// Writes |summary|, a serialized Summary, to |writer|, a resource of that type. NOT_FOUND if it is
// not open. Any thread.
RN_MUST_USE rn_status_t rn_summary_writer_put(rn_resource_t* writer, int64_t step,
                                              rn_str_t summary);

#endif  // RUNNEL_KERNELS_CPU_SUMMARY_WRITER_H_
