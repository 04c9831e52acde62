#include "whole.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>

#include "running.h"
#include "steps.h"

namespace sn_openmmlab {

namespace {

bool mixes_batch(at::IntArrayRef scopes) {
  return std::find(scopes.begin(), scopes.end(), std::int64_t{kBatch}) != scopes.end();
}

// Fill the moments of 'bn', (2, C), with given ones, and repeat them for every sample as those of
// the instances where these are not read: they may be infinite.
template <class A>
void take_given(const Shape& shape, const at::Tensor& mean, const at::Tensor& var, A* batch,
                A* instances) {
  const auto means = vector_of<A>("running_mean", mean, shape.channels);
  const auto variances = vector_of<A>("running_var", var, shape.channels);
  std::copy_n(means.get(), shape.channels, batch);
  std::copy_n(variances.get(), shape.channels, batch + shape.channels);
  if (instances == nullptr) return;
  for (std::int64_t row = 0; row < 2 * shape.samples; ++row) {
    const A* moments = batch + (row < shape.samples ? 0 : shape.channels);
    std::copy_n(moments, shape.channels, instances + row * shape.channels);
  }
}

template <class A>
at::Tensor gradient_of(const A* numbers, const MaybeTensor& parameter, bool wanted) {
  if (!wanted || !parameter.has_value() || !parameter->defined()) return {};
  constexpr auto type = std::is_same_v<A, double> ? at::kDouble : at::kFloat;
  const at::Tensor gradient = at::empty(parameter->sizes(), parameter->options().dtype(type));
  std::copy_n(numbers, gradient.numel(), data<A>(gradient));
  return gradient.to(parameter->scalar_type());
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(
    const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias,
    const at::Tensor& mean_weight, const at::Tensor& var_weight, const MaybeTensor& running_mean,
    const MaybeTensor& running_var, const MaybeTensor& num_batches, std::optional<double> momentum,
    bool training, at::IntArrayRef scopes, std::int64_t num_groups, std::int64_t correction,
    double eps, bool instance_variance) {
  TORCH_CHECK_VALUE(running_mean.has_value() == running_var.has_value() &&
                        (num_batches.has_value() || !running_mean.has_value() || !training),
                    "running_mean and running_var are given together, and in training with the "
                    "number of batches.");
  const Shape shape = shape_of(x);
  const bool mixes = mixes_batch(scopes), given = mixes && running_mean.has_value() && !training;
  const auto options = x.options().dtype(statistics_type(x.scalar_type()));
  const at::Tensor tables = at::empty({4, shape.samples, shape.channels}, options);
  const at::Tensor batch = at::empty({2, mixes ? shape.channels : 0}, options);
  const Ratios ratios(mean_weight, var_weight, scopes, shape.channels);
  at::Tensor y;
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    A *instances = data<A>(tables), *mixed = instances + 2 * shape.entries();
    const bool is_read = !given || scopes.size() > 1;
    const Arranged arranged = arrange(x);
    if (is_read) fill_instances(arranged, correction, instance_variance, instances);
    if (given) {
      take_given(shape, *running_mean, *running_var, data<A>(batch), is_read ? nullptr : instances);
    } else if (mixes) {
      batch_moments(shape, instances, data<A>(batch));
    }
    const auto gamma = vector_of<A>("weight", weight, shape.channels);
    const auto beta = vector_of<A>("bias", bias, shape.channels);
    y = fill_output<A>(x, arranged, instances, mixes ? data<A>(batch) : nullptr, gamma.get(),
                       beta.get(), ratios, {scopes, num_groups, correction, eps}, mixed);
  });
  if (mixes && training && running_mean.has_value()) {
    move_running(*running_mean, *running_var, *num_batches, momentum, batch);
  }
  return {y, tables, batch};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward(
    const at::Tensor& dy, const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias,
    const at::Tensor& mean_weight, const at::Tensor& var_weight, const at::Tensor& tables,
    const at::Tensor& batch, bool batch_is_given, at::IntArrayRef scopes, std::int64_t num_groups,
    std::int64_t correction, std::array<bool, 5> wanted) {
  const Shape shape = shape_of(x);
  const std::int64_t entries = shape.entries(), channels = shape.channels;
  const Ratios ratios(mean_weight, var_weight, scopes, channels);
  at::Tensor dx, d_weight, d_bias;
  ControlGradients controls;
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    // Hooks of the user may have changed how they lie in memory.
    const Table<A> known(tables), moments(batch);
    const A *instances = known.get(), *mixed = instances + 2 * entries;
    const std::unique_ptr<A[]> held(new A[2 * entries + 4 * channels]);
    A *sums = held.get(), *of_channels = sums + 2 * entries;
    const auto gamma = vector_of<A>("weight", weight, channels);
    const Arranged arranged = arrange(x);
    const at::Tensor gradients = with_strides_of(dy, arranged.x);
    fill_sums(gradients, arranged, mixed, gamma.get(), sums, of_channels);
    d_weight = gradient_of(of_channels, weight, wanted[1]);
    d_bias = gradient_of(of_channels + channels, bias, wanted[2]);
    A* d_batch = mixes_batch(scopes) && !batch_is_given ? of_channels + 2 * channels : nullptr;
    if (d_batch != nullptr) {
      const A samples = static_cast<A>(shape.samples);
      for (std::int64_t c = 0; c < 2 * channels; ++c) d_batch[c] /= samples;
    }
    const std::int64_t positions = std::max<std::int64_t>(extent_of(x).positions, 1);
    const Backward<A> given{shape, sums, instances, mixed,
                            mixes_batch(scopes) ? moments.get() : nullptr, d_batch, gamma.get(),
                            positions};
    dx = fill_gradients(gradients, x, arranged, given, ratios,
                        {scopes, num_groups, correction, 0}, wanted[0], &controls);
  });
  return {dx, d_weight, d_bias,
          wanted[3] ? like_control(controls.mean, mean_weight) : at::Tensor(),
          wanted[4] ? like_control(controls.var, var_weight) : at::Tensor()};
}

}  // namespace sn_openmmlab
