#include "kernels/linear.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "kernels/linear_kernels.h"

namespace winnow {

int64_t LinearScratch::capacity_bytes() const {
  return static_cast<int64_t>(codes_.capacity_bytes() + scales_.capacity_bytes() +
                              sums_.capacity_bytes() + half_sums_.capacity_bytes() +
                              tiles_.capacity_bytes() + panels_.capacity_bytes() +
                              gated_.capacity_bytes());
}

namespace {

// Panels that a prompt's task takes of each output, where it works on so many at once.
int64_t prompt_panels(const LinearKernels& kernels, int64_t outputs_at_once) {
  const int64_t panels = kernels.prompt_outputs / kernels.panel_outputs;
  return std::max<int64_t>(1, panels / outputs_at_once);
}

int64_t quantized_bytes(int64_t elements) {
  constexpr int64_t kNumberBytes = sizeof(float);
  return elements * static_cast<int64_t>(sizeof(int16_t)) +
         elements / kInputGroup * 2 * kNumberBytes + elements / kHalfGroup * kNumberBytes;
}

int64_t tile_numbers(int64_t num_rows, int64_t cols) {
  const int64_t row_tiles = (num_rows + kInputTileRows - 1) / kInputTileRows;
  const int64_t column_tiles = (cols + kInputTileColumns - 1) / kInputTileColumns;
  return row_tiles * column_tiles * kInputTileRows * kInputTileColumns;
}

}  // namespace

int64_t LinearScratch::bytes_for(const KernelTable& table, int64_t num_rows,
                                 int64_t num_generate_rows, int64_t cols, int num_threads) {
  const LinearKernels& kernels = *table.linear;
  const bool packs = kernels.pack_tiles != nullptr;
  const int64_t tiles =
      packs ? tile_numbers(num_rows, cols) * static_cast<int64_t>(sizeof(uint16_t)) : 0;
  const int64_t num_quantized = packs ? num_generate_rows : std::max(num_rows, num_generate_rows);
  const int64_t gated_outputs = prompt_panels(kernels, 2) * kernels.panel_outputs;
  const int64_t products = 2 * num_rows * gated_outputs * static_cast<int64_t>(sizeof(float));
  return tiles + quantized_bytes(num_quantized * cols) +
         num_threads * (kernels.scratch_bytes + products);
}

// One call of linear() or gated_linear(): sizes the scratch memory, converts the input, then cuts
// every output into tasks.
class LinearRun {
 public:
  LinearRun(const LinearKernels& kernels, Phase phase, const LinearInput& input,
            std::span<const LinearOutput> outputs, ThreadPool& pool, LinearScratch& scratch)
      : kernels_(kernels),
        phase_(phase),
        input_(input),
        outputs_(outputs),
        pool_(pool),
        scratch_(scratch) {}

  void run() {
    prepare();
    for (const LinearOutput& output : outputs_) num_tasks_ += tasks_of(output);
    pool_.run(num_tasks_, [this](int64_t task_idx, int thread_idx) {
      const TaskRows rows = rows_of(task_idx);
      const LinearOutput& output = *rows.output;
      multiply(rows, output.y + rows.first, output.y_stride, rows_after(task_idx), thread_idx);
    });
  }

  // Of two outputs of one shape, the gate first.
  void run_gated(const GatedOutput& gated, const ElementwiseKernels& elementwise) {
    prepare();
    const LinearOutput &gate = outputs_[0], &up = outputs_[1];
    outputs_at_once_ = 2;
    num_tasks_ = tasks_of(gate);
    const int64_t most_panels = (panels_of(gate) + num_tasks_ - 1) / num_tasks_;
    const int64_t width = most_panels * kernels_.panel_outputs;
    const int64_t numbers = input_.num_rows * width;
    float* products =
        scratch_.gated_.ensure(static_cast<size_t>(2 * numbers * pool_.num_threads()));
    pool_.run(num_tasks_, [&](int64_t task_idx, int thread_idx) {
      const TaskRows rows = rows_of(task_idx), same_of_up{&up, rows.first, rows.end};
      float* of_gate = products + 2 * numbers * thread_idx;
      float* of_up = of_gate + numbers;
      multiply(rows, of_gate, width, same_of_up, thread_idx);
      multiply(same_of_up, of_up, width, rows_after(task_idx), thread_idx);
      for (int64_t row = 0; row < input_.num_rows; ++row) {
        elementwise.gated_activation(gated.activation, of_gate + row * width, of_up + row * width,
                                     rows.end - rows.first,
                                     gated.y + row * gated.y_stride + rows.first);
      }
    });
  }

 private:
  // Weight bytes per generate task: long enough to stream, short enough to share out evenly.
  static constexpr int64_t kGenerateTaskBytes = 128 * 1024;
  // Input elements per task that converts them; a smaller input is not worth waking a thread.
  static constexpr int64_t kConvertTaskElements = 32 * 1024;

  int64_t panels_of(const LinearOutput& output) const {
    return (output.weight.rows + kernels_.panel_outputs - 1) / kernels_.panel_outputs;
  }

  int64_t panels_per_task(const LinearOutput& output) const {
    if (phase_ == Phase::kPrompt) return prompt_panels(kernels_, outputs_at_once_);
    const int64_t rows = kGenerateTaskBytes / std::max<int64_t>(1, output.weight.row_bytes());
    return std::max<int64_t>(1, rows / kernels_.panel_outputs);
  }

  // As many for each thread, as far as there are panels.
  int64_t tasks_of(const LinearOutput& output) const {
    const int64_t panels = panels_of(output), per_task = panels_per_task(output);
    const int64_t threads = pool_.num_threads();
    const int64_t tasks = (panels + per_task - 1) / per_task;
    return std::min(panels, (tasks + threads - 1) / threads * threads);
  }

  // Weight rows before the idx-th task.
  int64_t rows_before(const LinearOutput& output, int64_t idx) const {
    const int64_t panels = panels_of(output) * idx / tasks_of(output);
    return std::min(panels * kernels_.panel_outputs, output.weight.rows);
  }

  void prepare() {
    convert_input();
    panels_ =
        scratch_.panels_.ensure(static_cast<size_t>(kernels_.scratch_bytes * pool_.num_threads()));
  }

  void convert_input() {
    const auto any_output = [this](auto condition) {
      return std::any_of(outputs_.begin(), outputs_.end(), [&](const LinearOutput& output) {
        return condition(output.weight.dtype);
      });
    };
    const bool quantized = any_output(is_quantized);
    if (quantized) CHECK(input_.cols % kInputGroup == 0);
    if (phase_ == Phase::kPrompt && kernels_.pack_tiles != nullptr) {
      if (any_output([](DType dtype) { return dtype != DType::kF32; })) pack_input();
    } else if (quantized) {
      quantize_input();
    }
  }

  // Calls convert(row_begin, row_end) on all rows, a multiple of `unit` at a time.
  template <class Convert>
  void for_rows(int64_t unit, Convert convert) {
    const int64_t units = std::max<int64_t>(1, kConvertTaskElements / input_.cols / unit);
    const int64_t rows_per_task = units * unit;
    const int64_t num_tasks = (input_.num_rows + rows_per_task - 1) / rows_per_task;
    pool_.run(num_tasks, [&](int64_t task_idx, int) {
      const int64_t begin = task_idx * rows_per_task;
      convert(begin, std::min(begin + rows_per_task, input_.num_rows));
    });
  }

  void quantize_input() {
    const auto elements = static_cast<size_t>(input_.num_rows * input_.cols);
    quantized_ = {scratch_.codes_.ensure(elements), scratch_.scales_.ensure(elements / kInputGroup),
                  scratch_.sums_.ensure(elements / kInputGroup),
                  scratch_.half_sums_.ensure(elements / kHalfGroup)};
    for_rows(1, [this](int64_t begin, int64_t end) {
      kernels_.quantize(input_.x, input_.stride, input_.cols, begin, end, quantized_);
      if (kernels_.order_codes != nullptr) {
        kernels_.order_codes(quantized_.codes + begin * input_.cols,
                             (end - begin) * input_.cols / kInputGroup);
      }
    });
  }

  void pack_input() {
    input_tiles_ =
        scratch_.tiles_.ensure(static_cast<size_t>(tile_numbers(input_.num_rows, input_.cols)));
    for_rows(kInputTileRows, [this](int64_t begin, int64_t end) {
      kernels_.pack_tiles(input_.x, input_.stride, input_.cols, begin, end, input_tiles_);
    });
  }

  // The weight rows of a task.
  struct TaskRows {
    const LinearOutput* output;
    int64_t first, end;
  };
  TaskRows rows_of(int64_t task_idx) const {
    const LinearOutput* output = outputs_.data();
    while (task_idx >= tasks_of(*output)) {
      task_idx -= tasks_of(*output);
      ++output;
    }
    return {output, rows_before(*output, task_idx), rows_before(*output, task_idx + 1)};
  }

  // Those that the thread of this task is likely to be given next: tasks are handed out in order,
  // and about as fast to every thread.
  std::optional<TaskRows> rows_after(int64_t task_idx) const {
    const int64_t next_idx = task_idx + pool_.num_threads();
    return next_idx < num_tasks_ ? std::optional(rows_of(next_idx)) : std::nullopt;
  }

  void multiply(const TaskRows& rows, float* y, int64_t y_stride,
                const std::optional<TaskRows>& next, int thread_idx) const {
    const LinearOutput* output = rows.output;
    const LinearTask task{
        .dtype = output->weight.dtype,
        .weight = output->weight.row(rows.first),
        .row_bytes = output->weight.row_bytes(),
        .num_outputs = rows.end - rows.first,
        .bias = output->bias == nullptr ? nullptr : output->bias + rows.first,
        .num_rows = input_.num_rows,
        .cols = input_.cols,
        .x = input_.x,
        .x_stride = input_.stride,
        .quantized = quantized_,
        .input_tiles = input_tiles_,
        .y = y,
        .y_stride = y_stride,
        .next_weight = next ? next->output->weight.row(next->first) : nullptr,
        .next_row_bytes = next ? next->output->weight.row_bytes() : 0,
        .scratch = panels_ + thread_idx * kernels_.scratch_bytes,
    };
    (phase_ == Phase::kPrompt ? kernels_.prompt : kernels_.generate)(task);
  }

  const LinearKernels& kernels_;
  const Phase phase_;
  const LinearInput& input_;
  const std::span<const LinearOutput> outputs_;
  ThreadPool& pool_;
  LinearScratch& scratch_;
  QuantizedRows quantized_{};
  int64_t outputs_at_once_ = 1;  // whose results a task keeps in the cache
  int64_t num_tasks_ = 0;
  uint16_t* input_tiles_ = nullptr;
  std::byte* panels_ = nullptr;
};

void linear(const KernelTable& kernels, Phase phase, const LinearInput& input,
            std::span<const LinearOutput> outputs, ThreadPool& pool, LinearScratch& scratch) {
  for (const LinearOutput& output : outputs) CHECK(output.weight.cols == input.cols);
  if (input.num_rows == 0) return;
  LinearRun(*kernels.linear, phase, input, outputs, pool, scratch).run();
}

void gated_linear(const KernelTable& kernels, Phase phase, const LinearInput& input,
                  const GatedOutput& output, ThreadPool& pool, LinearScratch& scratch) {
  CHECK(output.gate.cols == input.cols && output.up.cols == input.cols);
  CHECK(output.gate.rows == output.up.rows);
  if (input.num_rows == 0) return;
  const LinearOutput outputs[] = {{.weight = output.gate}, {.weight = output.up}};
  LinearRun(*kernels.linear, phase, input, outputs, pool, scratch)
      .run_gated(output, *kernels.elementwise);
}

}  // namespace winnow
