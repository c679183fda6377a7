// The entries of LinearKernels, made of the generic algorithms and one level's vocabulary.
#pragma once

#include "kernels/generic/linear_generate.inl.h"
#include "kernels/generic/linear_plain.inl.h"
#include "kernels/generic/linear_prompt.inl.h"
#include "kernels/generic/linear_quantize.inl.h"

namespace winnow {
namespace {

inline void prompt_entry(const LinearTask& task) {
  switch (task.dtype) {
    case DType::kF32:
      return prompt_plain<PlainF32>(task);
    case DType::kF16:
      return prompt_plain<PlainF16>(task);
    case DType::kBF16:
      return prompt_plain<PlainBF16>(task);
    default:
      return with_type(task.dtype, PromptQuantized{task});
  }
}

inline void generate_entry(const LinearTask& task) {
  switch (task.dtype) {
    case DType::kF32:
      return generate_plain<PlainF32>(task);
    case DType::kF16:
      return generate_plain<PlainF16>(task);
    case DType::kBF16:
      return generate_plain<PlainBF16>(task);
    default:
      return with_type(task.dtype, GenerateQuantized{task});
  }
}

constexpr int64_t kScratchBytes = sizeof(PromptPanel) > sizeof(PlainPanel) ? sizeof(PromptPanel)
                                                                           : sizeof(PlainPanel);

constexpr LinearKernels kKernels{.quantize = quantize_rows,
                                 .pack_tiles = nullptr,
                                 .prompt = prompt_entry,
                                 .order_for_generate = kSplitsEvenOdd ? order_codes : nullptr,
                                 .generate = generate_entry,
                                 .prompt_outputs = kPanelOutputs,
                                 .scratch_bytes = kScratchBytes};

}  // namespace
}  // namespace winnow
