// The arithmetic between the passes, on (N, C) tables of type A, in float64.
//
// With P_k for the average over what scope k pools, the moments of the scope are
//
//     mu_k = P_k mu        var_k = P_k (var + (mu - mu_k)^2)
//
// which is the value of Eq. 4 by the law of total variance. The layer normalizes by the mixes of
// these moments (Eq. 3 and 5).

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sn_openmmlab {

// The scopes, by the numbers that kernels/cpp/scopes.py gives them.
enum Scope : std::int64_t { kInstance = 0, kGroup = 1, kLayer = 2, kBatch = 3 };

struct Shape {
  std::int64_t samples;
  std::int64_t channels;

  std::int64_t entries() const { return samples * channels; }
};

// What a layer mixes.
struct Mixture {
  at::IntArrayRef scopes;
  std::int64_t num_groups;
  std::int64_t correction;
  double eps;
};

// The importance ratios of the means and of the variances: a softmax of the control parameters,
// (number of scopes,) each, or (G, number of scopes).
struct Ratios {
  // Raises ValueError unless each has one number per scope, and the groups divide the channels.
  Ratios(const at::Tensor& mean_weight, const at::Tensor& var_weight, at::IntArrayRef scopes,
         std::int64_t channels);

  std::int64_t scopes;
  std::int64_t share;  // the channels of each group with ratios of its own
  std::vector<double> mean;
  std::vector<double> var;
};

// Fill mean and variance of 'bn', (2, C), from those of the instances, (2, N, C).
template <class A>
void batch_moments(const Shape& shape, const A* instances, A* batch);

// Fill the mixed mean and 1 / sqrt(mixed variance + eps), (2, N, C).
template <class A>
void mix(const Shape& shape, const A* instances, const A* batch, const Ratios& ratios,
         const Mixture& mixture, A* mixed);

// Fill weight / sqrt(mixed variance + eps), (N, C); `weight` is (C,) or null.
template <class A>
void scales(const Shape& shape, const A* mixed, const A* weight, A* out);

// Fill (4, C): the gradients of weight and bias, and those of the mixed mean and variance summed
// over the samples. `sums` is (2, N, C): of dy, and of dy * (x - centre).
template <class A>
void channel_gradients(const Shape& shape, const A* sums, const A* mixed, const A* weight, A* out);

// What `position_gradients` reads.
template <class A>
struct Backward {
  Shape shape;
  const A* sums;             // (2, N, C)
  const A* instances;        // (2, N, C)
  const A* mixed;            // (2, N, C)
  const A* batch;            // (2, C), or null
  const A* batch_gradients;  // (2, C): averaged over all samples; null: no dependence on x
  const A* weight;           // (C,), or null
  std::int64_t positions;
};

// The gradients of the control parameters, in float64.
struct ControlGradients {
  std::vector<double> mean;
  std::vector<double> var;
};

// Fill slope and shift of x * slope + shift, (2, N, C), which the statistics add to the gradient of
// x, and return the gradients of the control parameters.
template <class A>
ControlGradients position_gradients(const Backward<A>& given, const Ratios& ratios,
                                    const Mixture& mixture, A* slope_shift);

}  // namespace sn_openmmlab
