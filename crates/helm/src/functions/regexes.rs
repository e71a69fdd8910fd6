//! Functions of regular expressions. The functions with the prefix `must` return an error where the others panic in Go, with
//! another message.

use std::rc::Rc;

use go::{
    bytes,
    regexp::{self, Regexp, RegexpError},
};

use super::{
    arguments::{int, text},
    context::Context,
    strings::strings,
    subject::Subject,
    table::{Answer, Entry, fixed},
};
use crate::template::FunctionError;
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
        find(context, arguments, panicking)
    }),
    fixed("mustRegexFind", TWO, |context, arguments| {
        find(context, arguments, plain)
    }),
    fixed("regexFindAll", COUNTED, |context, arguments| {
        find_all(context, arguments, panicking)
    }),
    fixed("mustRegexFindAll", COUNTED, |context, arguments| {
        find_all(context, arguments, plain)
    }),
    fixed("regexReplaceAll", THREE, |context, arguments| {
        replace(context, arguments, panicking, true)
    }),
    fixed("mustRegexReplaceAll", THREE, |context, arguments| {
        replace(context, arguments, plain, true)
    }),
    fixed("regexReplaceAllLiteral", THREE, |context, arguments| {
        replace(context, arguments, panicking, false)
    }),
    fixed("mustRegexReplaceAllLiteral", THREE, |context, arguments| {
        replace(context, arguments, plain, false)
    }),
    fixed("regexSplit", COUNTED, |context, arguments| {
        split(context, arguments, panicking)
    }),
    fixed("mustRegexSplit", COUNTED, |context, arguments| {
        split(context, arguments, plain)
    }),
    fixed("regexQuoteMeta", &[Type::String], quote_meta),
];

type Message = fn(&str, &RegexpError) -> String;

fn plain(_: &str, error: &RegexpError) -> String {
    error.to_string()
}

fn panicking(expression: &str, error: &RegexpError) -> String {
    error.panic_message(expression)
}

/// Maximum memory of the compiled expressions of a render, in bytes.
const MAX_BYTES: usize = 16 << 20;

fn compile(
    context: &Context<'_>,
    arguments: &[Value],
    message: Message,
) -> Result<Rc<Regexp>, FunctionError> {
    let expression = text(arguments, 0);
    if let Some(known) = context.expressions.borrow().get(expression) {
        return Ok(Rc::clone(known));
    }
    let compiled = Rc::new(compiled(context, expression, message)?);
    let mut known = context.expressions.borrow_mut();
    let sizes = known.iter().map(|(text, one)| text.len() + one.size());
    if sizes.sum::<usize>() + expression.len() + compiled.size() <= MAX_BYTES {
        known.insert(expression.to_owned(), Rc::clone(&compiled));
    }
    Ok(compiled)
}

fn compiled(context: &Context<'_>, expression: &str, message: Message) -> Result<Regexp, FunctionError> {
    context.work(
        (expression.len() as u64)
            .saturating_mul(1000)
            .saturating_add(10_000),
    )?;
    let compiled = Regexp::compile(expression).map_err(|error| message(expression, &error))?;
    context.work(compiled.size() as u64 / 16)?;
    Ok(compiled)
}

fn matches(context: &Context<'_>, arguments: &[Value], message: Message) -> Answer {
    let regex = compile(context, arguments, message)?;
    let source = bytes::to_valid_utf8(text(arguments, 1));
    let search = regex.search(&source, |visits| context.visits(visits));
    search.is_match().map(Value::Bool)
}

fn find(context: &Context<'_>, arguments: &[Value], message: Message) -> Answer {
    let regex = compile(context, arguments, message)?;
    let source = Subject::new(context, text(arguments, 1))?;
    let mut search = regex.search(source.searched(), |visits| context.visits(visits));
    let found = search.next()?.map(|found| source.part(found));
    Ok(Value::string(found.unwrap_or_default()))
}

/// Returns the maximum number of matches; a negative argument means all.
fn limit(arguments: &[Value]) -> usize {
    usize::try_from(int(arguments, 2)).unwrap_or(usize::MAX)
}

fn find_all(context: &Context<'_>, arguments: &[Value], message: Message) -> Answer {
    let regex = compile(context, arguments, message)?;
    let (source, mut all) = (Subject::new(context, text(arguments, 1))?, Vec::new());
    let mut search = regex.search(source.searched(), |visits| context.visits(visits));
    while all.len() < limit(arguments)
        && let Some(found) = search.next()?
    {
        let part = source.part(found);
        context.strings(1, part.len())?;
        all.push(Value::string(part));
    }
    Ok(if all.is_empty() {
        Value::nil_strings()
    } else {
        strings(all)
    })
}

fn replace(context: &Context<'_>, arguments: &[Value], message: Message, expand: bool) -> Answer {
    let regex = compile(context, arguments, message)?;
    let (source, with) = (text(arguments, 1), text(arguments, 2));
    let (mut out, mut end) = (String::new(), 0);
    let subject = Subject::new(context, source)?;
    let mut search = regex.search(subject.searched(), |visits| context.visits(visits));
    while let Some(groups) = search.next_captures()? {
        let groups = subject.captures(groups);
        let Some(whole) = groups.range() else { continue };
        out.push_str(source.get(end..whole.start).unwrap_or_default());
        // A group of two characters can be the whole string.
        let references = if expand { with.matches('$').count() } else { 0 };
        let most = references.saturating_mul(whole.len()).saturating_add(with.len());
        context.text(most)?;
        if out.len().saturating_add(most) as u64 > context.budget.limits().bytes {
            context.text(out.len().saturating_add(most))?;
        }
        if expand {
            groups.expand(with, &mut out);
        } else {
            out.push_str(with);
        }
        end = whole.end;
        context.work(16)?;
    }
    out.push_str(source.get(end..).unwrap_or_default());
    Ok(Value::string(out))
}

fn split(context: &Context<'_>, arguments: &[Value], message: Message) -> Answer {
    let regex = compile(context, arguments, message)?;
    let (source, count) = (text(arguments, 1), limit(arguments));
    if count == 0 {
        return Ok(Value::nil_strings());
    }
    if source.is_empty() && !text(arguments, 0).is_empty() {
        return Ok(strings([Value::string("")]));
    }
    let source = Subject::new(context, source)?;
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
    let push = |parts: &mut Vec<Value>, found| {
        let part = source.part(found);
        context.strings(1, part.len())?;
        parts.push(Value::string(part));
        Ok::<(), FunctionError>(())
    };
    let mut search = regex.search(source.searched(), |visits| context.visits(visits));
    while parts.len() + 1 < count
        && let Some(found) = search.next()?
    {
        end = found.start;
        if found.end != 0 {
            push(&mut parts, begin..end)?;
        }
        begin = found.end;
    }
    if end != source.searched().len() {
        push(&mut parts, begin..source.searched().len())?;
    }
    Ok(strings(parts))
}

fn quote_meta(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len().saturating_mul(2))?;
    Ok(Value::string(regexp::quote_meta(text(arguments, 0))))
}
