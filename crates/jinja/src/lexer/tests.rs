//! Tokens of small templates.

use tree::Budget;

use super::*;

fn kinds(source: &str) -> Vec<String> {
    let meter = Meter::default();
    meter.start(&Budget::default()).unwrap();
    let tokens = tokens(source, &meter).unwrap();
    let describe = |token: &Token| match &token.kind {
        TokenKind::Data(text) => format!("{}:{text}", token.line),
        TokenKind::String(text) => format!("{}:{text}", token.line),
        TokenKind::Integer(number) => format!("{}:{number}", token.line),
        TokenKind::Float(number) => format!("{}:{}", token.line, crate::format::repr::float(*number)),
        kind => format!("{}:{}", token.line, kind.describe()),
    };
    tokens.iter().map(describe).collect()
}

#[test]
fn lexer_reads_text_tags_and_whitespace_control() {
    for (source, expected) in [
        ("a\n", vec!["1:a", "1:end of template"]),
        ("a \n {#- c -#} \n b", vec!["1:a", "3:b", "3:end of template"]),
        (
            "{%raw -%} {{ x }} {%- endraw%}",
            vec!["1:{{ x }}", "1:end of template"],
        ),
        (
            "a {{- 'x' -}} b",
            vec![
                "1:a",
                "1:begin of print statement",
                "1:x",
                "1:end of print statement",
                "1:b",
                "1:end of template",
            ],
        ),
        (
            "{{ {} }}",
            vec![
                "1:begin of print statement",
                "1:{",
                "1:}",
                "1:end of print statement",
                "1:end of template",
            ],
        ),
        (
            "{{ (1 }}",
            vec![
                "1:begin of print statement",
                "1:(",
                "1:1",
                "1:unexpected '}', expected ')'",
            ],
        ),
        ("{# c", vec!["1:Missing end of comment tag"]),
    ] {
        assert_eq!(kinds(source), expected, "{source}");
    }
}

#[test]
fn lexer_reads_numbers_and_strings() {
    for (source, expected) in [
        ("1_000", "1000"),
        ("0x_1f", "31"),
        ("0b11", "3"),
        ("0o17", "15"),
        ("1e3", "1000.0"),
        ("1.5e-7", "1.5e-07"),
        ("12345678901234567890123", "12345678901234567890123"),
        (r"'a\tb\\\x41\u00e9\101\q'", "a\tb\\AéA\\q"),
        (r#"'\'' "#, "'"),
    ] {
        let found = kinds(&format!("{{{{ {source} }}}}"));
        assert_eq!(found.get(1), Some(&format!("1:{expected}")), "{source}");
    }
}
