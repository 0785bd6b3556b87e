// Decodes WebP with libwebp, and animations with libwebpdemux: see image.h.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "io/image.h"

#define LIBRARY "libwebp.so.7"
#define ANIMATIONS "libwebpdemux.so.2"

#define FUNCTIONS(X)     \
  X(GetFeaturesInternal) \
  X(DecodeRGBInto)       \
  X(DecodeRGBAInto)
#define ANIMATION_FUNCTIONS(X)      \
  X(AnimDecoderOptionsInitInternal) \
  X(AnimDecoderNewInternal)         \
  X(AnimDecoderGetInfo)             \
  X(AnimDecoderHasMoreFrames)       \
  X(AnimDecoderGetNext)             \
  X(AnimDecoderDelete)

// Filled in once, then read-only; process-wide, like the libraries that it points into.
static struct {
  pthread_once_t once;
#define FIELD(name) __typeof__(&WebP##name) name;
  FUNCTIONS(FIELD)
  ANIMATION_FUNCTIONS(FIELD)
#undef FIELD
  const char* missing;  // NULL if everything was found
} webp = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) webp.missing = LIBRARY;
#define LOAD(name)                                                 \
  if (library) *(void**)&webp.name = dlsym(library, "WebP" #name); \
  if (!webp.name && !webp.missing) webp.missing = "WebP" #name;
  FUNCTIONS(LOAD)
  library = dlopen(ANIMATIONS, RTLD_NOW | RTLD_LOCAL);
  if (!library && !webp.missing) webp.missing = ANIMATIONS;
  ANIMATION_FUNCTIONS(LOAD)
#undef LOAD
}

static rn_status_t need_library(void) {
  pthread_once(&webp.once, load);
  if (!webp.missing) return RN_OK;
  return rn_unimplemented(
      "libwebp is needed and could not be loaded: %s is missing (Debian: libwebp7, libwebpdemux2)",
      webp.missing);
}

static rn_status_t check_pixels(int64_t frames, int64_t height, int64_t width) {
  if (height > 0 && width > 0 && frames > 0 && height * width < RN_IMAGE_MAX_PIXELS / frames)
    return RN_OK;
  return rn_invalid_argument("Bad size of a WebP image: %" PRId64 " frames of %" PRId64
                             " x %" PRId64,
                             frames, height, width);
}

static rn_status_t decode_still(rn_str_t bytes, const WebPBitstreamFeatures* features,
                                const rn_image_sink_t* sink) {
  const bool has_alpha = features->has_alpha;
  const int64_t height = features->height, width = features->width, channels = has_alpha ? 4 : 3;
  void* pixels = NULL;
  RN_RETURN_IF_ERROR(check_pixels(1, height, width));
  RN_RETURN_IF_ERROR(sink->allocate(sink->arg, 1, height, width, channels, &pixels));
  const uint8_t* in = (const uint8_t*)bytes.data;
  const size_t row = (size_t)(width * channels), size = row * (size_t)height;
  uint8_t* out = has_alpha ? webp.DecodeRGBAInto(in, bytes.size, pixels, size, (int)row)
                           : webp.DecodeRGBInto(in, bytes.size, pixels, size, (int)row);
  return out ? RN_OK : rn_invalid_argument("Failed to decode WebP Image");
}

// The decoder always gives four channels.
static void copy_frame(const uint8_t* rgba, int64_t count, int64_t channels, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) memcpy(out + i * channels, rgba + i * 4, (size_t)channels);
}

static rn_status_t decode_frames(WebPAnimDecoder* decoder, bool is_still, int64_t channels,
                                 const rn_image_sink_t* sink) {
  WebPAnimInfo info;
  void* pixels = NULL;
  if (!webp.AnimDecoderGetInfo(decoder, &info))
    return rn_invalid_argument("Failed to decode WebP Animation");
  const int64_t frames = is_still && info.frame_count > 1 ? 1 : info.frame_count;
  const int64_t height = info.canvas_height, width = info.canvas_width, count = height * width;
  RN_RETURN_IF_ERROR(check_pixels(frames, height, width));
  RN_RETURN_IF_ERROR(sink->allocate(sink->arg, frames, height, width, channels, &pixels));
  for (int64_t i = 0; i < frames; ++i) {
    uint8_t* rgba = NULL;
    int time;
    if (!webp.AnimDecoderHasMoreFrames(decoder) || !webp.AnimDecoderGetNext(decoder, &rgba, &time))
      return rn_invalid_argument("WebP frame %" PRId64 " is broken", i);
    copy_frame(rgba, count, channels, (uint8_t*)pixels + i * count * channels);
  }
  return RN_OK;
}

static rn_status_t decode_animation(rn_str_t bytes, bool is_still, int64_t channels,
                                    const rn_image_sink_t* sink) {
  WebPAnimDecoderOptions options;
  const WebPData data = {(const uint8_t*)bytes.data, bytes.size};
  if (!webp.AnimDecoderOptionsInitInternal(&options, WEBP_DEMUX_ABI_VERSION))
    return rn_unimplemented("libwebpdemux has another version");
  options.use_threads = 0;
  WebPAnimDecoder* decoder = webp.AnimDecoderNewInternal(&data, &options, WEBP_DEMUX_ABI_VERSION);
  if (!decoder) return rn_invalid_argument("Failed to decode WebP Animation");
  rn_status_t status = decode_frames(decoder, is_still, channels, sink);
  webp.AnimDecoderDelete(decoder);
  return status;
}

rn_status_t rn_webp_decode(rn_str_t bytes, int channels, bool is_still,
                           const rn_image_sink_t* sink) {
  WebPBitstreamFeatures features;
  RN_RETURN_IF_ERROR(need_library());
  if (channels != 0 && channels != 3 && channels != 4)
    return rn_invalid_argument("WebP only supports 3 or 4 channels");
  if (webp.GetFeaturesInternal((const uint8_t*)bytes.data, bytes.size, &features,
                               WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK)
    return rn_invalid_argument("Failed to get WebP image information");
  const int own = features.has_alpha ? 4 : 3;
  if (channels != 0 && channels != own)
    return rn_invalid_argument("Number of channels requested does not match input");
  if (!features.has_animation) return decode_still(bytes, &features, sink);
  if (channels == 3) return rn_invalid_argument("WebP Animation must be 4 channel RGBA");
  return decode_animation(bytes, is_still, own, sink);
}
