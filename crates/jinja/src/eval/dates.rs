//! Operators of dates and durations.

use num_bigint::BigInt;

use crate::{
    exc::{R, type_error},
    value::{
        Object, Value,
        date::Date,
        delta::{Delta, Ratio},
        number::{self, Number},
        operator::Operator,
    },
};

enum Side<'v> {
    Date(&'v Date),
    Delta(Delta),
    Number(Number),
}

impl<'v> Side<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        if let Some(number) = Number::of(value) {
            return Some(Self::Number(number));
        }
        let Value::Object(object) = value else { return None };
        match &**object {
            Object::Date(date) => Some(Self::Date(date)),
            Object::Delta(delta) => Some(Self::Delta(*delta)),
            _ => None,
        }
    }
}

/// Calculates with dates and durations; `None` if the operator has no meaning for both.
pub(super) fn calculate(op: Operator, left: &Value, right: &Value) -> Option<R<Value>> {
    let (left, right) = (Side::of(left)?, Side::of(right)?);
    Some(match (op, left, right) {
        (Operator::Sub, Side::Date(left), Side::Date(right)) if left.is_like(right) => {
            difference(left, right)
        }
        (Operator::Add, Side::Date(date), Side::Delta(delta))
        | (Operator::Add, Side::Delta(delta), Side::Date(date)) => shifted(date, delta, 1),
        (Operator::Sub, Side::Date(date), Side::Delta(delta)) => shifted(date, delta, -1),
        (Operator::Mul, Side::Delta(delta), Side::Number(factor))
        | (Operator::Mul, Side::Number(factor), Side::Delta(delta)) => {
            ratio(&factor).and_then(|factor| delta.times(factor)).map(of)
        }
        (Operator::Div, Side::Delta(delta), Side::Number(divisor)) => {
            ratio(&divisor).and_then(|divisor| delta.by(divisor)).map(of)
        }
        (Operator::FloorDiv, Side::Delta(delta), Side::Number(divisor)) => {
            delta.floor(&divisor.big()?).map(of)
        }
        (op, Side::Delta(left), Side::Delta(right)) => return durations(op, left, right),
        _ => return None,
    })
}

fn ratio(number: &Number) -> R<Ratio> {
    match number {
        Number::Float(float) => Ratio::of(*float),
        whole => Ok(Ratio::whole(whole.big().unwrap_or_default())),
    }
}

fn of(delta: Delta) -> Value {
    Value::object(Object::Delta(delta))
}

fn durations(op: Operator, left: Delta, right: Delta) -> Option<R<Value>> {
    let (a, b) = (left.micros(), right.micros());
    Some(match op {
        Operator::Add => Delta::new(a + b).map(of),
        Operator::Sub => Delta::new(a - b).map(of),
        Operator::Div => left.ratio(right).map(Value::Float),
        Operator::FloorDiv => left
            .divided(right)
            .map(|(whole, _)| number::from_big(BigInt::from(whole))),
        Operator::Mod => left.divided(right).map(|(_, rest)| of(rest)),
        Operator::Mul | Operator::Pow => return None,
    })
}

fn difference(left: &Date, right: &Date) -> R<Value> {
    match left.since(right) {
        Some(micros) => Delta::new(micros).map(of),
        None => type_error("can't subtract offset-naive and offset-aware datetimes"),
    }
}

fn shifted(date: &Date, delta: Delta, sign: i128) -> R<Value> {
    let shifted = date.shifted(delta, sign)?;
    Ok(Value::object(Object::Date(shifted)))
}

/// Returns the negative or the absolute duration; `None` for other values.
pub(crate) fn signed(value: &Value, sign: impl Fn(i128) -> i128) -> Option<R<Value>> {
    let Value::Object(object) = value else { return None };
    let Object::Delta(delta) = &**object else {
        return None;
    };
    Some(Delta::new(sign(delta.micros())).map(of))
}
