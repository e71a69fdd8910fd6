//! The regular expressions of alerts: bounded for each list, and for all alerts together.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use api::notification::AlertSpec;
use regex_automata::{
    meta::{Builder, Config, Regex},
    util::syntax,
};
use tokio::sync::Semaphore;

/// Maximum size of the compiled expressions of a list, in bytes.
const LIST_BYTES: usize = 1 << 20;
/// Maximum size of the text of a list, in bytes, for the time that compiling takes.
const TEXT_BYTES: usize = 64 << 10;
/// Maximum number of expressions of a list, for the time that compiling takes.
const EXPRESSIONS: usize = 100;
const NESTING: u32 = 50;
/// Maximum size of the part of a message that is matched, in bytes. The time of a match is proportional to it and to the size of the
/// compiled expressions.
const MESSAGE_BYTES: usize = 8 << 10;
/// Maximum size of all compiled expressions that are kept, in bytes.
const KEPT_BYTES: usize = 32 << 20;
/// Memory for a match, as a multiple of the size of the compiled expressions.
const MATCH_GROWTH: usize = 3;
/// Lists that are compiled or matched at the same time.
const AT_ONCE: usize = 2;

/// The reason why an expression can't be used. It is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The expression is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The expression, or a list of them, is too large when it is compiled.
    #[error("the expression is too large")]
    TooLarge,
}

/// Compiles expressions to one that matches if any of them does.
pub(crate) fn compile<T: AsRef<str>>(texts: &[T]) -> Result<Regex, ExpressionError> {
    let config = Config::new()
        .nfa_size_limit(Some(LIST_BYTES))
        .auto_prefilter(false)
        // Automata that are made while matching need more memory than the expressions.
        .hybrid(false)
        .onepass(false)
        .backtrack(false)
        .dfa(false)
        .pool_capacity(1);
    let built = Builder::new()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(NESTING))
        .build_many(texts);
    built.map_err(|error| match error.size_limit() {
        Some(_) => ExpressionError::TooLarge,
        None => {
            let text = error
                .syntax_error()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let line = text.lines().last().unwrap_or("it does not compile");
            ExpressionError::Invalid(line.trim().to_owned())
        }
    })
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
                    Some((format!("spec.{list}[{at}]"), why.to_string()))
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

/// The compiled lists of an alert. Those that [`broken_expression`] names match nothing.
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
        let message = message
            .get(..message.floor_char_boundary(MESSAGE_BYTES))
            .unwrap_or(message);
        // A list of nothing but broken expressions lets nothing pass, rather than everything.
        let included = spec.inclusion_list.is_empty()
            || self.inclusion.as_ref().is_some_and(|list| list.is_match(message));
        included && !self.exclusion.as_ref().is_some_and(|list| list.is_match(message))
    }
}

/// Matches messages with the expressions of alerts, in time that is linear in the message, and away from the threads that
/// everything else runs on.
#[derive(Clone)]
pub struct Matcher {
    compiled: Arc<Mutex<CompiledLists>>,
    slots: Arc<Semaphore>,
}

#[derive(Default)]
struct CompiledLists {
    lists: HashMap<Vec<String>, (Arc<Compiled>, u64)>,
    bytes: usize,
    uses: u64,
}

impl Default for Matcher {
    fn default() -> Self {
        Self {
            compiled: Arc::default(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Matcher {
    /// Returns true if the expressions of an alert let a message pass: any of its `inclusionList`, and none of its `exclusionList`,
    /// in the first 8 KiB.
    pub async fn is_match(&self, spec: &AlertSpec, message: &str) -> bool {
        if spec.inclusion_list.is_empty() && spec.exclusion_list.is_empty() {
            return true;
        }
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
            return false;
        };
        let (lists, spec, message) = (Arc::clone(&self.compiled), spec.clone(), message.to_owned());
        let matched = tokio::task::spawn_blocking(move || {
            let _held = slot;
            compiled(&lists, &spec).is_match(&spec, &message)
        });
        matched.await.unwrap_or(false)
    }

    /// Returns the memory of the compiled expressions that are kept, in bytes.
    #[cfg(test)]
    fn kept_bytes(&self) -> usize {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

/// Matches a message without keeping anything.
#[cfg(test)]
pub(crate) fn matches_once(spec: &AlertSpec, message: &str) -> bool {
    Compiled::new(spec).is_match(spec, message)
}

fn compiled(lists: &Mutex<CompiledLists>, spec: &AlertSpec) -> Arc<Compiled> {
    let lock = || lists.lock().unwrap_or_else(PoisonError::into_inner);
    let mut key = vec![spec.inclusion_list.len().to_string()];
    key.extend(spec.inclusion_list.iter().chain(&spec.exclusion_list).cloned());
    if let Some(found) = lock().get(&key) {
        return found;
    }
    let made = Arc::new(Compiled::new(spec));
    lock().insert(&key, &made);
    made
}

impl CompiledLists {
    fn get(&mut self, key: &[String]) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let (found, used) = self.lists.get_mut(key)?;
        *used = self.uses;
        Some(Arc::clone(found))
    }

    fn insert(&mut self, key: &[String], made: &Arc<Compiled>) {
        self.bytes += cost(key, made);
        if let Some((old, _)) = self.lists.insert(key.to_vec(), (Arc::clone(made), self.uses)) {
            self.bytes -= cost(key, &old);
        }
        while self.bytes > KEPT_BYTES {
            let oldest = self.lists.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some((old, _)) = self.lists.remove(&oldest) {
                self.bytes -= cost(&oldest, &old);
            }
        }
    }
}

fn cost(key: &[String], compiled: &Compiled) -> usize {
    size(key) + compiled.bytes() + 512
}

#[cfg(test)]
mod tests;
