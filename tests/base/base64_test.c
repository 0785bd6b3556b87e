#include "base/base64.h"

#include <criterion/criterion.h>

// The vectors of RFC 4648, section 10.
static const struct {
  const char *bytes, *text, *plain;
} vectors[] = {
    {"", "", ""},
    {"f", "Zg==", "Zg"},
    {"fo", "Zm8=", "Zm8"},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg==", "Zm9vYg"},
    {"fooba", "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/", "+/+/"},
};

Test(base64, encodes) {
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; ++i) {
    char out[16] = {0};
    rn_str_t bytes = rn_str(vectors[i].bytes);
    rn_base64_encode(bytes, RN_BASE64_STANDARD, true, out);
    cr_assert_str_eq(out, vectors[i].text);
    cr_assert_eq(rn_base64_encoded_size(bytes.size, true), strlen(out));
    memset(out, 0, sizeof out);
    rn_base64_encode(bytes, RN_BASE64_STANDARD, false, out);
    cr_assert_str_eq(out, vectors[i].plain);
    cr_assert_eq(rn_base64_encoded_size(bytes.size, false), strlen(out));
  }
}

Test(base64, decodes) {
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; ++i) {
    char out[16];
    size_t size;
    rn_str_t text = rn_str(vectors[i].plain);
    cr_assert(rn_base64_decode(text, RN_BASE64_STANDARD, out, &size));
    cr_assert_eq(size, rn_base64_decoded_size(text.size));
    cr_assert(rn_str_eq(rn_str_n(out, size), rn_str(vectors[i].bytes)));
  }
}

Test(base64, flags_say_what_is_allowed) {
  char out[16];
  size_t size;
  cr_assert_not(rn_base64_decode(RN_STR("+/+/"), RN_BASE64_URL, out, &size));
  cr_assert_not(rn_base64_decode(RN_STR("-_-_"), RN_BASE64_STANDARD, out, &size));
  cr_assert(rn_base64_decode(RN_STR("+/-_"), RN_BASE64_STANDARD | RN_BASE64_URL, out, &size));
  cr_assert_not(rn_base64_decode(RN_STR("Zm 9v"), RN_BASE64_STANDARD, out, &size));
  cr_assert(rn_base64_decode(RN_STR(" Zm\n9v"), RN_BASE64_STANDARD | RN_BASE64_SPACES, out, &size));
  cr_assert_eq(size, 3);
  cr_assert_not(rn_base64_decode(RN_STR("Zg=="), RN_BASE64_STANDARD, out, &size));  // no padding
  cr_assert_not(rn_base64_decode(RN_STR("Zm9vY"), RN_BASE64_STANDARD, out, &size));
}
