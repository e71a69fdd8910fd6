//! Hostile templates end with an error, in bounded time and memory.

use std::rc::Rc;

use tree::{Budget, Limits};

use super::fixture::{Tests, deep, render, render_within};
use crate::template::{Error, Executor, ParseBuffers, Set};

fn small() -> Budget {
    Budget::new(Limits {
        steps: 100_000,
        bytes: 100_000,
        ..Limits::default()
    })
}

#[test]
fn endless_loops_reach_the_limit() {
    deep(|| {
        for template in [
            "{{ range 1000000000000 }}{{ end }}",
            "{{ range 1000000 }}{{ range 1000000 }}x{{ end }}{{ end }}",
            r#"{{ $x := "ab" }}{{ range 100 }}{{ $x = print $x $x }}{{ end }}"#,
            r#"{{ range 1000 }}{{ printf "%1000000d" 1 }}{{ end }}"#,
            r#"{{ printf "%.1000000f" 1.5 }}"#,
            r#"{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}"#,
            r#"{{ range 100000 }}{{ $_ := list 1 2 3 4 }}{{ end }}"#,
            r#"{{ define "a" }}{{ template "a" }}{{ template "a" }}{{ end }}{{ template "a" }}"#,
            r#"{{ define "a" }}{{ tpl "{{ template \"a\" }}" . }}{{ end }}{{ template "a" }}"#,
        ] {
            let error = render_within(template, false, &small()).unwrap_err();
            let limit = ["the limit of", "too long", "exceeded maximum"];
            assert!(
                limit.iter().any(|limit| error.contains(limit)),
                "{template}: {error:.300}"
            );
        }
    });
}

#[test]
fn print_refuses_values_that_nest_too_deep() {
    deep(|| {
        let error = render(
            "{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ $x }}",
            false,
        );
        assert!(error.unwrap_err().contains("nests too deep"));
    });
}

#[test]
fn executor_refuses_values_too_deep_to_drop() {
    deep(|| {
        for made in ["list $x", r#"dict "a" $x"#] {
            let template =
                format!("{{{{ $x := list }}}}{{{{ range 200000 }}}}{{{{ $x = {made} }}}}{{{{ end }}}}");
            let error = render(&template, false).unwrap_err();
            assert!(error.contains("the limit of"), "{error}");
        }
    });
}

#[test]
fn templates_that_nest_too_deep_are_refused() {
    deep(|| {
        let parens = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
        let blocks = "{{ if 1 }}".repeat(20_000);
        let chain = format!("{{{{ if 1 }}}}{}{{{{ end }}}}", "{{ else if 1 }}".repeat(20_000));
        for template in [parens, blocks, chain] {
            assert!(render(&template, false).unwrap_err().contains("depth exceeded"));
        }
    });
}

#[test]
fn recursive_includes_end_with_the_error_of_helm() {
    deep(|| {
        let template = r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#;
        let error = render(template, false).unwrap_err();
        let end = "error calling include: rendering template has a nested reference name: a: unable to execute template";
        assert!(error.ends_with(end), "{error:.200}");
    });
}

#[test]
fn executor_is_usable_after_an_error() {
    let mut set = Set::new();
    let text =
        r#"{{ define "bad" }}{{ range 3 }}{{ fail "no" }}{{ end }}{{ end }}{{ define "good" }}x{{ end }}"#;
    set.parse("t", text, &Tests, &mut ParseBuffers::default())
        .unwrap();
    let budget = Budget::default();
    let mut executor = Executor::new(Rc::new(set), &Tests, &budget, false);
    for _ in 0..3 {
        assert!(executor.execute("bad", crate::Value::Nil).is_err());
        assert_eq!(executor.execute("good", crate::Value::Nil).unwrap(), "x");
    }
    let error = executor.execute("other", crate::Value::Nil).unwrap_err();
    assert_eq!(error, Error::Unknown("other".to_owned(), "gotpl".to_owned()));
    let text = "template: no template \"other\" associated with template \"gotpl\"";
    assert_eq!(error.to_string(), text);
}

#[test]
fn later_definitions_replace_earlier_ones_unless_they_are_empty() {
    let mut set = Set::new();
    set.parse(
        "one",
        r#"{{ define "a" }}1{{ end }}{{ define "b" }}1{{ end }}"#,
        &Tests,
        &mut ParseBuffers::default(),
    )
    .unwrap();
    set.parse(
        "two",
        r#"{{ define "a" }}2{{ end }}{{ define "b" }} {{ end }}"#,
        &Tests,
        &mut ParseBuffers::default(),
    )
    .unwrap();
    let mut above = Set::over(Rc::new(set));
    above
        .parse(
            "three",
            r#"{{ define "a" }}3{{ end }}"#,
            &Tests,
            &mut ParseBuffers::default(),
        )
        .unwrap();
    let budget = Budget::default();
    let mut executor = Executor::new(Rc::new(above), &Tests, &budget, false);
    assert_eq!(executor.execute("a", crate::Value::Nil).unwrap(), "3");
    assert_eq!(executor.execute("b", crate::Value::Nil).unwrap(), "1");
}

/// Strings of random pieces of templates: they may fail, but not panic.
#[test]
fn random_templates_never_panic() {
    const PIECES: [&str; 64] = [
        "{{", "}}", "{{-", "-}}", " -}}", "{{- ", "/*", "*/", " ", "\n", "if", "else", "end", "range",
        "with", "define", "template", "block", "break", "continue", "nil", "true", ".", ".Values", ".name",
        "$", "$x", ":=", "=", ",", "|", "(", ")", "\"a\"", "`b`", "'c'", "'", "\"", "1", "0x1F", "1.5",
        "1e3", "-", "+", "9i", "é", "printf", "\"%v%d\"", "index", "slice", "len", "eq", "lt", "and", "or",
        "not", "print", "html", "include", "tpl", "list", "dict", "default", "}",
    ];
    deep(|| {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        for _ in 0..3_000 {
            let mut text = String::new();
            for _ in 0..random(24) {
                if random(3) == 0 {
                    text.push_str(
                        [
                            "{{ end }}",
                            "{{ if .Values }}",
                            "{{ range $i, $x := .Values }}",
                            " }}{{ ",
                        ][random(4)],
                    );
                }
                text.push_str(PIECES[random(PIECES.len())]);
                text.push_str(["", " "][random(2)]);
            }
            let _ = render_within(&text, random(2) == 0, &small());
        }
    });
}
