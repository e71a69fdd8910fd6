//! Random numbers.

use crate::{
    exc::{R, raise},
    rt::Rt,
};

/// Returns the next number of the sequence of the render's seed (splitmix64).
pub(crate) fn random(rt: &Rt) -> R<u64> {
    let Some(seed) = rt.environment.seed else {
        return raise("NotImplementedError", "nothing random is given to this render");
    };
    let next = rt.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    rt.random.set(next);
    let mut mixed = next ^ seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Ok(mixed ^ (mixed >> 31))
}
