#pragma once

#include "polyhead/core/rng.h"

namespace polyhead {

class Arena;
class Profile;
struct HalfPrecision;

/// What an op may use besides its inputs; one per worker thread, passed and never global.
struct Exec {
  Arena& activations;             ///< outputs and what backward needs; rewound by whoever runs the step
  Arena& scratch;                 ///< temporaries of one op; the op rewinds what it took
  RngKey key;                     ///< randomness of this update
  bool training = false;          ///< dropout is on; recording a tape is not training
  HalfPrecision* half = nullptr;  ///< matrix products take bf16 operands; null: f32 stays f32
  Profile* profile = nullptr;     ///< where time by op is counted; null: nowhere
};

}  // namespace polyhead
