//! Powers of large numbers, by the method of Montgomery: squares and their rests without a division.
//!
//! Only primes are looked for with it, which is done before anything is secret: how long it takes may be seen.

use num_bigint::BigUint;

/// The digits of a number to the base of 2^64, the lowest first: as many as the modulus has.
type Digits = Vec<u64>;

/// An odd number that powers are taken modulo.
pub(super) struct Modulus {
    digits: Digits,
    /// What makes the lowest digit a zero: minus one divided by the lowest digit of the modulus.
    inverse: u64,
    /// One, and minus one, times the radix.
    one: Digits,
    minus_one: Digits,
    number: BigUint,
}

/// A number times the radix, below the modulus.
struct Power<'m> {
    modulus: &'m Modulus,
    value: Digits,
    /// Where products are made, which have twice as many digits.
    wide: Digits,
}

impl Modulus {
    /// None of an even number.
    pub(super) fn new(number: &BigUint) -> Option<Self> {
        let digits = number.to_u64_digits();
        let low = *digits.first().filter(|low| *low % 2 == 1)?;
        // Each step of Newton's doubles how many bits are right, of which the first are three.
        let inverse = (0..5).fold(low, |found, _| {
            found.wrapping_mul(2u64.wrapping_sub(low.wrapping_mul(found)))
        });
        let mut modulus = Self {
            digits,
            inverse: inverse.wrapping_neg(),
            one: Digits::new(),
            minus_one: Digits::new(),
            number: number.clone(),
        };
        modulus.one = modulus.enter(&BigUint::from(1u32));
        modulus.minus_one = modulus.enter(&(number - 1u32));
        Some(modulus)
    }

    /// A number times the radix.
    fn enter(&self, number: &BigUint) -> Digits {
        let bits = 64 * self.digits.len();
        let mut digits = ((number << bits) % &self.number).to_u64_digits();
        digits.resize(self.digits.len(), 0);
        digits
    }

    /// Whether the modulus, which is one more than `odd` times so many twos, passes for a prime with this base in the test of
    /// Miller and Rabin.
    pub(super) fn is_witnessed(&self, base: &BigUint, odd: &BigUint, twos: u64) -> bool {
        let mut power = Power {
            modulus: self,
            value: self.one.clone(),
            wide: vec![0; 2 * self.digits.len()],
        };
        if *base == BigUint::from(2u32) {
            power.raise_two(odd);
        } else {
            power.raise(&self.enter(base), odd);
        }
        if power.value == self.one || power.value == self.minus_one {
            return true;
        }
        (1..twos).any(|_| {
            power.square();
            power.value == self.minus_one
        })
    }
}

/// How many bits of an exponent are looked at together.
const WINDOW: u64 = 4;

impl Power<'_> {
    /// Two to an exponent.
    fn raise_two(&mut self, exponent: &BigUint) {
        for bit in (0..exponent.bits()).rev() {
            self.square();
            if exponent.bit(bit) {
                self.double();
            }
        }
    }

    /// A base to an exponent.
    fn raise(&mut self, base: &[u64], exponent: &BigUint) {
        let mut powers = vec![self.value.clone()];
        for _ in 1..1u32 << WINDOW {
            self.multiply(base);
            powers.push(self.value.clone());
        }
        self.value.clone_from(&self.modulus.one);
        for window in (0..exponent.bits().div_ceil(WINDOW)).rev() {
            let bits = (0..WINDOW).rev();
            let digit = bits.fold(0, |digit, bit| {
                self.square();
                2 * digit + usize::from(exponent.bit(window * WINDOW + bit))
            });
            if let Some(power) = powers.get(digit).filter(|_| digit > 0) {
                self.multiply(power);
            }
        }
    }

    fn multiply(&mut self, by: &[u64]) {
        self.wide.fill(0);
        for (place, digit) in by.iter().enumerate() {
            let Some(wide) = self.wide.get_mut(place..) else {
                return;
            };
            add_product(wide, &self.value, *digit);
        }
        self.reduce();
    }

    /// Products of two different digits are made once and count twice.
    fn square(&mut self) {
        self.wide.fill(0);
        let mut rest = self.value.as_slice();
        let mut place = 1;
        while let Some((digit, above)) = rest.split_first() {
            if let Some(wide) = self.wide.get_mut(place..) {
                add_product(wide, above, *digit);
            }
            rest = above;
            place += 2;
        }
        let (mut shifted, mut carry) = (0, false);
        for (pair, digit) in self.wide.chunks_exact_mut(2).zip(&self.value) {
            let [low, high] = pair else { return };
            let square = u128::from(*digit) * u128::from(*digit);
            let (twice_low, twice_high) = (*low << 1 | shifted, *high << 1 | *low >> 63);
            shifted = *high >> 63;
            let twice = u128::from(twice_high) << 64 | u128::from(twice_low);
            let (sum, first) = twice.overflowing_add(square);
            let (sum, second) = sum.overflowing_add(carry.into());
            carry = first || second;
            *low = sum as u64;
            *high = (sum >> 64) as u64;
        }
        self.reduce();
    }

    fn double(&mut self) {
        let mut shifted = 0;
        for digit in &mut self.value {
            let top = *digit >> 63;
            *digit = *digit << 1 | shifted;
            shifted = top;
        }
        subtract_once(&mut self.value, shifted, &self.modulus.digits);
    }

    /// Divides the product by the radix.
    fn reduce(&mut self) {
        let digits = &self.modulus.digits;
        let mut top = 0;
        for place in 0..digits.len() {
            let Some((low, above)) = self
                .wide
                .get_mut(place..)
                .and_then(|wide| wide.split_at_mut_checked(digits.len()))
            else {
                return;
            };
            let Some(factor) = low.first().map(|low| low.wrapping_mul(self.modulus.inverse)) else {
                return;
            };
            let carry = multiply_add(low, digits, factor);
            if let Some(above) = above.first_mut() {
                let sum = u128::from(*above) + u128::from(carry) + u128::from(top);
                *above = sum as u64;
                top = (sum >> 64) as u64;
            }
        }
        let product = self.wide.get(digits.len()..).unwrap_or_default();
        for (digit, found) in self.value.iter_mut().zip(product) {
            *digit = *found;
        }
        subtract_once(&mut self.value, top, digits);
    }
}

/// Adds a product to the lowest digits; what is left over for the digit above them.
fn multiply_add(into: &mut [u64], digits: &[u64], factor: u64) -> u64 {
    let mut carry = 0;
    for (digit, by) in into.iter_mut().zip(digits) {
        let sum = u128::from(*by) * u128::from(factor) + u128::from(*digit) + u128::from(carry);
        *digit = sum as u64;
        carry = (sum >> 64) as u64;
    }
    carry
}

/// Adds a product, whose highest digit goes where there is nothing yet.
fn add_product(into: &mut [u64], digits: &[u64], factor: u64) {
    let carry = multiply_add(into, digits, factor);
    if let Some(above) = into.get_mut(digits.len()) {
        *above = carry;
    }
}

/// Subtracts the modulus from what is at most once as large again; `top` is the digit above.
fn subtract_once(value: &mut [u64], top: u64, modulus: &[u64]) {
    if top == 0 && value.iter().rev().lt(modulus.iter().rev()) {
        return;
    }
    let mut borrow = false;
    for (digit, by) in value.iter_mut().zip(modulus) {
        let (difference, first) = digit.overflowing_sub(*by);
        let (difference, second) = difference.overflowing_sub(borrow.into());
        *digit = difference;
        borrow = first || second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_plain_arithmetic() {
        let mut state = 1u64;
        let mut random = |digits: usize| {
            let digit = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                // Digits of ones alone carry far.
                let ones = state >> 61 == 0;
                u32::try_from(if ones { u64::from(u32::MAX) } else { state >> 32 }).unwrap()
            };
            BigUint::new(std::iter::repeat_with(digit).take(2 * digits).collect())
        };
        for turn in 0..300 {
            let digits = 1 + turn % 5;
            let mut number = random(digits);
            number.set_bit(0, true);
            if number.bits() < 3 {
                continue;
            }
            let modulus = Modulus::new(&number).unwrap();
            for base in [BigUint::from(2u32), random(digits) % &number] {
                let exponent = random(digits);
                let mut power = Power {
                    modulus: &modulus,
                    value: modulus.one.clone(),
                    wide: vec![0; 2 * modulus.digits.len()],
                };
                if base == BigUint::from(2u32) {
                    power.raise_two(&exponent);
                } else {
                    power.raise(&modulus.enter(&base), &exponent);
                }
                assert_eq!(
                    power.value,
                    modulus.enter(&base.modpow(&exponent, &number)),
                    "{number}"
                );
            }
        }
    }

    #[test]
    fn primes_are_witnessed_and_others_are_not() {
        let witnessed = |number: u64, base: u32| {
            let (twos, below) = ((number - 1).trailing_zeros(), number - 1);
            let modulus = Modulus::new(&BigUint::from(number)).unwrap();
            modulus.is_witnessed(&BigUint::from(base), &BigUint::from(below >> twos), twos.into())
        };
        for prime in [5, 7, 13, 65_537, 4_294_967_291, 18_446_744_073_709_551_557] {
            assert!(witnessed(prime, 2) && witnessed(prime, 3), "{prime}");
        }
        for number in [9, 15, 561, 4_294_967_295, 18_446_744_073_709_551_555] {
            assert!(!witnessed(number, 2), "{number}");
        }
        // The smallest that passes for 2, and not for 3.
        assert!(witnessed(2047, 2) && !witnessed(2047, 3));
        assert!(Modulus::new(&BigUint::from(10u32)).is_none());
    }
}
