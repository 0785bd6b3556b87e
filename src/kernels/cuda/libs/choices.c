// Choices: see choices.h.
#include "kernels/cuda/libs/choices.h"

#include "base/hash.h"
#include "kernels/cuda/jit/cache.h"

// Counted up when stored choices get another meaning.
#define VERSION 1

static int architecture_of(const rn_cuda_card_t* card) { return card->major * 10 + card->minor; }

static rn_status_t make_key(const rn_cuda_card_t* card, const rn_measured_t* choice,
                            rn_jit_key_t* out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_strbuf_printf(&text, "choice %d of %s %zu on %s:", VERSION, choice->library, choice->version,
                   card->name);
  rn_strbuf_append(&text, rn_str_n(choice->problem, choice->size));
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) {
    out->half[0] = rn_farm_fingerprint64(rn_str_n(text.data, text.size));
    rn_strbuf_append(&text, RN_STR("."));  // another hash of the same
    status = rn_strbuf_status(&text);
    out->half[1] = rn_farm_fingerprint64(rn_str_n(text.data, text.size));
  }
  rn_strbuf_clear(&text);
  return status;
}

// Calls of the cache with the folder and the key; |chosen| is NULL to find.
static bool use(const rn_env_t* env, const rn_cuda_card_t* card, const rn_measured_t* choice,
                const rn_str_t* chosen, rn_strbuf_t* out) {
  rn_strbuf_t folder;
  rn_jit_key_t key;
  rn_strbuf_init(&folder, rn_allocator_system());
  rn_jit_cache_folder(&folder);
  rn_strbuf_append(&folder, rn_str_n("", 1));
  rn_status_t status = rn_status_join(rn_strbuf_status(&folder), make_key(card, choice, &key));
  bool found = false;
  if (rn_ok(status) && chosen)
    rn_jit_cache_store(env, folder.data, key, architecture_of(card), *chosen);
  else if (rn_ok(status))
    found = rn_jit_cache_find(env, folder.data, key, architecture_of(card), out);
  rn_status_free(status);
  rn_strbuf_clear(&folder);
  return found;
}

bool rn_choice_find(const rn_env_t* env, const rn_cuda_card_t* card, const rn_measured_t* choice,
                    rn_strbuf_t* out) {
  return use(env, card, choice, NULL, out);
}

void rn_choice_store(const rn_env_t* env, const rn_cuda_card_t* card, const rn_measured_t* choice,
                     rn_str_t chosen) {
  use(env, card, choice, &chosen, NULL);
}
