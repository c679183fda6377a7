// FlagSet: the flags of one verb. Every value is checked here, and a refusal names the flag, what
// was expected and what was found.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace winnow {

template <class T>
struct Range {
  T min;
  T max;
};

class FlagSet {
 public:
  // `verb` as the user writes it ("eval ppl"); `summary` one sentence; `footer` examples and notes.
  FlagSet(const std::string& verb, const std::string& summary, const std::string& footer);
  ~FlagSet();
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  // `names` as in "-n,--max-tokens", a positional without dashes. Targets must outlive parse(); a
  // flag that is not given leaves its target alone. `env` names the environment variable that
  // stands in for the flag.
  void text(const std::string& names, std::string& target, const std::string& help,
            const std::string& env = "");
  void text(const std::string& names, std::optional<std::string>& target, const std::string& help);
  // May be given several times.
  void texts(const std::string& names, std::vector<std::string>& target, const std::string& help);
  void integer(const std::string& names, int64_t& target, Range<int64_t> range,
               const std::string& help, const std::string& env = "");
  // Comma-separated.
  void integers(const std::string& names, std::vector<int64_t>& target, Range<int64_t> range,
                const std::string& help);
  void seed(const std::string& names, std::optional<uint64_t>& target, const std::string& help);
  void number(const std::string& names, float& target, Range<float> range, const std::string& help);
  // Comma-separated; an empty value is an empty list.
  void numbers(const std::string& names, std::vector<float>& target, Range<float> range,
               const std::string& help);
  void choice(const std::string& names, std::string& target,
              const std::vector<std::string>& choices, const std::string& help);
  void toggle(const std::string& names, bool& target, const std::string& help);
  // The flag declared last must be given (or stand in the environment).
  void require_last();
  // The flag declared last does not appear in help().
  void hide_last();

  enum class Outcome { kParsed, kHelp };
  // Fills the targets. kHelp if the user asked for help(). kInvalidArgument names the flag.
  Result<Outcome> parse(std::span<const std::string> args);
  std::string help() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
