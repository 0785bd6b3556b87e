// Tables of costs (place/auto/costs.h): what is found, what is fitted, and files that are damaged.
#include "place/auto/costs.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "../support/status.h"

static rn_cost_key_t key(const char* node, const char* op, const char* signature, double flops) {
  return (rn_cost_key_t){.node = rn_str(node),
                         .device = "CPU",
                         .op = rn_str(op),
                         .signature = rn_str(signature),
                         .work = {.flops = flops, .bytes = flops / 10}};
}

static rn_costs_t* make(void) {
  rn_costs_t* costs = NULL;
  OK(rn_costs_create(rn_allocator_system(), &costs));
  return costs;
}

static int64_t find(rn_costs_t* costs, rn_cost_key_t asked, rn_cost_source_t source) {
  rn_cost_source_t found;
  int64_t ns = rn_costs_find(costs, &asked, &found);
  cr_assert_eq(found, source, "%.*s: %d, not %d", RN_STR_ARGS(asked.op), found, source);
  return ns;
}

static void add_op(rn_costs_t* costs, rn_cost_key_t told, int64_t ns) {
  OK(rn_costs_add_op(costs, &told, ns));
}

Test(costs, the_closest_entry_counts) {
  rn_costs_t* costs = make();
  rn_cost_key_t told = key("layer/MatMul", "MatMul", "a->b", 1e6);
  OK(rn_costs_add_node(costs, &told, 700, 64));
  add_op(costs, told, 1000);
  add_op(costs, told, 3000);
  cr_expect_eq(find(costs, told, RN_COST_OF_NODE), 700);
  cr_expect_eq(rn_costs_bytes(costs, "CPU", RN_STR("layer/MatMul")), 64);
  cr_expect_eq(find(costs, key("other", "MatMul", "a->b", 1e6), RN_COST_OF_OP), 2000);
  find(costs, key("other", "MatMul", "c->d", 1e6), RN_COST_FITTED);
  find(costs, key("other", "Relu", "a->b", 1e6), RN_COST_GUESSED);
  // A node of the same name that is another op is another node.
  find(costs, key("layer/MatMul", "Relu", "a->b", 1e6), RN_COST_GUESSED);
  rn_cost_key_t gpu = told;
  gpu.device = "GPU";
  find(costs, gpu, RN_COST_GUESSED);
  told.node = RN_STR("layer/MatMul");
  OK(rn_costs_add_node(costs, &told, 500, 0));
  cr_expect_eq(find(costs, told, RN_COST_OF_NODE), 500);
  rn_costs_destroy(costs);
}

// Times of a machine that takes 2000 ns and then 0.03 ns per operation.
Test(costs, a_line_is_fitted) {
  rn_costs_t* costs = make();
  char signature[16];
  for (int i = 0; i < 6; ++i) {
    double flops = 1e5 * (1 << 2 * i);
    snprintf(signature, sizeof signature, "s%d", i);
    add_op(costs, key("", "MatMul", signature, flops), (int64_t)(2000 + 0.03 * flops));
  }
  for (double flops = 5e4; flops < 1e9; flops *= 7) {
    double ns = (double)find(costs, key("", "MatMul", "new", flops), RN_COST_FITTED);
    double truth = 2000 + 0.03 * flops;
    cr_expect(ns > 0.9 * truth && ns < 1.1 * truth, "%g: %g, not %g", flops, ns, truth);
  }
  // Another op is guessed to be like it, and more work takes longer.
  cr_expect_lt(find(costs, key("", "Relu", "x", 1e6), RN_COST_GUESSED),
               find(costs, key("", "Relu", "x", 1e8), RN_COST_GUESSED));
  rn_costs_destroy(costs);
}

static void fill(rn_costs_t* costs) {
  rn_cost_key_t told = key("a/b-c_1", "Conv2D", "float[1,2];float[3,?]->float?", 12345);
  OK(rn_costs_add_node(costs, &told, 17, 4096));
  add_op(costs, told, 123456789);
  add_op(costs, key("", "Relu", "float[]->float[]", 1), 0);
  OK(rn_costs_set_link(costs, RN_STR("/job:a/replica:0/task:0"), RN_STR("/job:b/replica:0/task:0"),
                       250000, 0.125));
  OK(rn_costs_set_link(costs, RN_STR(""), RN_STR(""), 9000, 0));
  rn_costs_set_step(costs, 4321);
}

static void write(const rn_costs_t* costs, rn_strbuf_t* out) {
  rn_strbuf_init(out, rn_allocator_system());
  OK(rn_costs_write(costs, out));
}

Test(costs, a_file_holds_everything) {
  rn_costs_t *costs = make(), *again = make();
  rn_strbuf_t text, second;
  fill(costs);
  write(costs, &text);
  cr_assert(rn_costs_is_file(rn_strbuf_view(&text)));
  OK(rn_costs_read(again, rn_strbuf_view(&text)));
  write(again, &second);
  cr_expect(rn_str_eq(rn_strbuf_view(&text), rn_strbuf_view(&second)), "%s\n%s", text.data,
            second.data);
  int64_t latency;
  double per_byte;
  cr_assert(rn_costs_link(again, RN_STR("/job:a/replica:0/task:0"),
                          RN_STR("/job:b/replica:0/task:0"), &latency, &per_byte));
  cr_expect(latency == 250000 && per_byte == 0.125);
  cr_expect_eq(rn_costs_step(again), 4321);
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&second);
  rn_costs_destroy(costs);
  rn_costs_destroy(again);
}

// Every prefix, and every file with one bit changed, is refused.
Test(costs, damage_is_found) {
  rn_costs_t* costs = make();
  rn_strbuf_t text;
  fill(costs);
  write(costs, &text);
  for (size_t size = 0; size < text.size; ++size) {
    rn_costs_t* again = make();
    rn_status_t status = rn_costs_read(again, rn_str_n(text.data, size));
    cr_assert(!rn_ok(status), "%zu bytes", size);
    rn_status_free(status);
    rn_costs_destroy(again);
  }
  for (size_t i = 0; i < 8 * text.size; ++i) {
    rn_costs_t* again = make();
    text.data[i / 8] ^= (char)(1 << i % 8);
    rn_status_t status = rn_costs_read(again, rn_strbuf_view(&text));
    cr_assert(!rn_ok(status), "bit %zu", i);
    rn_status_free(status);
    text.data[i / 8] ^= (char)(1 << i % 8);
    rn_costs_destroy(again);
  }
  rn_strbuf_clear(&text);
  rn_costs_destroy(costs);
}

static rn_status_t read_text(const char* text) {
  rn_costs_t* costs = make();
  rn_status_t status = rn_costs_read(costs, rn_str(text));
  rn_costs_destroy(costs);
  return status;
}

Test(costs, versions_and_numbers) {
  FAILS_WITH(read_text("runnel-costs 2\nend 1 00000000\n"), UNIMPLEMENTED, "version 2");
  FAILS_WITH(read_text("runnel-costs x\n"), DATA_LOSS, "no version");
  FAILS_WITH(read_text("something else"), DATA_LOSS, "not a file");
  FAILS_WITH(read_text("runnel-costs 1\nend 7 00000000\n"), DATA_LOSS, "checksum");
  rn_costs_t* costs = make();
  rn_cost_key_t told = key("n", "Relu", "s", 1);
  FAILS_WITH(rn_costs_add_op(costs, &told, -1), INVALID_ARGUMENT, "out of range");
  FAILS_WITH(rn_costs_set_link(costs, RN_STR("a"), RN_STR("b"), -1, 0), INVALID_ARGUMENT, "link");
  rn_costs_destroy(costs);
}
