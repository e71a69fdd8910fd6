//! Selection of the values that are encrypted.

use go::regexp::Pattern;
use tree::{Budget, Exceeded};

/// Maximum steps of one search, during which the budget is not polled.
const MAX_SEARCH: u64 = 4 << 20;

#[derive(Debug, Clone)]
pub(crate) enum Selection {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(Rule),
    EncryptedRegex(Rule),
    UnencryptedCommentRegex(Rule),
    EncryptedCommentRegex(Rule),
}

/// A regular expression from a file.
#[derive(Debug, Clone)]
pub(crate) struct Rule(Pattern);

impl Rule {
    /// Compiles a regular expression in Go's syntax; `None` if it is invalid, or larger than 1 MiB when it is compiled.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        Pattern::compile(pattern).ok().map(Self)
    }

    fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, Exceeded> {
        let steps = self.0.steps(text.len());
        if steps > MAX_SEARCH {
            return Err(Exceeded::Limit {
                what: "steps of a search by a regular expression of a sops file",
                limit: MAX_SEARCH,
            });
        }
        budget.step(steps)?;
        Ok(self.0.is_match(text))
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::UnencryptedSuffix("_unencrypted".to_owned())
    }
}

impl Selection {
    fn matches_key(&self, key: &str, budget: &Budget) -> Result<bool, Exceeded> {
        match self {
            Self::UnencryptedSuffix(end) | Self::EncryptedSuffix(end) => Ok(key.ends_with(end.as_str())),
            Self::UnencryptedRegex(rule) | Self::EncryptedRegex(rule) => rule.is_match(key, budget),
            Self::UnencryptedCommentRegex(_) | Self::EncryptedCommentRegex(_) => Ok(false),
        }
    }

    fn matches_comment(&self, comment: &str, budget: &Budget) -> Result<bool, Exceeded> {
        match self {
            Self::UnencryptedCommentRegex(rule) | Self::EncryptedCommentRegex(rule) => {
                rule.is_match(comment, budget)
            }
            _ => Ok(false),
        }
    }
}

/// The keys above a value, and the comments before it and before its parents, as far as a selection asks for them: each is compared with
/// the rule once.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    selection: &'a Selection,
    /// For each key, whether the rule matches it.
    keys: Vec<bool>,
    matched_keys: usize,
    /// The comments of each level, the outermost first.
    levels: Vec<Level>,
    matched_comments: usize,
}

#[derive(Debug, Default)]
struct Level {
    matched: usize,
    is_last_matched: bool,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(selection: &'a Selection) -> Self {
        Self {
            selection,
            keys: Vec::new(),
            matched_keys: 0,
            levels: Vec::new(),
            matched_comments: 0,
        }
    }

    pub(crate) fn push_key(&mut self, key: &str, budget: &Budget) -> Result<(), Exceeded> {
        let is_match = self.selection.matches_key(key, budget)?;
        self.keys.push(is_match);
        self.matched_keys += usize::from(is_match);
        Ok(())
    }

    pub(crate) fn pop_key(&mut self) {
        self.matched_keys -= usize::from(self.keys.pop().unwrap_or_default());
    }

    pub(crate) fn push_level(&mut self) {
        self.levels.push(Level::default());
    }

    pub(crate) fn pop_level(&mut self) {
        self.forget_comments();
        self.levels.pop();
    }

    pub(crate) fn add_comment(&mut self, comment: &str, budget: &Budget) -> Result<(), Exceeded> {
        let is_match = self.selection.matches_comment(comment, budget)?;
        if let Some(level) = self.levels.last_mut() {
            level.matched += usize::from(is_match);
            level.is_last_matched = is_match;
            self.matched_comments += usize::from(is_match);
        }
        Ok(())
    }

    /// Forgets the comments of the innermost level.
    pub(crate) fn forget_comments(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            self.matched_comments -= level.matched;
            *level = Level::default();
        }
    }

    /// Returns true if the value here is encrypted, or the last comment.
    pub(crate) fn picks(&self, is_comment: bool) -> bool {
        let any_key = self.matched_keys > 0;
        match self.selection {
            Selection::UnencryptedSuffix(_) | Selection::UnencryptedRegex(_) => !any_key,
            Selection::EncryptedSuffix(_) | Selection::EncryptedRegex(_) => any_key,
            Selection::UnencryptedCommentRegex(_) => self.matched_comments == 0,
            Selection::EncryptedCommentRegex(_) => {
                // A comment doesn't encrypt itself.
                let last = self.levels.last().is_some_and(|level| level.is_last_matched);
                self.matched_comments > usize::from(is_comment && last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_looks_at_all_keys_of_a_path_or_all_comments_before() {
        let regex = |text: &str| Rule::new(text).unwrap();
        let picks = |rule: &Selection, is_comment| {
            let budget = Budget::default();
            let mut scope = Scope::new(rule);
            for key in ["a", "b_x", "c"] {
                scope.push_key(key, &budget).unwrap();
            }
            for comment in ["sops:enc", "other"] {
                scope.push_level();
                scope.add_comment(comment, &budget).unwrap();
            }
            scope.picks(is_comment)
        };
        for (rule, picked) in [
            (Selection::default(), true),
            (Selection::UnencryptedSuffix("_x".to_owned()), false),
            (Selection::EncryptedSuffix("_x".to_owned()), true),
            (Selection::EncryptedSuffix("_y".to_owned()), false),
            (Selection::UnencryptedRegex(regex("^c$")), false),
            (Selection::EncryptedRegex(regex("^(b|c)$")), true),
            (Selection::UnencryptedCommentRegex(regex("enc")), false),
            (Selection::EncryptedCommentRegex(regex("enc")), true),
            (Selection::EncryptedCommentRegex(regex("other")), true),
        ] {
            assert_eq!(picks(&rule, false), picked, "{rule:?}");
        }
        assert!(!picks(&Selection::EncryptedCommentRegex(regex("other")), true));
        assert!(picks(&Selection::EncryptedCommentRegex(regex("enc")), true));
    }

    #[test]
    fn keys_and_comments_count_until_their_end() {
        let budget = Budget::default();
        let rule = Selection::EncryptedCommentRegex(Rule::new("enc").unwrap());
        let mut scope = Scope::new(&rule);
        scope.push_level();
        scope.add_comment("enc", &budget).unwrap();
        scope.push_level();
        scope.add_comment("enc", &budget).unwrap();
        scope.add_comment("x", &budget).unwrap();
        assert!(scope.picks(false) && scope.picks(true));
        scope.pop_level();
        assert!(scope.picks(false) && !scope.picks(true));
        scope.forget_comments();
        assert!(!scope.picks(false));
        let rule = Selection::EncryptedSuffix("_x".to_owned());
        let mut scope = Scope::new(&rule);
        scope.push_key("a_x", &budget).unwrap();
        scope.push_key("b", &budget).unwrap();
        scope.pop_key();
        assert!(scope.picks(false));
        scope.pop_key();
        assert!(!scope.picks(false));
    }

    #[test]
    fn searches_are_charged_by_the_size_of_the_rule() {
        let limits = tree::Limits {
            steps: 1_000_000,
            ..tree::Limits::default()
        };
        for (pattern, fits) in [("^(data|stringData)$", true), (r"\pL{20}x", false)] {
            let rule = Rule::new(pattern).unwrap();
            let searched = rule.is_match(&"a".repeat(500_000), &Budget::new(limits.clone()));
            assert_eq!(searched.is_ok(), fits, "{pattern} {}", rule.0.steps(0));
            let long = rule.is_match(&"a".repeat(5 << 20), &Budget::default());
            assert!(
                long.unwrap_err()
                    .to_string()
                    .contains("a search by a regular expression")
            );
        }
        assert!(Rule::new(r"\pL{1000}").is_none());
    }
}
