// TF_TString for clients that do not compile the inline functions in.
#include "tensor/tstring.h"

#include "capi/internal.h"
#include "tensorflow/c/tf_tstring.h"

static rn_tstring_t* own(TF_TString* str) { return (rn_tstring_t*)str; }
static const rn_tstring_t* own_const(const TF_TString* str) { return (const rn_tstring_t*)str; }

void TF_StringInit(TF_TString* t) {
  if (t) rn_tstring_init(own(t));
}

void TF_StringCopy(TF_TString* dst, const char* src, size_t size) {
  if (dst && (src || !size)) (void)rn_tstring_assign(own(dst), src, size);
}

void TF_StringAssignView(TF_TString* dst, const char* src, size_t size) {
  if (!dst) return;
  rn_tstring_clear(own(dst));
  own(dst)->view.size = (uint64_t)(src ? size : 0) << 2 | TF_TSTR_VIEW;
  own(dst)->view.data = src ? src : "";
}

const char* TF_StringGetDataPointer(const TF_TString* tstr) {
  return tstr ? rn_tstring_view(own_const(tstr)).data : "";
}

TF_TString_Type TF_StringGetType(const TF_TString* str) {
  return str ? (TF_TString_Type)(own_const(str)->small[0] & TF_TSTR_TYPE_MASK) : TF_TSTR_SMALL;
}

size_t TF_StringGetSize(const TF_TString* tstr) {
  return tstr ? rn_tstring_view(own_const(tstr)).size : 0;
}

size_t TF_StringGetCapacity(const TF_TString* str) { return str ? TF_TString_GetCapacity(str) : 0; }

void TF_StringDealloc(TF_TString* tstr) {
  if (tstr) rn_tstring_clear(own(tstr));
}
