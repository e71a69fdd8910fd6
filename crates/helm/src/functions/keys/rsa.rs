//! New RSA keys: two random primes and what follows from them.
//!
//! Charts only ever make such keys; nothing here signs or decrypts with them, so nobody can watch how long that takes. The
//! crate `rsa` would bring what can be watched (RUSTSEC-2023-0071) for the sake of this one search.

use num_bigint::BigUint;

use super::{super::Context, der};

/// How many random numbers have to witness that a number is a prime.
///
/// FIPS 186-5 asks for 5 where candidates of 1024 bits are random, for an error below 2^-112, and for fewer of larger ones.
const WITNESSES: u32 = 7;
const EXPONENT: u32 = 65_537;

/// A key in PKCS#1.
pub(super) fn generate(context: &Context<'_>, bits: u64) -> Result<Vec<u8>, String> {
    let one = BigUint::from(1u32);
    let exponent = BigUint::from(EXPONENT);
    let small = small_primes();
    let (mut p, mut q) = (
        prime(context, bits / 2, &small)?,
        prime(context, bits / 2, &small)?,
    );
    while p == q {
        q = prime(context, bits / 2, &small)?;
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

/// The odd primes below 2^15: dividing by them costs far less than a witness.
fn small_primes() -> Vec<u32> {
    let mut primes: Vec<u32> = Vec::new();
    for number in (3..1u32 << 15).step_by(2) {
        let mut divisors = primes.iter().take_while(|prime| *prime * *prime <= number);
        if divisors.all(|prime| number % prime != 0) {
            primes.push(number);
        }
    }
    primes
}

/// A random number with its lowest bit and its two highest set, so that products have all their bits.
fn candidate(context: &Context<'_>, bits: u64) -> BigUint {
    let mut bytes = vec![0; usize::try_from(bits / 8).unwrap_or_default()];
    context.environment.fill(&mut bytes);
    let mut number = BigUint::from_bytes_be(&bytes);
    for bit in [0, bits - 1, bits - 2] {
        number.set_bit(bit, true);
    }
    number
}

fn prime(context: &Context<'_>, bits: u64, small: &[u32]) -> Result<BigUint, String> {
    loop {
        // Each walk of candidates begins anew, as they would else gather behind large gaps.
        let start = candidate(context, bits);
        let rests: Vec<u32> = small
            .iter()
            .map(|prime| (&start % *prime).try_into().unwrap_or(0))
            .collect();
        for step in (0..2000u32).step_by(2) {
            let divided = small
                .iter()
                .zip(&rests)
                .any(|(prime, rest)| (rest + step) % prime == 0);
            if divided {
                continue;
            }
            context.work(bits)?;
            let number = &start + step;
            let coprime = &number % EXPONENT != BigUint::from(1u32);
            if coprime && number.bits() == bits && is_prime(context, &number, bits) {
                return Ok(number);
            }
        }
    }
}

/// Whether a number passes the test of Miller and Rabin.
fn is_prime(context: &Context<'_>, number: &BigUint, bits: u64) -> bool {
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
    witness(&BigUint::from(2u32)) && (0..WITNESSES).all(|_| witness(&(candidate(context, bits - 1))))
}
