#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "base/escape.h"

namespace winnow {
namespace {

std::string shown(const std::string& text) {
  constexpr size_t kMaxShownBytes = 60;
  return "'" + escaped(text, kMaxShownBytes) + "'";
}

template <class T>
std::optional<T> parse_whole(const std::string& text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(const std::string& flag, const std::string& expected,
                         const std::string& found) {
  throw CLI::ValidationError(flag, "expected " + expected + ", found " + shown(found));
}

int64_t integer_in(const std::string& flag, Range<int64_t> range, const std::string& text) {
  const std::optional<int64_t> value = parse_whole<int64_t>(text);
  if (!value || *value < range.min || *value > range.max) {
    refuse(flag,
           "a whole number from " + std::to_string(range.min) + " to " + std::to_string(range.max),
           text);
  }
  return *value;
}

float number_in(const std::string& flag, Range<float> range, const std::string& text) {
  float value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  const bool whole = error == std::errc() && stopped == end;
  if (!whole || !(value >= range.min && value <= range.max)) {
    char expected[64];
    std::snprintf(expected, sizeof(expected), "a number from %g to %g",
                  static_cast<double>(range.min), static_cast<double>(range.max));
    refuse(flag, expected, text);
  }
  return value;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

struct FlagSet::Impl {
  Impl(const std::string& summary, const std::string& verb) : app(summary, "winnow " + verb) {}

  // Adds an option whose every value goes to `take(flag name, value)`.
  template <class Take>
  CLI::Option* add(const std::string& names, const std::string& help, const std::string& type,
                   const std::string& env, Take take) {
    // The name in messages is the one in `names` that says most: the last.
    std::string flag = names.substr(names.rfind(',') + 1);
    if (!env.empty()) flag += " (or " + env + ")";
    last = app.add_option_function<std::string>(
        names, [flag, take](const std::string& value) { take(flag, value); }, help);
    last->type_name(type);
    if (!env.empty()) last->envname(env);
    return last;
  }

  CLI::App app;
  CLI::Option* last = nullptr;
};

FlagSet::FlagSet(const std::string& verb, const std::string& summary, const std::string& footer)
    : impl_(std::make_unique<Impl>(summary, verb)) {
  impl_->app.set_help_flag("-h,--help", "print this text");
  impl_->app.footer(footer);
  impl_->app.get_formatter()->column_width(30);
}
FlagSet::~FlagSet() = default;

void FlagSet::text(const std::string& names, std::string& target, const std::string& help,
                   const std::string& env) {
  impl_->add(names, help, "TEXT", env,
             [&target](const std::string&, const std::string& value) { target = value; });
}

void FlagSet::text(const std::string& names, std::optional<std::string>& target,
                   const std::string& help) {
  impl_->add(names, help, "TEXT", "",
             [&target](const std::string&, const std::string& value) { target = value; });
}

void FlagSet::texts(const std::string& names, std::vector<std::string>& target,
                    const std::string& help) {
  impl_
      ->add(names, help, "TEXT ...", "",
            [&target](const std::string&, const std::string& value) { target.push_back(value); })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
}

void FlagSet::integer(const std::string& names, int64_t& target, Range<int64_t> range,
                      const std::string& help, const std::string& env) {
  impl_->add(names, help, "N", env,
             [&target, range](const std::string& flag, const std::string& value) {
               target = integer_in(flag, range, value);
             });
}

void FlagSet::integers(const std::string& names, std::vector<int64_t>& target, Range<int64_t> range,
                       const std::string& help) {
  impl_->add(names, help, "N,N...", "",
             [&target, range](const std::string& flag, const std::string& value) {
               target.clear();
               for (const std::string& part : split_at_commas(value)) {
                 target.push_back(integer_in(flag, range, part));
               }
             });
}

void FlagSet::seed(const std::string& names, std::optional<uint64_t>& target,
                   const std::string& help) {
  impl_->add(names, help, "N", "", [&target](const std::string& flag, const std::string& value) {
    target = parse_whole<uint64_t>(value);
    if (!target) refuse(flag, "a whole number from 0 to 18446744073709551615", value);
  });
}

void FlagSet::number(const std::string& names, float& target, Range<float> range,
                     const std::string& help) {
  impl_->add(names, help, "X", "",
             [&target, range](const std::string& flag, const std::string& value) {
               target = number_in(flag, range, value);
             });
}

void FlagSet::numbers(const std::string& names, std::vector<float>& target, Range<float> range,
                      const std::string& help) {
  impl_->add(names, help, "X,X...", "",
             [&target, range](const std::string& flag, const std::string& value) {
               target.clear();
               if (value.empty()) return;
               for (const std::string& part : split_at_commas(value)) {
                 target.push_back(number_in(flag, range, part));
               }
             });
}

void FlagSet::choice(const std::string& names, std::string& target,
                     const std::vector<std::string>& choices, const std::string& help) {
  std::string type;
  for (const std::string& word : choices) type += (type.empty() ? "" : "|") + word;
  impl_->add(names, help, type, "",
             [&target, choices](const std::string& flag, const std::string& value) {
               if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
                 refuse(flag, "one of " + joined(choices), value);
               }
               target = value;
             });
}

void FlagSet::toggle(const std::string& names, bool& target, const std::string& help) {
  impl_->last = impl_->app.add_flag_callback(
      names, [&target] { target = true; }, help);
}

void FlagSet::require_last() { impl_->last->required(); }

void FlagSet::hide_last() { impl_->last->group(""); }

Result<FlagSet::Outcome> FlagSet::parse(std::span<const std::string> args) {
  try {
    impl_->app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
    return Outcome::kParsed;
  } catch (const CLI::CallForHelp&) {
    return Outcome::kHelp;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = impl_->app.remaining();
    return fail(ErrorCode::kInvalidArgument, "unexpected argument %s",
                shown(extras.empty() ? "" : extras.front()).c_str());
  } catch (const CLI::Error& error) {
    return fail(ErrorCode::kInvalidArgument, "%s", error.what());
  }
}

std::string FlagSet::help() const { return impl_->app.help(); }

}  // namespace winnow
