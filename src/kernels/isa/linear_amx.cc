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

constexpr int kTileRowBytes = 64;
constexpr int kPairRows = 2 * kInputTileRows;
static_assert(kTileColumns == kInputTileColumns && kPanelOutputs == 2 * kTileOutputs);
// A block's weights and inputs, and the sums of all of a task's panels, share the second-level
// cache (128, 512 and 512 KiB of 2 MiB). What lies beyond it comes at a quarter of its rate: the
// inputs, once for the whole task.
constexpr int kTaskPanels = 8;
constexpr int kBlockPanels = 4;
// As many columns of two row tiles as fit into the first-level cache (32 KiB of 48) while the
// weights pass by from the second.
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kBlockSteps = kBlockColumns / kTileColumns;
constexpr int64_t kBlockRows = 512;
constexpr int64_t kStepNumbers = 2 * kTileNumbers;

// Sums of two row tiles and a panel, [row tile][output tile].
struct PairSums {
  static constexpr int64_t kTile = kInputTileRows * kTileOutputs;
  alignas(64) float numbers[4 * kTile];
};

struct TileScratch {
  alignas(64) uint16_t weights[kBlockPanels][kBlockSteps * kStepNumbers];  // [panel][step][tile]
  alignas(64) float bias[kTaskPanels * kPanelOutputs];
  PairSums sums[kBlockRows / kPairRows][kTaskPanels];  // between blocks of columns
};

// What is multiplied between two unpackings of weights.
struct Block {
  int64_t first_row, num_rows;
  int64_t first_col, num_cols;
  int64_t first_panel, num_panels;

  int64_t steps() const { return (num_cols + kTileColumns - 1) / kTileColumns; }
};

// Runs of memory, `stride` bytes apart, that will be read next: lines are asked for a few at a time
// between products, which leave the memory idle.
class RunsAhead {
 public:
  RunsAhead() = default;
  // All of them are asked for by `calls` calls of ask().
  RunsAhead(const std::byte* first, int64_t stride, int64_t num_runs, int64_t run_bytes,
            int64_t calls)
      : run_(reinterpret_cast<const char*>(first)),
        stride_(stride),
        runs_left_(num_runs),
        run_bytes_(run_bytes),
        lines_at_a_time_(1 + num_runs * run_bytes / (kLineBytes * calls)) {}

  void ask() {
    for (int64_t line = 0; line < lines_at_a_time_ && runs_left_ > 0; ++line) {
      _mm_prefetch(run_ + offset_, _MM_HINT_T1);
      offset_ += kLineBytes;
      if (offset_ < run_bytes_) continue;
      offset_ = 0;
      run_ += stride_;
      --runs_left_;
    }
  }

 private:
  static constexpr int64_t kLineBytes = 64;

  const char* run_ = nullptr;
  int64_t stride_ = 0;
  int64_t runs_left_ = 0;
  int64_t run_bytes_ = 0;
  int64_t lines_at_a_time_ = 0;
  int64_t offset_ = 0;
};

// Where four tiles of sums lie.
struct SumTiles {
  float* first;
  int64_t row_tile, output_tile;  // from one to the next
  int64_t stride_bytes;           // of a tile's rows

  float* tile(int row, int output) const { return first + row * row_tile + output * output_tile; }
};

template <int kRowTiles>
void load_sums(const SumTiles& sums) {
  tile_load<kSum00>(sums.tile(0, 0), sums.stride_bytes);
  tile_load<kSum01>(sums.tile(0, 1), sums.stride_bytes);
  if constexpr (kRowTiles == 2) {
    tile_load<kSum10>(sums.tile(1, 0), sums.stride_bytes);
    tile_load<kSum11>(sums.tile(1, 1), sums.stride_bytes);
  }
}

template <int kRowTiles>
void store_sums(const SumTiles& sums) {
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
                  int64_t steps, RunsAhead& ahead) {
  for (int64_t step = 0; step < steps; ++step) {
    tile_load_once<kOutputs0>(weights, kTileRowBytes);
    tile_load_once<kOutputs1>(weights + kTileNumbers, kTileRowBytes);
    tile_load<kRows0>(inputs, kTileRowBytes);
    tile_dot_bf16<kSum00, kRows0, kOutputs0>();
    tile_dot_bf16<kSum01, kRows0, kOutputs1>();
    if constexpr (kRowTiles == 2) {
      tile_load<kRows1>(inputs + row_tile_numbers, kTileRowBytes);
      tile_dot_bf16<kSum10, kRows1, kOutputs0>();
      tile_dot_bf16<kSum11, kRows1, kOutputs1>();
    }
    ahead.ask();
    weights += kStepNumbers;
    inputs += kTileNumbers;
  }
}

template <class Weights>
class TileTask {
 public:
  explicit TileTask(const LinearTask& task)
      : task_(task), scratch_(*reinterpret_cast<TileScratch*>(task.scratch)) {}

  void run() {
    for (int64_t i = 0; i < kTaskPanels * kPanelOutputs; ++i) {
      scratch_.bias[i] = task_.bias != nullptr && i < task_.num_outputs ? task_.bias[i] : 0;
    }
    tile_configure(kFullTiles);
    for (int64_t row = 0; row < task_.num_rows; row += kBlockRows) {
      for (int64_t col = 0; col < task_.cols; col += kBlockColumns) {
        for (int64_t panel = 0; panel < num_panels(); panel += kBlockPanels) {
          multiply(block_at(row, col, panel));
        }
      }
    }
    tile_release();
  }

 private:
  static int64_t at_most(int64_t most, int64_t left) { return left < most ? left : most; }

  Block block_at(int64_t row, int64_t col, int64_t panel) const {
    return {row,   at_most(kBlockRows, task_.num_rows - row),
            col,   at_most(kBlockColumns, task_.cols - col),
            panel, at_most(kBlockPanels, num_panels() - panel)};
  }

  int64_t num_panels() const { return (task_.num_outputs + kPanelOutputs - 1) / kPanelOutputs; }

  int64_t row_tile_numbers() const {
    return (task_.cols + kTileColumns - 1) / kTileColumns * kTileNumbers;
  }
  const uint16_t* inputs_at(int64_t row, int64_t col) const {
    return task_.input_tiles + row / kInputTileRows * row_tile_numbers() +
           col / kTileColumns * kTileNumbers;
  }

  void multiply(const Block& block) {
    fill_weights(block);
    RunsAhead ahead = weights_after(block);
    int64_t row = block.first_row;
    const int64_t end = block.first_row + block.num_rows;
    for (; row + kInputTileRows < end; row += kPairRows) multiply_rows<2>(block, row, ahead);
    if (row < end) multiply_rows<1>(block, row, ahead);
  }

  // Those of the next block, or of the first one of the task that comes next.
  RunsAhead weights_after(const Block& block) const {
    const int64_t row_pairs = (block.num_rows + kPairRows - 1) / kPairRows;
    const int64_t calls = row_pairs * block.num_panels * block.steps();
    const auto of_block = [&](const std::byte* first, int64_t row_bytes, int64_t num_rows) {
      return RunsAhead(first, row_bytes, num_rows, bytes_of(kBlockColumns, row_bytes), calls);
    };
    constexpr int64_t kBlockOutputs = kBlockPanels * kPanelOutputs;
    const int64_t next_panel = block.first_panel + block.num_panels;
    const int64_t next_col = block.first_col + block.num_cols;
    if (next_panel < num_panels()) {
      const int64_t first = next_panel * kPanelOutputs;
      return of_block(weight_at(first, block.first_col), task_.row_bytes,
                      at_most(kBlockOutputs, task_.num_outputs - first));
    }
    if (next_col < task_.cols) {
      return of_block(weight_at(0, next_col), task_.row_bytes,
                      at_most(kBlockOutputs, task_.num_outputs));
    }
    if (block.first_row + block.num_rows < task_.num_rows) {
      return of_block(weight_at(0, 0), task_.row_bytes, at_most(kBlockOutputs, task_.num_outputs));
    }
    if (task_.next_weight == nullptr) return {};
    return of_block(task_.next_weight, task_.next_row_bytes,
                    at_most(kBlockOutputs, task_.num_outputs));
  }
  const std::byte* weight_at(int64_t output, int64_t col) const {
    return task_.weight + output * task_.row_bytes + bytes_of(col, task_.row_bytes);
  }
  int64_t bytes_of(int64_t columns, int64_t row_bytes) const {
    return columns < task_.cols ? columns * row_bytes / task_.cols : row_bytes;
  }

  // One or two row tiles times all outputs. Between blocks of columns the sums wait in the scratch
  // memory, where they do not share a set of the cache as rows of y may.
  template <int kRowTiles>
  void multiply_rows(const Block& block, int64_t row, RunsAhead& ahead) {
    const uint16_t* inputs = inputs_at(row, block.first_col);
    const int64_t rows_behind = block.first_row + block.num_rows - row - kRowTiles * kInputTileRows;
    const bool first = block.first_col == 0;
    const bool last = block.first_col + block.num_cols == task_.cols;
    for (int64_t i = 0; i < block.num_panels; ++i) {
      const int64_t panel = block.first_panel + i;
      float* kept = scratch_.sums[(row - block.first_row) / kPairRows][panel].numbers;
      const SumTiles in_scratch{kept, 2 * PairSums::kTile, PairSums::kTile,
                                kTileOutputs * sizeof(float)};
      // A stride of zero: every row of a tile is the same 16 numbers.
      const SumTiles bias{scratch_.bias + panel * kPanelOutputs, 0, kTileOutputs, 0};
      load_sums<kRowTiles>(first ? bias : in_scratch);
      add_products<kRowTiles>(inputs, row_tile_numbers(), scratch_.weights[i], block.steps(),
                              ahead);
      const bool whole = rows_behind >= 0 && task_.num_outputs >= (panel + 1) * kPanelOutputs;
      store_sums<kRowTiles>(last && whole ? results_at(row, panel) : in_scratch);
      if (last && !whole) copy_results(kept, row, panel);
    }
  }

  SumTiles results_at(int64_t row, int64_t panel) const {
    return {task_.y + row * task_.y_stride + panel * kPanelOutputs, kInputTileRows * task_.y_stride,
            kTileOutputs, task_.y_stride * int64_t{sizeof(float)}};
  }

  // Sums of tiles that reach past the results.
  void copy_results(const float* sums, int64_t row, int64_t panel) const {
    for (int64_t r = 0; r < kPairRows && row + r < task_.num_rows; ++r) {
      for (int64_t i = 0; i < kPanelOutputs; ++i) {
        const int64_t output = panel * kPanelOutputs + i;
        if (output >= task_.num_outputs) break;
        const int64_t tile = r / kInputTileRows * 2 + i / kTileOutputs;
        task_.y[(row + r) * task_.y_stride + output] =
            sums[tile * PairSums::kTile + r % kInputTileRows * kTileOutputs + i % kTileOutputs];
      }
    }
  }

  void fill_weights(const Block& block) {
    for (int64_t tile = 0; tile < 2 * block.num_panels; ++tile) {
      uint16_t* to = scratch_.weights[tile / 2] + tile % 2 * kTileNumbers;
      const int64_t first = block.first_panel * kPanelOutputs + tile * kTileOutputs;
      const int64_t left = task_.num_outputs - first;
      if (left <= 0) {
        for (int64_t step = 0; step < block.steps(); ++step) {
          std::memset(to + step * kStepNumbers, 0, kTileNumbers * sizeof(uint16_t));
        }
        continue;
      }
      const auto* weight = reinterpret_cast<const uint8_t*>(weight_at(first, 0));
      const WeightRows rows{weight, task_.row_bytes, static_cast<int>(at_most(kTileOutputs, left))};
      Weights::to_tiles(rows, block.first_col, block.num_cols, to, kStepNumbers);
    }
  }

  const LinearTask& task_;
  TileScratch& scratch_;
};

struct MultiplyQuantized {
  const LinearTask& task;
  template <class Type>
  void run() const {
    TileTask<QuantizedWeights<Type>>(task).run();
  }
};

// A panel after the other.
void prompt_f32(const LinearTask& task) {
  for (int64_t first = 0; first < task.num_outputs; first += kPanelOutputs) {
    const int64_t left = task.num_outputs - first;
    LinearTask panel = task;
    panel.weight += first * task.row_bytes;
    panel.num_outputs = left < kPanelOutputs ? left : kPanelOutputs;
    if (task.bias != nullptr) panel.bias += first;
    panel.y += first;
    prompt_plain<PlainF32>(panel);
  }
}

void prompt(const LinearTask& task) {
  switch (task.dtype) {
    case DType::kF32:
      return prompt_f32(task);
    case DType::kF16:
      return TileTask<HalfWeights<F16Weights>>(task).run();
    case DType::kBF16:
      return TileTask<HalfWeights<Bf16Weights>>(task).run();
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
                                 .prompt_outputs = kTaskPanels * kPanelOutputs,
                                 .scratch_bytes = sizeof(TileScratch)};
static_assert(sizeof(TileScratch) >= sizeof(BatchPanel) &&
              sizeof(TileScratch) >= sizeof(PlainPanel));

}  // namespace

const LinearKernels& linear_kernels_amx() { return kKernels; }

}  // namespace winnow
