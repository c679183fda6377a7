#include "weights/inspect.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <utility>
#include <variant>

#include "base/escape.h"

namespace winnow {
namespace {

constexpr size_t kShownElements = 6;
constexpr size_t kShownTextBytes = 120;
constexpr size_t kShownElementBytes = 24;
constexpr size_t kShownNameBytes = 120;

// The shortest text that reads back as the same number; most numbers in model files were 32-bit
// floats.
std::string format_double(double value) {
  char text[40];
  constexpr double kMaxFloat = std::numeric_limits<float>::max();
  const bool was_float =
      std::fabs(value) <= kMaxFloat && static_cast<double>(static_cast<float>(value)) == value;
  char* const end = text + sizeof(text);
  const std::to_chars_result result = was_float
                                          ? std::to_chars(text, end, static_cast<float>(value))
                                          : std::to_chars(text, end, value);
  return std::string(text, result.ptr);
}

std::string format_item(bool value, size_t) { return value ? "true" : "false"; }
std::string format_item(int64_t value, size_t) { return std::to_string(value); }
std::string format_item(uint64_t value, size_t) { return std::to_string(value); }
std::string format_item(double value, size_t) { return format_double(value); }
std::string format_item(const std::string& value, size_t max_bytes) {
  return '"' + escaped(value, max_bytes) + '"';
}

const char* item_type(bool) { return "bool"; }
const char* item_type(int64_t) { return "integer"; }
const char* item_type(uint64_t) { return "integer"; }
const char* item_type(double) { return "number"; }
const char* item_type(const std::string&) { return "string"; }

template <class Item>
std::pair<std::string, std::string> describe(const Item& item) {
  return {item_type(item), format_item(item, kShownTextBytes)};
}

template <class Item>
std::pair<std::string, std::string> describe(const std::vector<Item>& items) {
  std::string value = "[";
  for (size_t idx = 0; idx < std::min(items.size(), kShownElements); ++idx) {
    if (idx > 0) value += ", ";
    value += format_item(items[idx], kShownElementBytes);
  }
  if (items.size() > kShownElements) value += ", ...";
  return {std::string(item_type(Item())) + "[" + std::to_string(items.size()) + "]", value + "]"};
}

int64_t num_elements_of(const TensorInfo& tensor) {
  int64_t count = 1;
  for (const int64_t dim : tensor.dims) count *= dim;
  return count;
}

void add_to_totals(FileSummary& summary, const TensorInfo& tensor) {
  const std::string type(dtype_info(tensor.dtype).name);
  auto total = std::ranges::find(summary.totals, type, &FileSummary::TypeTotal::type);
  if (total == summary.totals.end()) total = summary.totals.insert(total, {type});
  ++total->num_tensors;
  total->num_elements += num_elements_of(tensor);
  total->num_bytes += tensor.num_bytes;
  summary.num_elements += num_elements_of(tensor);
  summary.tensor_bytes += tensor.num_bytes;
}

// Rows of cells, padded so that columns begin below each other.
class Table {
 public:
  void add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (size_t idx = 0; idx < row.size(); ++idx)
      widths_[idx] = std::max(widths_[idx], row[idx].size());
    rows_.push_back(std::move(row));
  }
  std::string text() const {
    std::string out;
    for (const std::vector<std::string>& row : rows_) {
      out += ' ';
      for (size_t idx = 0; idx < row.size(); ++idx) {
        out += ' ' + row[idx];
        if (idx + 1 < row.size()) out.append(widths_[idx] - row[idx].size() + 1, ' ');
      }
      out += '\n';
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

std::string format_dims(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

std::string bits_per_element(int64_t num_bytes, int64_t num_elements) {
  if (num_elements == 0) return "";
  char text[40];
  std::snprintf(text, sizeof(text), "%.2f",
                8.0 * static_cast<double>(num_bytes) / static_cast<double>(num_elements));
  return text;
}

std::string totals_text(const FileSummary& summary) {
  Table table;
  table.add({"type", "tensors", "elements", "bytes", "bits per element"});
  const auto add = [&](const std::string& type, int64_t num_tensors, int64_t num_elements,
                       int64_t num_bytes) {
    table.add({type, std::to_string(num_tensors), std::to_string(num_elements),
               std::to_string(num_bytes), bits_per_element(num_bytes, num_elements)});
  };
  for (const FileSummary::TypeTotal& total : summary.totals) {
    add(total.type, total.num_tensors, total.num_elements, total.num_bytes);
  }
  add("all", static_cast<int64_t>(summary.tensors.size()), summary.num_elements,
      summary.tensor_bytes);
  return table.text();
}

}  // namespace

FileSummary summarize(const GgufFile& file) {
  FileSummary summary;
  summary.version = file.version();
  summary.num_parts = file.num_parts();
  summary.file_bytes = file.file_bytes();
  for (const auto& [key, value] : file.metadata().entries()) {
    auto [type, text] = std::visit([](const auto& held) { return describe(held); }, value);
    summary.keys.push_back({escaped(key, kShownNameBytes), std::move(type), std::move(text)});
  }
  for (const TensorInfo& tensor : file.tensors()) {
    summary.tensors.push_back({escaped(tensor.name, kShownNameBytes),
                               std::string(dtype_info(tensor.dtype).name), tensor.dims,
                               tensor.num_bytes});
    add_to_totals(summary, tensor);
  }
  std::ranges::stable_sort(summary.totals, std::greater<>(), &FileSummary::TypeTotal::num_bytes);
  return summary;
}

std::string to_text(const FileSummary& summary) {
  std::string out = "GGUF version " + std::to_string(summary.version) + ", " +
                    std::to_string(summary.file_bytes) + " bytes in " +
                    std::to_string(summary.num_parts) +
                    (summary.num_parts == 1 ? " file\n" : " files\n");
  out += "\nmetadata: " + std::to_string(summary.keys.size()) + " keys\n";
  Table keys;
  for (const FileSummary::Key& key : summary.keys) keys.add({key.name, key.type, key.value});
  out += keys.text();
  out += "\ntensors: " + std::to_string(summary.tensors.size()) + "\n";
  Table tensors;
  for (const FileSummary::Tensor& tensor : summary.tensors) {
    tensors.add({tensor.name, tensor.type, format_dims(tensor.dims),
                 std::to_string(tensor.num_bytes) + " bytes"});
  }
  out += tensors.text();
  out += "\ntotals\n" + totals_text(summary);
  return out;
}

}  // namespace winnow
