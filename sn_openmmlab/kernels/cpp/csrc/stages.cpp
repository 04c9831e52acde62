#include "stages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "steps.h"

namespace sn_openmmlab {

std::tuple<at::Tensor, at::Tensor> observe(const at::Tensor& x, std::int64_t correction,
                                           bool instance_variance) {
  const Shape shape = shape_of(x);
  const auto options = x.options().dtype(statistics_type(x.scalar_type()));
  const at::Tensor instances = at::empty({2, shape.samples, shape.channels}, options);
  const at::Tensor batch = at::empty({2, shape.channels}, options);
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    fill_instances(arrange(x), correction, instance_variance, data<A>(instances));
    batch_moments(shape, data<A>(instances), data<A>(batch));
  });
  return {instances, batch};
}

std::tuple<at::Tensor, at::Tensor> normalize(const at::Tensor& x, const at::Tensor& instances,
                                             const MaybeTensor& batch, const MaybeTensor& weight,
                                             const MaybeTensor& bias,
                                             const at::Tensor& mean_weight,
                                             const at::Tensor& var_weight, at::IntArrayRef scopes,
                                             std::int64_t num_groups, double eps) {
  const at::Tensor mixed = at::empty_like(instances);
  const Ratios ratios(mean_weight, var_weight, scopes, x.size(1));
  at::Tensor y;
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    const Table<A> moments(batch);
    const auto gamma = vector_of<A>("weight", weight, x.size(1));
    const auto beta = vector_of<A>("bias", bias, x.size(1));
    y = fill_output(x, arrange(x), data<const A>(instances), moments.get(), gamma.get(),
                    beta.get(), ratios, {scopes, num_groups, 0, eps}, data<A>(mixed));
  });
  return {y, mixed};
}

std::tuple<at::Tensor, at::Tensor> sum_gradients(const at::Tensor& dy, const at::Tensor& x,
                                                 const at::Tensor& mixed,
                                                 const MaybeTensor& weight) {
  const at::Tensor sums = at::empty_like(mixed);
  const at::Tensor channels = at::empty({4, x.size(1)}, mixed.options());
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    const auto gamma = vector_of<A>("weight", weight, x.size(1));
    const Arranged arranged = arrange(x);
    fill_sums(with_strides_of(dy, arranged.x), arranged, data<const A>(mixed), gamma.get(),
              data<A>(sums), data<A>(channels));
  });
  return {sums, channels};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> input_gradients(
    const at::Tensor& dy, const at::Tensor& x, const at::Tensor& sums, const at::Tensor& instances,
    const at::Tensor& mixed, const MaybeTensor& batch, const MaybeTensor& batch_gradients,
    const MaybeTensor& weight, const at::Tensor& mean_weight, const at::Tensor& var_weight,
    at::IntArrayRef scopes, std::int64_t num_groups, std::int64_t correction, bool wants_x) {
  const Ratios ratios(mean_weight, var_weight, scopes, x.size(1));
  at::Tensor dx;
  ControlGradients controls;
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    const Table<A> moments(batch);
    const Table<A> d_batch(batch_gradients);
    const auto gamma = vector_of<A>("weight", weight, x.size(1));
    const Backward<A> given{shape_of(x),     data<const A>(sums), data<const A>(instances),
                            data<const A>(mixed), moments.get(),  d_batch.get(),
                            gamma.get(),     std::max<std::int64_t>(extent_of(x).positions, 1)};
    const Arranged arranged = arrange(x);
    dx = fill_gradients(with_strides_of(dy, arranged.x), x, arranged, given, ratios,
                        {scopes, num_groups, correction, 0}, wants_x, &controls);
  });
  return {dx, like_control(controls.mean, mean_weight), like_control(controls.var, var_weight)};
}

}  // namespace sn_openmmlab
