// Runtime: the budget of one render and the few things from outside that a template may see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "jinja/value.h"

namespace winnow::jinja {

// Chosen so that a template that does its worst with a short conversation ends within half a second
// and 300 MB (Zen 3); templates of popular models take less than a hundredth of it.
struct Limits {
  int64_t max_steps = 4'000'000;  // evaluated nodes, walked elements, and 32 bytes of text each
  size_t max_output_bytes = size_t{16} << 20;
  size_t max_created_bytes = size_t{64} << 20;  // all texts that the render ever makes
  int max_depth = 400;  // expressions and statements inside each other, macro calls included

  // The same with room for data of this weight, which a good template passes on a few times.
  Limits with_data(size_t weight) const;
};

struct Args;
struct Scope;

// What a render did that a caller may want to avoid by shaping its data otherwise.
struct RenderNotes {
  bool printed_none = false;
  bool printed_container = false;  // a list or dict became text in Python's notation
};

class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Each fails when the budget is used up, so it comes before the work or memory that it counts.
  void step(size_t count = 1);
  void read_bytes(size_t count) { step(count / 32); }
  void create_bytes(size_t count);
  // Fails if so many bytes could not be created any more; counts nothing.
  void require_room(size_t count) const;
  void check_output(size_t size) const;

  // One more nested evaluation while it lives.
  class Nesting {
   public:
    explicit Nesting(Runtime& runtime);
    ~Nesting() { --runtime_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Runtime& runtime_;
  };

  // Counts the bytes and makes a value of the text.
  Value make_text(Text text);
  Value call(const Value& callee, Args args);

  // Namespaces and captured scopes may refer to each other in a circle, so they live until the end
  // of the render and are emptied then.
  Value make_namespace(Dict attributes);
  void keep(std::shared_ptr<Scope> scope);

  const std::tm& now() const { return now_; }
  RenderNotes& notes() { return notes_; }

 private:
  Limits limits_;
  std::tm now_;
  int64_t steps_ = 0;
  size_t created_bytes_ = 0;
  int depth_ = 0;
  RenderNotes notes_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<Scope>> scopes_;
};

}  // namespace winnow::jinja
