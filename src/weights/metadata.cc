#include "weights/metadata.h"

#include <cinttypes>
#include <cmath>
#include <utility>

#include "base/escape.h"

namespace winnow {
namespace {

std::string name_of(std::string_view key) { return escaped(key, 80); }

Error missing(std::string_view key) {
  return fail(ErrorCode::kCorruptFile,
              "metadata key '%s': expected in the model file, found nothing", name_of(key).c_str());
}

const char* kind_of(const MetadataValue& value) {
  constexpr const char* kKinds[] = {"a bool",
                                    "an integer",
                                    "an integer above 2^63 - 1",
                                    "a number",
                                    "a string",
                                    "an array of bools",
                                    "an array of integers",
                                    "an array of numbers",
                                    "an array of strings"};
  return kKinds[value.index()];
}

Error wrong_kind(std::string_view key, const char* expected, const MetadataValue& value) {
  return fail(ErrorCode::kCorruptFile, "metadata key '%s': expected %s, found %s",
              name_of(key).c_str(), expected, kind_of(value));
}

// The value as an integer, whatever width it was stored in; a float counts if it is whole.
std::optional<int64_t> whole_number(const MetadataValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const double* number = std::get_if<double>(&value)) {
    constexpr double kExactLimit = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
    if (std::trunc(*number) == *number && std::fabs(*number) <= kExactLimit)
      return static_cast<int64_t>(*number);
  }
  return std::nullopt;
}

std::optional<double> any_number(const MetadataValue& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const uint64_t* large = std::get_if<uint64_t>(&value)) return static_cast<double>(*large);
  return std::nullopt;
}

Status check_range(std::string_view key, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return Ok{};
  return fail(ErrorCode::kCorruptFile,
              "metadata key '%s': expected %" PRId64 " to %" PRId64 ", found %" PRId64,
              name_of(key).c_str(), min, max, value);
}

}  // namespace

void Metadata::set(std::string key, MetadataValue value) {
  entries_.insert_or_assign(std::move(key), std::move(value));
}

bool Metadata::has(std::string_view key) const { return find(key) != nullptr; }

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? nullptr : &entry->second;
}

Result<int64_t> Metadata::integer(std::string_view key, int64_t min, int64_t max) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key);
  if (const uint64_t* large = std::get_if<uint64_t>(value)) {
    return fail(ErrorCode::kCorruptFile,
                "metadata key '%s': expected %" PRId64 " to %" PRId64 ", found %" PRIu64,
                name_of(key).c_str(), min, max, *large);
  }
  const std::optional<int64_t> integer = whole_number(*value);
  if (!integer) return wrong_kind(key, "an integer", *value);
  TRY_STATUS(check_range(key, *integer, min, max));
  return *integer;
}

Result<int64_t> Metadata::integer_or(std::string_view key, int64_t fallback, int64_t min,
                                     int64_t max) const {
  if (!has(key)) return fallback;
  return integer(key, min, max);
}

Result<double> Metadata::number(std::string_view key, double min, double max) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key);
  const std::optional<double> found = any_number(*value);
  if (!found) return wrong_kind(key, "a number", *value);
  if (*found >= min && *found <= max) return *found;
  return fail(ErrorCode::kCorruptFile,
              "metadata key '%s': expected a number from %g to %g, found %g", name_of(key).c_str(),
              min, max, *found);
}

Result<double> Metadata::number_or(std::string_view key, double fallback, double min,
                                   double max) const {
  if (!has(key)) return fallback;
  return number(key, min, max);
}

Result<bool> Metadata::boolean_or(std::string_view key, bool fallback) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return fallback;
  if (const bool* boolean = std::get_if<bool>(value)) return *boolean;
  if (const int64_t* integer = std::get_if<int64_t>(value);
      integer != nullptr && (*integer == 0 || *integer == 1)) {
    return *integer == 1;
  }
  return wrong_kind(key, "a bool", *value);
}

Result<std::string> Metadata::string(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key);
  if (const std::string* text = std::get_if<std::string>(value)) return *text;
  return wrong_kind(key, "a string", *value);
}

Result<std::string> Metadata::string_or(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return std::string(fallback);
  return string(key);
}

Result<std::vector<int64_t>> Metadata::integers(std::string_view key, int64_t count, int64_t min,
                                                int64_t max) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key);
  const std::vector<int64_t>* array = std::get_if<std::vector<int64_t>>(value);
  if (array == nullptr) {
    TRY(const int64_t scalar, integer(key, min, max));
    return std::vector<int64_t>(static_cast<size_t>(count), scalar);
  }
  if (array->size() != static_cast<size_t>(count)) {
    return fail(ErrorCode::kCorruptFile,
                "metadata key '%s': expected %" PRId64 " elements, found %zu", name_of(key).c_str(),
                count, array->size());
  }
  for (const int64_t element : *array) TRY_STATUS(check_range(key, element, min, max));
  return *array;
}

Result<const std::vector<std::string>*> Metadata::strings(std::string_view key) const {
  const MetadataValue* value = find(key);
  const auto* array = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  if (value != nullptr && array == nullptr) return wrong_kind(key, "an array of strings", *value);
  return array;
}

Result<const std::vector<int64_t>*> Metadata::integer_array(std::string_view key) const {
  const MetadataValue* value = find(key);
  const auto* array = value == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(value);
  if (value != nullptr && array == nullptr) return wrong_kind(key, "an array of integers", *value);
  return array;
}

Result<const std::vector<double>*> Metadata::number_array(std::string_view key) const {
  const MetadataValue* value = find(key);
  const auto* array = value == nullptr ? nullptr : std::get_if<std::vector<double>>(value);
  if (value != nullptr && array == nullptr) return wrong_kind(key, "an array of numbers", *value);
  return array;
}

}  // namespace winnow
