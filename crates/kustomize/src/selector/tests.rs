use std::{collections::BTreeMap, sync::Arc};

use super::*;

fn object(text: &str) -> Resource {
    let node = yaml::read::node(text, &tree::Budget::default()).unwrap().unwrap();
    Resource::new(node, Arc::default(), 1)
}

fn objects() -> ResMap {
    let text = |name: &str, metadata: &str| {
        object(&format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, {metadata}}}}}"
        ))
    };
    let mut renamed = text("old", "namespace: far");
    renamed.store_previous_id();
    renamed.set_name("middle");
    renamed.store_previous_id();
    renamed.set_name("new");
    let list = [
        text("api", "labels: {tier: back, track: '2'}"),
        text("api-db", "labels: {tier: data}, annotations: {owner: me}"),
        text("web", "namespace: near"),
        renamed,
        object("{apiVersion: v1, kind: Service, metadata: {name: api}}"),
    ];
    list.into_iter().collect()
}

fn selected(change: impl FnOnce(&mut Selector)) -> Result<Vec<usize>, String> {
    let mut selector = Selector::default();
    change(&mut selector);
    let budget = tree::Budget::default();
    let run = crate::testing::run(&budget);
    let dir = TreePath::root();
    select(&objects(), &selector, &run, &dir).map_err(|error| error.to_string())
}

#[test]
fn name_patterns_match_the_whole_name() {
    let name = |name: &str| selected(|selector| selector.name = name.to_owned());
    assert_eq!(name("").unwrap().len(), 5);
    assert_eq!(name("api"), Ok(vec![0, 4]));
    assert_eq!(name("api.*"), Ok(vec![0, 1, 4]));
    assert_eq!(name("api|web"), Ok(vec![0, 2, 4]));
    assert_eq!(name("pi"), Ok(vec![]));
    assert_eq!(name("old"), Ok(vec![3]));
    assert_eq!(name("new"), Ok(vec![3]));
    assert_eq!(name("middle"), Ok(vec![]));
    for (pattern, problem) in [
        ("a[", "missing closing ]: `[)$`"),
        ("a(", "missing closing ): `^(?:a()$`"),
        ("a)", "unexpected ): `^(?:a))$`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|+", "missing argument to repetition operator: `+`"),
    ] {
        assert_eq!(
            name(pattern),
            Err(format!("error parsing regexp: {problem}")),
            "{pattern}"
        );
    }
}

#[test]
fn patterns_are_in_the_syntax_of_go() {
    let name = |name: &str| selected(|selector| selector.name = name.to_owned());
    assert_eq!(name(r"\Qapi\E"), Ok(vec![0, 4]));
    assert_eq!(name("api|{name}"), Ok(vec![0, 4]));
    let nested = "invalid nested repetition operator: `**`";
    assert_eq!(name("a**"), Err(format!("error parsing regexp: {nested}")));
}

#[test]
fn oversized_patterns_are_refused() {
    let problem = selected(|selector| selector.name = "(a{1000}){1000}".into()).unwrap_err();
    assert!(problem.starts_with("error parsing regexp: "), "{problem}");
}

#[test]
fn kind_and_namespace_patterns_match() {
    assert_eq!(selected(|selector| selector.kind = "Serv.*".into()), Ok(vec![4]));
    assert_eq!(selected(|selector| selector.group = "app".into()), Ok(vec![]));
    assert_eq!(
        selected(|selector| selector.version = "v[1-9]".into())
            .unwrap()
            .len(),
        5
    );
    assert_eq!(
        selected(|selector| selector.namespace = "near".into()),
        Ok(vec![2])
    );
    assert_eq!(
        selected(|selector| selector.namespace = "default".into()),
        Ok(vec![0, 1, 4])
    );
}

#[test]
fn label_and_annotation_selectors_match() {
    let label = |text: &str| selected(|selector| selector.label_selector = text.to_owned());
    assert_eq!(label("tier=back"), Ok(vec![0]));
    assert_eq!(label("tier"), Ok(vec![0, 1]));
    assert_eq!(label("!tier"), Ok(vec![2, 3, 4]));
    assert_eq!(label("tier notin (back)"), Ok(vec![1, 2, 3, 4]));
    let owner = selected(|selector| selector.annotation_selector = "owner in (me, you)".to_owned());
    assert_eq!(owner, Ok(vec![1]));
    assert!(label("a==").is_ok_and(|selected| selected.is_empty()));
    assert!(label("a=b=c").is_err());
    let unreached = selected(|selector| {
        selector.name = "nobody".into();
        selector.label_selector = "a=b=c".into();
    });
    assert_eq!(unreached, Ok(vec![]));
}

fn fits(selector: &str, labels: &[(&str, &str)]) -> bool {
    let labels: BTreeMap<_, _> = labels
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    LabelSelector::parse(selector).unwrap().fits(&labels)
}

#[test]
fn selector_requirements_follow_kubernetes() {
    let labels = [("a", "1"), ("b", ""), ("x.y/c", "in")];
    for (selector, expected) in [
        ("", true),
        (" \t", true),
        ("a=1,b=,x.y/c", true),
        ("a==1", true),
        ("a!=1", false),
        ("z!=1", true),
        ("z=1", false),
        ("a in (0,1)", true),
        ("a in ( )", false),
        ("b in (,)", true),
        ("b in (1,,2)", true),
        ("a notin (1,2)", false),
        ("x.y/c in (in,notin)", true),
        ("a>0,a<2", true),
        ("a>1", false),
        ("b>1", false),
        ("!a", false),
        ("!a=1", true),
        ("!z", true),
    ] {
        assert_eq!(fits(selector, &labels), expected, "{selector}");
    }
}

#[test]
fn invalid_selectors_are_refused() {
    for (selector, words) in [
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "expected: '=', '!=', '==', 'in', notin'"),
        ("a in b", "found 'b' expected: '('"),
        ("a in (b", "expected: ',' or ')'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a>b", "the value must be an integer"),
        ("-a", "invalid label key \"-a\": name part"),
        ("A.b/c", "invalid label key \"A.b/c\": prefix part"),
        ("a/b/c", "invalid label key \"a/b/c\": name part"),
        (
            "a=.*",
            "invalid label value: \".*\": at key: \"a\": a valid label must be an empty string or consist",
        ),
    ] {
        let problem = LabelSelector::parse(selector).unwrap_err();
        assert!(problem.to_string().contains(words), "{selector}: {problem}");
    }
}
