#pragma once

#include <string>

#include "polyhead/nn/parameters.h"
#include "polyhead/train/trainer.h"

namespace polyhead::train {

/// "step 7 (learning rate 0.1, gradient norm 2)".
std::string circumstances(const StepReport& update);

/// Throws NumbersError, telling what went bad first, when the loss or the gradient norm of an update is not finite.
void require_finite_update(const StepReport& update, const nn::ParameterStore& store,
                           const Tensor& gradients);

/// Throws NumbersError when a value of `slab`, of the store's layout, is not finite after an update. `what`, such as
/// "the first moment of ", stands before the parameter's path.
void require_finite_slab(const StepReport& update, const nn::ParameterStore& store, const Tensor& slab,
                         const char* what);

}  // namespace polyhead::train
