// The files that the debugger's ops write.
#include <glob.h>
#include <stdlib.h>

#include "base/fs.h"
#include "function_util.h"

// Runs |op| on a tensor that is output 1 of "scope/x", publishing to |folder|.
static void publish(rt_t* rt, const char* op, const char* folder) {
  char url[128];
  const char* urls[] = {url};
  snprintf(url, sizeof url, "file://%s", folder);
  rn_edge_t x = rn_const_float(rt->s, 2);
  rn_op_begin(rt->s, op);
  rn_op_input(rt->s, x);
  rn_op_attr_string(rt->s, "device_name", "/job:a/device:CPU:0");
  rn_op_attr_string(rt->s, "tensor_name", "scope/x:1");
  rn_op_attr_string_list(rt->s, "debug_urls", urls, 1);
  rt_do(rt, rn_op_finish(rt->s));
}

static bool contains(rn_str_t bytes, rn_str_t part) {
  for (size_t i = 0; i + part.size <= bytes.size; ++i)
    if (memcmp(bytes.data + i, part.data, part.size) == 0) return true;
  return false;
}

// The one file of |pattern| in |folder| contains |part|.
static void expect_file(const char* folder, const char* pattern, const char* part) {
  char path[256], bytes[1024] = {0};
  glob_t found;
  snprintf(path, sizeof path, "%s/%s", folder, pattern);
  cr_assert_eq(glob(path, 0, NULL, &found), 0, "%s", path);
  cr_assert_eq(found.gl_pathc, 1);
  FILE* file = fopen(found.gl_pathv[0], "rb");
  cr_assert_not_null(file);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  cr_expect(contains(rn_str_n(bytes, size), rn_str(part)), "%s", part);
  cr_expect(contains(rn_str_n(bytes, size), RN_STR("\"outputSlot\":1")));
  globfree(&found);
}

RT_TEST(tfdbg, files) {
  char folder[] = "/tmp/runnel_tfdbg_XXXXXX";
  cr_assert_not_null(mkdtemp(folder));
  rt_t rt = rt_begin(1);
  publish(&rt, "DebugIdentity", folder);
  publish(&rt, "DebugNanCount", folder);
  expect_file(folder, "_tfdbg_device_,job_a,device_CPU_0/scope/x_1_DebugIdentity_*",
              "scope/x:1:DebugIdentity");
  expect_file(folder, "_tfdbg_device_,job_a,device_CPU_0/scope/x_1_DebugNanCount_*",
              "scope/x:1:DebugNanCount");
  rt_end(&rt);
  int64_t files, folders;
  OK(rn_fs_remove_tree(rn_env_system(), folder, &files, &folders));
}
