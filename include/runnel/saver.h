// Savers: save variables to checkpoints, restore them, and remove old checkpoints.
//
//   rn_saver_t* saver = rn_saver(s, .max_to_keep = 3);
//   …
//   char* found = rn_latest_checkpoint("run", NULL, NULL, status);
//   if (found) rn_saver_restore(saver, session, found, status);
//   … rn_saver_save(saver, session, "run/model", step, status) …
//   rn_saver_destroy(saver);
//
// Checkpoints have TensorFlow's formats: its savers read ours, and ours read its own of either
// format. When a save has returned, the checkpoint is on disk: data, index, their names, then the
// file "checkpoint" that lists them. A crash at any moment leaves the previous checkpoint intact.
//
// Only one thread at a time may use a saver. It must be destroyed before its graph. |status| may be
// NULL.
#ifndef RUNNEL_SAVER_H_
#define RUNNEL_SAVER_H_

#include "runnel/variables.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_saver_t rn_saver_t;

// Which checkpoints to keep.
typedef enum rn_best_t {
  RN_BEST_LATEST,   // the newest
  RN_BEST_LOWEST,   // those with the lowest metric
  RN_BEST_HIGHEST,  // those with the highest
} rn_best_t;

typedef struct rn_saver_options_t {
  const rn_var_t* const* variables;  // NULL: all global variables
  int variable_count;
  const char* const* names;   // in checkpoints; NULL, or a NULL in it: the variables' own
  const char* const* slices;  // variables that are parts of larger tensors: "8 3 0,4:-" for the
                              // first 4 rows of 8; several of one name, in any partition, are one
                              // tensor in the checkpoint. NULL, or a NULL in it: the variable is
                              // the tensor
  int max_to_keep;            // 0: 5; negative: all
  double keep_every_hours;    // one checkpoint per this many hours is kept for good; 0: none
  rn_best_t best;
  bool is_sharded;         // each task writes its own variables; then they are merged
  bool is_first_format;    // the checkpoint format before 2016
  const char* state_file;  // NULL: "checkpoint"
  const char* name;        // of the nodes; NULL: "save"
  char unused_;            // last, for initializers in C++
} rn_saver_options_t;

// Adds the nodes that save and restore. NULL after an error, which the scope keeps.
RN_API rn_saver_t* rn_saver_(rn_scope_t* scope, rn_saver_options_t options);
#define rn_saver(...) rn_saver_(RN_OPTIONS_(rn_saver_options_t, __VA_ARGS__, .unused_ = 0))
// Waits for a save in progress. NULL is allowed.
RN_API void rn_saver_destroy(rn_saver_t* saver);

// The names in a SaverDef: the tensor that takes the path, the tensor that is the path when
// everything is saved, the node that restores.
typedef struct rn_saver_names_t {
  const char *filename, *save, *restore;  // owned by the saver; "save/Const:0" …
} rn_saver_names_t;
RN_API rn_saver_names_t rn_saver_names(const rn_saver_t* saver);

// Saves as "path-step" ("path" if |step| is negative). Returns the path of the checkpoint, which
// lives until the next save; NULL after an error.
RN_API const char* rn_saver_save(rn_saver_t* saver, TF_Session* session, const char* path,
                                 int64_t step, TF_Status* status);
// The same for savers that keep the best checkpoints. If enough better ones are kept already, saves
// nothing and returns NULL with status OK. NaN is worse than any number.
RN_API const char* rn_saver_save_best(rn_saver_t* saver, TF_Session* session, const char* path,
                                      int64_t step, double metric, TF_Status* status);
// Takes a snapshot of the values and writes it in the background. One at a time: waits for the
// previous save, and reports its failure.
RN_API bool rn_saver_save_async(rn_saver_t* saver, TF_Session* session, const char* path,
                                int64_t step, TF_Status* status);
// The same for savers that keep the best checkpoints.
RN_API bool rn_saver_save_best_async(rn_saver_t* saver, TF_Session* session, const char* path,
                                     int64_t step, double metric, TF_Status* status);
// Waits until the last save is on disk.
RN_API bool rn_saver_wait(rn_saver_t* saver, TF_Status* status);

// Restores all variables of the saver from the checkpoint |path|. Compares types and shapes first:
// if they differ, the error names variable, file and both shapes, and nothing is changed.
RN_API bool rn_saver_restore(rn_saver_t* saver, TF_Session* session, const char* path,
                             TF_Status* status);
// Restores the variables that the checkpoint has with the same type and shape, and leaves the
// others. Returns how many, or -1 after an error.
RN_API int rn_saver_restore_some(rn_saver_t* saver, TF_Session* session, const char* path,
                                 TF_Status* status);

// Continues with the checkpoints that an earlier process left in |directory|: they count among
// those to keep. The directory may have none. Removes temporary files of killed processes that are
// an hour old.
RN_API bool rn_saver_recover(rn_saver_t* saver, const char* directory, TF_Status* status);

// The newest checkpoint of |directory| whose checksums are right; free it with free(). NULL if
// there is none (NOT_FOUND) or none that is complete (DATA_LOSS). If newer ones were skipped,
// |*out_note| says what was wrong with them (free it with free()), otherwise it is NULL; |out_note|
// may be NULL. |state_file| NULL: "checkpoint".
RN_API char* rn_latest_checkpoint(const char* directory, const char* state_file, char** out_note,
                                  TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_SAVER_H_
