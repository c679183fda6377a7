#include "engine/step_planner.h"

#include <algorithm>
#include <span>

namespace winnow {
StepPlanner::StepPlanner(const SchedulerLimits& limits, const RequestTable& requests,
                         const PagePool& pool, const PrefixCache& cache, int32_t prompt_budget)
    : limits_(limits),
      requests_(requests),
      cache_(cache),
      pages_(pool, cache),
      prompt_tokens_left_(pages_for(std::max(prompt_budget, 1)) * kPageTokens),
      num_kept_(requests.running.size()) {}

StepPlan StepPlanner::plan() {
  plan_decodes();
  admitting_ = plan_.preempted.empty();
  plan_interrupted();
  plan_prompts();
  plan_.steps.insert(plan_.steps.end(), decodes_.begin(), decodes_.end());
  return std::move(plan_);
}

// Oldest first, so that pages run out for the youngest.
void StepPlanner::plan_decodes() {
  for (size_t i = 0; i < num_kept_; ++i) {
    const RequestEntry& entry = *requests_.running[i];
    if (entry.in_prompt()) continue;
    const int32_t computed = entry.seq.computed_tokens;
    const int64_t new_pages = pages_in_step(entry, computed) - entry.num_pages();
    while (i < num_kept_ && !pages_.take(new_pages)) preempt_youngest();
    if (i < num_kept_) add_steps(entry, computed);
  }
}

void StepPlanner::preempt_youngest() {
  const RequestEntry& youngest = *requests_.running[--num_kept_];
  pages_.release(youngest.seq.pages);
  plan_.preempted.push_back(youngest.seq.id);
}

// Before new requests: pages that these were given would keep the interrupted ones waiting.
void StepPlanner::plan_interrupted() {
  for (const RequestEntry* entry : requests_.interrupted) {
    admitting_ = admitting_ && try_resume(*entry);
    if (!admitting_) return;
  }
}

bool StepPlanner::try_resume(const RequestEntry& entry) {
  if (!room_to_run()) return false;
  const bool alone = num_kept_ + plan_.admitted.size() == 0;
  const std::optional<PrefixMatch> match = match_with_room(entry, [&](int32_t computed) {
    return alone ? pages_in_step(entry, computed) : entry.pages_to_come_back();
  });
  if (!match) return false;
  const int32_t computed = match->num_tokens();
  if (computed < entry.seq.prompt_tokens && chunk_end(entry, computed) == computed) return false;
  admit(entry, *match);
  return true;
}

void StepPlanner::plan_prompts() {
  std::vector<const RequestEntry*> running;
  for (const RequestEntry* entry : std::span(requests_.running).first(num_kept_)) {
    if (entry->in_prompt()) running.push_back(entry);
  }
  std::ranges::sort(running, FirstInPromptOrder());

  auto next_running = running.begin();
  auto next_waiting = requests_.waiting.begin();
  while (true) {
    const bool any_running = next_running != running.end();
    const bool any_waiting = admitting_ && next_waiting != requests_.waiting.end();
    if (any_waiting && !(any_running && FirstInPromptOrder()(*next_running, *next_waiting))) {
      // The first that finds no pages keeps those behind it from taking them.
      admitting_ = try_admit(**next_waiting++);
    } else if (!any_running || !try_go_on(**next_running++)) {
      return;
    }
  }
}

bool StepPlanner::try_admit(const RequestEntry& entry) {
  if (!room_to_run() || chunk_end(entry, 0) == 0) return false;
  const auto spare = static_cast<int64_t>(num_kept_ + plan_.admitted.size());
  const std::optional<PrefixMatch> match =
      match_with_room(entry, [&](int32_t) { return entry.pages_at_admission() + spare; });
  if (!match) return false;
  admit(entry, *match);
  return true;
}

bool StepPlanner::try_go_on(const RequestEntry& entry) {
  int32_t computed = entry.seq.computed_tokens;
  if (chunk_end(entry, computed) == computed) return false;
  PrefixMatch match = match_prefix(cache_, entry);
  // One page for its tokens, and the one that is copied.
  if (pages_.available() < 2) match.copied.reset();
  const int32_t adopted = computed + match.num_tokens();
  if (adopted > computed && pages_.take(pages_in_step(entry, adopted) - entry.num_pages())) {
    pages_.share(match.used_pages());
    const auto own = std::span(entry.seq.pages).subspan(entry.chain.size());
    pages_.release(own.first(std::min(match.pages.size(), own.size())));
    computed = adopted;
    plan_.adopted.push_back({entry.seq.id, computed});
  }
  add_steps(entry, computed);
  return true;
}

std::optional<PrefixMatch> StepPlanner::match_with_room(
    const RequestEntry& entry, FunctionRef<int64_t(int32_t)> pages_needed) const {
  PrefixMatch match = match_prefix(cache_, entry);
  const auto has_room = [&] {
    const int64_t new_pages = pages_needed(match.num_tokens()) - match.num_pages();
    return pages_.available() >= new_pages + pages_.cost_of_sharing(match.used_pages());
  };
  if (has_room()) return match;
  if (!match.copied) return std::nullopt;
  match.copied.reset();
  return has_room() ? std::optional(std::move(match)) : std::nullopt;
}

bool StepPlanner::room_to_run() const {
  return num_kept_ + plan_.admitted.size() < static_cast<size_t>(limits_.max_running);
}

int32_t StepPlanner::chunk_end(const RequestEntry& entry, int32_t begin) const {
  const int32_t prompt_end = entry.seq.prompt_tokens;
  if (prompt_end - begin <= prompt_tokens_left_) return prompt_end;
  const auto end = static_cast<int32_t>((begin + prompt_tokens_left_) / kPageTokens * kPageTokens);
  return std::max(begin, end);
}

int32_t StepPlanner::decode_end(const RequestEntry& entry, int32_t computed) const {
  const auto num_tokens = static_cast<int32_t>(entry.seq.tokens.size());
  return std::min(computed + limits_.max_rerun_tokens, num_tokens);
}

int64_t StepPlanner::pages_in_step(const RequestEntry& entry, int32_t computed) const {
  const int64_t held = entry.pages_at_admission();
  if (computed < entry.seq.prompt_tokens) return held;
  return std::max(held, pages_for(decode_end(entry, computed)));
}

void StepPlanner::admit(const RequestEntry& entry, const PrefixMatch& match) {
  pages_.share(match.used_pages());
  pages_.take(pages_in_step(entry, match.num_tokens()) - match.num_pages());
  plan_.admitted.push_back({entry.seq.id, match.num_tokens()});
  add_steps(entry, match.num_tokens());
}

void StepPlanner::add_steps(const RequestEntry& entry, int32_t computed) {
  const auto step_to = [&](int32_t end, Phase phase) {
    const bool wants_token = end == std::ssize(entry.seq.tokens);
    return SequenceStep{entry.seq.id, computed, end - computed, phase, wants_token};
  };
  if (computed < entry.seq.prompt_tokens) {
    plan_.steps.push_back(step_to(chunk_end(entry, computed), Phase::kPrompt));
    prompt_tokens_left_ -= plan_.steps.back().num_tokens;
    return;
  }
  for (const int32_t end = decode_end(entry, computed); computed < end; ++computed) {
    decodes_.push_back(step_to(computed + 1, Phase::kGenerate));
  }
}

}  // namespace winnow
