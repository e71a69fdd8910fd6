//! Memory that functions take for large arguments. Each case runs in a process of its own, whose peak is read.

use std::{env, process::Command};

use testkit::process::Usage;
use tree::{Budget, Limits};

use super::render;

/// The name of this test, for a process that runs one case.
const TEST: &str = "functions::tests::memory::functions_refuse_large_results_before_they_take_memory";
/// The variable with the template of a case.
const CASE: &str = "WEIR_TEST_MEMORY_CASE";
/// The limit of one string in bytes; the arguments are nearly as large.
const LIMIT: u64 = 4 << 20;
/// The maximum peak of a process, in bytes.
const PEAK: u64 = 12 * LIMIT;

const CASES: &[&str] = &[
    r#"splitList "" $s"#,
    r#"splitList "a" $s"#,
    r#"split "" $s"#,
    r#"split "a" $s"#,
    r#"splitn "a" 2666666 $s"#,
    r#"regexFindAll "a" $s -1"#,
    r#"regexSplit "a" $s -1"#,
    r#"regexReplaceAll "a" $s "bbbb""#,
    r#"regexReplaceAllLiteral "" $s "bbbb""#,
    "until 10000000",
    "until 466666",
    "untilStep 0 466666 1",
    "seq 1 466666",
    "chunk 1 (until 200000)",
    "$l | toJson",
    "$l | toPrettyJson",
    "$l | toRawJson",
    "$l | toYaml",
    "$l | toYamlPretty",
    "dict \"a\" $l | toToml",
    "$l | toStrings",
    "$l | sortAlpha",
    "$l | join \"\"",
    "$l | join $s",
    "$l | deepCopy",
    "$l | quote",
    "$l | toString",
    "$l | print",
    "$l | html",
    "cat $s $s $s $s $s $s $s $s $s $s $s $s $s $s",
    "quote $s $s $s $s $s $s $s $s $s $s $s $s $s $s",
    "squote $s $s $s $s $s $s $s $s $s $s $s $s $s $s",
    "print $s $s $s $s $s $s $s $s $s $s $s $s $s $s",
    r#"printf "%s%s%s%s%s%s%s%s" $s $s $s $s $s $s $s $s"#,
    r#"repeat 4000000 "\n" | quote"#,
    r#"repeat 4000000 "\n" | toJson"#,
    r#"repeat 4000000 "<" | toJson"#,
    r#"repeat 4000000 "<" | html"#,
    r#"repeat 4000000 "<" | js"#,
    r#"repeat 4000000 "<" | urlquery"#,
    r#"repeat 4000000 "\n" | printf "%q""#,
    r#"repeat 4000000 "\n" | printf "%x""#,
    r#"repeat 4000000 "\n" | indent 1"#,
    r#"repeat 4000000 "\n" | nindent 7"#,
    r#"repeat 2000000 "1," | printf "[%s1]" | fromJson"#,
    r#"repeat 2000000 "1," | printf "[%s1]" | fromJsonArray"#,
    r#"repeat 2000000 "1," | printf "[%s1]" | mustFromJson"#,
    r#"repeat 2000000 "1," | printf "[%s1]" | fromYamlArray"#,
    r#"repeat 1333333 "- \n" | fromYamlArray"#,
    r#"repeat 1000000 "- a\n" | fromYaml"#,
    r#"repeat 2000000 "1," | printf "a = [%s1]" | fromToml"#,
    r#"repeat 1333333 "{}," | printf "[%s{}]" | fromYamlArray"#,
    r#"repeat 1333333 "{}," | printf "[%s{}]" | fromJsonArray"#,
    r#"tpl (repeat 800000 "{{1}}") $"#,
    r#"tpl (printf "{{print %s}}" (repeat 1900000 "1 ")) $"#,
    r#"tpl (printf "{{print %s}}" (repeat 1900000 ".a")) $"#,
    r#"tpl (printf "{{print 1%s}}" (repeat 900000 "|len")) $"#,
    "html (randBytes 4000000)",
    // Just within the limit.
    r#"repeat 60000 "1," | printf "[%s1]" | fromYamlArray"#,
    r#"repeat 60000 "{}," | printf "[%s{}]" | fromYamlArray"#,
    r#"repeat 60000 "1," | printf "[%s1]" | fromJsonArray"#,
    r#"repeat 60000 "1," | printf "a = [%s1]" | fromToml"#,
    r#"repeat 60000 "- a\n" | fromYamlArray"#,
    r#"tpl (repeat 60000 "{{1}}") $"#,
    r#"tpl (printf "{{print %s}}" (repeat 60000 "1 ")) $"#,
    "$s | upper",
    "$s | title",
    "$s | swapcase",
    "$s | nospace",
    "$s | initials",
    "$s | snakecase",
    "$s | camelcase",
    r#"repeat 2000000 "aB" | snakecase"#,
    r#"repeat 2000000 "aB" | kebabcase"#,
    r#"repeat 2000000 "a " | wrap 1"#,
    r#"wrapWith 1 "xxxxxxx" $s"#,
    "$s | b64enc",
    "$s | b32enc",
    "$s | b64enc | b64dec",
    "$s | shuffle",
    "$s | urlParse",
    "$s | trunc 3333333",
    "$s | sha256sum",
    r#"$s | replace "a" "bb""#,
    r#"$s | replace "" "b""#,
    "randAlphaNum 4000000",
    "randBytes 4000000",
    "regexQuoteMeta $s",
    "$s | clean",
    "$s | quote",
    "$s | toJson",
    "$s | splitList \"b\"",
    "concat (until 133333) (until 133333) (until 133333)",
    "reverse (until 233333)",
    "uniq $l",
];

#[test]
fn functions_refuse_large_results_before_they_take_memory() {
    if let Ok(case) = env::var(CASE) {
        let template = format!(
            "{{{{ $s := repeat 4000000 \"a\" }}}}{{{{ $l := list }}}}{{{{ range until 50 }}}}{{{{ $l = append $l $s }}}}\
             {{{{ end }}}}{{{{ $x := {case} }}}}"
        );
        let limits = Limits {
            bytes: LIMIT,
            steps: 33_000_000,
            ..Limits::default()
        };
        let made = render(&template, &Budget::new(limits));
        let usage = Usage::of(std::process::id()).unwrap();
        let outcome = made.err().unwrap_or_default();
        println!(
            "peak {} {}",
            usage.peak,
            outcome.replace('\n', " ").chars().take(1000).collect::<String>()
        );
        return;
    }
    let mut failures = Vec::new();
    for case in CASES {
        let output = Command::new(env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture"])
            .env(CASE, case)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text
            .lines()
            .find_map(|line| Some(line.split_once("peak ")?.1.to_owned()));
        let (peak, error) = line
            .as_deref()
            .and_then(|line| line.split_once(' '))
            .unwrap_or(("0", "died"));
        let peak: u64 = peak.parse().unwrap();
        let is_limit = error.is_empty() || ["limit of", "too long"].iter().any(|part| error.contains(part));
        if peak == 0 || peak > PEAK || !is_limit {
            failures.push(format!("{case}: {} MiB, {error}", peak >> 20));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
