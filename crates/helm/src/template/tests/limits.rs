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
    let budget = Budget::default();
    let mut set = Set::new();
    let text =
        r#"{{ define "bad" }}{{ range 3 }}{{ fail "no" }}{{ end }}{{ end }}{{ define "good" }}x{{ end }}"#;
    set.parse("t", text, &Tests, &mut ParseBuffers::default(), &budget)
        .unwrap();
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
    let budget = Budget::default();
    let mut set = Set::new();
    set.parse(
        "one",
        r#"{{ define "a" }}1{{ end }}{{ define "b" }}1{{ end }}"#,
        &Tests,
        &mut ParseBuffers::default(),
        &budget,
    )
    .unwrap();
    set.parse(
        "two",
        r#"{{ define "a" }}2{{ end }}{{ define "b" }} {{ end }}"#,
        &Tests,
        &mut ParseBuffers::default(),
        &budget,
    )
    .unwrap();
    let mut above = Set::over(Rc::new(set));
    above
        .parse(
            "three",
            r#"{{ define "a" }}3{{ end }}"#,
            &Tests,
            &mut ParseBuffers::default(),
            &budget,
        )
        .unwrap();
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

/// Actions and blocks; `N` is a number of its own in each.
const CONSTRUCTS: &[&str] = &[
    "{{ $aN := 1 }}",
    "{{ $b := 1 }}{{ $b = 2 }}{{ $b }}",
    "{{ print 1 \"x\" .a.b (list 1 2) | upper }}",
    "{{ define \"dN\" }}{{ $x := . }}{{ $x }}{{ end }}",
    "{{ template \"dN\" . }}",
    "{{ block \"bN\" . }}{{ $aN := . }}{{ $ }}{{ end }}",
    "{{ if .aN }}{{ $aN := 1 }}{{ $aN }}{{ else }}x{{ end }}",
    "{{ range $i, $x := .y }}{{ $x }}{{ break }}{{ end }}",
    "{{ with $aN := .x }}{{ $aN.b }}{{ end }}",
];

fn parsed(text: &str, budget: &Budget) -> Result<u64, Error> {
    let (mut set, mut buffers) = (Set::new(), ParseBuffers::default());
    set.parse("t", text, &Tests, &mut buffers, budget)?;
    Ok(buffers.trees())
}

/// Returns the steps of parsing, the least limit that it stays below.
fn steps(text: &str) -> u64 {
    let fits = |steps| {
        let limits = Limits {
            steps,
            ..Limits::default()
        };
        parsed(text, &Budget::new(limits)).is_ok()
    };
    let (mut few, mut enough) = (0, 16 * text.len() as u64);
    assert!(fits(enough), "{text:.200}");
    while few + 1 < enough {
        let middle = few.midpoint(enough);
        if fits(middle) {
            enough = middle;
        } else {
            few = middle;
        }
    }
    enough
}

fn repeated(construct: &str, count: usize) -> String {
    // The numbers have the same length.
    let numbers = 10_000..10_000 + count;
    numbers
        .map(|number| construct.replace('N', &number.to_string()))
        .collect()
}

#[test]
fn parsing_grows_with_the_text_whatever_is_combined() {
    deep(|| {
        for first in CONSTRUCTS {
            for second in CONSTRUCTS.iter().filter(|second| *second != first) {
                let document = |count| {
                    let (first, second) = (repeated(first, count), repeated(second, count));
                    first + &second
                };
                let (less, more) = (document(40), document(80));
                let (one, two) = (steps(&less), steps(&more));
                let bytes = |text: &str| parsed(text, &Budget::default()).unwrap();
                let (small, large) = (bytes(&less), bytes(&more));
                assert!(
                    two * 10 <= one * 21 && large * 10 <= small * 21,
                    "{first} {second}: {one} to {two} steps, {small} to {large} bytes"
                );
            }
        }
    });
}

#[test]
fn variables_end_with_their_block_and_outer_ones_of_their_name_do_not() {
    let template = "{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}{{ with 3 }}{{ $y := . }}{{ $y }}{{ $ | len }}{{ end }}";
    assert!(render(template, false).is_ok());
    let error = render("{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}", false).unwrap_err();
    assert!(error.ends_with("undefined variable \"$x\""), "{error}");
    let error = render("{{ $x := 1 }}{{ define \"d\" }}{{ $x }}{{ end }}", false).unwrap_err();
    assert!(error.ends_with("undefined variable \"$x\""), "{error}");
}

#[test]
fn searches_among_many_variables_are_counted() {
    let declared = repeated("{{ $aN := 1 }}", 10_000);
    let used = "{{ $a10000 }}".repeat(10_000);
    let budget = Budget::new(Limits {
        steps: 1_000_000,
        ..Limits::default()
    });
    assert!(render_within(&declared, false, &budget).is_ok());
    let error = render_within(&format!("{declared}{used}"), false, &budget).unwrap_err();
    assert!(error.contains("the limit of 1000000 steps"), "{error:.300}");
}

#[test]
fn syntax_trees_of_a_set_have_a_limit_and_are_counted_before_they_are_made() {
    let dense = "1 ".repeat(2_000);
    let budget = Budget::new(Limits {
        bytes: 512 << 10,
        ..Limits::default()
    });
    for text in [
        format!("{{{{ if 0 }}}}{{{{ print {dense} }}}}{{{{ end }}}}"),
        format!("{{{{ if 0 }}}}{{{{ print \"}}}}\" {dense} }}}}{{{{ end }}}}"),
        "{{1}}".repeat(2_000),
        repeated("{{ define \"dN\" }}x{{ end }}", 1_000),
    ] {
        let (mut set, mut buffers) = (Set::new(), ParseBuffers::default());
        let mut add = |name: u32| set.parse(&name.to_string(), text.clone(), &Tests, &mut buffers, &budget);
        add(0).unwrap();
        let error = (1..30).find_map(|name| add(name).err());
        assert!(
            matches!(error, Some(Error::Exceeded(_))),
            "{text:.100}: {error:?}"
        );
        if text.contains("define") {
            continue;
        }
        let tpl = format!("{{{{ tpl {} nil }}}}", go::strconv::quote(&text.repeat(5)));
        let error = render_within(&tpl, false, &budget).unwrap_err();
        assert!(error.contains("the limit of"), "{error:.300}");
    }
}
