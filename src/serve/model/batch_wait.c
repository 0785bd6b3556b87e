// See batch_wait.h.
#include "serve/model/batch_wait.h"

#define KEPT_BATCHES 32     // of an epoch that tries nothing
#define TRIED_BATCHES 16    // of one that does
#define WINS 2              // in a row, to keep a window
#define GAIN 0.93           // what the time of requests must fall to, to win
#define MAX_PATIENCE 64     // epochs: where waiting never pays, trying costs less than one percent
#define FORGET 0.97         // of the peak, per batch
#define MIN_WINDOW_NS 2000  // less is over before a timer could tell

// Windows as parts of the fixed cost of a batch. Waiting longer than that cost saves nothing.
static const double windows[] = {0, 0.25, 1};
#define WINDOWS (int)(sizeof windows / sizeof *windows)

void rn_batch_wait_init(rn_batch_wait_t* wait, int64_t max_ns) {
  *wait = (rn_batch_wait_t){.max_ns = max_ns, .next = WINDOWS - 1, .patience = 1, .rest = 1};
}

void rn_batch_wait_arrive(rn_batch_wait_t* wait, int64_t outstanding) {
  if ((double)outstanding > wait->peak) wait->peak = (double)outstanding;
}

int64_t rn_batch_wait_window(const rn_batch_wait_t* wait, int64_t fixed_ns) {
  double ns = windows[wait->tried] * (double)fixed_ns;
  if (ns > (double)wait->max_ns) ns = (double)wait->max_ns;
  return ns < MIN_WINDOW_NS ? 0 : (int64_t)ns;
}

bool rn_batch_wait_is_enough(const rn_batch_wait_t* wait, int64_t queued) {
  return (double)queued >= wait->peak - 0.5;
}

static void next_window(rn_batch_wait_t* wait) {
  wait->wins = 0;
  do wait->next = (wait->next + WINDOWS - 1) % WINDOWS;
  while (wait->next == wait->kept);
}

static void end_trial(rn_batch_wait_t* wait, double mean) {
  bool has_won = mean < GAIN * wait->kept_mean;
  wait->tried = wait->kept;
  wait->rest = 1;
  if (has_won && ++wait->wins < WINS) return;  // once more, to be sure
  if (has_won) {
    wait->kept = wait->tried = wait->next;
    wait->patience = 1;
  } else if (wait->patience < MAX_PATIENCE) {
    wait->patience *= 2;
  }
  next_window(wait);
  wait->rest = wait->patience;
}

void rn_batch_wait_done(rn_batch_wait_t* wait, int64_t count, int64_t spent_ns) {
  wait->peak *= FORGET;
  wait->count += (double)count;
  wait->spent += (double)spent_ns;
  bool is_trial = wait->tried != wait->kept;
  if (++wait->batches < (is_trial ? TRIED_BATCHES : KEPT_BATCHES)) return;
  double mean = wait->count > 0 ? wait->spent / wait->count : 0;
  wait->batches = 0;
  wait->count = wait->spent = 0;
  if (is_trial) {
    end_trial(wait, mean);
    return;
  }
  wait->kept_mean = mean;
  // Without concurrent callers there is nothing to wait for.
  if (--wait->rest <= 0 && wait->peak > 1.5) wait->tried = wait->next;
}
