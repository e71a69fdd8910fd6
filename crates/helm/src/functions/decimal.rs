//! Decimal numbers of any length, for arithmetic without rounding.

use crate::template::FunctionError;
use num_bigint::{BigInt, Sign};

#[derive(Debug, Clone)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i32,
}

/// Digits after the point in the result of a division.
const PRECISION: i32 = 16;

fn power(exponent: i32) -> BigInt {
    BigInt::from(10).pow(exponent.unsigned_abs())
}

impl Decimal {
    /// Returns the shortest decimal number that parses as this float.
    pub(super) fn new(float: f64) -> Result<Self, FunctionError> {
        if !float.is_finite() {
            let name = if float.is_nan() {
                "NaN"
            } else if float > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            return Err(format!("Cannot create a Decimal from {name}").into());
        }
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().unwrap_or_default();
        let exponent = exponent.parse::<i32>().unwrap_or(0) - fraction.len() as i32;
        Ok(Self { digits, exponent })
    }

    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i32) {
        let exponent = self.exponent.min(other.exponent);
        let scale = |number: &Self| &number.digits * power(number.exponent - exponent);
        (scale(self), scale(other), exponent)
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let (left, right, exponent) = self.aligned(other);
        Self {
            digits: left + right,
            exponent,
        }
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        let (left, right, exponent) = self.aligned(other);
        Self {
            digits: left - right,
            exponent,
        }
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        Self {
            digits: &self.digits * &other.digits,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Divides, rounding half away from zero.
    pub(super) fn div(&self, other: &Self) -> Result<Self, FunctionError> {
        if other.digits.sign() == Sign::NoSign {
            return Err("decimal division by 0".into());
        }
        let shift = self.exponent - other.exponent + PRECISION;
        let (above, below) = if shift < 0 {
            (self.digits.clone(), &other.digits * power(shift))
        } else {
            (&self.digits * power(shift), other.digits.clone())
        };
        let quotient = &above / &below;
        let rest = &above - &quotient * &below;
        let up = rest.magnitude() * 2u32 >= *below.magnitude();
        let away = if above.sign() == below.sign() { 1 } else { -1 };
        let digits = if up { quotient + away } else { quotient };
        Ok(Self {
            digits,
            exponent: -PRECISION,
        })
    }

    pub(super) fn to_f64(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(0.0)
    }
}
