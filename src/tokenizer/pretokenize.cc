#include "tokenizer/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/escape.h"
#include "base/utf8.h"
#include "tokenizer/pretokenize_tables.h"

namespace winnow {
namespace {

// Unicode's White_Space. PCRE2's own \s also takes U+180E.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string with_white_space(std::string_view pattern) {
  std::string expanded;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      const char escape = pattern[++i];
      if (escape == 's') {
        expanded += in_class ? std::string(kWhiteSpace) : "[" + std::string(kWhiteSpace) + "]";
      } else if (escape == 'S') {
        expanded += "[^" + std::string(kWhiteSpace) + "]";
      } else {
        expanded += {'\\', escape};
      }
      continue;
    }
    if (pattern[i] == '[') in_class = true;
    if (pattern[i] == ']') in_class = false;
    expanded += pattern[i];
  }
  return expanded;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct PretokenizeScratch::Impl {
  std::unique_ptr<pcre2_match_data, FreeMatchData> match{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context{
      pcre2_match_context_create(nullptr)};
};

PretokenizeScratch::PretokenizeScratch() : impl_(std::make_unique<Impl>()) {
  // The patterns are linear, so a limit would only refuse long texts.
  pcre2_set_match_limit(impl_->context.get(), UINT32_MAX);
  pcre2_set_depth_limit(impl_->context.get(), UINT32_MAX);
  pcre2_set_heap_limit(impl_->context.get(), UINT32_MAX);
}
PretokenizeScratch::~PretokenizeScratch() = default;

class Pretokenizer::Pattern {
 public:
  static Result<Pattern> compile(std::string_view source) {
    const std::string expanded = with_white_space(source);
    int error = 0;
    PCRE2_SIZE offset = 0;
    Pattern pattern;
    pattern.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expanded.data()),
                                      expanded.size(), PCRE2_UTF | PCRE2_NO_UTF_CHECK, &error,
                                      &offset, nullptr));
    if (pattern.code_ == nullptr) {
      return fail(ErrorCode::kUnsupported, "pre-tokeniser pattern: PCRE2 error %d at byte %zu",
                  error, offset);
    }
    // Where there is no just-in-time compiler, matching interprets: slower, same result.
    pcre2_jit_compile(pattern.code_.get(), PCRE2_JIT_COMPLETE);
    return pattern;
  }

  struct Span {
    size_t begin, end;
  };
  // The first non-empty match at or after `from`.
  std::optional<Span> find(std::string_view text, size_t from, pcre2_match_data* match,
                           pcre2_match_context* context) const {
    constexpr uint32_t kOptions = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int rc = match_with(kOptions, text, from, match, context);
    // The just-in-time compiler's stack is small; the interpreter takes what it needs.
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
      rc = match_with(kOptions | PCRE2_NO_JIT, text, from, match, context);
    if (rc == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    CHECK(rc >= 0 || rc == PCRE2_ERROR_NOMATCH);
    if (rc < 0) return std::nullopt;
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(match);
    return Span{offsets[0], offsets[1]};
  }

 private:
  int match_with(uint32_t options, std::string_view text, size_t from, pcre2_match_data* match,
                 pcre2_match_context* context) const {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       options, match, context);
  }

  std::unique_ptr<pcre2_code, FreeCode> code_;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;

Result<Pretokenizer> Pretokenizer::create(std::string_view name) {
  std::string known;
  for (const PretokenizerEntry& entry : pretokenizer_entries()) {
    if (entry.name == name) {
      Pretokenizer pretokenizer;
      for (const std::string_view source : entry.patterns) {
        TRY(Pattern pattern, Pattern::compile(source));
        pretokenizer.patterns_.push_back(std::move(pattern));
      }
      pretokenizer.ignores_merges_ = entry.ignores_merges;
      pretokenizer.adds_bos_ = entry.adds_bos;
      return pretokenizer;
    }
    if (!known.empty()) known += ", ";
    known += entry.name;
  }
  return fail(ErrorCode::kUnsupported, "tokenizer.ggml.pre: expected one of %s; found '%s'",
              known.c_str(), escaped(name, 80).c_str());
}

void Pretokenizer::split(std::string_view text, PretokenizeScratch& scratch,
                         FunctionRef<void(std::string_view)> emit) const {
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    if (valid > 0) split_stage(0, text.substr(0, valid), scratch, emit);
    text.remove_prefix(valid);
    if (text.empty()) break;
    emit(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

void Pretokenizer::split_stage(size_t stage, std::string_view text, PretokenizeScratch& scratch,
                               FunctionRef<void(std::string_view)> emit) const {
  if (stage == patterns_.size()) {
    emit(text);
    return;
  }
  pcre2_match_data* match = scratch.impl_->match.get();
  pcre2_match_context* context = scratch.impl_->context.get();
  size_t pos = 0;
  while (pos < text.size()) {
    const auto found = patterns_[stage].find(text, pos, match, context);
    const size_t begin = found ? found->begin : text.size();
    if (begin > pos) split_stage(stage + 1, text.substr(pos, begin - pos), scratch, emit);
    if (!found) break;
    split_stage(stage + 1, text.substr(begin, found->end - begin), scratch, emit);
    pos = found->end;
  }
}

}  // namespace winnow
