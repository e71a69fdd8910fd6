//! The regular expressions of alerts: bounded for each list, and for all alerts together.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
};

use api::notification::{Alert, AlertSpec};
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
/// Events whose messages are matched at the same time.
const AT_ONCE: usize = 2;
/// Work of one turn of an event: bytes of compiled expressions times bytes of the message. A second or less.
const WORK: usize = 1 << 32;
/// Work of compiling, as that of a message of so many bytes.
const COMPILING: usize = 4096;

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
        let message = beginning(message);
        // A list of nothing but broken expressions lets nothing pass, rather than everything.
        let included = spec.inclusion_list.is_empty()
            || self.inclusion.as_ref().is_some_and(|list| list.is_match(message));
        included && !self.exclusion.as_ref().is_some_and(|list| list.is_match(message))
    }
}

/// Matches messages with the expressions of alerts, in time that is linear in the message, and away from the threads that
/// everything else runs on. Lists are compiled once for all alerts and events, as long as they have room together.
#[derive(Clone)]
pub struct Matcher {
    kept: Arc<Mutex<KeptLists>>,
    slots: Arc<Semaphore>,
}

impl Default for Matcher {
    fn default() -> Self {
        Self {
            kept: Arc::default(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Matcher {
    /// Returns for each alert if its expressions let a message pass: any of its `inclusionList`, and none of its
    /// `exclusionList`, in the first 8 KiB.
    pub async fn matches(&self, alerts: &[Arc<Alert>], message: &str) -> Vec<bool> {
        if alerts.iter().all(|alert| is_open(&alert.spec)) {
            return vec![true; alerts.len()];
        }
        let message: Arc<str> = beginning(message).into();
        let mut passes = Vec::with_capacity(alerts.len());
        while let Some(rest) = alerts.get(passes.len()..).filter(|rest| !rest.is_empty()) {
            // Other events get their turns in between.
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                break;
            };
            let (kept, rest, message) = (Arc::clone(&self.kept), rest.to_vec(), Arc::clone(&message));
            let matched = tokio::task::spawn_blocking(move || {
                let _held = slot;
                match_some(&kept, &rest, &message)
            });
            match matched.await {
                Ok(some) if !some.is_empty() => passes.extend(some),
                _ => passes.push(false),
            }
        }
        passes.resize(alerts.len(), false);
        passes
    }
}

/// Returns true if an alert has no expressions.
fn is_open(spec: &AlertSpec) -> bool {
    spec.inclusion_list.is_empty() && spec.exclusion_list.is_empty()
}

/// Returns the part of a message that is matched.
fn beginning(message: &str) -> &str {
    let end = message.floor_char_boundary(MESSAGE_BYTES);
    message.get(..end).unwrap_or(message)
}

/// Matches a message for the first alerts, at least one, until that is enough work for one turn. Equal lists are matched once.
fn match_some(kept: &Mutex<KeptLists>, alerts: &[Arc<Alert>], message: &str) -> Vec<bool> {
    let mut known: HashMap<*const Compiled, (Arc<Compiled>, bool)> = HashMap::new();
    let (mut passes, mut work) = (Vec::new(), 0_usize);
    for alert in alerts {
        if work >= WORK {
            break;
        }
        if is_open(&alert.spec) {
            passes.push(true);
            continue;
        }
        let (compiled, is_new) = compiled(kept, &alert.spec);
        let bytes = compiled.bytes();
        if is_new {
            work = work.saturating_add(bytes.saturating_mul(COMPILING).max(WORK / 16));
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

/// Matches a message without keeping anything.
#[cfg(test)]
pub(crate) fn matches_once(spec: &AlertSpec, message: &str) -> bool {
    Compiled::new(spec).is_match(spec, message)
}

/// Returns the compiled lists of an alert, and true if they were compiled for this.
fn compiled(kept: &Mutex<KeptLists>, spec: &AlertSpec) -> (Arc<Compiled>, bool) {
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(spec) {
        return (found, false);
    }
    let made = Arc::new(Compiled::new(spec));
    lock().keep(spec, &made);
    (made, true)
}

/// The compiled lists of alerts, by the hashes of their texts. Equal ones are there once.
#[derive(Default)]
struct KeptLists {
    lists: HashMap<u64, Kept>,
    hashes: RandomState,
    bytes: usize,
    /// Number of lists that were looked up.
    uses: u64,
    #[cfg(test)]
    compiled: usize,
}

struct Kept {
    inclusion: Vec<String>,
    exclusion: Vec<String>,
    compiled: Arc<Compiled>,
    /// Number of the last use.
    used: u64,
}

impl Kept {
    /// Returns the memory, in bytes.
    fn cost(&self) -> usize {
        size(&self.inclusion) + size(&self.exclusion) + self.compiled.bytes() + 512
    }
}

impl KeptLists {
    fn hash(&self, spec: &AlertSpec) -> u64 {
        self.hashes.hash_one((&spec.inclusion_list, &spec.exclusion_list))
    }

    fn get(&mut self, spec: &AlertSpec) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let hash = self.hash(spec);
        let kept = self.lists.get_mut(&hash)?;
        if kept.inclusion != spec.inclusion_list || kept.exclusion != spec.exclusion_list {
            return None;
        }
        kept.used = self.uses;
        Some(Arc::clone(&kept.compiled))
    }

    /// Keeps a list if there is room. Those that were not used for long make room; if all are in use, the new one is compiled
    /// again next time, instead of all.
    fn keep(&mut self, spec: &AlertSpec, made: &Arc<Compiled>) {
        #[cfg(test)]
        {
            self.compiled += 1;
        }
        let hash = self.hash(spec);
        let new = Kept {
            inclusion: spec.inclusion_list.clone(),
            exclusion: spec.exclusion_list.clone(),
            compiled: Arc::clone(made),
            used: self.uses,
        };
        self.remove(hash);
        while self.bytes + new.cost() > KEPT_BYTES {
            let long = 2 * self.lists.len() as u64;
            let oldest = self.lists.iter().min_by_key(|(_, kept)| kept.used);
            let oldest = oldest.filter(|(_, kept)| self.uses.saturating_sub(kept.used) > long);
            let Some(oldest) = oldest.map(|(hash, _)| *hash) else {
                return;
            };
            self.remove(oldest);
        }
        self.bytes += new.cost();
        self.lists.insert(hash, new);
    }

    fn remove(&mut self, hash: u64) {
        if let Some(kept) = self.lists.remove(&hash) {
            self.bytes -= kept.cost();
        }
    }
}

#[cfg(test)]
mod tests;
