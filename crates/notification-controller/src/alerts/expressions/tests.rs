use std::time::Instant;

use super::{
    cache::{CACHE_BYTES, CacheEntry},
    *,
};

fn spec(inclusion: &[&str], exclusion: &[&str]) -> AlertSpec {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    AlertSpec {
        inclusion_list: owned(inclusion),
        exclusion_list: owned(exclusion),
        ..AlertSpec::default()
    }
}

impl Matcher {
    async fn is_match(&self, spec: &AlertSpec, message: &str) -> bool {
        let alert = Arc::new(Alert::new("a", spec.clone()));
        self.matches(&[alert], message).await == [true]
    }

    /// Returns the number of compilations, and the bytes of the cache.
    fn figures(&self) -> (usize, usize) {
        let cache = self.cache.lock();
        assert_eq!(
            cache.bytes,
            cache.lists.values().map(CacheEntry::cost).sum::<usize>()
        );
        (cache.compiled, cache.bytes)
    }
}

fn alerts(lists: impl IntoIterator<Item = String>) -> Vec<Arc<Alert>> {
    let alert = |text: String| Arc::new(Alert::new("a", spec(&[&text], &[])));
    lists.into_iter().map(alert).collect()
}

#[tokio::test]
async fn lists_of_a_thousand_alerts_are_compiled_once_for_all_events() {
    let matcher = Matcher::default();
    let mut all = alerts((0..1000).map(|number| format!("shop-{number} .*(failed|succeeded)")));
    all.push(Arc::new(Alert::new("open", AlertSpec::default())));
    for number in [7, 8, 999] {
        let passes = matcher
            .matches(&all, &format!("deployment of shop-{number} has failed"))
            .await;
        let passing: Vec<_> = passes
            .iter()
            .enumerate()
            .filter(|(_, passes)| **passes)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(passing, [number, 1000]);
    }
    assert_eq!(matcher.figures().0, 1000);
    // Equal lists have one entry.
    let equal = alerts((0..1000).map(|_| "equal".to_owned()));
    assert_eq!(matcher.matches(&equal, "equal").await, [true; 1000]);
    assert_eq!(matcher.figures().0, 1001);
}

#[tokio::test]
async fn lists_beyond_the_limit_do_not_displace_those_in_use() {
    let matcher = Matcher::default();
    let all = alerts((0..100).map(|number| format!("{number}\\pL{{8}}")));
    matcher.matches(&all, "").await;
    let (first, bytes) = matcher.figures();
    assert!(bytes > CACHE_BYTES / 2, "{bytes}");
    let cache = matcher.cache.lock().lists.len();
    assert!(first == 100 && cache < 90, "{cache}");
    matcher.matches(&all, "").await;
    assert_eq!(matcher.figures().0, 200 - cache);
    // Entries that are not used any more are evicted.
    let others = alerts((100..110).map(|number| format!("{number}\\pL{{8}}")));
    for _ in 0..100 {
        matcher.matches(&others, "").await;
    }
    let (before, _) = matcher.figures();
    matcher.matches(&others, "").await;
    assert_eq!(matcher.figures().0, before);
}

#[tokio::test]
async fn expressions_include_and_exclude() {
    let matcher = Matcher::default();
    for (inclusion, exclusion, expected) in [
        (&["artifact"][..], &[][..], true),
        (&["nothing", "^stored"], &[], true),
        (&["STORED"], &[], false),
        (&["(?i)STORED"], &[], true),
        (&["stored"], &["commit '.*'$"], false),
        (&[], &["nothing"], true),
        (&["("], &[], false),
        (&["(", "stored"], &[], true),
        (&[], &["("], true),
    ] {
        let spec = spec(inclusion, exclusion);
        for _ in 0..2 {
            let matched = matcher.is_match(&spec, "stored artifact for commit 'fix'").await;
            assert_eq!(matched, expected, "{inclusion:?} {exclusion:?}");
        }
    }
}

#[test]
fn broken_and_oversized_expressions_are_named() {
    let (path, why) = broken_expression(&spec(&["fine"], &["fine", "(unclosed"])).unwrap();
    assert_eq!(path, "spec.exclusionList[1]");
    assert!(!why.is_empty() && !why.contains('\n'), "{why}");
    let large = r"\pL{1000}";
    assert_eq!(compile(&[large]).unwrap_err(), ExpressionError::TooLarge);
    assert!(compile(&["(".repeat(60)]).is_err());
    // A message is one line, whatever it repeats.
    let (_, why) = broken_expression(&spec(&["(?:\n"], &[])).unwrap();
    assert!(why.ends_with("missing closing ): `(?:\\n`"), "{why}");
}

#[tokio::test]
async fn expressions_are_in_the_syntax_of_go() {
    let matcher = Matcher::default();
    for (expression, message, expected) in [
        ("{namespace}", "in {namespace}", true),
        ("a{,3}", "a{,3}", true),
        ("a{,3}", "aaa", false),
        ("[^[]x", "ax", true),
        (r"\Qa.b(\E", "a.b(c", true),
        (r"\w", "é", false),
        (r"\d", "٣", false),
        (r"\bé", "é", false),
        (r"^\B$", "", true),
        (r"(?P<n>a)(?P<n>b)", "ab", true),
        (r"a(?i)*b", "aaB", true),
        ("[a&&b]", "&", true),
        (r"\pL", "é", true),
        ("(?i)É", "é", true),
    ] {
        assert_eq!(broken_expression(&spec(&[expression], &[])), None);
        let matched = matcher.is_match(&spec(&[expression], &[]), message).await;
        assert_eq!(matched, expected, "{expression} in {message}");
    }
    for (expression, why) in [
        ("a**", "invalid nested repetition operator: `**`"),
        ("x{1001}", "invalid repeat count: `{1001}`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        (
            r"\p{Alphabetic}",
            r"invalid character class range: `\p{Alphabetic}`",
        ),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ] {
        let found = broken_expression(&spec(&[expression], &[]));
        let expected = (
            "spec.inclusionList[0]".to_owned(),
            format!("error parsing regexp: {why}"),
        );
        assert_eq!(found, Some(expected));
    }
}

#[test]
fn lists_are_bounded_as_a_whole() {
    let large: Vec<String> = (0..8).map(|n| format!("{n}\\pL{{10}}")).collect();
    let many: Vec<String> = (0..101).map(|n| format!("expression {n}")).collect();
    let long = vec!["x".repeat(1000); 70];
    for (list, expected) in [
        (large, "the expressions together are too large"),
        (many, "it has 101 expressions, at most 100 are allowed"),
        (long, "it has more than 65536 bytes"),
    ] {
        let spec = AlertSpec {
            inclusion_list: list,
            ..AlertSpec::default()
        };
        assert!(compile(&spec.inclusion_list[..1]).is_ok());
        let (path, why) = broken_expression(&spec).unwrap();
        assert_eq!((path.as_str(), why.as_str()), ("spec.inclusionList", expected));
        assert!(!Compiled::new(&spec).is_match(&spec, "expression 1"));
    }
}

#[tokio::test]
async fn catastrophic_backtracking_is_impossible() {
    let matcher = Matcher::default();
    let message = "a".repeat(MESSAGE_BYTES);
    for (text, expected) in [
        ("^(a+)+$", true),
        ("^(a+)+b$", false),
        ("^(a|aa)+b$", false),
        ("^(a|a?)+b$", false),
        ("(.*a){20}b", false),
        ("(a*)*b", false),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", false),
    ] {
        let matched = matcher.is_match(&spec(&[text], &[]), &message).await;
        assert_eq!(matched, expected, "{text}");
        assert!(!matcher.is_match(&spec(&["b"], &[text]), &message).await);
    }
}

#[test]
fn expressions_that_expand_beyond_the_limit_are_named() {
    for text in [
        "(?:a{1000}){1000}",
        "((a{100}){100}){100}",
        "(\\pL{100}){100}",
        "(?i)[\\pL\\pN]{1000}",
        "((((a?){10}){10}){10}){100}",
        "a{4294967295}",
        "a{99999999999}",
    ] {
        let (path, why) = broken_expression(&spec(&[], &["fine", text])).unwrap();
        assert!(path.starts_with("spec.exclusionList"), "{path}: {text}");
        assert!(!why.is_empty() && !why.contains('\n'), "{why}");
    }
}

#[tokio::test]
async fn compiled_expressions_of_all_alerts_have_one_limit() {
    let matcher = Matcher::default();
    for number in 0..200 {
        let spec = spec(&[&format!("{number}\\pL{{8}}")], &[&format!("{number}\\pN{{8}}")]);
        matcher.is_match(&spec, "short").await;
        assert!(matcher.figures().1 <= CACHE_BYTES);
    }
    let (_, bytes) = matcher.figures();
    assert!(bytes > CACHE_BYTES / 2, "{bytes}");
}

#[tokio::test]
async fn only_the_start_of_a_message_is_matched() {
    let matcher = Matcher::default();
    let spec = spec(&["needle"], &[]);
    let at = |position: usize| format!("{}needle{}", "é".repeat(position / 2), "x".repeat(3 << 20));
    assert!(matcher.is_match(&spec, &at(8 << 9)).await);
    let started = Instant::now();
    assert!(!matcher.is_match(&spec, &at(8 << 10)).await);
    assert!(started.elapsed().as_secs() < 5);
}
