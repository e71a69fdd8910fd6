use std::time::Instant;

use super::*;

fn spec(inclusion: &[&str], exclusion: &[&str]) -> AlertSpec {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    AlertSpec {
        inclusion_list: owned(inclusion),
        exclusion_list: owned(exclusion),
        ..AlertSpec::default()
    }
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
    let large = "(?:a{1000}){1000}";
    assert_eq!(compile(&[large]).unwrap_err(), ExpressionError::TooLarge);
    assert!(compile(&["(".repeat(60)]).is_err());
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
async fn compiled_expressions_of_all_alerts_have_one_limit() {
    let matcher = Matcher::default();
    for number in 0..200 {
        let spec = spec(&[&format!("{number}\\pL{{8}}")], &[&format!("{number}\\pN{{8}}")]);
        matcher.is_match(&spec, "short").await;
        assert!(matcher.kept_bytes() <= KEPT_BYTES);
    }
    assert!(matcher.kept_bytes() > KEPT_BYTES / 2, "{}", matcher.kept_bytes());
}

#[tokio::test]
async fn only_the_beginning_of_a_message_is_matched() {
    let matcher = Matcher::default();
    let spec = spec(&["needle"], &[]);
    let at = |position: usize| format!("{}needle{}", "é".repeat(position / 2), "x".repeat(3 << 20));
    assert!(matcher.is_match(&spec, &at(8 << 9)).await);
    let started = Instant::now();
    assert!(!matcher.is_match(&spec, &at(8 << 10)).await);
    assert!(started.elapsed().as_secs() < 5);
}
