// LSTM and GRU cells: what follows the matrix products of a step, and precedes those of its
// gradient.
#include "prelude.cuh"

#include "kernels/cuda/ctc_rnn/cells_args.h"

RN_DEVICE float sigmoid(float x) { return 1 / (1 + expf(-x)); }

RN_KERNEL(lstm, rn_cuda_lstm_args) {
  const i64 cell = args.cell;
  RN_EACH(n, args.batch * cell) {
    const i64 row = n / cell, k = n - row * cell;
    const float* gates = args.gates + 4 * row * cell + k;
    const float *b = args.b + k, before = args.cs_prev[n];
    float i = gates[args.at_i * cell] + b[args.at_i * cell];
    float f = gates[args.at_f * cell] + b[args.at_f * cell] + args.forget_bias;
    float o = gates[args.at_o * cell] + b[args.at_o * cell];
    if (args.wci) i += before * args.wci[k];
    if (args.wcf) f += before * args.wcf[k];
    i = sigmoid(i);
    f = sigmoid(f);
    float ci = tanhf(gates[args.at_ci * cell] + b[args.at_ci * cell]);
    float cs = ci * i + before * f;
    if (args.clip > 0) cs = cs > args.clip ? args.clip : cs < -args.clip ? -args.clip : cs;
    if (args.wco) o += cs * args.wco[k];
    o = sigmoid(o);
    float co = tanhf(cs);
    args.i[n] = i;
    args.cs[n] = cs;
    args.f[n] = f;
    args.o[n] = o;
    args.ci[n] = ci;
    args.co[n] = co;
    args.h[n] = co * o;
  }
}

RN_KERNEL(lstm_back, rn_cuda_lstm_back_args) {
  const i64 cell = args.cell;
  RN_EACH(n, args.batch * cell) {
    const i64 row = n / cell, k = n - row * cell;
    float* gates = args.gates + 4 * row * cell + k;
    float i = args.i[n], f = args.f[n], o = args.o[n], ci = args.ci[n], co = args.co[n];
    float dh = args.h_grad[n] + (args.h_next ? args.h_next[n] : 0);
    float dcs = args.cs_grad[n] + (args.cs_next ? args.cs_next[n] : 0);
    float d_o = o * (1 - o) * dh * co;
    dcs += (1 - co * co) * dh * o;
    if (args.wco) dcs += d_o * args.wco[k];
    float df = f * (1 - f) * dcs * args.cs_prev[n], di = i * (1 - i) * dcs * ci;
    gates[args.at_i * cell] = di;
    gates[args.at_ci * cell] = (1 - ci * ci) * dcs * i;
    gates[args.at_f * cell] = df;
    gates[args.at_o * cell] = d_o;
    float before = dcs * f;
    if (args.wco) before += di * args.wci[k] + df * args.wcf[k];
    args.cs_prev_grad[n] = before;
  }
}

// Adds the gradients of the peepholes, after lstm_back. One thread per peephole goes over the
// batch.
RN_KERNEL(lstm_peepholes, rn_cuda_lstm_back_args) {
  const i64 cell = args.cell;
  RN_EACH(k, cell) {
    float wci = args.wci_grad[k], wcf = args.wcf_grad[k], wco = args.wco_grad[k];
    for (i64 row = 0; row < args.batch; ++row) {
      const float* gates = args.gates + 4 * row * cell + k;
      const i64 n = row * cell + k;
      wci += gates[args.at_i * cell] * args.cs_prev[n];
      wcf += gates[args.at_f * cell] * args.cs_prev[n];
      wco += gates[args.at_o * cell] * args.cs[n];
    }
    args.wci_grad[k] = wci;
    args.wcf_grad[k] = wcf;
    args.wco_grad[k] = wco;
  }
}

RN_KERNEL(lstm_bias, rn_cuda_lstm_sums_args) {
  RN_EACH(k, args.columns) {
    float sum = 0;
    for (i64 row = 0; row < args.rows; ++row) sum += args.from[row * args.columns + k];
    args.to[k] = sum;
  }
}

RN_KERNEL(gru_gates, rn_cuda_gru_args) {
  const i64 cell = args.cell;
  RN_EACH(n, args.batch * cell) {
    const i64 row = n / cell, k = n - row * cell;
    const float* gates = args.gates + 2 * row * cell + k;
    float r = sigmoid(gates[0] + args.b_ru[k]);
    args.r[n] = r;
    args.u[n] = sigmoid(gates[cell] + args.b_ru[cell + k]);
    args.reset[n] = args.h_prev[n] * r;
  }
}

RN_KERNEL(gru_state, rn_cuda_gru_args) {
  RN_EACH(n, args.batch * args.cell) {
    float c = tanhf(args.sums[n] + args.b_c[n % args.cell]), u = args.u[n];
    args.c[n] = c;
    args.h[n] = u * args.h_prev[n] + (1 - u) * c;
  }
}

RN_KERNEL(gru_back_state, rn_cuda_gru_back_args) {
  RN_EACH(n, args.batch * args.cell) {
    float c = args.c[n];
    args.dc[n] = args.dh[n] * (1 - args.u[n]) * (1 - c * c);
  }
}

RN_KERNEL(gru_back_gates, rn_cuda_gru_back_args) {
  const i64 cell = args.cell;
  RN_EACH(n, args.batch * cell) {
    const i64 row = n / cell, k = n - row * cell;
    float h = args.h_prev[n], r = args.r[n], u = args.u[n], reset = args.reset[n], dh = args.dh[n];
    args.dru[2 * row * cell + k] = reset * h * r * (1 - r);
    args.dru[(2 * row + 1) * cell + k] = dh * (h - args.c[n]) * u * (1 - u);
    args.dh_prev[n] = reset * r + dh * u;
  }
}
