// The gradients of the mixed mean and variance, d_centre and d_var, pass to the instances as
//
//     d_mu = sum P_k (w_k d_centre) + 2 sum (mu - mu_k) P_k (w'_k d_var)
//     d_var_instance = sum P_k (w'_k d_var)
//
// since P_k is symmetric and P_k (mu - mu_k) = 0. Means are averaged and mixed as distances from
// one of them, so that neither rounding nor ratios that do not add up to exactly 1 cost digits of a
// large common offset.

#include "tables.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "types.h"

namespace sn_openmmlab {

namespace {

// Entries of a table that are worth a thread, and channels that are summed over samples at once.
constexpr std::int64_t kGrain = 1 << 13;
constexpr std::int64_t kColumns = 64;

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
  double found[lanes][K] = {};
  std::int64_t c = begin;
  for (; c + lanes <= end; c += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::array<double, K> terms = term(c + lane);
      for (std::size_t k = 0; k < K; ++k) found[lane][k] += terms[k];
    }
  }
  for (; c < end; ++c) {
    const std::array<double, K> terms = term(c);
    for (std::size_t k = 0; k < K; ++k) found[0][k] += terms[k];
  }
  std::array<double, K> all;
  for (std::size_t k = 0; k < K; ++k) {
    all[k] = (found[0][k] + found[1][k]) + (found[2][k] + found[3][k]);
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

// Return the numbers of a small tensor.
std::vector<double> numbers_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat && tensor.is_contiguous()) {
    const float* begin = data<float>(tensor);
    return std::vector<double>(begin, begin + tensor.numel());
  }
  const at::Tensor doubles = tensor.to(at::kDouble).contiguous();
  const double* begin = data<double>(doubles);
  return std::vector<double>(begin, begin + doubles.numel());
}

std::int64_t channels_per_group(const char* name, const at::Tensor& control, std::int64_t scopes,
                                std::int64_t channels) {
  const std::int64_t groups = control.dim() == 2 ? control.size(0) : 1;
  const bool fits = control.dim() == 1 || control.dim() == 2;
  TORCH_CHECK_VALUE(fits && control.size(-1) == scopes, name,
                    " must have one number for each of the ", scopes,
                    " scopes, but its shape is ", control.sizes(), ".");
  TORCH_CHECK_VALUE(groups > 0 && channels % groups == 0, channels, " channels do not split into ",
                    groups, " equal groups with ratios of their own.");
  return channels / groups;
}

std::vector<double> softmax(const at::Tensor& control) {
  const std::int64_t scopes = control.size(-1);
  std::vector<double> ratios = numbers_of(control);
  for (auto row = ratios.begin(); row != ratios.end(); row += scopes) {
    const double highest = *std::max_element(row, row + scopes);
    double sum = 0;
    for (auto k = row; k != row + scopes; ++k) sum += *k = std::exp(*k - highest);
    for (auto k = row; k != row + scopes; ++k) *k /= sum;
  }
  return ratios;
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
    const double divisor = std::max(positions - static_cast<double>(mixture_.correction), 1.0);
    A *slope = slope_ + first_, *shift = slope + entries_;
    for (std::int64_t c = 0; c < channels_; ++c) {
      // As it is rounded: so x * slope + shift is small where x is near its mean.
      slope[c] = static_cast<A>(2 * d_var_instance_[c] / divisor);
      const double at_mean = static_cast<double>(mean_[c]) * static_cast<double>(slope[c]);
      shift[c] = static_cast<A>(d_mean_instance_[c] / positions - at_mean);
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

Ratios::Ratios(const at::Tensor& mean_weight, const at::Tensor& var_weight,
               at::IntArrayRef all_scopes, std::int64_t channels)
    : scopes(static_cast<std::int64_t>(all_scopes.size())),
      share(channels_per_group("mean_weight", mean_weight, scopes, channels)),
      mean(softmax(mean_weight)),
      var(softmax(var_weight)) {
  const std::int64_t other = channels_per_group("var_weight", var_weight, scopes, channels);
  TORCH_CHECK_VALUE(other == share,
                    "mean_weight and var_weight must have as many groups of ratios as each other.");
}

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

#define SN_TABLES_OF(A)                                                                          \
  template void batch_moments(const Shape&, const A*, A*);                                       \
  template void mix(const Shape&, const A*, const A*, const Ratios&, const Mixture&, A*);        \
  template void scales(const Shape&, const A*, const A*, A*);                                    \
  template void channel_gradients(const Shape&, const A*, const A*, const A*, A*);               \
  template ControlGradients position_gradients(const Backward<A>&, const Ratios&, const Mixture&, \
                                               A*);

SN_TABLES_OF(float)
SN_TABLES_OF(double)

}  // namespace sn_openmmlab
