//! Arithmetic of Python: integers of any size, floats, and booleans that count as integers.

use std::rc::Rc;

use num_bigint::{BigInt, Sign};

use super::Value;
use crate::{
    exc::{R, raise, type_error},
    rt::Rt,
    value::operator::Operator,
};

/// Returns an integer in the shortest representation.
pub(crate) fn from_big(number: BigInt) -> Value {
    match i64::try_from(&number) {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Big(Rc::new(number)),
    }
}

/// A number in Python's type for arithmetic.
#[derive(Debug, Clone)]
pub(crate) enum Number {
    Int(i64),
    Big(Rc<BigInt>),
    Float(f64),
}

impl Number {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(flag) => Self::Int(i64::from(*flag)),
            Value::Int(number) => Self::Int(*number),
            Value::Big(number) => Self::Big(number.clone()),
            Value::Float(number) => Self::Float(*number),
            _ => return None,
        })
    }

    pub(crate) fn big(&self) -> Option<BigInt> {
        match self {
            Self::Int(number) => Some(BigInt::from(*number)),
            Self::Big(number) => Some(BigInt::clone(number)),
            Self::Float(_) => None,
        }
    }

    pub(crate) fn float(&self) -> f64 {
        match self {
            Self::Int(number) => *number as f64,
            Self::Big(number) => big_to_float(number),
            Self::Float(number) => *number,
        }
    }
}

/// Returns the nearest float; infinite if out of range.
pub(crate) fn big_to_float(number: &BigInt) -> f64 {
    if number.bits() > 1100 {
        return if number.sign() == Sign::Minus {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    number.to_string().parse().unwrap_or(f64::NAN)
}

/// Returns the integer that equals a float, if there is one.
pub(crate) fn exact(number: f64) -> Option<Value> {
    (number.is_finite() && number.trunc() == number)
        .then(|| truncated(number))
        .flatten()
}

/// Returns the integral part of a float.
pub(crate) fn truncated(number: f64) -> Option<Value> {
    if !number.is_finite() {
        return None;
    }
    let whole = number.trunc();
    if whole.abs() < 9.0e18 {
        return Some(Value::Int(whole as i64));
    }
    let digits = format!("{whole:.0}");
    BigInt::parse_bytes(digits.as_bytes(), 10).map(from_big)
}

/// Fails if an integer is larger than a value may be.
fn check_size(rt: &Rt, bits: u64) -> R<()> {
    rt.fits(usize::try_from(bits / 8).unwrap_or(usize::MAX))?;
    // Multiplication and printing take more than linear time.
    if bits > 4_000_000 {
        return raise("OverflowError", "the integer has too many digits");
    }
    rt.alloc(usize::try_from(bits / 8).unwrap_or(usize::MAX))?;
    rt.step(bits / 64)
}

pub(crate) fn symbol(op: Operator) -> &'static str {
    match op {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Mul => "*",
        Operator::Div => "/",
        Operator::FloorDiv => "//",
        Operator::Mod => "%",
        Operator::Pow => "** or pow()",
    }
}

pub(crate) fn calculate(rt: &Rt, op: Operator, a: &Number, b: &Number) -> R<Value> {
    match (a, b) {
        (Number::Float(_), _) | (_, Number::Float(_)) => floats(op, a, b),
        (Number::Int(a), Number::Int(b)) => match small(op, *a, *b) {
            Some(value) => Ok(value),
            None => whole(rt, op, &BigInt::from(*a), &BigInt::from(*b)),
        },
        _ => match (a.big(), b.big()) {
            (Some(a), Some(b)) => whole(rt, op, &a, &b),
            _ => Ok(Value::None),
        },
    }
}

/// Calculates with integers of 64 bits; `None` if the result needs more.
fn small(op: Operator, a: i64, b: i64) -> Option<Value> {
    let value = match op {
        Operator::Add => a.checked_add(b)?,
        Operator::Sub => a.checked_sub(b)?,
        Operator::Mul => a.checked_mul(b)?,
        Operator::FloorDiv => {
            let quotient = a.checked_div(b)?;
            quotient - i64::from(a % b != 0 && (a < 0) != (b < 0))
        }
        Operator::Mod => {
            let rest = a.checked_rem(b)?;
            if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }
        Operator::Pow => a.checked_pow(u32::try_from(b).ok()?)?,
        Operator::Div => {
            let exact = 1i64 << 53;
            if b == 0 || a.abs() > exact || b.abs() > exact {
                return None;
            }
            return Some(Value::Float(a as f64 / b as f64));
        }
    };
    Some(Value::Int(value))
}

fn whole(rt: &Rt, op: Operator, a: &BigInt, b: &BigInt) -> R<Value> {
    let zero = b.sign() == Sign::NoSign;
    match op {
        Operator::Add | Operator::Sub => check_size(rt, a.bits().max(b.bits()) + 1)?,
        Operator::Mul => check_size(rt, a.bits() + b.bits())?,
        Operator::Pow => {}
        Operator::Div if zero => return raise("ZeroDivisionError", "division by zero"),
        Operator::Mod if zero => return raise("ZeroDivisionError", "integer modulo by zero"),
        _ if zero => return raise("ZeroDivisionError", "integer division or modulo by zero"),
        _ => check_size(rt, a.bits())?,
    }
    Ok(match op {
        Operator::Add => from_big(a + b),
        Operator::Sub => from_big(a - b),
        Operator::Mul => {
            rt.step(a.bits().saturating_mul(b.bits()) / 65_536)?;
            from_big(a * b)
        }
        Operator::Div => return quotient(a, b),
        Operator::FloorDiv | Operator::Mod => {
            rt.step(a.bits().saturating_mul(b.bits()) / 65_536)?;
            let (mut quotient, mut rest) = (a / b, a % b);
            if rest.sign() != Sign::NoSign && rest.sign() != b.sign() {
                quotient -= 1;
                rest += b;
            }
            from_big(if op == Operator::Mod { rest } else { quotient })
        }
        Operator::Pow => return power(rt, a, b),
    })
}

/// True division, rounded once.
fn quotient(a: &BigInt, b: &BigInt) -> R<Value> {
    let (x, y) = (big_to_float(a), big_to_float(b));
    let exact = 9.0e15;
    if x.abs() <= exact && y.abs() <= exact {
        return Ok(Value::Float(x / y));
    }
    // With this many bits the remainder affects only the last rounding.
    let shift = 66 + b.bits().saturating_sub(a.bits());
    let extra = a.bits().saturating_sub(b.bits()).saturating_sub(1100);
    if extra > 0 {
        return raise("OverflowError", "integer division result too large for a float");
    }
    let scaled = (a.magnitude() << shift) / b.magnitude();
    let sticky = (a.magnitude() << shift) % b.magnitude() != num_bigint::BigUint::default();
    let scaled = (scaled << 1u32) + u32::from(sticky);
    let mut value: f64 = big_to_float(&BigInt::from(scaled));
    let mut left = i32::try_from(shift + 1).unwrap_or(i32::MAX);
    while left > 0 {
        let step = left.min(1000);
        value /= 2f64.powi(step);
        left -= step;
    }
    let negative = (a.sign() == Sign::Minus) != (b.sign() == Sign::Minus);
    if value.is_infinite() {
        return raise("OverflowError", "integer division result too large for a float");
    }
    Ok(Value::Float(if negative { -value } else { value }))
}

fn power(rt: &Rt, a: &BigInt, b: &BigInt) -> R<Value> {
    if b.sign() == Sign::Minus {
        let (a, b) = (Number::Float(big_to_float(a)), Number::Float(big_to_float(b)));
        return floats(Operator::Pow, &a, &b);
    }
    let unit = a.bits() <= 1 && i64::try_from(a).is_ok_and(|a| a.abs() <= 1);
    if unit {
        let odd = b.bit(0);
        let value = i64::try_from(a).unwrap_or_default();
        return Ok(Value::Int(if b.sign() == Sign::NoSign || !odd && value != 0 {
            1
        } else {
            value
        }));
    }
    let Ok(exponent) = u32::try_from(b) else {
        return raise("OverflowError", "the integer has too many digits");
    };
    let bits = a.bits().saturating_mul(u64::from(exponent));
    check_size(rt, bits)?;
    rt.step(bits.saturating_mul(bits) / 65_536)?;
    Ok(from_big(a.pow(exponent)))
}

fn floats(op: Operator, a: &Number, b: &Number) -> R<Value> {
    for number in [a, b] {
        if matches!(number, Number::Big(_)) && number.float().is_infinite() {
            return raise("OverflowError", "int too large to convert to float");
        }
    }
    let (x, y) = (a.float(), b.float());
    let zero = |message: &str| raise("ZeroDivisionError", message);
    Ok(Value::Float(match op {
        Operator::Add => x + y,
        Operator::Sub => x - y,
        Operator::Mul => x * y,
        Operator::Div if y == 0.0 => return zero("float division by zero"),
        Operator::Div => x / y,
        Operator::FloorDiv if y == 0.0 => return zero("float floor division by zero"),
        Operator::FloorDiv => divided(x, y).0,
        Operator::Mod if y == 0.0 => return zero("float modulo"),
        Operator::Mod => divided(x, y).1,
        Operator::Pow if x == 0.0 && y < 0.0 => return zero("0.0 cannot be raised to a negative power"),
        Operator::Pow if x < 0.0 && y.fract() != 0.0 && x.is_finite() && y.is_finite() => {
            return raise("NotImplementedError", "complex numbers are not known");
        }
        Operator::Pow => {
            let value = x.powf(y);
            if value.is_infinite() && x.is_finite() && y.is_finite() {
                return raise("OverflowError", "(34, 'Numerical result out of range')");
            }
            value
        }
    }))
}

/// Returns quotient and remainder of floats, with Python's rounding.
fn divided(x: f64, y: f64) -> (f64, f64) {
    let mut rest = x % y;
    let mut quotient = (x - rest) / y;
    if rest != 0.0 {
        if (y < 0.0) != (rest < 0.0) {
            rest += y;
            quotient -= 1.0;
        }
    } else {
        rest = 0f64.copysign(y);
    }
    let floor = if quotient == 0.0 {
        0f64.copysign(x / y)
    } else {
        let floor = quotient.floor();
        if quotient - floor > 0.5 {
            floor + 1.0
        } else {
            floor
        }
    };
    (floor, rest)
}

pub(crate) fn negative(rt: &Rt, value: &Value) -> R<Option<Value>> {
    let Some(number) = Number::of(value) else {
        return Ok(None);
    };
    Ok(Some(match number {
        Number::Int(number) => number
            .checked_neg()
            .map_or_else(|| from_big(-BigInt::from(number)), Value::Int),
        Number::Big(number) => {
            check_size(rt, number.bits())?;
            from_big(-BigInt::clone(&number))
        }
        Number::Float(number) => Value::Float(-number),
    }))
}

pub(crate) fn absolute(rt: &Rt, value: &Value) -> R<Value> {
    let is_negative = match Number::of(value) {
        Some(Number::Int(number)) => number < 0,
        Some(Number::Big(number)) => number.sign() == Sign::Minus,
        Some(Number::Float(number)) => return Ok(Value::Float(number.abs())),
        None => return type_error(format!("bad operand type for abs(): '{}'", value.type_name())),
    };
    let positive = if is_negative { negative(rt, value)? } else { None };
    Ok(positive.unwrap_or_else(|| match value {
        Value::Bool(flag) => Value::Int(i64::from(*flag)),
        other => other.clone(),
    }))
}
