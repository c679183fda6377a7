// The syntax tree of a template.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/text.h"
#include "jinja/value.h"

namespace winnow::jinja {

struct Filter;     // filters.h
struct Predicate;  // predicates.h

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread;        // *list, or null
  ExprPtr spread_named;  // **dict, or null
};

enum class UnaryOp { kNot, kNegate, kPlus };
enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct ConstExpr {
  Value value;
};
struct NameExpr {
  std::string name;
};
struct ListExpr {
  std::vector<ExprPtr> items;
  ListKind kind;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct UnaryExpr {
  UnaryOp op;
  ExprPtr operand;
};
struct BinaryExpr {
  BinaryOp op;
  ExprPtr left, right;
};
// `and` and `or`: the value of the operand that decides.
struct LogicExpr {
  bool is_and;
  ExprPtr left, right;
};
struct CompareExpr {
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct ConcatExpr {
  std::vector<ExprPtr> parts;
};
struct ConditionalExpr {
  ExprPtr condition, yes, no;  // no: may be null
};
struct AttributeExpr {
  ExprPtr object;
  std::string name;
};
struct ItemExpr {
  ExprPtr object, key;
};
struct SliceExpr {
  ExprPtr object, start, stop, step;  // each bound may be null
};
struct CallExpr {
  ExprPtr callee;
  CallArgs args;
};
struct FilterExpr {
  ExprPtr operand;  // null at the head of a filter block or block set
  const Filter* filter;
  CallArgs args;
};
struct PredicateExpr {
  ExprPtr operand;
  const Predicate* predicate;
  CallArgs args;
};

struct Expr {
  int line;
  std::variant<ConstExpr, NameExpr, ListExpr, DictExpr, UnaryExpr, BinaryExpr, LogicExpr,
               CompareExpr, ConcatExpr, ConditionalExpr, AttributeExpr, ItemExpr, SliceExpr,
               CallExpr, FilterExpr, PredicateExpr>
      node;
  int depth = 1;
};

// The largest depth among the expressions directly inside `expr`, 0 if there are none.
int operand_depth(const Expr& expr);

// What a `set` or `for` writes to: one name, a namespace attribute, or several names to unpack
// into.
struct Target {
  std::string name;
  std::string attribute;       // not empty: name.attribute
  std::vector<Target> unpack;  // not empty: name and attribute are unused
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Parameter {
  std::string name;
  ExprPtr fallback;  // null: undefined if not given
};
// The part of a macro or call block that becomes callable.
struct MacroDef {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct TextStmt {
  Text text;
};
struct OutputStmt {
  ExprPtr value;
};
struct IfStmt {
  std::vector<std::pair<ExprPtr, Body>> branches;  // a null condition is `else`
};
struct ForStmt {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // or null
  Body body, otherwise;
};
struct SetStmt {
  Target target;
  ExprPtr value;
};
struct SetBlockStmt {
  Target target;
  ExprPtr filter;  // FilterExpr chain without an operand, or null
  Body body;
};
struct MacroStmt {
  MacroDef macro;
};
struct CallBlockStmt {
  ExprPtr call;  // a CallExpr
  MacroDef caller;
};
struct FilterBlockStmt {
  ExprPtr filter;  // FilterExpr chain without an operand
  Body body;
};
struct WithStmt {
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
};
// A body with a scope of its own: `generation`, `block`, `autoescape`.
struct ScopeStmt {
  Body body;
};
struct BreakStmt {};
struct ContinueStmt {};

struct Stmt {
  int line;
  std::variant<TextStmt, OutputStmt, IfStmt, ForStmt, SetStmt, SetBlockStmt, MacroStmt,
               CallBlockStmt, FilterBlockStmt, WithStmt, ScopeStmt, BreakStmt, ContinueStmt>
      node;
};

}  // namespace winnow::jinja
