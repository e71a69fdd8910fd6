//! Random strings and numbers, from the environment's randomness.

use super::{
    arguments::{int, text},
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::{
    Value,
    template::{FunctionError, Type},
};

const COUNT: &[Type] = &[Type::Int];
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

pub(super) const TABLE: &[Entry] = &[
    fixed("randAlpha", COUNT, |context, arguments| {
        characters(context, arguments, LETTERS)
    }),
    fixed("randNumeric", COUNT, |context, arguments| {
        characters(context, arguments, DIGITS)
    }),
    fixed("randAlphaNum", COUNT, |context, arguments| {
        characters(context, arguments, &format!("{LETTERS}{DIGITS}"))
    }),
    fixed("randAscii", COUNT, |context, arguments| {
        characters(context, arguments, &(' '..='~').collect::<String>())
    }),
    fixed("randBytes", COUNT, bytes),
    fixed("randInt", &[Type::Int, Type::Int], integer),
    fixed("shuffle", &[Type::String], shuffle),
    fixed("uuidv4", &[], uuid),
];

/// Returns a uniformly distributed number below `limit`.
fn below(context: &Context<'_>, limit: u64) -> u64 {
    let fair = u64::MAX - u64::MAX % limit;
    loop {
        let mut bytes = [0; 8];
        context.environment.fill(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < fair {
            return number % limit;
        }
    }
}

fn characters(context: &Context<'_>, arguments: &[Value], alphabet: &str) -> Answer {
    let count = usize::try_from(int(arguments, 0)).unwrap_or(0);
    context.text(count.saturating_mul(8))?;
    let letters = alphabet.as_bytes();
    let pick = |_| {
        context.work(8)?;
        let index = below(context, letters.len() as u64);
        let letter = usize::try_from(index).ok().and_then(|index| letters.get(index));
        Ok(letter.map_or('0', |letter| char::from(*letter)))
    };
    let made = (0..count).map(pick).collect::<Result<String, FunctionError>>();
    Ok(Value::string(made?))
}

fn bytes(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let count =
        usize::try_from(int(arguments, 0)).map_err(|_| "runtime error: makeslice: len out of range")?;
    context.text(count)?;
    let mut bytes = vec![0; count];
    for part in bytes.chunks_mut(16 << 10) {
        context.work(part.len() as u64)?;
        context.environment.fill(part);
    }
    Ok(Value::string(crate::convert::base64(&bytes)))
}

fn integer(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (low, high) = (int(arguments, 0), int(arguments, 1));
    let range = high.wrapping_sub(low);
    if range <= 0 {
        return Err("invalid argument to Intn".into());
    }
    Ok(Value::int(
        low.wrapping_add(below(context, range.unsigned_abs()) as i64),
    ))
}

fn shuffle(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len().saturating_mul(8))?;
    let mut letters: Vec<char> = text(arguments, 0).chars().collect();
    for index in (1..letters.len()).rev() {
        context.work(8)?;
        let other = below(context, index as u64 + 1) as usize;
        letters.swap(index, other);
    }
    let letters: String = letters.into_iter().collect();
    Ok(Value::utf8(&go::bytes::to_valid_utf8(&letters)))
}

fn uuid(context: &Context<'_>, _: &[Value]) -> Answer {
    let mut bytes = [0; 16];
    context.environment.fill(&mut bytes);
    Ok(Value::string(
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string(),
    ))
}
