// See latencies.h.
#include "cli/latencies.h"

#include <math.h>

// Values below 128 have a bucket each; above, the highest seven bits behind the leading one and the
// power of two make the bucket.
static int bucket_of(int64_t ns) {
  if (ns < 128) return ns < 0 ? 0 : (int)ns;
  int power = 63 - __builtin_clzll((uint64_t)ns) - 7;
  int bucket = (power + 1) * 128 + (int)((ns >> power) & 127);
  return bucket < RN_LATENCY_BUCKETS ? bucket : RN_LATENCY_BUCKETS - 1;
}

// The middle of a bucket.
static int64_t value_of(int bucket) {
  if (bucket < 128) return bucket;
  int power = bucket / 128 - 1;
  return ((int64_t)(128 + bucket % 128) << power) + (((int64_t)1 << power) >> 1);
}

void rn_latencies_add(rn_latencies_t* latencies, int64_t ns) {
  latencies->counts[bucket_of(ns)]++;
  latencies->count++;
  latencies->sum += (double)ns;
  if (ns > latencies->max) latencies->max = ns;
}

int64_t rn_latencies_quantile(const rn_latencies_t* latencies, double q) {
  double rank = q * (double)latencies->count, seen = 0;
  for (int i = 0; i < RN_LATENCY_BUCKETS; ++i) {
    seen += (double)latencies->counts[i];
    if (latencies->counts[i] && seen >= rank)
      return value_of(i) < latencies->max ? value_of(i) : latencies->max;
  }
  return latencies->max;
}

// The shares 0, 0.1 ... 0.9, 0.91 ... 0.99, 0.991 ... as far as there are values.
static double share_at(int step) {
  double nines = pow(10, -(step / 9));
  return 1 - nines * (1 - 0.1 * (step % 9 + (step / 9 ? 1 : 0)));
}

static int step_count(const rn_latencies_t* latencies) {
  int decades = 1;
  for (double left = 10; left < (double)latencies->count && decades < 7; left *= 10) ++decades;
  return 9 * decades;
}

void rn_latencies_print(const rn_latencies_t* latencies, FILE* out) {
  fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
  for (int i = 0; i < step_count(latencies); ++i) {
    double q = share_at(i);
    fprintf(out, "%12.4f %14.12f %10.0f %14.2f\n",
            (double)rn_latencies_quantile(latencies, q) / 1e6, q, q * (double)latencies->count,
            1 / (1 - q));
  }
  fprintf(out, "%12.4f %14.12f %10llu\n", (double)latencies->max / 1e6, 1.0,
          (unsigned long long)latencies->count);
  fprintf(out, "#[Mean = %.4f, Max = %.4f, Total count = %llu]\n",
          rn_latencies_mean(latencies) / 1e6, (double)latencies->max / 1e6,
          (unsigned long long)latencies->count);
}

// The picture is 640 by 320 with a margin of 50.
static double x_of(const rn_latencies_t* latencies, double q) {
  double decades = (double)step_count(latencies) / 9;
  return 50 + 540 * (q < 1 ? fmin(-log10(1 - q) / decades, 1) : 1);
}

static double top_of(const rn_latencies_t* latencies) {
  double most = (double)(latencies->max ? latencies->max : 1) / 1e6,
         step = pow(10, floor(log10(most)));
  return step * ceil(most / step);
}

static double y_of(const rn_latencies_t* latencies, double ms) {
  return 270 - 220 * ms / top_of(latencies);
}

void rn_latencies_draw(const rn_latencies_t* latencies, const char* title, FILE* out) {
  static const char* const names[] = {"0",       "90 %",     "99 %",      "99.9 %",
                                      "99.99 %", "99.999 %", "99.9999 %", "99.99999 %"};
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 320\" "
          "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
          "<rect width=\"640\" height=\"320\" fill=\"white\"/>\n<text x=\"50\" y=\"24\">");
  for (const char* c = title; *c; ++c)
    fprintf(out, *c == '<' ? "&lt;" : *c == '&' ? "&amp;" : "%c", *c);
  fprintf(out, "</text>\n<g stroke=\"#ddd\">\n");
  for (int i = 0; i <= 4; ++i)
    fprintf(out, "<path d=\"M50 %g H590\"/>\n", y_of(latencies, top_of(latencies) * i / 4));
  fprintf(out, "</g>\n<g fill=\"#555\" text-anchor=\"end\">\n");
  for (int i = 0; i <= 4; ++i)
    fprintf(out, "<text x=\"44\" y=\"%g\">%.3g</text>\n",
            y_of(latencies, top_of(latencies) * i / 4) + 4, top_of(latencies) * i / 4);
  fprintf(out, "</g>\n<g fill=\"#555\" text-anchor=\"middle\">\n");
  for (int i = 0; i <= step_count(latencies) / 9; ++i)
    fprintf(out, "<text x=\"%g\" y=\"290\">%s</text>\n", x_of(latencies, 1 - pow(10, -i)),
            names[i]);
  fprintf(out,
          "<text x=\"320\" y=\"310\">percentile</text>\n<text x=\"50\" y=\"44\">ms</text>\n</g>\n"
          "<polyline fill=\"none\" stroke=\"#4a90d9\" stroke-width=\"2\" points=\"");
  for (int i = 0; i < step_count(latencies); ++i) {
    double q = share_at(i);
    fprintf(out, "%g,%g ", x_of(latencies, q),
            y_of(latencies, (double)rn_latencies_quantile(latencies, q) / 1e6));
  }
  fprintf(out, "%g,%g\"/>\n</svg>\n", x_of(latencies, 1),
          y_of(latencies, (double)latencies->max / 1e6));
}
