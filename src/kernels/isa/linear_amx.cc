// Linear layers on AMX tiles. Prompt tokens: weights and inputs rounded to bf16, products summed in
// f32, 16 rows x 16 outputs x 32 columns per instruction. F32 weights keep the f32 products of
// AVX-512, and generated tokens its int16 ones: they wait for memory, not for products.
//
// A row's sum of an output starts from its bias and takes 32 columns at a time, from the first to
// the last; rows and outputs of a tile do not mix, so no shape shows in the result.
#include "kernels/linear_kernels.h"

// The vocabulary comes before the algorithms written over it.
// clang-format off
#include "kernels/isa/codes_x86.h"
#include "kernels/isa/tile_avx512.h"
#include "kernels/isa/amx_tiles.h"
#include "kernels/isa/weight_tiles_avx512.h"
#include "kernels/generic/linear_batch.inl.h"
#include "kernels/generic/linear_plain.inl.h"
// clang-format on

namespace winnow {
namespace {

// Two tiles of rows times two of outputs: four products for four loads.
constexpr int kSum00 = 0, kSum01 = 1, kSum10 = 2, kSum11 = 3;
constexpr int kRows0 = 4, kRows1 = 5, kOutputs0 = 6, kOutputs1 = 7;
constexpr TileConfig kFullTiles;

constexpr int kTileRowBytes = 64;
constexpr int kPanelRows = 2 * kInputTileRows;
// As many columns of 32 outputs as fit into the first-level cache beside the input's tiles.
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kStepNumbers = 2 * kTileNumbers;
static_assert(kTileColumns == kInputTileColumns && kPanelOutputs == 2 * kTileOutputs);

struct TilePanel {
  alignas(64) uint16_t weights[kBlockColumns / kTileColumns * kStepNumbers];  // [step][tile]
  alignas(64) float bias[kPanelOutputs];
  alignas(64) float sums[kPanelRows * kPanelOutputs];  // of tiles that reach past the results
};

// Where the sums of a pair of row tiles lie.
struct Sums {
  float* at;
  int64_t stride_bytes;

  float* tile(int row_tile, int output_tile) const {
    auto* row = reinterpret_cast<std::byte*>(at) + row_tile * kInputTileRows * stride_bytes;
    return reinterpret_cast<float*>(row) + output_tile * kTileOutputs;
  }
};

template <int kRowTiles>
void load_sums(const Sums& sums) {
  tile_load<kSum00>(sums.tile(0, 0), sums.stride_bytes);
  tile_load<kSum01>(sums.tile(0, 1), sums.stride_bytes);
  if constexpr (kRowTiles == 2) {
    tile_load<kSum10>(sums.tile(1, 0), sums.stride_bytes);
    tile_load<kSum11>(sums.tile(1, 1), sums.stride_bytes);
  }
}

template <int kRowTiles>
void store_sums(const Sums& sums) {
  tile_store<kSum00>(sums.tile(0, 0), sums.stride_bytes);
  tile_store<kSum01>(sums.tile(0, 1), sums.stride_bytes);
  if constexpr (kRowTiles == 2) {
    tile_store<kSum10>(sums.tile(1, 0), sums.stride_bytes);
    tile_store<kSum11>(sums.tile(1, 1), sums.stride_bytes);
  }
}

// Adds `steps` times 32 columns. The second row tile's inputs are row_tile_numbers behind the
// first's.
template <int kRowTiles>
void add_products(const uint16_t* inputs, int64_t row_tile_numbers, const uint16_t* weights,
                  int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    tile_load<kOutputs0>(weights, kTileRowBytes);
    tile_load<kOutputs1>(weights + kTileNumbers, kTileRowBytes);
    tile_load<kRows0>(inputs, kTileRowBytes);
    tile_dot_bf16<kSum00, kRows0, kOutputs0>();
    tile_dot_bf16<kSum01, kRows0, kOutputs1>();
    if constexpr (kRowTiles == 2) {
      tile_load<kRows1>(inputs + row_tile_numbers, kTileRowBytes);
      tile_dot_bf16<kSum10, kRows1, kOutputs0>();
      tile_dot_bf16<kSum11, kRows1, kOutputs1>();
    }
    weights += kStepNumbers;
    inputs += kTileNumbers;
  }
}

// The columns that a panel holds at a time.
struct ColumnBlock {
  int64_t first;
  int64_t count;

  int64_t steps() const { return (count + kTileColumns - 1) / kTileColumns; }
};

// Between blocks the sums live in y, as far as it has room for them.
template <int kRowTiles>
void multiply_rows(const LinearTask& task, const ColumnBlock& block, int64_t first_row,
                   TilePanel& panel) {
  const int64_t left = task.num_rows - first_row;
  const int64_t rows = left < kRowTiles * kInputTileRows ? left : kRowTiles * kInputTileRows;
  const bool whole = rows == kRowTiles * kInputTileRows && task.num_outputs == kPanelOutputs;
  float* y = task.y + first_row * task.y_stride;
  const Sums in_y{y, task.y_stride * int64_t{sizeof(float)}};
  const Sums in_panel{panel.sums, kPanelOutputs * sizeof(float)};
  const Sums& sums = whole ? in_y : in_panel;
  const auto copy_results = [&](bool to_y) {
    for (int64_t row = 0; row < rows; ++row) {
      float* in_row = y + row * task.y_stride;
      float* panel_row = panel.sums + row * kPanelOutputs;
      for (int64_t i = 0; i < task.num_outputs; ++i) {
        (to_y ? in_row : panel_row)[i] = (to_y ? panel_row : in_row)[i];
      }
    }
  };

  if (block.first == 0) {
    // A stride of zero: every row of a tile is the same 16 numbers.
    load_sums<kRowTiles>({panel.bias, 0});
  } else {
    if (!whole) copy_results(false);
    load_sums<kRowTiles>(sums);
  }
  const int64_t row_tile_numbers = (task.cols + kTileColumns - 1) / kTileColumns * kTileNumbers;
  const uint16_t* inputs = task.input_tiles + first_row / kInputTileRows * row_tile_numbers +
                           block.first / kTileColumns * kTileNumbers;
  add_products<kRowTiles>(inputs, row_tile_numbers, panel.weights, block.steps());
  store_sums<kRowTiles>(sums);
  if (!whole) copy_results(true);
}

template <class Weights>
void fill_panel(const LinearTask& task, const ColumnBlock& block, TilePanel& panel) {
  for (int tile = 0; tile < 2; ++tile) {
    const int64_t first = tile * kTileOutputs, left = task.num_outputs - first;
    const int64_t count = left < 0 ? 0 : left < kTileOutputs ? left : kTileOutputs;
    const auto* weight = reinterpret_cast<const uint8_t*>(task.weight);
    const WeightRows rows{count == 0 ? weight : weight + first * task.row_bytes, task.row_bytes,
                          static_cast<int>(count)};
    Weights::to_tiles(rows, block.first, block.count, panel.weights + tile * kTileNumbers,
                      kStepNumbers);
  }
}

template <class Weights>
void multiply_tiles(const LinearTask& task) {
  TilePanel& panel = *reinterpret_cast<TilePanel*>(task.scratch);
  for (int64_t i = 0; i < kPanelOutputs; ++i) {
    panel.bias[i] = task.bias != nullptr && i < task.num_outputs ? task.bias[i] : 0;
  }
  tile_configure(kFullTiles);
  for (int64_t first = 0; first < task.cols; first += kBlockColumns) {
    const int64_t left = task.cols - first;
    const ColumnBlock block{first, left < kBlockColumns ? left : kBlockColumns};
    fill_panel<Weights>(task, block, panel);
    int64_t row = 0;
    for (; row + kInputTileRows < task.num_rows; row += kPanelRows) {
      multiply_rows<2>(task, block, row, panel);
    }
    if (row < task.num_rows) multiply_rows<1>(task, block, row, panel);
  }
  tile_release();
}

struct MultiplyQuantized {
  const LinearTask& task;
  template <class Type>
  void run() const {
    multiply_tiles<QuantizedWeights<Type>>(task);
  }
};

void prompt(const LinearTask& task) {
  switch (task.dtype) {
    case DType::kF32:
      return prompt_plain<PlainF32>(task);
    case DType::kF16:
      return multiply_tiles<HalfWeights<F16Weights>>(task);
    case DType::kBF16:
      return multiply_tiles<HalfWeights<Bf16Weights>>(task);
    default:
      return with_type(task.dtype, MultiplyQuantized{task});
  }
}

void pack_tiles(const float* x, int64_t x_stride, int64_t cols, int64_t row_begin, int64_t row_end,
                uint16_t* tiles) {
  const int64_t num_steps = (cols + kTileColumns - 1) / kTileColumns;
  for (int64_t row = row_begin; row < row_end; ++row) {
    uint16_t* to = tiles + row / kInputTileRows * num_steps * kTileNumbers +
                   row % kInputTileRows * kTileColumns;
    for (int64_t step = 0; step < num_steps; ++step) {
      const float* from = x + row * x_stride + step * kTileColumns;
      const __mmask32 present = first_columns(cols - step * kTileColumns);
      const __m512 first = _mm512_maskz_loadu_ps(static_cast<__mmask16>(present), from);
      const __m512 second = _mm512_maskz_loadu_ps(static_cast<__mmask16>(present >> 16), from + 16);
      _mm512_store_si512(to + step * kTileNumbers, round_pairs(first, second));
    }
  }
}

// Generated tokens are those of AVX-512.
void quantize(const float* x, int64_t x_stride, int64_t cols, int64_t row_begin, int64_t row_end,
              const QuantizedRows& out) {
  linear_kernels_avx512().quantize(x, x_stride, cols, row_begin, row_end, out);
}
void generate(const LinearTask& task) { linear_kernels_avx512().generate(task); }
void order_codes(int16_t* codes, int64_t num_groups) {
  linear_kernels_avx512().order_codes(codes, num_groups);
}

constexpr LinearKernels kKernels{.quantize = quantize,
                                 .pack_tiles = pack_tiles,
                                 .prompt = prompt,
                                 .generate = generate,
                                 .order_codes = order_codes,
                                 .panel_outputs = kPanelOutputs,
                                 .scratch_bytes = sizeof(BatchPanel)};
static_assert(sizeof(BatchPanel) >= sizeof(TilePanel) && sizeof(BatchPanel) >= sizeof(PlainPanel));

}  // namespace

const LinearKernels& linear_kernels_amx() { return kKernels; }

}  // namespace winnow
