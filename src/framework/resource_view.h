// Lists the resources of a device, for the status pages of a task.
#ifndef RUNNEL_FRAMEWORK_RESOURCE_VIEW_H_
#define RUNNEL_FRAMEWORK_RESOURCE_VIEW_H_

#include "framework/resource.h"

// Calls |see| for each resource, in any order, under the table's lock. It must not use the table,
// and its arguments are borrowed.
void rn_resources_each(rn_resources_t* resources,
                       void (*see)(void* arg, rn_str_t container, rn_str_t name,
                                   rn_resource_t* resource),
                       void* arg);

#endif  // RUNNEL_FRAMEWORK_RESOURCE_VIEW_H_
