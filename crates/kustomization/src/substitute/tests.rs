//! The grammar, case by case, as the original's library evaluates it.

use tree::Limits;

use super::*;

fn variables() -> BTreeMap<String, String> {
    let pairs = [
        ("v", "hello/World.tar.gz"),
        ("d", "a/b/c"),
        ("e", ""),
        ("n", "3"),
        ("u", "äöü"),
        ("1st", "first"),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn apply(text: &str, strict: bool) -> Result<String, SubstitutionError> {
    let variables = variables();
    let substitution = Substitution {
        variables: &variables,
        strict,
    };
    let result = substitution.apply(text, &Budget::default());
    result.map(Cow::into_owned)
}

#[test]
fn substitutions_are_evaluated() {
    for (text, expected) in [
        ("", ""),
        ("no variables", "no variables"),
        ("a ${n} b ${n}", "a 3 b 3"),
        ("${1st}", "first"),
        ("${#v}", "18"),
        ("${#u}", "6"),
        ("${v^}", "Hello/World.tar.gz"),
        ("${v^^}", "HELLO/WORLD.TAR.GZ"),
        ("${v,}", "hello/World.tar.gz"),
        ("${v,,}", "hello/world.tar.gz"),
        ("${v,^}", "hello/World.tar.gz"),
        ("${u^}", "Äöü"),
        ("${v:2}", "llo/World.tar.gz"),
        ("${v:2:3}", "llo"),
        ("${v:99}", ""),
        ("${v:2:99}", "llo/World.tar.gz"),
        ("${v:99:2}", ""),
        ("${v: -2}", "hello/World.tar.gz"),
        ("${v:n}", "hello/World.tar.gz"),
        ("${v:2:n}", "hello/World.tar.gz"),
        ("${v:-2}", "hello/World.tar.gz"),
        ("${v:+3}", "hello/World.tar.gz"),
        ("${v:${n}}", "lo/World.tar.gz"),
        ("${v#*o}", "/World.tar.gz"),
        ("${v##*o}", "rld.tar.gz"),
        ("${v%.*}", "hello/World.tar"),
        ("${v%%.*}", "hello/World"),
        ("${v#hel?o/}", "World.tar.gz"),
        ("${v#[a-h]ello}", "/World.tar.gz"),
        ("${v#[^a-h]ello}", "hello/World.tar.gz"),
        ("${v#[a-}", "hello/World.tar.gz"),
        ("${v#nothing}", "hello/World.tar.gz"),
        ("${d#*/}", "b/c"),
        ("${d##*/}", "c"),
        ("${d%/*}", "a/b"),
        ("${d%%/*}", "a"),
        ("${v/l/L}", "heLlo/World.tar.gz"),
        ("${v//l/L}", "heLLo/WorLd.tar.gz"),
        ("${v/#hello/bye}", "bye/World.tar.gz"),
        ("${v/#World/x}", "hello/World.tar.gz"),
        ("${v/%gz/xz}", "hello/World.tar.xz"),
        ("${v/%tar/x}", "hello/World.tar.gz"),
        ("${v/#hello/}", "hello/World.tar.gz"),
        ("${v/l/}", "helo/World.tar.gz"),
        ("${v//l/}", "heo/Word.tar.gz"),
        (r"${d//\//-}", "a-b-c"),
        (r"${d/\//\\}", r"a\b/c"),
        ("${d//./-}", "a/b/c"),
        ("${x:-d}", "d"),
        ("${x:=d}", "d"),
        ("${x=d}", "d"),
        ("${e:-d}", "d"),
        ("${e=d}", "d"),
        ("${x:+a}", "a"),
        ("${v:+a}", "hello/World.tar.gz"),
        ("${x:?m}", "m"),
        ("${x:-}", ""),
        ("${x:-${v}}", "hello/World.tar.gz"),
        ("${x:-a${e}b}", "ab"),
        ("${x:-${y:-${z:-deep}}}", "deep"),
        ("${x:-$v}", "$v"),
        ("${x:-$${v}}", "$hello/World.tar.gz"),
        ("${x:-a}b}", "ab}"),
        ("${x:-{a}}", "{a}"),
        ("${n:-{a}}", "3}"),
    ] {
        assert_eq!(apply(text, true).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn only_dollars_and_braces_are_special() {
    for (text, expected) in [
        ("$name $(x) {{x}} \\ $", "$name $(x) {{x}} \\ $"),
        ("$$", "$"),
        ("$$$", "$$"),
        ("$$(POD_IP)", "$(POD_IP)"),
        ("$${v}", "${v}"),
        ("$$${n}", "$3"),
        ("$$$${n}", "$${n}"),
        ("a$$b$$c", "a$b$c"),
        ("}${n}{", "}3{"),
    ] {
        assert_eq!(apply(text, true).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn malformed_substitutions_are_refused() {
    use SubstitutionError as E;
    for (text, expected) in [
        ("${x-d}", E::MissingClosingBrace),
        ("${v+a}", E::MissingClosingBrace),
        ("${v?m}", E::MissingClosingBrace),
        ("${a.b}", E::MissingClosingBrace),
        ("${v@Q}", E::MissingClosingBrace),
        ("${v", E::MissingClosingBrace),
        ("${}", E::VariableName),
        ("${!v}", E::VariableName),
        ("${", E::VariableName),
        ("${v^^h}", E::BadSubstitution),
        ("${v/l}", E::BadSubstitution),
        ("${#}", E::BadSubstitution),
        ("${#v:1}", E::BadSubstitution),
        ("${v:}", E::Argument),
        ("${v::2}", E::Argument),
        ("${v#}", E::Argument),
        ("${v:-a", E::Argument),
        ("${v:2:-3}", E::NegativeLength("v".to_owned())),
        ("${u:1:1}", E::NotUtf8),
    ] {
        assert_eq!(apply(text, true), Err(expected), "{text}");
    }
}

#[test]
fn strict_substitution_refuses_variables_without_a_value() {
    let error = |text| apply(text, true).unwrap_err().to_string();
    for text in [
        "${x}",
        "${#x}",
        "${x^^}",
        "${x/a/b}",
        "${x:2}",
        "${x%a}",
        "${e:-${x}}",
    ] {
        assert_eq!(error(text), "variable not set (strict mode): \"x\"", "{text}");
    }
    assert_eq!(apply("a${x}b${#x}c${x^^}", false).as_deref(), Ok("ab0c"));
    assert_eq!(apply("${e}", true).as_deref(), Ok(""), "an empty variable is set");
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}x{}", "${x:-".repeat(depth), "}".repeat(depth));
    assert_eq!(apply(&nested(50), true).as_deref(), Ok("x"));
    assert_eq!(apply(&nested(51), true), Err(SubstitutionError::TooDeep(50)));
}

/// A value that grows with each step, and a pattern that is tried at each position.
#[test]
fn bombs_end_at_the_limits_of_the_budget() {
    let long = "a".repeat(2000);
    let variables = BTreeMap::from([("a".to_owned(), long.clone())]);
    let substitution = Substitution {
        variables: &variables,
        strict: true,
    };
    let budget = || {
        Budget::new(Limits {
            bytes: 1 << 20,
            steps: 1 << 20,
            ..Limits::default()
        })
    };
    let growing = format!("${{a//a/{long}}}");
    let error = substitution.apply(&growing, &budget()).unwrap_err().to_string();
    assert!(error.contains("bytes of rendered output"), "{error}");
    let matching = "${a##*a*b}";
    let error = substitution.apply(matching, &budget()).unwrap_err().to_string();
    assert!(error.contains("steps"), "{error}");
}
