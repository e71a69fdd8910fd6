//! Selection of the values that are encrypted.

use regex::Regex;

#[derive(Debug, Clone)]
pub(crate) enum Selection {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(Regex),
    EncryptedRegex(Regex),
    UnencryptedCommentRegex(Regex),
    EncryptedCommentRegex(Regex),
}

impl Default for Selection {
    fn default() -> Self {
        Self::UnencryptedSuffix("_unencrypted".to_owned())
    }
}

/// Comments before a value and before its parents, outermost first.
pub(crate) type Comments = Vec<Vec<String>>;

impl Selection {
    /// Returns true if the value under these keys is encrypted. A comment counts among its own `comments`.
    pub(crate) fn picks(&self, path: &[String], comments: &[Vec<String>], is_comment: bool) -> bool {
        let any = |matches: &dyn Fn(&str) -> bool| path.iter().any(|key| matches(key));
        match self {
            Self::UnencryptedSuffix(end) => !any(&|key| key.ends_with(end.as_str())),
            Self::EncryptedSuffix(end) => any(&|key| key.ends_with(end.as_str())),
            Self::UnencryptedRegex(regex) => !any(&|key| regex.is_match(key)),
            Self::EncryptedRegex(regex) => any(&|key| regex.is_match(key)),
            Self::UnencryptedCommentRegex(regex) => {
                !comments.iter().flatten().any(|comment| regex.is_match(comment))
            }
            Self::EncryptedCommentRegex(regex) => {
                // A comment doesn't encrypt itself.
                let own = usize::from(is_comment);
                let innermost = comments.len().saturating_sub(1);
                comments.iter().enumerate().any(|(level, comments)| {
                    let hidden = if level == innermost { own } else { 0 };
                    let seen = comments.len().saturating_sub(hidden);
                    comments.iter().take(seen).any(|comment| regex.is_match(comment))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_looks_at_all_keys_of_a_path_or_all_comments_before() {
        let path = ["a".to_owned(), "b_x".to_owned(), "c".to_owned()];
        let comments = [vec!["sops:enc".to_owned()], vec!["other".to_owned()]];
        let regex = |text: &str| Regex::new(text).unwrap();
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
            assert_eq!(rule.picks(&path, &comments, false), picked, "{rule:?}");
        }
        assert!(!Selection::EncryptedCommentRegex(regex("other")).picks(&path, &comments, true));
        assert!(Selection::EncryptedCommentRegex(regex("enc")).picks(&path, &comments, true));
    }
}
