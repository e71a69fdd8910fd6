//! Generation of RSA keys from two random primes.
//!
//! The search counts against the budget, and the same randomness gives the same key. docs/adr/0013 compares it with the crate
//! `rsa`, whose search can't be interrupted and takes ten times as long.

use std::{sync::LazyLock, thread};

use num_bigint::BigUint;
use tree::Budget;

use super::der;
use crate::functions::{
    context::{Context, Environment as _},
    moment::Moment,
};
use crate::template::FunctionError;

/// The number of random witnesses for a prime.
///
/// FIPS 186-5 requires 5 for random candidates of 1024 bits, for an error below 2^-112, and fewer for larger ones.
const WITNESSES: u32 = 5;
const EXPONENT: u32 = 65_537;

/// Returns a key in PKCS#1.
pub(super) fn generate(context: &Context<'_>, bits: u64) -> Result<Vec<u8>, FunctionError> {
    let one = BigUint::from(1u32);
    let exponent = BigUint::from(EXPONENT);
    let (mut p, mut q) = primes(context, bits / 2)?;
    while p == q {
        q = Search::new(context).prime(bits / 2)?;
    }
    if p < q {
        std::mem::swap(&mut p, &mut q);
    }
    let (below_p, below_q) = (&p - &one, &q - &one);
    let failed = || "failed to generate private key".to_owned();
    let private = exponent.modinv(&(&below_p * &below_q)).ok_or_else(failed)?;
    let inverse = q.modinv(&p).ok_or_else(failed)?;
    let numbers = [
        &p * &q,
        exponent,
        private.clone(),
        p,
        q,
        &private % below_p,
        &private % below_q,
        inverse,
    ];
    let mut parts = vec![der::integer(&[0])];
    parts.extend(numbers.iter().map(|number| der::integer(&number.to_bytes_be())));
    Ok(der::sequence(&parts))
}

/// Searches two primes in parallel, each with its own random source: the result doesn't depend on timing.
fn primes(context: &Context<'_>, bits: u64) -> Result<(BigUint, BigUint), FunctionError> {
    let (first, second) = (Search::new(context), Search::new(context));
    thread::scope(|scope| {
        let other = thread::Builder::new()
            .name("prime".to_owned())
            .spawn_scoped(scope, || second.prime(bits))
            .map_err(|error| format!("failed to generate private key: {error}"))?;
        let found = first.prime(bits);
        match other.join() {
            Ok(other) => Ok((found?, other?)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The maximum length of a run of candidates.
const WALK: u32 = 2000;

/// The odd primes below 2^16: division by them costs far less than a witness.
static SMALL_PRIMES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let (mut primes, mut divided) = (Vec::new(), vec![false; 1 << 16]);
    for number in (3..1u32 << 16).step_by(2) {
        let step = number as usize;
        if divided.get(step).is_some_and(|divided| !divided) {
            primes.push(number);
            let multiples = divided.iter_mut().skip(step * step).step_by(2 * step);
            multiples.for_each(|divided| *divided = true);
        }
    }
    primes
});

struct Search<'a> {
    random: Moment,
    budget: &'a Budget,
}

impl<'a> Search<'a> {
    fn new(context: &Context<'a>) -> Self {
        let mut seed = [0; 32];
        context.environment.fill(&mut seed);
        Self {
            random: Moment::new(0, 0, seed),
            budget: context.budget,
        }
    }

    /// Returns a random number with the lowest and the two highest bits set, so that products have all their bits.
    fn candidate(&self, bits: u64) -> BigUint {
        let mut bytes = vec![0; usize::try_from(bits / 8).unwrap_or_default()];
        self.random.fill(&mut bytes);
        let mut number = BigUint::from_bytes_be(&bytes);
        for bit in [0, bits - 1, bits - 2] {
            number.set_bit(bit, true);
        }
        number
    }

    fn prime(&self, bits: u64) -> Result<BigUint, FunctionError> {
        loop {
            // Each run starts at a new random number: a single run would prefer primes after large gaps.
            let start = self.candidate(bits);
            for step in undivided(&start) {
                self.budget.step(bits)?;
                let number = &start + step;
                let coprime = &number % EXPONENT != BigUint::from(1u32);
                if coprime && number.bits() == bits && self.is_prime(&number, bits) {
                    return Ok(number);
                }
            }
        }
    }

    /// The Miller-Rabin test.
    fn is_prime(&self, number: &BigUint, bits: u64) -> bool {
        let one = BigUint::from(1u32);
        let last = number - &one;
        let twos = last.trailing_zeros().unwrap_or(0);
        let odd = &last >> twos;
        let witness = |base: &BigUint| {
            let mut power = base.modpow(&odd, number);
            if power == one || power == last {
                return true;
            }
            for _ in 1..twos {
                power = &power * &power % number;
                if power == last {
                    return true;
                }
            }
            false
        };
        witness(&BigUint::from(2u32)) && (0..WITNESSES).all(|_| witness(&self.candidate(bits - 1)))
    }
}

/// Returns the distances from an odd number to the following numbers that no small prime divides.
fn undivided(start: &BigUint) -> impl Iterator<Item = u32> {
    let mut divided = [false; WALK as usize / 2];
    for pair in SMALL_PRIMES.chunks(2) {
        // The remainder of a large number is slow: two primes share one.
        let rest: u32 = (start % pair.iter().product::<u32>())
            .try_into()
            .unwrap_or_default();
        for prime in pair {
            // Half the distance to the next multiple, as steps are of two; an odd distance leads to the multiple after it.
            let distance = (prime - rest % prime) % prime;
            let first = (distance + prime * (distance % 2)) / 2;
            let multiples = divided.iter_mut().skip(first as usize).step_by(*prime as usize);
            multiples.for_each(|divided| *divided = true);
        }
    }
    let steps = (0..WALK).step_by(2).zip(divided);
    steps.filter_map(|(step, divided)| (!divided).then_some(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undivided_skips_multiples_of_small_primes() {
        let start = (BigUint::from(1u32) << 300) + 1u32;
        let found: Vec<u32> = undivided(&start).collect();
        let zero = BigUint::from(0u32);
        let has_none = |step: &u32| SMALL_PRIMES.iter().all(|prime| (&start + *step) % *prime != zero);
        let expected: Vec<u32> = (0..WALK).step_by(2).filter(has_none).collect();
        assert_eq!(found, expected);
        assert!(!found.is_empty());
    }
}
