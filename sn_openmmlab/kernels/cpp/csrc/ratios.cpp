#include <algorithm>
#include <cmath>

#include "tables.h"
#include "types.h"

namespace sn_openmmlab {

namespace {

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

}  // namespace sn_openmmlab
