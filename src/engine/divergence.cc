#include "engine/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace winnow {
namespace {

// log(sum(exp(logits)))
double log_sum_exp(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

int64_t top1(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

// Of a pair whose log_sum_exp are known; rounding may take the sum below 0.
double kl_of(const LogitPair& pair, double reference_norm, double other_norm) {
  double kl = 0;
  for (size_t i = 0; i < pair.reference.size(); ++i) {
    const double log_p = pair.reference[i] - reference_norm;
    kl += std::exp(log_p) * (log_p - (pair.other[i] - other_norm));
  }
  return kl < 0 ? 0 : kl;  // not a maximum: NaN stays
}

}  // namespace

double kl_divergence(std::span<const float> reference, std::span<const float> other) {
  return kl_of({.reference = reference, .other = other}, log_sum_exp(reference),
               log_sum_exp(other));
}

Divergence::Divergence(std::span<const TokenId> ids, int64_t begin, int64_t end)
    : ids_(ids), begin_(begin), positions_(static_cast<size_t>(end - begin)) {
  CHECK(begin >= 0 && end < std::ssize(ids));
}

void Divergence::add(const LogitPair& pair) {
  const double reference_norm = log_sum_exp(pair.reference);
  const double other_norm = log_sum_exp(pair.other);
  const auto next = static_cast<size_t>(ids_[static_cast<size_t>(pair.position + 1)]);
  positions_[static_cast<size_t>(pair.position - begin_)] = {
      .kl = kl_of(pair, reference_norm, other_norm),
      .reference_loss = reference_norm - pair.reference[next],
      .other_loss = other_norm - pair.other[next],
      .same_top1 = top1(pair.reference) == top1(pair.other)};
}

DivergenceReport Divergence::report() const {
  DivergenceReport report{.num_positions = std::ssize(positions_)};
  if (positions_.empty()) return report;
  std::vector<double> kls;
  double reference_loss = 0;
  double other_loss = 0;
  int64_t agreed = 0;
  for (const Position& position : positions_) {
    kls.push_back(position.kl);
    report.mean_kl += position.kl;
    reference_loss += position.reference_loss;
    other_loss += position.other_loss;
    agreed += position.same_top1 ? 1 : 0;
  }
  const auto count = static_cast<double>(positions_.size());
  // NaN counts as the largest.
  std::sort(kls.begin(), kls.end(),
            [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  report.mean_kl /= count;
  report.p99_kl = kls[kls.size() * 99 / 100];
  report.top1_agreement = static_cast<double>(agreed) / count;
  report.reference_perplexity = std::exp(reference_loss / count);
  report.other_perplexity = std::exp(other_loss / count);
  return report;
}

}  // namespace winnow
