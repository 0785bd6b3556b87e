// The fields of GetElementResponse. An element is written into a response and read from it in
// place, without a message between: it may be large.
#ifndef RUNNEL_DATA_SERVICE_ELEMENT_H_
#define RUNNEL_DATA_SERVICE_ELEMENT_H_

enum {
  RN_DS_ELEMENT_END = 2,           // of the sequence
  RN_DS_ELEMENT_COMPRESSED = 3,    // a CompressedElement
  RN_DS_ELEMENT_SKIP = 4,          // the consumer goes on to the next task
  RN_DS_ELEMENT_UNCOMPRESSED = 5,  // an UncompressedElement
  RN_DS_ELEMENT_INDEX = 6,
};

#endif  // RUNNEL_DATA_SERVICE_ELEMENT_H_
