// The gradients of the mixed mean and variance, d_centre and d_var, pass to the instances as
//
//     d_mu = sum P_k (w_k d_centre) + 2 sum (mu - mu_k) P_k (w'_k d_var)
//     d_var_instance = sum P_k (w'_k d_var)
//
// since P_k is symmetric and P_k (mu - mu_k) = 0.

#include "pooling.h"

namespace sn_openmmlab {

namespace {

// The gradients of the mixed mean and variance at one entry.
inline Pooled mix_gradients(double total, double dot, double rstd, double weight) {
  const double scale = rstd * weight;
  return {-total * scale, -0.5 * dot * scale * rstd * rstd};
}

template <class A>
double weight_at(const A* weight, std::int64_t c) {
  return weight == nullptr ? 1.0 : static_cast<double>(weight[c]);
}

// Pass the gradients of ratios through their softmax.
std::vector<double> control_gradient(const std::vector<double>& ratios,
                                     const std::vector<double>& d_ratios, std::int64_t scopes) {
  std::vector<double> gradient(ratios.size());
  for (std::size_t row = 0; row < ratios.size(); row += scopes) {
    double dot = 0;
    for (std::int64_t k = 0; k < scopes; ++k) dot += ratios[row + k] * d_ratios[row + k];
    for (std::int64_t k = 0; k < scopes; ++k) {
      gradient[row + k] = ratios[row + k] * (d_ratios[row + k] - dot);
    }
  }
  return gradient;
}

// The backward pass through the tables of one sample after another.
template <class A>
class SampleGradients {
 public:
  SampleGradients(const Backward<A>& given, const Ratios& ratios, const Mixture& mixture,
                  const Runs& runs, A* slope_shift)
      : given_(given),
        ratios_(ratios),
        mixture_(mixture),
        runs_(runs),
        channels_(given.shape.channels),
        entries_(given.shape.entries()),
        slope_(slope_shift),
        scopes_(mixture, runs, channels_),
        d_centre_(channels_),
        d_var_(channels_),
        d_mean_instance_(channels_),
        d_var_instance_(channels_) {}

  // Fill slope and shift of a sample, and its part of the gradients of the ratios.
  void run(std::int64_t sample, double* d_mean_ratios, double* d_var_ratios) {
    first_ = sample * channels_;
    mean_ = given_.instances + first_;
    var_ = mean_ + entries_;
    scopes_.read(mean_, var_);
    differentiate_mixes();
    std::fill(d_mean_instance_.begin(), d_mean_instance_.end(), 0.0);
    std::fill(d_var_instance_.begin(), d_var_instance_.end(), 0.0);
    for (std::int64_t k = 0; k < ratios_.scopes; ++k) {
      const std::int64_t scope = mixture_.scopes[k];
      if (scope == kInstance) {
        add_instance(k);
      } else if (scope == kBatch) {
        add_batch(k, d_mean_ratios, d_var_ratios);
      } else {
        add_pooled(k, scope, d_mean_ratios, d_var_ratios);
      }
    }
    store();
  }

 private:
  void differentiate_mixes() {
    const A *total = given_.sums + first_, *dot = total + entries_;
    const A* rstd = given_.mixed + entries_ + first_;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const Pooled d = mix_gradients(total[c], dot[c], rstd[c], weight_at(given_.weight, c));
      d_centre_[c] = d.mean;
      d_var_[c] = d.var;
    }
  }

  // The gradients of the ratios are those of distances from the instance variance, which lose no
  // digits where the variances of the scopes are near each other: a softmax passes no common part.
  void add_instance(std::int64_t k) {
    for (const Run& run : runs_.all) {
      const double w = ratios_.mean[run.ratios + k], v = ratios_.var[run.ratios + k];
      for (std::int64_t c = run.begin; c < run.end; ++c) {
        d_mean_instance_[c] += w * d_centre_[c];
        d_var_instance_[c] += v * d_var_[c];
      }
    }
  }

  void add_batch(std::int64_t k, double* d_mean_ratios, double* d_var_ratios) {
    const A *batch_mean = given_.batch, *batch_var = batch_mean + channels_;
    const A* d_batch = given_.batch_gradients;
    for (const Run& run : runs_.all) {
      const auto gap = [&](std::int64_t c) {
        return static_cast<double>(mean_[c]) - static_cast<double>(batch_mean[c]);
      };
      const auto found = sums<2>(run.begin, run.end, [&](std::int64_t c) {
        const double far = static_cast<double>(batch_var[c]) - static_cast<double>(var_[c]);
        return std::array<double, 2>{d_centre_[c] * gap(c), d_var_[c] * far};
      });
      d_mean_ratios[run.ratios + k] -= found[0];
      d_var_ratios[run.ratios + k] += found[1];
      if (d_batch == nullptr) continue;
      const double w = ratios_.mean[run.ratios + k], v = ratios_.var[run.ratios + k];
      for (std::int64_t c = run.begin; c < run.end; ++c) {
        const double share = v * static_cast<double>(d_batch[channels_ + c]);
        d_mean_instance_[c] += w * static_cast<double>(d_batch[c]) + 2 * gap(c) * share;
        d_var_instance_[c] += share;
      }
    }
  }

  // 'ln' and 'gn': averages over the channels of a group, or over all.
  void add_pooled(std::int64_t k, std::int64_t scope, double* d_mean_ratios,
                  double* d_var_ratios) {
    const auto& runs = runs_.all;
    for (std::size_t first = 0, last; first < runs.size(); first = last) {
      last = first;
      const auto same = [&](const Run& run) {
        return scope == kLayer || run.group == runs[first].group;
      };
      const double size = static_cast<double>(scope == kLayer ? channels_ : runs_.group_size);
      double centre_share = 0, var_share = 0;
      for (; last < runs.size() && same(runs[last]); ++last) {
        const Run& run = runs[last];
        const Pooled pooled = scopes_.of(scope, run);
        const auto found = sums<4>(run.begin, run.end, [&](std::int64_t c) {
          const double gap = static_cast<double>(mean_[c]) - pooled.mean;
          const double far = pooled.var - static_cast<double>(var_[c]);
          return std::array<double, 4>{d_centre_[c], d_var_[c], d_centre_[c] * gap,
                                       d_var_[c] * far};
        });
        centre_share += ratios_.mean[run.ratios + k] * found[0];
        var_share += ratios_.var[run.ratios + k] * found[1];
        d_mean_ratios[run.ratios + k] -= found[2];
        d_var_ratios[run.ratios + k] += found[3];
      }
      centre_share /= size;
      var_share /= size;
      const double pooled_mean = scopes_.of(scope, runs[first]).mean;
      for (std::int64_t c = runs[first].begin; c < runs[last - 1].end; ++c) {
        const double gap = static_cast<double>(mean_[c]) - pooled_mean;
        d_mean_instance_[c] += centre_share + 2 * gap * var_share;
        d_var_instance_[c] += var_share;
      }
    }
  }

  void store() {
    const double positions = static_cast<double>(given_.positions);
    const double each = 1 / positions;
    const double twice = 2 / std::max(positions - static_cast<double>(mixture_.correction), 1.0);
    A *slope = slope_ + first_, *shift = slope + entries_;
    for (std::int64_t c = 0; c < channels_; ++c) {
      // As it is rounded: so x * slope + shift is small where x is near its mean.
      slope[c] = static_cast<A>(d_var_instance_[c] * twice);
      const double at_mean = static_cast<double>(mean_[c]) * static_cast<double>(slope[c]);
      shift[c] = static_cast<A>(d_mean_instance_[c] * each - at_mean);
    }
  }

  const Backward<A>& given_;
  const Ratios& ratios_;
  const Mixture& mixture_;
  const Runs& runs_;
  const std::int64_t channels_;
  const std::int64_t entries_;
  A* const slope_;
  SampleScopes<A> scopes_;
  std::vector<double> d_centre_, d_var_, d_mean_instance_, d_var_instance_;
  std::int64_t first_ = 0;
  const A* mean_ = nullptr;
  const A* var_ = nullptr;
};

}  // namespace

template <class A>
void channel_gradients(const Shape& shape, const A* sums, const A* mixed, const A* weight,
                       A* out) {
  const std::int64_t channels = shape.channels;
  const A *total = sums, *dot = total + shape.entries(), *rstd = mixed + shape.entries();
  over_channels(shape, [&](std::int64_t first, std::int64_t count) {
    double found[4][kColumns] = {};
    for (std::int64_t n = 0; n < shape.samples; ++n) {
      const std::int64_t row = n * channels + first;
      for (std::int64_t c = 0; c < count; ++c) {
        const double t = total[row + c], d = dot[row + c], r = rstd[row + c];
        const Pooled own = mix_gradients(t, d, r, weight_at(weight, first + c));
        found[0][c] += d * r;
        found[1][c] += t;
        found[2][c] += own.mean;
        found[3][c] += own.var;
      }
    }
    for (std::int64_t k = 0; k < 4; ++k) {
      for (std::int64_t c = 0; c < count; ++c) {
        out[k * channels + first + c] = static_cast<A>(found[k][c]);
      }
    }
  });
}

template <class A>
ControlGradients position_gradients(const Backward<A>& given, const Ratios& ratios,
                                    const Mixture& mixture, A* slope_shift) {
  const std::int64_t samples = given.shape.samples;
  const Runs runs(ratios, mixture, given.shape.channels);
  const std::size_t count = ratios.mean.size();
  // A sample adds to a row of its own, so that the sum does not depend on the threads.
  std::vector<double> parts(2 * count * samples, 0.0);
  over_samples(given.shape, [&](std::int64_t begin, std::int64_t end) {
    SampleGradients<A> gradients(given, ratios, mixture, runs, slope_shift);
    for (std::int64_t n = begin; n < end; ++n) {
      double* part = parts.data() + 2 * count * n;
      gradients.run(n, part, part + count);
    }
  });
  std::vector<double> d_mean(count, 0.0), d_var(count, 0.0);
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::size_t k = 0; k < count; ++k) {
      d_mean[k] += parts[2 * count * n + k];
      d_var[k] += parts[2 * count * n + count + k];
    }
  }
  return {control_gradient(ratios.mean, d_mean, ratios.scopes),
          control_gradient(ratios.var, d_var, ratios.scopes)};
}

#define SN_GRADIENTS_OF(A)                                                                       \
  template void channel_gradients(const Shape&, const A*, const A*, const A*, A*);               \
  template ControlGradients position_gradients(const Backward<A>&, const Ratios&, const Mixture&, \
                                               A*);

SN_GRADIENTS_OF(float)
SN_GRADIENTS_OF(double)

}  // namespace sn_openmmlab
