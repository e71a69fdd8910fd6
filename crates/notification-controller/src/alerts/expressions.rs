//! The regular expressions of alerts: bounded for each list, and for all alerts together.

mod cache;

use std::{collections::HashMap, sync::Arc};

use api::notification::{Alert, AlertSpec};
use cel::{PatternError, compile_patterns};
use kube::ResourceExt as _;
use limits::compute;
use parking_lot::Mutex;
use regex_automata::meta::Regex;

use cache::ListCache;

const LIST_BYTES: usize = 1 << 20;
/// Maximum size of the source of a list, in bytes: it bounds the time of compiling.
const TEXT_BYTES: usize = 64 << 10;
/// Maximum number of expressions of a list: it bounds the time of compiling.
const EXPRESSIONS: usize = 100;
/// Maximum size of the matched part of a message, in bytes. The time of a match is proportional to it and to the size of the
/// compiled expressions.
const MESSAGE_BYTES: usize = 8 << 10;
/// Memory of a match, as a multiple of the size of the compiled expressions.
const MATCH_GROWTH: usize = 3;
/// Maximum cost of one permit: bytes of compiled expressions times bytes of the message. A second or less.
const MAX_COST: usize = 1 << 32;
/// Cost of compiling, as the equivalent length of a message in bytes.
const COMPILING: usize = 4096;

/// The reason why an expression is refused, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The value is the message of the compiler.
    #[error("{0}")]
    Invalid(String),
    /// The compiled expression, or the list, exceeds a limit.
    #[error("the expression is too large")]
    TooLarge,
}

impl From<PatternError> for ExpressionError {
    fn from(error: PatternError) -> Self {
        match error {
            PatternError::Invalid(why) => Self::Invalid(why),
            PatternError::TooLarge => Self::TooLarge,
        }
    }
}

/// Compiles expressions to one that matches if any of them does.
pub(crate) fn compile<T: AsRef<str>>(texts: &[T]) -> Result<Regex, ExpressionError> {
    Ok(compile_patterns(texts, LIST_BYTES)?)
}

/// Escapes the line breaks and other control characters of an expression that an error repeats.
fn one_line(why: &str) -> String {
    let mut line = String::with_capacity(why.len());
    for c in why.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

/// Returns the path of the first invalid expression, or of a list that is too large, with the reason.
#[must_use]
pub fn broken_expression(spec: &AlertSpec) -> Option<(String, String)> {
    let lists = [
        ("inclusionList", &spec.inclusion_list),
        ("exclusionList", &spec.exclusion_list),
    ];
    lists.into_iter().find_map(|(list, texts)| {
        if texts.len() > EXPRESSIONS {
            let why = format!(
                "it has {} expressions, at most {EXPRESSIONS} are allowed",
                texts.len()
            );
            return Some((format!("spec.{list}"), why));
        }
        if size(texts) > TEXT_BYTES {
            let why = format!("it has more than {TEXT_BYTES} bytes");
            return Some((format!("spec.{list}"), why));
        }
        match compile(texts) {
            Ok(_) => None,
            Err(ExpressionError::Invalid(_)) => {
                let mut each = texts.iter().enumerate();
                each.find_map(|(at, text)| {
                    let why = compile(&[text]).err()?;
                    Some((format!("spec.{list}[{at}]"), one_line(&why.to_string())))
                })
            }
            Err(ExpressionError::TooLarge) => {
                let why = "the expressions together are too large".to_owned();
                Some((format!("spec.{list}"), why))
            }
        }
    })
}

fn size(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

/// The compiled lists of an alert. Lists that [`broken_expression`] names match nothing.
struct Compiled {
    inclusion: Option<Regex>,
    exclusion: Option<Regex>,
}

impl Compiled {
    fn new(spec: &AlertSpec) -> Self {
        let list = |texts: &[String]| {
            if texts.is_empty() || texts.len() > EXPRESSIONS || size(texts) > TEXT_BYTES {
                return None;
            }
            compile(texts).ok().or_else(|| {
                let good: Vec<_> = texts.iter().filter(|text| compile(&[text]).is_ok()).collect();
                compile(&good).ok().filter(|_| !good.is_empty())
            })
        };
        Self {
            inclusion: list(&spec.inclusion_list),
            exclusion: list(&spec.exclusion_list),
        }
    }

    fn bytes(&self) -> usize {
        let lists = [&self.inclusion, &self.exclusion].into_iter().flatten();
        lists
            .map(|list| list.memory_usage().saturating_mul(MATCH_GROWTH))
            .sum()
    }

    fn is_match(&self, spec: &AlertSpec, message: &str) -> bool {
        let message = matched_part(message);
        // A list with broken expressions only matches nothing, rather than everything.
        let included = spec.inclusion_list.is_empty()
            || self.inclusion.as_ref().is_some_and(|list| list.is_match(message));
        included && !self.exclusion.as_ref().is_some_and(|list| list.is_match(message))
    }
}

/// Matches messages with the expressions of alerts, in time that is linear in the message, on threads that the namespaces of the alerts share
/// fairly. Lists are compiled once for all alerts and events, within the bounds of the cache.
#[derive(Clone, Default)]
pub struct Matcher {
    cache: Arc<Mutex<ListCache>>,
}

impl Matcher {
    /// Returns for each alert if its expressions accept a message: any of its `inclusionList`, and none of its
    /// `exclusionList`, in the first 8 KiB.
    pub async fn matches(&self, alerts: &[Arc<Alert>], message: &str) -> Vec<bool> {
        if alerts.iter().all(|alert| is_open(&alert.spec)) {
            return vec![true; alerts.len()];
        }
        let message: Arc<str> = matched_part(message).into();
        let mut passes = Vec::with_capacity(alerts.len());
        while let Some(rest) = alerts.get(passes.len()..).filter(|rest| !rest.is_empty()) {
            let namespace_of = |alert: &Arc<Alert>| alert.namespace().unwrap_or_default();
            let namespace = rest.first().map(namespace_of).unwrap_or_default();
            let own = rest.iter().take_while(|alert| namespace_of(alert) == namespace);
            let own: Vec<_> = own.cloned().collect();
            let (cache, message) = (Arc::clone(&self.cache), Arc::clone(&message));
            let matched = compute(&namespace, move |_| match_some(&cache, &own, &message));
            // Other events get permits in between.
            match matched.await {
                Some(some) if !some.is_empty() => passes.extend(some),
                _ => passes.push(false),
            }
        }
        passes.resize(alerts.len(), false);
        passes
    }
}

fn is_open(spec: &AlertSpec) -> bool {
    spec.inclusion_list.is_empty() && spec.exclusion_list.is_empty()
}

fn matched_part(message: &str) -> &str {
    let end = message.floor_char_boundary(MESSAGE_BYTES);
    message.get(..end).unwrap_or(message)
}

/// Matches a message for the first alerts, at least one, up to the cost of one permit. Equal lists are matched once.
fn match_some(cache: &Mutex<ListCache>, alerts: &[Arc<Alert>], message: &str) -> Vec<bool> {
    let mut known: HashMap<*const Compiled, (Arc<Compiled>, bool)> = HashMap::new();
    let (mut passes, mut work) = (Vec::new(), 0_usize);
    for alert in alerts {
        if work >= MAX_COST {
            break;
        }
        if is_open(&alert.spec) {
            passes.push(true);
            continue;
        }
        let (compiled, is_new) = compiled(cache, alert);
        let bytes = compiled.bytes();
        if is_new {
            work = work.saturating_add(bytes.saturating_mul(COMPILING).max(MAX_COST / 16));
        }
        let (_, passed) = known.entry(Arc::as_ptr(&compiled)).or_insert_with(|| {
            work = work.saturating_add(bytes.saturating_mul(message.len()));
            let passed = compiled.is_match(&alert.spec, message);
            (compiled, passed)
        });
        passes.push(*passed);
    }
    passes
}

#[cfg(test)]
pub(crate) fn matches_once(spec: &AlertSpec, message: &str) -> bool {
    Compiled::new(spec).is_match(spec, message)
}

/// Returns the compiled lists of an alert, and true if they were compiled by this call.
fn compiled(cache: &Mutex<ListCache>, alert: &Alert) -> (Arc<Compiled>, bool) {
    let (lock, spec) = (|| cache.lock(), &alert.spec);
    if let Some(found) = lock().get(spec) {
        return (found, false);
    }
    let made = Arc::new(Compiled::new(spec));
    lock().insert(&alert.namespace().unwrap_or_default(), spec, &made);
    (made, true)
}

#[cfg(test)]
mod tests;
