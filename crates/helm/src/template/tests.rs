//! Templates and their output; `cases.jsonl` holds templates and their output of Go 1.26.

mod fixture;
mod limits;

use self::fixture::{deep, render};

#[test]
fn templates_give_the_output_of_go() {
    deep(|| {
        let mut wrong = Vec::new();
        for line in include_str!("tests/cases.jsonl").lines() {
            wrong.extend(fixture::difference(line));
        }
        assert!(
            wrong.is_empty(),
            "{} differences\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    });
}

#[test]
fn parse_refuses_complex_numbers() {
    for template in ["{{ 1+2i }}", "{{ 2i }}"] {
        let error = render(template, false).unwrap_err();
        assert!(error.contains("complex numbers are not supported"), "{error}");
    }
}
