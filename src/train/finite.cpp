#include "finite.h"

#include <cmath>

#include "polyhead/core/error.h"
#include "polyhead/train/optimizer.h"

namespace polyhead::train {
namespace {

/// The parameter with the first value in `slab` that is not finite, or null.
const nn::Parameter* first_bad(const nn::ParameterStore& store, const Tensor& slab) {
  const std::int64_t bad = first_non_finite(slab);
  for (const nn::Parameter& p : store.parameters())
    if (bad >= p.offset && bad < p.offset + p.size()) return &p;
  return nullptr;
}

}  // namespace

std::string circumstances(const StepReport& update) {
  return concat("step ", update.step, " (learning rate ", update.learning_rate, ", gradient norm ",
                update.grad_norm, ")");
}

void require_finite_update(const StepReport& update, const nn::ParameterStore& store,
                           const Tensor& gradients) {
  if (std::isfinite(update.loss) && std::isfinite(update.grad_norm)) return;
  std::string what;
  if (const nn::Parameter* bad_value = first_bad(store, store.slab()))
    what = "the first parameter that is not finite is " + bad_value->path;
  else if (const nn::Parameter* bad_gradient = first_bad(store, gradients))
    what = "the first parameter with a gradient that is not finite is " + bad_gradient->path;
  else if (!std::isfinite(update.loss))
    what = "the loss is not finite, though all parameters and gradients are";
  else
    what = "the gradient norm overflows, though all parameters and gradients are finite";
  throw NumbersError(concat("training failed at ", circumstances(update), ": loss ", update.loss, "; ", what,
                            "; the last checkpoint is unchanged"));
}

void require_finite_slab(const StepReport& update, const nn::ParameterStore& store, const Tensor& slab,
                         const char* what) {
  const nn::Parameter* bad = first_bad(store, slab);
  if (bad == nullptr) return;
  throw NumbersError(concat("training failed at ", circumstances(update), ": ", what, bad->path,
                            " is not finite; the last checkpoint is unchanged"));
}

}  // namespace polyhead::train
