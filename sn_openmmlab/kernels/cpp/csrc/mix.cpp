// Means are mixed as distances from that of the instance, so that ratios that do not add up to
// exactly 1 cost no digits of a large common offset.

#include <cmath>

#include "pooling.h"

namespace sn_openmmlab {

namespace {

// The mix of one sample after another.
template <class A>
class SampleMix {
 public:
  SampleMix(const A* batch, const Ratios& ratios, const Mixture& mixture, const Runs& runs,
            std::int64_t channels)
      : batch_(batch),
        ratios_(ratios),
        mixture_(mixture),
        runs_(runs),
        channels_(channels),
        scopes_(mixture, runs, channels),
        distance_(channels),
        variance_(channels) {}

  void run(const A* mean, const A* var, A* centre, A* rstd) {
    scopes_.read(mean, var);
    std::fill(distance_.begin(), distance_.end(), 0.0);
    std::fill(variance_.begin(), variance_.end(), mixture_.eps);
    for (std::int64_t k = 0; k < ratios_.scopes; ++k) {
      for (const Run& run : runs_.all) add(k, run, mean, var);
    }
    for (std::int64_t c = 0; c < channels_; ++c) {
      centre[c] = static_cast<A>(static_cast<double>(mean[c]) + distance_[c]);
      rstd[c] = static_cast<A>(1 / std::sqrt(variance_[c]));
    }
  }

 private:
  // Add the share of scope k in some channels.
  void add(std::int64_t k, const Run& run, const A* mean, const A* var) {
    const double w = ratios_.mean[run.ratios + k], v = ratios_.var[run.ratios + k];
    const std::int64_t scope = mixture_.scopes[k];
    if (scope == kInstance) {
      for (std::int64_t c = run.begin; c < run.end; ++c) {
        variance_[c] += v * static_cast<double>(var[c]);
      }
    } else if (scope == kBatch) {
      for (std::int64_t c = run.begin; c < run.end; ++c) {
        distance_[c] += w * (static_cast<double>(batch_[c]) - static_cast<double>(mean[c]));
        variance_[c] += v * static_cast<double>(batch_[channels_ + c]);
      }
    } else {
      const Pooled pooled = scopes_.of(scope, run);
      for (std::int64_t c = run.begin; c < run.end; ++c) {
        distance_[c] += w * (pooled.mean - static_cast<double>(mean[c]));
        variance_[c] += v * pooled.var;
      }
    }
  }

  const A* const batch_;
  const Ratios& ratios_;
  const Mixture& mixture_;
  const Runs& runs_;
  const std::int64_t channels_;
  SampleScopes<A> scopes_;
  std::vector<double> distance_, variance_;
};

}  // namespace

template <class A>
void batch_moments(const Shape& shape, const A* instances, A* batch) {
  const std::int64_t samples = shape.samples, channels = shape.channels;
  const A *mean = instances, *var = mean + shape.entries();
  over_channels(shape, [&](std::int64_t first, std::int64_t count) {
    double gaps[kColumns] = {}, pooled[kColumns], squares[kColumns] = {};
    for (std::int64_t n = 1; n < samples; ++n) {
      const A* row = mean + n * channels + first;
      for (std::int64_t c = 0; c < count; ++c) {
        gaps[c] += static_cast<double>(row[c]) - static_cast<double>(mean[first + c]);
      }
    }
    const double share = 1 / static_cast<double>(std::max<std::int64_t>(samples, 1));
    for (std::int64_t c = 0; c < count; ++c) {
      pooled[c] = samples == 0 ? 0 : static_cast<double>(mean[first + c]) + gaps[c] * share;
    }
    for (std::int64_t n = 0; n < samples; ++n) {
      const std::int64_t row = n * channels + first;
      for (std::int64_t c = 0; c < count; ++c) {
        const double gap = static_cast<double>(mean[row + c]) - pooled[c];
        squares[c] += static_cast<double>(var[row + c]) + gap * gap;
      }
    }
    for (std::int64_t c = 0; c < count; ++c) {
      batch[first + c] = static_cast<A>(pooled[c]);
      batch[channels + first + c] = static_cast<A>(squares[c] * share);
    }
  });
}

template <class A>
void mix(const Shape& shape, const A* instances, const A* batch, const Ratios& ratios,
         const Mixture& mixture, A* mixed) {
  const std::int64_t channels = shape.channels, entries = shape.entries();
  const Runs runs(ratios, mixture, channels);
  over_samples(shape, [&](std::int64_t begin, std::int64_t end) {
    SampleMix<A> sample(batch, ratios, mixture, runs, channels);
    for (std::int64_t first = begin * channels; first < end * channels; first += channels) {
      sample.run(instances + first, instances + entries + first, mixed + first,
                 mixed + entries + first);
    }
  });
}

template <class A>
void scales(const Shape& shape, const A* mixed, const A* weight, A* out) {
  const std::int64_t channels = shape.channels;
  const A* rstds = mixed + shape.entries();
  over_samples(shape, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * channels; first < end * channels; first += channels) {
      const A* rstd = rstds + first;
      A* scale = out + first;
      for (std::int64_t c = 0; c < channels; ++c) {
        scale[c] = weight == nullptr ? rstd[c] : rstd[c] * weight[c];
      }
    }
  });
}

#define SN_MIX_OF(A)                                                                      \
  template void batch_moments(const Shape&, const A*, A*);                                \
  template void mix(const Shape&, const A*, const A*, const Ratios&, const Mixture&, A*); \
  template void scales(const Shape&, const A*, const A*, A*);

SN_MIX_OF(float)
SN_MIX_OF(double)

}  // namespace sn_openmmlab
