//! Tests of the grammar and of its errors.

use tree::Budget;

use super::{ParseError, Template};
use crate::{lexer::SyntaxError, meter::Meter, renderer::LANGUAGE};

/// Parses a template within the default limits.
fn parse(source: &str) -> Result<Template, SyntaxError> {
    let meter = Meter::default();
    meter.start(&Budget::default()).unwrap();
    super::parse(source, &LANGUAGE, &meter).map_err(|error| match error {
        ParseError::Syntax(error) => error,
        ParseError::Exceeded(exceeded) => panic!("{source:.100}: {exceeded}"),
    })
}

#[test]
fn errors_have_the_messages_and_lines_of_the_original() {
    for (source, line, message) in [
        (
            "{% if x %}",
            1,
            "Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or \
          'endif'. The innermost block that needs to be closed is 'if'.",
        ),
        ("x{% endif %}", 1, "Encountered unknown tag 'endif'."),
        (
            "{% for a in b %}{% endif %}",
            1,
            "Encountered unknown tag 'endif'. Jinja was looking for the following tags: \
          'endfor' or 'else'. The innermost block that needs to be closed is 'for'.",
        ),
        (
            "{% for a in b %}{% if 1 %}{% endfor %}",
            1,
            "Encountered unknown tag 'endfor'. You probably made a nesting \
          mistake. Jinja is expecting this tag, but currently looking for 'elif' or 'else' or 'endif'. The innermost \
          block that needs to be closed is 'if'.",
        ),
        ("\n{{ 1 + }}", 2, "unexpected 'end of print statement'"),
        ("{{ }}", 1, "Expected an expression, got 'end of print statement'"),
        ("{{ .x }}", 1, "unexpected '.'"),
        ("{{ (1, 2 }}", 1, "unexpected '}', expected ')'"),
        ("{{ a b }}", 1, "expected token 'end of print statement', got 'b'"),
        (
            "{{ f(a=1, 2) }}",
            1,
            "invalid syntax for function call expression",
        ),
        (
            "{% macro f(a=1, b) %}{% endmacro %}",
            1,
            "non-default argument follows default argument",
        ),
        ("{% set 1 = 2 %}", 1, "can't assign to 'const'"),
        (
            "{{ 1 is odd is even is odd }}",
            1,
            "You cannot chain multiple tests with is",
        ),
        ("{{ 'x' | nofilter }}", 1, "No filter named 'nofilter'."),
        (
            "{% block a %}{% endblock %}{% block a %}{% endblock %}",
            1,
            "block 'a' defined twice",
        ),
    ] {
        let error = parse(source).expect_err(source);
        assert_eq!((error.line, error.message.as_str()), (line, message), "{source}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for source in [
        format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(5000)),
        format!("{{{{ {}1 }}}}", "-".repeat(5000)),
        format!("{{{{ a{} }}}}", ".b".repeat(5000)),
        format!("{{{{ a{} }}}}", "|e".repeat(5000)),
        format!("{{{{ a{} }}}}", "[0]".repeat(5000)),
        format!("{{{{ 1{} }}}}", " + 1".repeat(5000)),
        format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(5000)),
        "{% if 1 %}".repeat(5000),
        format!("{{% set {}a = 1 %}}", "(".repeat(5000)),
    ] {
        let error = tree::on_deep_stack(|| parse(&source).map(|_| ()))
            .unwrap()
            .unwrap_err();
        assert!(error.message.contains("than"), "{}", error.message);
    }
}
