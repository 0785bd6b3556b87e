// A file system restricted to some folders, for graphs from untrusted sources.
//
// A path is allowed if, with all links on the way followed, it lies in an allowed folder. The
// folders are resolved when the view is made. It does not protect against someone who replaces
// folders by links while a path is being opened.
#ifndef RUNNEL_BASE_FS_ONLY_H_
#define RUNNEL_BASE_FS_ONLY_H_

#include "base/fs.h"

typedef struct rn_fs_only_t rn_fs_only_t;

// A view of |env|'s files. |folder|, if it is not empty, may be read, with all that is in it.
// |allow| lists what else may be done, with ';' between: "read:FOLDER", "write:FOLDER" (which reads
// too), "network", "all". INVALID_ARGUMENT for other words. |env| must outlive the view.
RN_MUST_USE rn_status_t rn_fs_only_create(const rn_env_t* env, rn_str_t folder, rn_str_t allow,
                                          rn_allocator_t allocator, rn_fs_only_t** out);
void rn_fs_only_destroy(rn_fs_only_t* only);  // NULL is fine
// Whether |env| has the files of such a view.
bool rn_fs_only_is_view(const rn_env_t* env);
bool rn_fs_only_has_network(const rn_fs_only_t* only);
// Replaces |env|'s files by the view and, unless the network was allowed, its network by one that
// refuses every call.
void rn_fs_only_apply(rn_fs_only_t* only, rn_env_t* env);

#endif  // RUNNEL_BASE_FS_ONLY_H_
