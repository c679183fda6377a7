// Linear layers: y = x * W^T + bias, with W as stored in the model file.
#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "kernels/elementwise.h"
#include "kernels/table.h"
#include "tensor/weight_view.h"

namespace winnow {

// One output of a shared input: y[m * y_stride + n] = dot(x[m], weight[n]) + bias[n].
struct LinearOutput {
  WeightView weight;
  const float* bias = nullptr;  // [weight.rows], or none
  float* y = nullptr;
  int64_t y_stride = 0;
};

// Two outputs of a shared input that a gated feed-forward layer multiplies right away:
// y[m * y_stride + n] = activation(dot(x[m], gate[n])) * dot(x[m], up[n]).
struct GatedOutput {
  WeightView gate, up;  // of one shape
  Activation activation;
  float* y = nullptr;
  int64_t y_stride = 0;
};

// [num_rows, cols] input rows, `stride` floats apart.
struct LinearInput {
  const float* x = nullptr;
  int64_t num_rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
};

// Memory that linear() uses and keeps: the input as int16 or as tiles and, for each thread, an
// unpacked panel and a task's results before they are multiplied. One per concurrent caller.
class LinearScratch {
 public:
  int64_t capacity_bytes() const;
  // What linear() and gated_linear() make of it for prompts of `num_rows` rows of up to `cols`
  // numbers, and for `num_generate_rows` rows that are generated tokens; at most that much.
  static int64_t bytes_for(const KernelTable& kernels, int64_t num_rows, int64_t num_generate_rows,
                           int64_t cols, int num_threads);

 private:
  friend class LinearRun;
  AlignedBuffer<int16_t> codes_;
  AlignedBuffer<float> scales_;
  AlignedBuffer<float> sums_;
  AlignedBuffer<float> half_sums_;
  AlignedBuffer<uint16_t> tiles_;
  AlignedBuffer<std::byte> panels_;
  AlignedBuffer<float> gated_;
};

// Runs all outputs of one input (q, k and v): the input is converted once for all of
// them. kPrompt unpacks each weight panel once for all rows and uses the matrix unit; kGenerate
// reads the weights once, as stored. The arithmetic of a row depends on `phase`, the weight's type
// and its own numbers only (law 1). Requires weight.cols == cols for every output. Allocates
// nothing once `scratch` has grown.
void linear(const KernelTable& kernels, Phase phase, const LinearInput& input,
            std::span<const LinearOutput> outputs, ThreadPool& pool, LinearScratch& scratch);

// The same for one pair, whose results never leave the cache before they are multiplied.
void gated_linear(const KernelTable& kernels, Phase phase, const LinearInput& input,
                  const GatedOutput& output, ThreadPool& pool, LinearScratch& scratch);

}  // namespace winnow
