// Decodes JPEG XL with libjxl: see image.h.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>

#include <jxl/decode.h>

#include "io/image.h"

#define LIBRARY "libjxl.so.0.7"

#define FUNCTIONS(X)    \
  X(Create)             \
  X(Destroy)            \
  X(SubscribeEvents)    \
  X(SetInput)           \
  X(CloseInput)         \
  X(ProcessInput)       \
  X(GetBasicInfo)       \
  X(ImageOutBufferSize) \
  X(SetImageOutBuffer)

// Filled in once, then read-only; process-wide, like the library that it points into.
static struct {
  pthread_once_t once;
#define FIELD(name) __typeof__(&JxlDecoder##name) name;
  FUNCTIONS(FIELD)
#undef FIELD
  const char* missing;  // NULL if everything was found
} jxl = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) jxl.missing = LIBRARY;
#define LOAD(name)                                                      \
  if (library) *(void**)&jxl.name = dlsym(library, "JxlDecoder" #name); \
  if (!jxl.name && !jxl.missing) jxl.missing = "JxlDecoder" #name;
  FUNCTIONS(LOAD)
#undef LOAD
}

static rn_status_t need_library(void) {
  pthread_once(&jxl.once, load);
  if (!jxl.missing) return RN_OK;
  return rn_unimplemented(
      "libjxl is needed and could not be loaded: %s is missing (Debian: libjxl0.7)", jxl.missing);
}

// Allocates the pixels when the size is known.
static rn_status_t begin(JxlDecoder* decoder, int channels, const rn_image_sink_t* sink) {
  JxlBasicInfo info;
  void* pixels = NULL;
  size_t size = 0;
  if (jxl.GetBasicInfo(decoder, &info) != JXL_DEC_SUCCESS)
    return rn_invalid_argument("Failed to read the size of a JPEG XL image");
  const uint32_t own = info.num_color_channels + (info.alpha_bits > 0);
  const int64_t height = info.ysize, width = info.xsize;
  if (channels != 0 && (uint32_t)channels != own)
    return rn_invalid_argument("Number of channels requested does not match input");
  if (height <= 0 || width <= 0 || height >= RN_IMAGE_MAX_PIXELS / width)
    return rn_invalid_argument("Bad size of a JPEG XL image: %" PRId64 " x %" PRId64, height,
                               width);
  RN_RETURN_IF_ERROR(sink->allocate(sink->arg, 1, height, width, own, &pixels));
  const JxlPixelFormat format = {own, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  const size_t have = (size_t)(height * width) * own;
  if (jxl.ImageOutBufferSize(decoder, &format, &size) != JXL_DEC_SUCCESS || size != have ||
      jxl.SetImageOutBuffer(decoder, &format, pixels, have) != JXL_DEC_SUCCESS)
    return rn_invalid_argument("Failed to decode JPEG XL image");
  return RN_OK;
}

static rn_status_t decode(JxlDecoder* decoder, rn_str_t bytes, int channels,
                          const rn_image_sink_t* sink) {
  bool has_begun = false;
  if (jxl.SubscribeEvents(decoder, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE) != JXL_DEC_SUCCESS ||
      jxl.SetInput(decoder, (const uint8_t*)bytes.data, bytes.size) != JXL_DEC_SUCCESS)
    return rn_invalid_argument("Failed to decode JPEG XL image");
  jxl.CloseInput(decoder);
  for (;;) {
    JxlDecoderStatus event = jxl.ProcessInput(decoder);
    if (event == JXL_DEC_BASIC_INFO && !has_begun) {
      RN_RETURN_IF_ERROR(begin(decoder, channels, sink));
      has_begun = true;
    } else {
      return event == JXL_DEC_FULL_IMAGE ? RN_OK
                                         : rn_invalid_argument("Failed to decode JPEG XL image");
    }
  }
}

rn_status_t rn_jxl_decode(rn_str_t bytes, int channels, const rn_image_sink_t* sink) {
  RN_RETURN_IF_ERROR(need_library());
  JxlDecoder* decoder = jxl.Create(NULL);
  if (!decoder) return rn_out_of_memory();
  rn_status_t status = decode(decoder, bytes, channels, sink);
  jxl.Destroy(decoder);
  return status;
}
