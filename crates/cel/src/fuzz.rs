//! Random expressions.

use testkit::fuzz;

use crate::{
    EvalError, Program, Scope,
    tests::{NAMES, TIME, processor_time, variables},
};

#[test]
fn fuzz_expressions_end_in_bounded_time() {
    const PARTS: &[&str] = &[
        "req",
        "res",
        ".ref",
        ".tags",
        ".?x",
        "[0]",
        "[?1]",
        ".all(x, ",
        ".map(x, ",
        ".exists(x, ",
        "x",
        "(",
        ")",
        ",",
        "'a'",
        "\"",
        "1",
        "0",
        "9223372036854775807",
        "2.5",
        "3u",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " < ",
        " in ",
        " && ",
        " || ",
        "!",
        "-",
        " ? ",
        " : ",
        "[",
        "]",
        "{",
        "}",
        "has(",
        "size(",
        "string(",
        "int(",
        ".matches(",
        ".split(",
        ".replace('', 'aa')",
        ".substring(",
        "optional.of(",
        ".orValue(",
        "base64.decode(",
        "b'\\xff'",
        "'\\u00e9'",
        "é",
        "//",
        "true",
        "null",
        "r'",
        "'''",
        ".lastIndexOf('é', 1)",
        "timestamp(",
        "duration('1h')",
        ".getHours(",
        "'%s %.3f %x'.format([",
        "strings.quote(",
        ".first()",
    ];
    fuzz::run("cel", |random| {
        let text = random.text(PARTS, 0..25);
        random.note("expression", &text);
        let started = processor_time();
        let scope = if random.flag() { NAMES } else { Scope::Any };
        if let Ok(program) = Program::compile(&text, scope) {
            let _ = program.evaluate(&variables());
        }
        let took = processor_time() - started;
        assert!(took < TIME, "it took {took:?}");
        if let Ok(program) = Program::compile_bool(&text, NAMES) {
            let holds = program.is_true(&variables());
            if let Err(EvalError::Failed(why)) = holds {
                assert!(!why.contains("not bool"), "{why}");
            }
        }
    });
}
