// The registrar: the library's kernels are the families in families.def. Nothing registers itself.
#include "framework/kernel.h"

#define X(name) extern const rn_kernel_family_t rn_kernels_##name;
#include "kernels/families.def"
#undef X

const rn_kernel_family_t* const rn_builtin_kernels[] = {
#define X(name) &rn_kernels_##name,
#include "kernels/families.def"
#undef X
    NULL,
};
