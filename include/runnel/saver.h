// Savers: variables into checkpoints and back, old checkpoints removed, the good ones kept.
//
//   rn_saver_t* saver = rn_saver(s, .max_to_keep = 3);
//   …
//   char* found = rn_latest_checkpoint("run", NULL, NULL, status);
//   if (found) rn_saver_restore(saver, session, found, status);
//   … rn_saver_save(saver, session, "run/model", step, status) …
//   rn_saver_destroy(saver);
//
// Checkpoints are TensorFlow's: its savers read them, and ours read its own of either format. When
// a save has returned, the checkpoint is on disk: data, index, their names, then the file
// "checkpoint" that lists them; a crash at any moment leaves the one before as it was.
//
// A saver is used by one thread at a time, and must go before its graph. Functions that return a
// pointer or a bool say in |status| what went wrong, which may be NULL.
#ifndef RUNNEL_SAVER_H_
#define RUNNEL_SAVER_H_

#include "runnel/variables.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_saver_t rn_saver_t;

// Which checkpoints are kept.
typedef enum rn_best_t {
  RN_BEST_LATEST,   // the newest
  RN_BEST_LOWEST,   // those with the lowest metric
  RN_BEST_HIGHEST,  // those with the highest
} rn_best_t;

typedef struct rn_saver_options_t {
  const rn_var_t* const* variables;  // NULL: all global variables
  int variable_count;
  const char* const* names;   // of the variables in checkpoints; NULL, or a NULL in it: their own
  const char* const* slices;  // variables that are parts of larger tensors: "8 3 0,4:-" for the
                              // first 4 rows of 8; several of one name, in any partition, are one
                              // tensor in the checkpoint. NULL, or a NULL in it: the variable is
                              // the tensor
  int max_to_keep;            // 0: 5; negative: all of them
  double keep_every_hours;    // one in so many hours is kept for good; 0: none
  rn_best_t best;
  bool is_sharded;         // each task writes its own variables; the parts are then made one
  bool is_first_format;    // checkpoints as they were before 2016
  const char* state_file;  // NULL: "checkpoint"
  const char* name;        // of the nodes; NULL: "save"
  char unused_;            // last: C++ wants initialisers in order
} rn_saver_options_t;

// Adds the nodes that save and restore. NULL after an error, which is the scope's.
RN_API rn_saver_t* rn_saver_(rn_scope_t* scope, rn_saver_options_t options);
#define rn_saver(...) rn_saver_(RN_OPTIONS_(rn_saver_options_t, __VA_ARGS__, .unused_ = 0))
// Waits for what is being written. NULL is fine.
RN_API void rn_saver_destroy(rn_saver_t* saver);

// The names that a SaverDef has: the tensor with the path, the tensor that is the path once all is
// saved, the node that restores.
typedef struct rn_saver_names_t {
  const char *filename, *save, *restore;  // lent by the saver; "save/Const:0" …
} rn_saver_names_t;
RN_API rn_saver_names_t rn_saver_names(const rn_saver_t* saver);

// Saves as "path-step" ("path" if |step| is negative). The path of the checkpoint, lent until the
// next save; NULL after an error.
RN_API const char* rn_saver_save(rn_saver_t* saver, TF_Session* session, const char* path,
                                 int64_t step, TF_Status* status);
// The same for savers that keep the best: nothing is saved, NULL is returned and the status is OK
// if as many better ones are kept already. A NaN is worse than any number.
RN_API const char* rn_saver_save_best(rn_saver_t* saver, TF_Session* session, const char* path,
                                      int64_t step, double metric, TF_Status* status);
// Takes the values of now and writes them behind the back of what follows. One at a time: waits for
// the one before, whose failure is this one's.
RN_API bool rn_saver_save_async(rn_saver_t* saver, TF_Session* session, const char* path,
                                int64_t step, TF_Status* status);
// The same for savers that keep the best; as there, nothing is written if better ones are kept.
RN_API bool rn_saver_save_best_async(rn_saver_t* saver, TF_Session* session, const char* path,
                                     int64_t step, double metric, TF_Status* status);
// Waits until the last one is on disk.
RN_API bool rn_saver_wait(rn_saver_t* saver, TF_Status* status);

// Restores all variables of the saver from the checkpoint |path|. Types and shapes are compared
// first: an error names variable, file and both shapes, and nothing was changed.
RN_API bool rn_saver_restore(rn_saver_t* saver, TF_Session* session, const char* path,
                             TF_Status* status);
// Restores those that the checkpoint has with their type and shape, and leaves the others. How many
// there were; -1 after an error.
RN_API int rn_saver_restore_some(rn_saver_t* saver, TF_Session* session, const char* path,
                                 TF_Status* status);

// Goes on with the checkpoints of |directory| that an earlier process left: they count among those
// that are kept. A directory without any is fine. What a process that was killed had begun to write
// there is removed once it is an hour old.
RN_API bool rn_saver_recover(rn_saver_t* saver, const char* directory, TF_Status* status);

// The newest checkpoint of |directory| whose checksums are all right, for free(); NULL if there is
// none (NOT_FOUND) or none that is whole (DATA_LOSS). If newer ones were passed over, |*out_note|
// is what was wrong with them, for free(), else NULL; |out_note| may be NULL. |state_file| NULL:
// "checkpoint".
RN_API char* rn_latest_checkpoint(const char* directory, const char* state_file, char** out_note,
                                  TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_SAVER_H_
