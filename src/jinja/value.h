// Value: what a template expression evaluates to, with Python's notions of truth, equality and
// order. Containers are immutable once built and shared; their nesting is bounded, so every walk
// over them is too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/text.h"

namespace winnow::jinja {

// Wide enough for every 64-bit number that JSON may carry; arithmetic is checked.
__extension__ typedef __int128 Int;

class Value;
struct Args;
class Callable;
struct Dict;
struct List;
struct Loop;
struct Namespace;

struct None {};
// A missing thing. Harmless when printed, tested or iterated; everything else reports `reason`.
struct Undefined {
  std::shared_ptr<const std::string> reason;
  bool forbidden = false;  // existed, but templates may not touch it
};

// Deepest nesting of lists and dicts in each other, and the most that a walk over one may cost
// (parts may be shared, so a small program could otherwise build a value that takes for ever to
// print).
inline constexpr int kMaxValueDepth = 100;
inline constexpr size_t kMaxValueWeight = 20'000'000;

class Value {
 public:
  Value() = default;
  // NOLINTBEGIN(*-explicit-*): whatever a value can be, it can be made from.
  Value(None) : data_(None{}) {}
  Value(bool flag) : data_(flag) {}
  Value(Int number) : data_(number) {}
  Value(double number) : data_(number) {}
  Value(Text text) : data_(std::make_shared<const Text>(std::move(text))) {}
  Value(std::shared_ptr<const Text> text) : data_(std::move(text)) {}
  Value(std::shared_ptr<List> list) : data_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  Value(std::shared_ptr<Namespace> space) : data_(std::move(space)) {}
  Value(std::shared_ptr<Loop> loop) : data_(std::move(loop)) {}
  Value(std::shared_ptr<const Callable> callable) : data_(std::move(callable)) {}
  // NOLINTEND(*-explicit-*)

  static Value undefined(std::string reason);
  static Value forbidden(std::string reason);
  static Value number(int64_t number) { return Value(Int{number}); }
  static Value template_text(std::string_view bytes) {
    return Value(Text(std::string(bytes), Origin::kTemplate));
  }

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<Int>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_int() || is_float() || is_bool(); }

  const Undefined& as_undefined() const { return std::get<Undefined>(data_); }
  // Null if it is something else.
  const Text* text() const;
  const List* list() const;
  const Dict* dict() const;
  Namespace* space() const;
  const Loop* loop() const;
  const Callable* callable() const;
  const std::shared_ptr<List>* list_ptr() const {
    return std::get_if<std::shared_ptr<List>>(&data_);
  }
  // The integer value of an int or bool.
  std::optional<Int> integer() const;
  // The value of any number as a double.
  std::optional<double> real() const;

  // Whether a number, bool or None came from data; text knows it byte by byte.
  Origin origin() const { return origin_; }
  Value with_origin(Origin origin) const;

  bool truthy() const;
  int depth() const;
  // What a walk over the whole value costs: its nodes, and one more for every 32 bytes of text.
  size_t weight() const;

 private:
  std::variant<Undefined, None, bool, Int, double, std::shared_ptr<const Text>,
               std::shared_ptr<List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
               std::shared_ptr<Loop>, std::shared_ptr<const Callable>>
      data_;
  Origin origin_ = Origin::kTemplate;
};

// kGenerator: may be walked once, has no length and is always true, as in Python.
enum class ListKind { kList, kTuple, kGenerator, kKeys, kValues, kItems, kRange };

struct List {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
  int depth = 1;
  size_t weight = 1;
};

// Fails if the value becomes too deep or too heavy.
std::shared_ptr<List> make_list(std::vector<Value> items, ListKind kind = ListKind::kList);

// Keeps insertion order. Keys are hashable values; a later equal key replaces the value of an
// earlier one.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
  size_t weight = 1;

  // Null if there is no such key. Text keys cost O(1), others one comparison per entry.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  // Fails on a key that Python could not hash or if the dict becomes too deep or too heavy.
  void set(Value key, Value value);

 private:
  std::optional<size_t> index_of(const Value& key) const;
  std::unordered_map<std::string_view, size_t> text_index_;  // views of the keys' own texts
};

// The only mutable thing a template has. Owned by the running render until its end.
struct Namespace {
  Dict attributes;
};

// The `loop` variable of a running for statement.
struct Loop {
  std::vector<Value> items;
  size_t index0 = 0;
  size_t length = 0;
  std::optional<std::vector<Value>> last_changed;
  bool finished = false;  // kept by the template beyond its end: holds nothing any more
  int value_depth = 1;
};

bool equal(const Value& a, const Value& b);
// Python's name of the value's type: "str", "NoneType", "dict", ...
std::string_view type_name(const Value& value);
// -1, 0, 1; fails if Python cannot order the two.
int compare(const Value& a, const Value& b, std::string_view operation);
// A number too big for a double's exact range still compares exactly with another integer.
int compare_numbers(const Value& a, const Value& b);

}  // namespace winnow::jinja
