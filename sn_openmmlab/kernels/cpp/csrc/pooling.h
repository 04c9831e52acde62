// Pooling the moments of instances along the channels of a sample, in float64.
//
// Means are averaged as distances from one of them, so that rounding costs no digits of a large
// common offset.

#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tables.h"

namespace sn_openmmlab {

// Entries of a table that are worth a thread, and channels that are summed over samples at once.
inline constexpr std::int64_t kGrain = 1 << 13;
inline constexpr std::int64_t kColumns = 64;

// Call `work` with ranges of samples, or of channels, in parallel.
template <class Work>
void over_samples(const Shape& shape, const Work& work) {
  const std::int64_t grain = kGrain / std::max<std::int64_t>(shape.channels, 1);
  at::parallel_for(0, shape.samples, std::max<std::int64_t>(grain, 1), work);
}

template <class Work>
void over_channels(const Shape& shape, const Work& work) {
  const std::int64_t grain = kGrain / std::max<std::int64_t>(shape.samples, 1);
  at::parallel_for(0, shape.channels, std::max(grain, kColumns), [&](auto begin, auto end) {
    for (std::int64_t c = begin; c < end; c += kColumns) work(c, std::min(end - c, kColumns));
  });
}

// Return the sums of K terms over a range of channels; `term(c)` returns all K of channel c. Each
// is kept in several sums side by side, since an addition waits for the one before it.
template <std::size_t K, class Term>
std::array<double, K> sums(std::int64_t begin, std::int64_t end, const Term& term) {
  constexpr std::int64_t lanes = 4;
  double found[K][lanes] = {};
  std::int64_t c = begin;
  for (; c + lanes <= end; c += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::array<double, K> terms = term(c + lane);
      for (std::size_t k = 0; k < K; ++k) found[k][lane] += terms[k];
    }
  }
  for (; c < end; ++c) {
    const std::array<double, K> terms = term(c);
    for (std::size_t k = 0; k < K; ++k) found[k][0] += terms[k];
  }
  std::array<double, K> all;
  for (std::size_t k = 0; k < K; ++k) {
    all[k] = (found[k][0] + found[k][1]) + (found[k][2] + found[k][3]);
  }
  return all;
}

// A mean and a variance, each in float64.
struct Pooled {
  double mean;
  double var;
};

// Pool neighbouring channels of a sample.
template <class A>
Pooled pool(const A* mean, const A* var, std::int64_t count) {
  using One = std::array<double, 1>;
  const double origin = static_cast<double>(mean[0]), numbers = static_cast<double>(count);
  const auto gaps = sums<1>(0, count, [&](std::int64_t c) {
    return One{static_cast<double>(mean[c]) - origin};
  });
  const double pooled = origin + gaps[0] / numbers;
  const auto squares = sums<1>(0, count, [&](std::int64_t c) {
    const double gap = static_cast<double>(mean[c]) - pooled;
    return One{static_cast<double>(var[c]) + gap * gap};
  });
  return {pooled, squares[0] / numbers};
}

// Neighbouring channels that share their ratios and their group of 'gn', or a part of them.
struct Run {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t ratios;  // the first of their ratios
  std::int64_t group;
};

// The runs of a layer, and the groups of 'gn' that they lie in.
struct Runs {
  Runs(const Ratios& ratios, const Mixture& mixture, std::int64_t channels)
      : group_size(channels) {
    const auto& scopes = mixture.scopes;
    if (std::count(scopes.begin(), scopes.end(), std::int64_t{kGroup}) > 0) {
      const std::int64_t groups = mixture.num_groups;
      TORCH_CHECK_VALUE(groups > 0 && channels % groups == 0, "scope 'gn' cannot split ", channels,
                        " channels into ", groups, " equal groups.");
      group_size = channels / groups;
    }
    for (std::int64_t c = 0; c < channels;) {
      const std::int64_t own = c / ratios.share, group = c / group_size;
      const std::int64_t end = std::min((own + 1) * ratios.share, (group + 1) * group_size);
      all.push_back({c, end, own * ratios.scopes, group});
      c = end;
    }
  }

  std::int64_t group_size;
  std::vector<Run> all;
};

// The moments of the scopes of one sample: one number for 'ln', one per group for 'gn'.
template <class A>
struct SampleScopes {
  SampleScopes(const Mixture& mixture, const Runs& runs, std::int64_t channels)
      : mixture_(mixture), runs_(runs), channels_(channels) {}

  void read(const A* mean, const A* var) {
    for (const std::int64_t scope : mixture_.scopes) {
      if (scope == kLayer) layer = pool(mean, var, channels_);
      if (scope != kGroup) continue;
      groups.clear();
      for (std::int64_t c = 0; c < channels_; c += runs_.group_size) {
        groups.push_back(pool(mean + c, var + c, runs_.group_size));
      }
    }
  }

  Pooled of(std::int64_t scope, const Run& run) const {
    return scope == kLayer ? layer : groups[run.group];
  }

  Pooled layer{0, 0};
  std::vector<Pooled> groups;

 private:
  const Mixture& mixture_;
  const Runs& runs_;
  std::int64_t channels_;
};

}  // namespace sn_openmmlab
