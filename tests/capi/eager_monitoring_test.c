// Metrics: counters, gauges and samplers, by labels.
#include <pthread.h>

#include "eager_util.h"

CT_TEST(Monitoring, counters) {
  TF_Status* status = TF_NewStatus();
  TFE_MonitoringCounter0* plain = TFE_MonitoringNewCounter0("/tests/counter0", status, "none");
  CT_OK(status);
  TFE_MonitoringCounterCell* cell = TFE_MonitoringGetCellCounter0(plain);
  CT_INT(TFE_MonitoringCounterCellValue(cell), 0);
  TFE_MonitoringCounterCellIncrementBy(cell, 3);
  TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringGetCellCounter0(plain), 4);
  CT_INT(TFE_MonitoringCounterCellValue(cell), 7);
  TFE_MonitoringDeleteCounter0(plain);

  TFE_MonitoringCounter2* two =
      TFE_MonitoringNewCounter2("/tests/counter2", status, "two labels", "a", "b");
  CT_OK(status);
  TFE_MonitoringCounterCell* xy = TFE_MonitoringGetCellCounter2(two, "x", "y");
  TFE_MonitoringCounterCell* yx = TFE_MonitoringGetCellCounter2(two, "y", "x");
  cr_assert(xy != yx);
  cr_assert(xy == TFE_MonitoringGetCellCounter2(two, "x", "y"));
  TFE_MonitoringCounterCellIncrementBy(xy, 1);
  CT_INT(TFE_MonitoringCounterCellValue(xy), 1);
  CT_INT(TFE_MonitoringCounterCellValue(yx), 0);
  TFE_MonitoringDeleteCounter2(two);
  TF_DeleteStatus(status);
}

static void* count_up(void* counter) {
  for (int i = 0; i < 1000; ++i)
    TFE_MonitoringCounterCellIncrementBy(
        TFE_MonitoringGetCellCounter1(counter, i % 2 ? "odd" : "even"), 1);
  return NULL;
}

CT_TEST(Monitoring, counters_of_several_threads) {
  TF_Status* status = TF_NewStatus();
  TFE_MonitoringCounter1* counter =
      TFE_MonitoringNewCounter1("/tests/threads", status, "one label", "kind");
  CT_OK(status);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) cr_assert_eq(pthread_create(&threads[i], NULL, count_up, counter), 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CT_INT(TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter1(counter, "odd")), 2000);
  CT_INT(TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter1(counter, "even")), 2000);
  TFE_MonitoringDeleteCounter1(counter);
  TF_DeleteStatus(status);
}

CT_TEST(Monitoring, gauges) {
  TF_Status* status = TF_NewStatus();
  TFE_MonitoringIntGauge1* ints = TFE_MonitoringNewIntGauge1("/tests/ints", status, "", "l");
  CT_OK(status);
  TFE_MonitoringIntGaugeCell* cell = TFE_MonitoringGetCellIntGauge1(ints, "x");
  CT_INT(TFE_MonitoringIntGaugeCellValue(cell), 0);
  TFE_MonitoringIntGaugeCellSet(cell, -5);
  CT_INT(TFE_MonitoringIntGaugeCellValue(cell), -5);
  TFE_MonitoringDeleteIntGauge1(ints);

  TFE_MonitoringBoolGauge0* bools = TFE_MonitoringNewBoolGauge0("/tests/bools", status, "");
  CT_OK(status);
  TFE_MonitoringBoolGaugeCell* flag = TFE_MonitoringGetCellBoolGauge0(bools);
  cr_assert(!TFE_MonitoringBoolGaugeCellValue(flag));
  TFE_MonitoringBoolGaugeCellSet(flag, true);
  cr_assert(TFE_MonitoringBoolGaugeCellValue(flag));
  TFE_MonitoringDeleteBoolGauge0(bools);

  TFE_MonitoringStringGauge4* texts =
      TFE_MonitoringNewStringGauge4("/tests/texts", status, "", "a", "b", "c", "d");
  CT_OK(status);
  TFE_MonitoringStringGaugeCell* text =
      TFE_MonitoringGetCellStringGauge4(texts, "1", "2", "3", "4");
  TFE_MonitoringStringGaugeCellSet(text, "first");
  TFE_MonitoringStringGaugeCellSet(text, "second");
  TF_Buffer* buffer = TF_NewBuffer();
  // What the buffer held is not looked at.
  memset(buffer, 0x5a, sizeof *buffer);
  TFE_MonitoringStringGaugeCellValue(text, buffer);
  CT_INT(buffer->length, 6);
  cr_assert(memcmp(buffer->data, "second", 6) == 0);
  TF_DeleteBuffer(buffer);
  TFE_MonitoringDeleteStringGauge4(texts);
  TF_DeleteStatus(status);
}

CT_TEST(Monitoring, samplers) {
  TF_Status* status = TF_NewStatus();
  TFE_MonitoringBuckets* buckets = TFE_MonitoringNewExponentialBuckets(1.0, 2.0, 2);
  TFE_MonitoringSampler1* sampler =
      TFE_MonitoringNewSampler1("/tests/sampler", buckets, status, "", "l");
  CT_OK(status);
  TFE_MonitoringDeleteBuckets(buckets);
  TFE_MonitoringSamplerCell* cell = TFE_MonitoringGetCellSampler1(sampler, "x");
  TFE_MonitoringSamplerCellAdd(cell, 0.5);
  TFE_MonitoringSamplerCellAdd(cell, 1.0);
  TFE_MonitoringSamplerCellAdd(cell, 7.0);
  TFE_MonitoringSamplerCellAdd(cell, 9.0);
  TF_Buffer* buffer = TF_NewBuffer();
  TFE_MonitoringSamplerCellValue(cell, buffer);
  // Five numbers with their keys, then limits and counts, three doubles each.
  static const double numbers[] = {0.5, 9.0, 4, 17.5, 0.25 + 1 + 49 + 81};
  static const double limits[] = {1.0, 2.0, 1.7976931348623157e308}, counts[] = {1, 1, 2};
  CT_INT(buffer->length, 5 * 9 + 2 * 26);
  const char* bytes = buffer->data;
  for (int i = 0; i < 5; ++i, bytes += 9) {
    CT_INT(bytes[0], (i + 1) << 3 | 1);
    cr_assert(memcmp(bytes + 1, &numbers[i], 8) == 0, "number %d", i);
  }
  cr_assert(memcmp(bytes, "\x32\x18", 2) == 0 && memcmp(bytes + 2, limits, 24) == 0);
  cr_assert(memcmp(bytes + 26, "\x3a\x18", 2) == 0 && memcmp(bytes + 28, counts, 24) == 0);
  TF_DeleteBuffer(buffer);
  TFE_MonitoringDeleteSampler1(sampler);
  TF_DeleteStatus(status);
}
