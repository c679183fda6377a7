// Pretokenizer: cuts a text into the words that byte-level BPE merges within, by the pattern the
// model was trained with.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace winnow {

// Working memory of one thread, for any pretokenizer.
class PretokenizeScratch {
 public:
  PretokenizeScratch();
  ~PretokenizeScratch();
  PretokenizeScratch(const PretokenizeScratch&) = delete;
  PretokenizeScratch& operator=(const PretokenizeScratch&) = delete;

 private:
  friend class Pretokenizer;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Pretokenizer {
 public:
  // `name` as in tokenizer.ggml.pre; an unknown one is kUnsupported and the message lists the known
  // ones.
  static Result<Pretokenizer> create(std::string_view name);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;

  // A word that is a token as a whole is not merged from its bytes.
  bool ignores_merges() const { return ignores_merges_; }
  // Whether the family wants BOS where the file does not say.
  bool adds_bos() const { return adds_bos_; }

  // Calls emit(word) for words that, joined, are `text`. A byte that is not part of well-formed
  // UTF-8 is a word of its own. Linear in the length of the text for every pattern in the table.
  void split(std::string_view text, PretokenizeScratch& scratch,
             FunctionRef<void(std::string_view)> emit) const;

 private:
  class Pattern;
  Pretokenizer();
  // Cuts a well-formed text by patterns_[stage] and what comes after it.
  void split_stage(size_t stage, std::string_view text, PretokenizeScratch& scratch,
                   FunctionRef<void(std::string_view)> emit) const;

  std::vector<Pattern> patterns_;  // each cuts every piece the one before left
  bool ignores_merges_ = false;
  bool adds_bos_ = false;
};

}  // namespace winnow
