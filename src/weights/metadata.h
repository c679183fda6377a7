// The key-value part of a model file, independent of the file format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace winnow {

// Arrays keep the width class of their elements: integers of any width widen to int64_t (uint64_t
// above INT64_MAX is refused), floats to double.
using MetadataValue =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>,
                 std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

class Metadata {
 public:
  void set(std::string key, MetadataValue value);
  bool has(std::string_view key) const;
  const MetadataValue* find(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& entries() const { return entries_; }

  // Numbers of any width are accepted where a number is asked for, as long as the value fits.
  // A missing key is kCorruptFile naming the key; `*_or` return the default instead, but a present
  // value of the wrong kind is an error there too.
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min,
                             int64_t max) const;
  // NaN is in no range.
  Result<double> number(std::string_view key, double min, double max) const;
  Result<double> number_or(std::string_view key, double fallback, double min, double max) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;
  // A scalar counts as an array in which every element is that scalar: returns `count` values.
  Result<std::vector<int64_t>> integers(std::string_view key, int64_t count, int64_t min,
                                        int64_t max) const;
  // The array itself (a scalar is refused); null if the key is missing.
  Result<const std::vector<std::string>*> strings(std::string_view key) const;
  Result<const std::vector<int64_t>*> integer_array(std::string_view key) const;
  Result<const std::vector<double>*> number_array(std::string_view key) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> entries_;
};

}  // namespace winnow
