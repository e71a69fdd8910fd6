//! The regular expressions of alerts: bounded for each list, and for all alerts together.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use api::notification::{Alert, AlertSpec};
use parking_lot::Mutex;
use regex_automata::{
    meta::{Builder, Config, Regex},
    util::syntax,
};
use tokio::sync::Semaphore;

const LIST_BYTES: usize = 1 << 20;
/// Maximum size of the source of a list, in bytes: it bounds the time of compiling.
const TEXT_BYTES: usize = 64 << 10;
/// Maximum number of expressions of a list: it bounds the time of compiling.
const EXPRESSIONS: usize = 100;
const NESTING: u32 = 50;
/// Maximum size of the matched part of a message, in bytes. The time of a match is proportional to it and to the size of the
/// compiled expressions.
const MESSAGE_BYTES: usize = 8 << 10;
const CACHE_BYTES: usize = 32 << 20;
/// Memory of a match, as a multiple of the size of the compiled expressions.
const MATCH_GROWTH: usize = 3;
const AT_ONCE: usize = 2;
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

/// Compiles expressions to one that matches if any of them does.
pub(crate) fn compile<T: AsRef<str>>(texts: &[T]) -> Result<Regex, ExpressionError> {
    let config = Config::new()
        .nfa_size_limit(Some(LIST_BYTES))
        .auto_prefilter(false)
        // Lazy automata need more memory than the expressions.
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

/// Matches messages with the expressions of alerts, in time that is linear in the message, outside the async threads. Lists are compiled
/// once for all alerts and events, within the bounds of the cache.
#[derive(Clone)]
pub struct Matcher {
    cache: Arc<Mutex<ListCache>>,
    slots: Arc<Semaphore>,
}

impl Default for Matcher {
    fn default() -> Self {
        Self {
            cache: Arc::default(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
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
            // Other events get permits in between.
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                break;
            };
            let (cache, rest, message) = (Arc::clone(&self.cache), rest.to_vec(), Arc::clone(&message));
            let matched = tokio::task::spawn_blocking(move || {
                let _held = slot;
                match_some(&cache, &rest, &message)
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
        let (compiled, is_new) = compiled(cache, &alert.spec);
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
fn compiled(cache: &Mutex<ListCache>, spec: &AlertSpec) -> (Arc<Compiled>, bool) {
    let lock = || cache.lock();
    if let Some(found) = lock().get(spec) {
        return (found, false);
    }
    let made = Arc::new(Compiled::new(spec));
    lock().insert(spec, &made);
    (made, true)
}

/// Cache of the compiled lists of alerts by the hashes of their sources. Equal lists have one entry.
#[derive(Default)]
struct ListCache {
    lists: HashMap<u64, CacheEntry>,
    hashes: RandomState,
    bytes: usize,
    uses: u64,
    #[cfg(test)]
    compiled: usize,
}

struct CacheEntry {
    inclusion: Vec<String>,
    exclusion: Vec<String>,
    compiled: Arc<Compiled>,
    used: u64,
}

impl CacheEntry {
    fn cost(&self) -> usize {
        size(&self.inclusion) + size(&self.exclusion) + self.compiled.bytes() + 512
    }
}

impl ListCache {
    fn hash(&self, spec: &AlertSpec) -> u64 {
        self.hashes.hash_one((&spec.inclusion_list, &spec.exclusion_list))
    }

    fn get(&mut self, spec: &AlertSpec) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let hash = self.hash(spec);
        let entry = self.lists.get_mut(&hash)?;
        if entry.inclusion != spec.inclusion_list || entry.exclusion != spec.exclusion_list {
            return None;
        }
        entry.used = self.uses;
        Some(Arc::clone(&entry.compiled))
    }

    /// Adds a list. Entries that were not used for long are evicted; if all are in use, the new one is not cached, and compiled
    /// again next time.
    fn insert(&mut self, spec: &AlertSpec, made: &Arc<Compiled>) {
        #[cfg(test)]
        {
            self.compiled += 1;
        }
        let hash = self.hash(spec);
        let new = CacheEntry {
            inclusion: spec.inclusion_list.clone(),
            exclusion: spec.exclusion_list.clone(),
            compiled: Arc::clone(made),
            used: self.uses,
        };
        self.remove(hash);
        while self.bytes + new.cost() > CACHE_BYTES {
            let long = 2 * self.lists.len() as u64;
            let oldest = self.lists.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.filter(|(_, entry)| self.uses.saturating_sub(entry.used) > long);
            let Some(oldest) = oldest.map(|(hash, _)| *hash) else {
                return;
            };
            self.remove(oldest);
        }
        self.bytes += new.cost();
        self.lists.insert(hash, new);
    }

    fn remove(&mut self, hash: u64) {
        if let Some(entry) = self.lists.remove(&hash) {
            self.bytes -= entry.cost();
        }
    }
}

#[cfg(test)]
mod tests;
