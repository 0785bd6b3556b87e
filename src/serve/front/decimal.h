// Decimal text to floating point and back, correctly rounded to the nearest, ties to even.
//
// The method: multiply the digits by the leading 64 bits of a power of ten, keep a bound on what
// was cut off, and round if the bound leaves no doubt; else by 128 bits. The rare rest goes to the
// C library, in the C locale, which the command does not change.
#ifndef RUNNEL_SERVE_FRONT_DECIMAL_H_
#define RUNNEL_SERVE_FRONT_DECIMAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A number as JSON writes it: digits * 10^exponent, negated if |is_negative|.
typedef struct rn_decimal_t {
  uint64_t digits;
  int32_t exponent;
  bool is_negative;
  bool is_integer;          // neither a point nor an exponent
  bool is_cut;              // there are more digits than |digits| holds
  const char *begin, *end;  // its text
} rn_decimal_t;

typedef enum rn_decimal_error_t {
  RN_DECIMAL_OK,
  RN_DECIMAL_BAD,          // no number
  RN_DECIMAL_NO_FRACTION,  // no digit behind the point
  RN_DECIMAL_NO_EXPONENT,  // no digit behind the 'e'
} rn_decimal_error_t;

// Reads the number at |text|, which ends before |end|, by JSON's grammar; |out->end| is behind it,
// or where the error is.
rn_decimal_error_t rn_decimal_scan(const char* text, const char* end, rn_decimal_t* out);

// The nearest value; infinity beyond the range.
double rn_decimal_to_double(const rn_decimal_t* decimal);
float rn_decimal_to_float(const rn_decimal_t* decimal);
// The value of an integer; false if it is out of range, or no integer.
bool rn_decimal_to_int(const rn_decimal_t* decimal, int64_t* out);
bool rn_decimal_to_uint(const rn_decimal_t* decimal, uint64_t* out);

// Writes |value| as json.h's rn_json_put_float says; returns the end. |out| has room for
// RN_DECIMAL_ROOM bytes, of which some behind the end may change.
#define RN_DECIMAL_ROOM 32
char* rn_decimal_put_float(char* out, float value);
char* rn_decimal_put_double(char* out, double value);
char* rn_decimal_put_int(char* out, int64_t value);
char* rn_decimal_put_uint(char* out, uint64_t value);

#endif  // RUNNEL_SERVE_FRONT_DECIMAL_H_
