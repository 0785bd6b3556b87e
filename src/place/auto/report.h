// What a search found, for people: as text, and as a picture of the step.
#ifndef RUNNEL_PLACE_AUTO_REPORT_H_
#define RUNNEL_PLACE_AUTO_REPORT_H_

#include "place/auto/wishes.h"

// Appends a report: forecasts of the placements, what each device does, how the costs are known,
// which groups moved and what the step would take without each move, and what to do if the step
// does not fit into memory. |ir| is the step that was searched.
RN_MUST_USE rn_status_t rn_report_write(const rn_ir_t* ir, const rn_auto_result_t* result,
                                        rn_strbuf_t* out);

// Appends an SVG picture: one row per device and lane with the nodes that it runs, and lines for
// the values that are sent.
RN_MUST_USE rn_status_t rn_picture_write(const rn_ir_t* ir, const rn_auto_result_t* result,
                                         rn_strbuf_t* out);

#endif  // RUNNEL_PLACE_AUTO_REPORT_H_
