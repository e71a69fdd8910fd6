//! Durations, as in Python's `datetime.timedelta`.

use std::fmt::Write as _;

use num_bigint::{BigInt, Sign};

use crate::exc::{R, raise};

const SECOND: i128 = 1_000_000;
const DAY: i128 = 86_400 * SECOND;
const MAX_DAYS: i128 = 999_999_999;

/// A duration in microseconds, of at most 999,999,999 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Delta(i128);

impl Delta {
    pub(crate) const MIN: Self = Self(-MAX_DAYS * DAY);
    pub(crate) const MAX: Self = Self(MAX_DAYS * DAY + DAY - 1);

    pub(crate) fn new(micros: i128) -> R<Self> {
        let days = micros.div_euclid(DAY);
        if days.abs() > MAX_DAYS {
            return raise(
                "OverflowError",
                format!("days={days}; must have magnitude <= {MAX_DAYS}"),
            );
        }
        Ok(Self(micros))
    }

    fn of_big(micros: &BigInt) -> R<Self> {
        match i128::try_from(micros) {
            Ok(micros) => Self::new(micros),
            Err(_) => raise("OverflowError", "Python int too large to convert to C int"),
        }
    }

    pub(crate) fn micros(self) -> i128 {
        self.0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn days(self) -> i64 {
        i64::try_from(self.0.div_euclid(DAY)).unwrap_or_default()
    }

    /// Returns an attribute; durations of less than a day are never negative.
    pub(crate) fn part(self, name: &str) -> Option<i64> {
        let rest = self.0.rem_euclid(DAY);
        let part = match name {
            "days" => return Some(self.days()),
            "seconds" => rest / SECOND,
            "microseconds" => rest % SECOND,
            _ => return None,
        };
        i64::try_from(part).ok()
    }

    pub(crate) fn total_seconds(self) -> f64 {
        quotient(self.0, SECOND)
    }

    /// `str`.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        let days = self.days();
        if days != 0 {
            let plural = if days.abs() == 1 { "" } else { "s" };
            let _ = write!(text, "{days} day{plural}, ");
        }
        let seconds = self.0.rem_euclid(DAY) / SECOND;
        let _ = write!(
            text,
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        let micros = self.0.rem_euclid(SECOND);
        if micros != 0 {
            let _ = write!(text, ".{micros:06}");
        }
        text
    }

    pub(crate) fn repr(self) -> String {
        let named = ["days", "seconds", "microseconds"].map(|name| (name, self.part(name)));
        let parts: Vec<String> = named
            .into_iter()
            .filter_map(|(name, part)| {
                part.filter(|part| *part != 0)
                    .map(|part| format!("{name}={part}"))
            })
            .collect();
        let parts = if parts.is_empty() {
            "0".to_owned()
        } else {
            parts.join(", ")
        };
        format!("datetime.timedelta({parts})")
    }

    pub(crate) fn times(self, factor: Ratio) -> R<Self> {
        Self::of_big(&nearest(factor.over * BigInt::from(self.0), &factor.under))
    }

    /// Divides by a number; the result is rounded to microseconds, half to even.
    pub(crate) fn by(self, divisor: Ratio) -> R<Self> {
        if divisor.over.sign() == Sign::NoSign {
            return division_by_zero();
        }
        Self::of_big(&nearest(divisor.under * BigInt::from(self.0), &divisor.over))
    }

    /// Divides by an integer, rounded down.
    pub(crate) fn floor(self, divisor: &BigInt) -> R<Self> {
        if divisor.sign() == Sign::NoSign {
            return division_by_zero();
        }
        Self::of_big(&floor(&BigInt::from(self.0), divisor))
    }

    pub(crate) fn ratio(self, other: Self) -> R<f64> {
        if other.is_zero() {
            return division_by_zero();
        }
        Ok(quotient(self.0, other.0))
    }

    /// Returns the whole quotient, rounded down, and the rest, which has the sign of the divisor.
    pub(crate) fn divided(self, other: Self) -> R<(i128, Self)> {
        if other.is_zero() {
            return division_by_zero();
        }
        let whole = self.0.div_euclid(other.0);
        let rest = self.0.rem_euclid(other.0);
        // Euclid's rest is never negative.
        if rest != 0 && other.0 < 0 {
            return Ok((whole - 1, Self(rest + other.0)));
        }
        Ok((whole, Self(rest)))
    }
}

fn division_by_zero<T>() -> R<T> {
    raise("ZeroDivisionError", "division by zero")
}

/// A number as a fraction with a positive denominator.
pub(crate) struct Ratio {
    over: BigInt,
    under: BigInt,
}

impl Ratio {
    pub(crate) fn whole(number: BigInt) -> Self {
        Self {
            over: number,
            under: BigInt::from(1),
        }
    }

    pub(crate) fn of(float: f64) -> R<Self> {
        if float.is_nan() {
            return raise("ValueError", "cannot convert NaN to integer ratio");
        }
        if float.is_infinite() {
            return raise("OverflowError", "cannot convert Infinity to integer ratio");
        }
        let bits = float.to_bits();
        let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or_default();
        let fraction = bits & ((1 << 52) - 1);
        // Subnormal numbers have no hidden bit.
        let (mantissa, exponent) = match exponent {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, exponent - 1075),
        };
        let mantissa = BigInt::from(mantissa) * if float < 0.0 { -1 } else { 1 };
        let shift = exponent.unsigned_abs();
        Ok(if exponent < 0 {
            Self {
                over: mantissa,
                under: BigInt::from(1) << shift,
            }
        } else {
            Self::whole(mantissa << shift)
        })
    }
}

fn floor(over: &BigInt, under: &BigInt) -> BigInt {
    let (whole, rest) = (over / under, over % under);
    let differ = rest.sign() != Sign::NoSign && rest.sign() != under.sign();
    if differ { whole - 1 } else { whole }
}

/// Divides, rounded to the nearest integer, half to even.
fn nearest(over: BigInt, under: &BigInt) -> BigInt {
    let (over, under) = if under.sign() == Sign::Minus {
        (-over, -under)
    } else {
        (over, under.clone())
    };
    let whole = floor(&over, &under);
    let twice = (over - &whole * &under) * 2;
    let is_odd = whole.bit(0);
    if twice > under || twice == under && is_odd {
        whole + 1
    } else {
        whole
    }
}

/// Returns the float that is nearest to a quotient.
fn quotient(over: i128, under: i128) -> f64 {
    let (top, bottom) = (
        BigInt::from(over.unsigned_abs()),
        BigInt::from(under.unsigned_abs()),
    );
    // The last one of these bits says if others follow: they decide about the last bit of a float.
    let shift = (66 + bottom.bits()).saturating_sub(top.bits());
    let top = top << shift;
    let more = (&top % &bottom).sign() != Sign::NoSign;
    let whole = u128::try_from(top / bottom).unwrap_or(u128::MAX) | u128::from(more);
    let sign = if (over < 0) == (under < 0) { 1.0 } else { -1.0 };
    sign * whole as f64 * 0.5f64.powi(i32::try_from(shift).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_in_python() {
        for (micros, text, repr) in [
            (0, "0:00:00", "datetime.timedelta(0)"),
            (DAY, "1 day, 0:00:00", "datetime.timedelta(days=1)"),
            (
                -SECOND,
                "-1 day, 23:59:59",
                "datetime.timedelta(days=-1, seconds=86399)",
            ),
            (
                400 * DAY + 3_723 * SECOND + 5,
                "400 days, 1:02:03.000005",
                "datetime.timedelta(days=400, seconds=3723, microseconds=5)",
            ),
        ] {
            let delta = Delta::new(micros).unwrap();
            assert_eq!((delta.text().as_str(), delta.repr().as_str()), (text, repr));
        }
        assert!(Delta::new(DAY * 1_000_000_000).is_err());
        assert_eq!(Delta(DAY + 1).total_seconds(), 86_400.000_001);
    }
}
