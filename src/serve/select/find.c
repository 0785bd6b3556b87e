// Where applications find models. See apps.h.
#include "serve/select/apps.h"

rn_status_t rn_apps_find_model(void* models, const rn_model_spec_t* spec, rn_version_t** out) {
  return rn_models_find(models, spec, out);
}
