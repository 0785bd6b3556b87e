// Metrics (TFE_Monitoring*): not implemented yet. Cells are NULL, so that updates do nothing.

#include "capi/unimplemented.h"
#include "tensorflow/c/eager/c_api_experimental.h"

void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell* cell, int64_t value) {}
int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell* cell) { return 0; }
TFE_MonitoringCounter0* TFE_MonitoringNewCounter0(const char* name, TF_Status* status,
                                                  const char* description) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_MonitoringDeleteCounter0(TFE_MonitoringCounter0* counter) {}
TFE_MonitoringCounterCell* TFE_MonitoringGetCellCounter0(TFE_MonitoringCounter0* counter) {
  return NULL;
}
TFE_MonitoringCounter1* TFE_MonitoringNewCounter1(const char* name, TF_Status* status,
                                                  const char* description, const char* label1) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_MonitoringDeleteCounter1(TFE_MonitoringCounter1* counter) {}
TFE_MonitoringCounterCell* TFE_MonitoringGetCellCounter1(TFE_MonitoringCounter1* counter,
                                                         const char* label1) {
  return NULL;
}
TFE_MonitoringCounter2* TFE_MonitoringNewCounter2(const char* name, TF_Status* status,
                                                  const char* description, const char* label1,
                                                  const char* label2) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_MonitoringDeleteCounter2(TFE_MonitoringCounter2* counter) {}
TFE_MonitoringCounterCell* TFE_MonitoringGetCellCounter2(TFE_MonitoringCounter2* counter,
                                                         const char* label1, const char* label2) {
  return NULL;
}
void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell* cell, int64_t value) {}
int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell* cell) { return 0; }
TFE_MonitoringIntGauge0* TFE_MonitoringNewIntGauge0(const char* name, TF_Status* out_status,
                                                    const char* description) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteIntGauge0(TFE_MonitoringIntGauge0* gauge) {}
TFE_MonitoringIntGaugeCell* TFE_MonitoringGetCellIntGauge0(TFE_MonitoringIntGauge0* gauge) {
  return NULL;
}
TFE_MonitoringIntGauge1* TFE_MonitoringNewIntGauge1(const char* name, TF_Status* out_status,
                                                    const char* description, const char* label1) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteIntGauge1(TFE_MonitoringIntGauge1* gauge) {}
TFE_MonitoringIntGaugeCell* TFE_MonitoringGetCellIntGauge1(TFE_MonitoringIntGauge1* gauge,
                                                           const char* label1) {
  return NULL;
}
TFE_MonitoringIntGauge2* TFE_MonitoringNewIntGauge2(const char* name, TF_Status* out_status,
                                                    const char* description, const char* label1,
                                                    const char* label2) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteIntGauge2(TFE_MonitoringIntGauge2* gauge) {}
TFE_MonitoringIntGaugeCell* TFE_MonitoringGetCellIntGauge2(TFE_MonitoringIntGauge2* gauge,
                                                           const char* label1, const char* label2) {
  return NULL;
}
void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell* cell, const char* value) {}
void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell* cell, TF_Buffer* buf) {}
TFE_MonitoringStringGauge0* TFE_MonitoringNewStringGauge0(const char* name, TF_Status* out_status,
                                                          const char* description) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteStringGauge0(TFE_MonitoringStringGauge0* gauge) {}
TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge0(
    TFE_MonitoringStringGauge0* gauge) {
  return NULL;
}
TFE_MonitoringStringGauge1* TFE_MonitoringNewStringGauge1(const char* name, TF_Status* out_status,
                                                          const char* description,
                                                          const char* label1) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteStringGauge1(TFE_MonitoringStringGauge1* gauge) {}
TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge1(TFE_MonitoringStringGauge1* gauge,
                                                                 const char* label1) {
  return NULL;
}
TFE_MonitoringStringGauge2* TFE_MonitoringNewStringGauge2(const char* name, TF_Status* out_status,
                                                          const char* description,
                                                          const char* label1, const char* label2) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteStringGauge2(TFE_MonitoringStringGauge2* gauge) {}
TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge2(TFE_MonitoringStringGauge2* gauge,
                                                                 const char* label1,
                                                                 const char* label2) {
  return NULL;
}
TFE_MonitoringStringGauge3* TFE_MonitoringNewStringGauge3(const char* name, TF_Status* out_status,
                                                          const char* description,
                                                          const char* label1, const char* label2,
                                                          const char* label3) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteStringGauge3(TFE_MonitoringStringGauge3* gauge) {}
TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge3(TFE_MonitoringStringGauge3* gauge,
                                                                 const char* label1,
                                                                 const char* label2,
                                                                 const char* label3) {
  return NULL;
}
TFE_MonitoringStringGauge4* TFE_MonitoringNewStringGauge4(const char* name, TF_Status* out_status,
                                                          const char* description,
                                                          const char* label1, const char* label2,
                                                          const char* label3, const char* label4) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteStringGauge4(TFE_MonitoringStringGauge4* gauge) {}
TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge4(TFE_MonitoringStringGauge4* gauge,
                                                                 const char* label1,
                                                                 const char* label2,
                                                                 const char* label3,
                                                                 const char* label4) {
  return NULL;
}
void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell* cell, bool value) {}
bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell* cell) { return false; }
TFE_MonitoringBoolGauge0* TFE_MonitoringNewBoolGauge0(const char* name, TF_Status* out_status,
                                                      const char* description) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteBoolGauge0(TFE_MonitoringBoolGauge0* gauge) {}
TFE_MonitoringBoolGaugeCell* TFE_MonitoringGetCellBoolGauge0(TFE_MonitoringBoolGauge0* gauge) {
  return NULL;
}
TFE_MonitoringBoolGauge1* TFE_MonitoringNewBoolGauge1(const char* name, TF_Status* out_status,
                                                      const char* description, const char* label1) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteBoolGauge1(TFE_MonitoringBoolGauge1* gauge) {}
TFE_MonitoringBoolGaugeCell* TFE_MonitoringGetCellBoolGauge1(TFE_MonitoringBoolGauge1* gauge,
                                                             const char* label1) {
  return NULL;
}
TFE_MonitoringBoolGauge2* TFE_MonitoringNewBoolGauge2(const char* name, TF_Status* out_status,
                                                      const char* description, const char* label1,
                                                      const char* label2) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteBoolGauge2(TFE_MonitoringBoolGauge2* gauge) {}
TFE_MonitoringBoolGaugeCell* TFE_MonitoringGetCellBoolGauge2(TFE_MonitoringBoolGauge2* gauge,
                                                             const char* label1,
                                                             const char* label2) {
  return NULL;
}
void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell* cell, double value) {}
void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell* cell, TF_Buffer* buf) {}
TFE_MonitoringBuckets* TFE_MonitoringNewExponentialBuckets(double scale, double growth_factor,
                                                           int bucket_count) {
  return NULL;
}
void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets* buckets) {}
TFE_MonitoringSampler0* TFE_MonitoringNewSampler0(const char* name, TFE_MonitoringBuckets* buckets,
                                                  TF_Status* out_status, const char* description) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteSampler0(TFE_MonitoringSampler0* sampler) {}
TFE_MonitoringSamplerCell* TFE_MonitoringGetCellSampler0(TFE_MonitoringSampler0* sampler) {
  return NULL;
}
TFE_MonitoringSampler1* TFE_MonitoringNewSampler1(const char* name, TFE_MonitoringBuckets* buckets,
                                                  TF_Status* out_status, const char* description,
                                                  const char* label1) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteSampler1(TFE_MonitoringSampler1* sampler) {}
TFE_MonitoringSamplerCell* TFE_MonitoringGetCellSampler1(TFE_MonitoringSampler1* sampler,
                                                         const char* label1) {
  return NULL;
}
TFE_MonitoringSampler2* TFE_MonitoringNewSampler2(const char* name, TFE_MonitoringBuckets* buckets,
                                                  TF_Status* out_status, const char* description,
                                                  const char* label1, const char* label2) {
  RN_NOT_YET(out_status);
  return NULL;
}
void TFE_MonitoringDeleteSampler2(TFE_MonitoringSampler2* sampler) {}
TFE_MonitoringSamplerCell* TFE_MonitoringGetCellSampler2(TFE_MonitoringSampler2* sampler,
                                                         const char* label1, const char* label2) {
  return NULL;
}
