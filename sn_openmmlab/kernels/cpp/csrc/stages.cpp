#include "stages.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "steps.h"

namespace sn_openmmlab {

namespace {

at::Tensor empty_tables(const at::Tensor& x, at::IntArrayRef shape) {
  return at::empty(shape, x.options().dtype(statistics_type(x.scalar_type())));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> observe(const at::Tensor& x, std::int64_t correction,
                                           bool instance_variance) {
  const Shape shape = shape_of(x);
  const at::Tensor instances = empty_tables(x, {2, shape.samples, shape.channels});
  const at::Tensor batch = empty_tables(x, {2, shape.channels});
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
  const at::Tensor mixed = empty_tables(x, instances.sizes());
  const Ratios ratios(mean_weight, var_weight, scopes, x.size(1));
  at::Tensor y;
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    const Table<A> known(instances), moments(batch);
    const auto gamma = vector_of<A>("weight", weight, x.size(1));
    const auto beta = vector_of<A>("bias", bias, x.size(1));
    y = fill_output(x, arrange(x), known.get(), moments.get(), gamma.get(), beta.get(), ratios,
                    {scopes, num_groups, 0, eps}, data<A>(mixed));
  });
  return {y, mixed};
}

std::tuple<at::Tensor, at::Tensor> sum_gradients(const at::Tensor& dy, const at::Tensor& x,
                                                 const at::Tensor& mixed,
                                                 const MaybeTensor& weight) {
  const at::Tensor sums = empty_tables(x, mixed.sizes());
  const at::Tensor channels = empty_tables(x, {4, x.size(1)});
  for_statistics(x.scalar_type(), [&](auto number) {
    using A = decltype(number);
    const Table<A> known(mixed);
    const auto gamma = vector_of<A>("weight", weight, x.size(1));
    const Arranged arranged = arrange(x);
    fill_sums(with_strides_of(dy, arranged.x), arranged, known.get(), gamma.get(), data<A>(sums),
              data<A>(channels));
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
    const Table<A> totals(sums), of_instances(instances), of_mix(mixed);
    const Table<A> moments(batch), d_batch(batch_gradients);
    const auto gamma = vector_of<A>("weight", weight, x.size(1));
    const Backward<A> given{shape_of(x),   totals.get(),  of_instances.get(),
                            of_mix.get(),  moments.get(), d_batch.get(),
                            gamma.get(),   std::max<std::int64_t>(extent_of(x).positions, 1)};
    const Arranged arranged = arrange(x);
    dx = fill_gradients(with_strides_of(dy, arranged.x), x, arranged, given, ratios,
                        {scopes, num_groups, correction, 0}, wants_x, &controls);
  });
  return {dx, like_control(controls.mean, mean_weight), like_control(controls.var, var_weight)};
}

}  // namespace sn_openmmlab
