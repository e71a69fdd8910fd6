//! Regular expressions in the language of Go. Those whose names begin with `must` say what is wrong with an expression in
//! other words.

use std::rc::Rc;

use super::{
    Answer, Context, Entry,
    arguments::{int, text},
    bytes,
    expression::Expression,
    fixed, pattern,
    strings::strings,
};
use crate::{Value, template::Type};

const TWO: &[Type] = &[Type::String, Type::String];
const COUNTED: &[Type] = &[Type::String, Type::String, Type::Int];
const THREE: &[Type] = &[Type::String, Type::String, Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("regexMatch", TWO, |context, arguments| {
        Ok(matches(context, arguments, plain).unwrap_or(Value::Bool(false)))
    }),
    fixed("mustRegexMatch", TWO, |context, arguments| {
        matches(context, arguments, plain)
    }),
    fixed("regexFind", TWO, |context, arguments| {
        find(context, arguments, compiling)
    }),
    fixed("mustRegexFind", TWO, |context, arguments| {
        find(context, arguments, plain)
    }),
    fixed("regexFindAll", COUNTED, |context, arguments| {
        find_all(context, arguments, compiling)
    }),
    fixed("mustRegexFindAll", COUNTED, |context, arguments| {
        find_all(context, arguments, plain)
    }),
    fixed("regexReplaceAll", THREE, |context, arguments| {
        replace(context, arguments, compiling, true)
    }),
    fixed("mustRegexReplaceAll", THREE, |context, arguments| {
        replace(context, arguments, plain, true)
    }),
    fixed("regexReplaceAllLiteral", THREE, |context, arguments| {
        replace(context, arguments, compiling, false)
    }),
    fixed("mustRegexReplaceAllLiteral", THREE, |context, arguments| {
        replace(context, arguments, plain, false)
    }),
    fixed("regexSplit", COUNTED, |context, arguments| {
        split(context, arguments, compiling)
    }),
    fixed("mustRegexSplit", COUNTED, |context, arguments| {
        split(context, arguments, plain)
    }),
    fixed("regexQuoteMeta", &[Type::String], quote_meta),
];

/// How an error in an expression is told.
type Telling = fn(&str, &str) -> String;

fn plain(_: &str, error: &str) -> String {
    error.to_owned()
}

fn compiling(expression: &str, error: &str) -> String {
    let plain = |c: char| {
        !matches!(c, '`' | '\u{7f}' | '\u{feff}') && (c >= ' ' || c == '\t') && bytes::stand_in(c).is_none()
    };
    let quoted = if !expression.chars().all(plain) {
        crate::template::quote(expression)
    } else {
        format!("`{expression}`")
    };
    format!("regexp: Compile({quoted}): {error}")
}

/// How many of them are kept.
const KEPT: usize = 100;

fn compile(context: &Context<'_>, arguments: &[Value], tell: Telling) -> Result<Rc<Expression>, String> {
    let expression = text(arguments, 0);
    if let Some(known) = context.expressions.borrow().get(expression) {
        context.text(text(arguments, 1).len().saturating_mul(8))?;
        return Ok(Rc::clone(known));
    }
    let compiled = Rc::new(compiled(context, arguments, tell)?);
    let mut kept = context.expressions.borrow_mut();
    if kept.len() < KEPT {
        kept.insert(expression.to_owned(), Rc::clone(&compiled));
    }
    Ok(compiled)
}

fn compiled(context: &Context<'_>, arguments: &[Value], tell: Telling) -> Result<Expression, String> {
    let expression = text(arguments, 0);
    context.work(
        (expression.len() as u64)
            .saturating_mul(1000)
            .saturating_add(10_000),
    )?;
    context.text(text(arguments, 1).len().saturating_mul(8))?;
    if let Some(at) = expression.find(|c| bytes::stand_in(c).is_some()) {
        let rest = expression.get(at..).unwrap_or_default();
        let invalid = format!("error parsing regexp: invalid UTF-8: `{rest}`");
        return Err(tell(expression, &invalid));
    }
    let translated = pattern::translate(expression).map_err(|error| tell(expression, &error))?;
    Expression::new(&translated).map_err(|_| {
        tell(
            expression,
            "error parsing regexp: expression nests too deeply or is too large",
        )
    })
}

fn matches(context: &Context<'_>, arguments: &[Value], tell: Telling) -> Answer {
    Ok(Value::Bool(
        compile(context, arguments, tell)?.is_match(text(arguments, 1)),
    ))
}

fn find(context: &Context<'_>, arguments: &[Value], tell: Telling) -> Answer {
    let regex = compile(context, arguments, tell)?;
    let source = text(arguments, 1);
    let found = regex.find(source).and_then(|found| source.get(found));
    Ok(Value::string(found.unwrap_or_default()))
}

/// How many matches are wanted; a negative count means all.
fn limit(arguments: &[Value]) -> usize {
    usize::try_from(int(arguments, 2)).unwrap_or(usize::MAX)
}

fn find_all(context: &Context<'_>, arguments: &[Value], tell: Telling) -> Answer {
    let regex = compile(context, arguments, tell)?;
    let (source, mut found) = (text(arguments, 1), Vec::new());
    for one in regex.find_iter(source).take(limit(arguments)) {
        context.items(1)?;
        found.push(Value::string(source.get(one).unwrap_or_default()));
    }
    Ok(if found.is_empty() {
        Value::nil_strings()
    } else {
        strings(found)
    })
}

fn replace(context: &Context<'_>, arguments: &[Value], tell: Telling, expand: bool) -> Answer {
    let regex = compile(context, arguments, tell)?;
    let (source, with) = (text(arguments, 1), text(arguments, 2));
    let (mut out, mut end) = (String::new(), 0);
    for groups in regex.captures_iter(source) {
        let Some(whole) = groups.whole() else { continue };
        out.push_str(source.get(end..whole.start).unwrap_or_default());
        if expand {
            pattern::expand(with, &groups, &mut out);
        } else {
            out.push_str(with);
        }
        end = whole.end;
        context.work(16)?;
        context.text(with.len() + whole.len())?;
        if out.len() as u64 > context.budget.limits().bytes {
            context.text(out.len())?;
        }
    }
    out.push_str(source.get(end..).unwrap_or_default());
    Ok(Value::string(out))
}

fn split(context: &Context<'_>, arguments: &[Value], tell: Telling) -> Answer {
    let regex = compile(context, arguments, tell)?;
    let (source, count) = (text(arguments, 1), limit(arguments));
    if count == 0 {
        return Ok(Value::nil_strings());
    }
    if source.is_empty() && !text(arguments, 0).is_empty() {
        return Ok(strings([Value::string("")]));
    }
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
    for found in regex.find_iter(source) {
        if parts.len() + 1 >= count {
            break;
        }
        context.items(1)?;
        end = found.start;
        if found.end != 0 {
            parts.push(Value::string(source.get(begin..end).unwrap_or_default()));
        }
        begin = found.end;
    }
    if end != source.len() {
        parts.push(Value::string(source.get(begin..).unwrap_or_default()));
    }
    Ok(strings(parts))
}

fn quote_meta(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len().saturating_mul(2))?;
    let mut out = String::new();
    for c in text(arguments, 0).chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(Value::string(out))
}
