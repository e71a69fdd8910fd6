//! Memory use of functions with large arguments. Each case runs in its own process, whose peak is measured.

use std::{env, process::Command};

use testkit::process::Usage;
use tree::{Budget, Limits};

use super::render;

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

/// Templates that retain their results although they seem to pass them on.
const RETAINED: &[&str] = &[
    r#"{{ $l := list }}{{ range until 50 }}{{ $l = append $l (repeat 4000000 "x") }}{{ end }}"#,
    r#"{{ $d := dict }}{{ range until 50 }}{{ $_ := set $d (toString .) (repeat 4000000 "x") }}{{ end }}"#,
    r#"{{ $d := dict }}{{ range until 50 }}{{ set $d (toString .) (repeat 4000000 "x") | len | print | trunc 0 }}{{ end }}"#,
    r#"{{ $d := dict }}{{ range until 50 }}{{ $_ := merge $d (dict (toString .) (repeat 4000000 "x")) }}{{ end }}"#,
    r#"{{ $l := list }}{{ range until 50 }}{{ with repeat 4000000 "x" }}{{ $l = append $l . }}{{ end }}{{ end }}"#,
    r#"{{ $l := list }}{{ range until 50 }}{{ range list (repeat 4000000 "x") }}{{ $l = append $l . }}{{ end }}{{ end }}"#,
    r#"{{ $l := list }}{{ range until 50 }}{{ $x := "" }}{{ range $x = list (repeat 4000000 "x") }}{{ end }}{{ $l = append $l $x }}{{ end }}"#,
    r#"{{ define "keep" }}{{ $_ := set .d (toString .i) .s }}{{ end }}{{ $d := dict }}
       {{ range until 50 }}{{ include "keep" (dict "d" $d "i" . "s" (repeat 4000000 "x")) }}{{ end }}"#,
    r#"{{ define "keep" }}{{ $s := repeat 4000000 "x" }}{{ $_ := set .d (toString .i) $s }}{{ end }}{{ $d := dict }}
       {{ range until 50 }}{{ template "keep" (dict "d" $d "i" .) }}{{ end }}"#,
    r#"{{ define "deep" }}{{ $x := 1 }}{{ if lt . 50 }}{{ $y := repeat 4000000 "x" }}{{ include "deep" (add . 1) }}{{ end }}{{ end }}
       {{ include "deep" 0 }}"#,
    r#"{{ define "deep" }}{{ $x := 1 }}{{ if lt .i 50 }}{{ include "deep" (dict "i" (add .i 1) "s" (repeat 4000000 "x") "up" .) }}
       {{ end }}{{ end }}{{ include "deep" (dict "i" 0) }}"#,
    r#"{{ define "deep" }}{{ if lt .i 50 }}{{ with repeat 4000000 "x" }}{{ include "deep" (dict "i" (add $.i 1)) }}{{ end }}{{ end }}
       {{ end }}{{ include "deep" (dict "i" 0) }}"#,
    r#"{{ define "tpl" }}{{ if lt .i 50 }}{{ tpl (repeat 8000 "{{/**/}}{{print 1}}{{ $_ := 1 }}" | printf "%s{{ include \"tpl\" (dict \"i\" (add .i 1)) }}") . }}{{ end }}{{ end }}
       {{ include "tpl" (dict "i" 0) }}"#,
    r#"{{ $d := dict }}{{ range until 3000000 }}{{ $_ := set $d (toString .) "" }}{{ end }}"#,
    r#"{{ $d := dict }}{{ range until 3000000 }}{{ $_ := set $d "x" (dict "x" $d) }}{{ end }}"#,
    r#"{{ $d := dict }}{{ range until 3000000 }}{{ $d = list $d }}{{ end }}"#,
    r#"{{ $l := list }}{{ range until 50 }}{{ $l = append $l (repeat 60000 "1," | printf "[%s1]" | fromYamlArray) }}{{ end }}"#,
];

const LARGE: &[&str] = &[
    r#"{{ $x := splitList "" (repeat 60000000 "a") }}"#,
    r#"{{ $x := split "" (repeat 60000000 "a") }}"#,
    r#"{{ $x := split "a" (repeat 20000000 "a") }}"#,
    r#"{{ $l := list }}{{ range until 100 }}{{ $l = append $l (repeat 60000000 "x") }}{{ end }}"#,
    r#"{{ range until 100 }}{{ repeat 60000000 "x" }}{{ end }}"#,
    r#"{{ define "a" }}{{ repeat 60000000 "x" }}{{ end }}{{ range until 100 }}{{ $x := include "a" . }}{{ end }}"#,
];
/// The maximum peak of a process with the default limits, in bytes.
const LARGE_PEAK: u64 = 256 << 20;

/// Renders a template in a child process, which runs this test with the template in a variable. Returns the child's memory peak
/// in bytes and the error; `None` in the child itself.
fn rendered_apart(test: &str, limits: Option<Limits>, template: &str) -> Option<(u64, String)> {
    if let Ok(case) = env::var(CASE) {
        let made = render(&case, &Budget::new(limits.unwrap_or_default()));
        let usage = Usage::of(std::process::id()).unwrap();
        let outcome = made.err().unwrap_or_default().replace('\n', " ");
        println!(
            "peak {} {}",
            usage.peak,
            outcome.chars().take(1000).collect::<String>()
        );
        return None;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CASE, template)
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
    Some((peak.parse().unwrap(), error.to_owned()))
}

/// Checks that each template stays below a memory peak, and ends with the error of a limit if it `fails`.
fn check(test: &str, limits: Option<&Limits>, templates: &[String], most: u64, fails: bool) {
    let mut failures = Vec::new();
    for template in templates {
        let Some((peak, error)) = rendered_apart(test, limits.cloned(), template) else {
            return;
        };
        let is_limit = ["limit of", "too long"].iter().any(|part| error.contains(part));
        if peak == 0 || peak > most || !(is_limit || error.is_empty() && !fails) {
            failures.push(format!("{template}: {} MiB, {error}", peak >> 20));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn small() -> Limits {
    Limits {
        bytes: LIMIT,
        steps: 33_000_000,
        ..Limits::default()
    }
}

fn to_strings(templates: &[&str]) -> Vec<String> {
    templates.iter().map(|&template| template.to_owned()).collect()
}

#[test]
fn functions_refuse_large_results_before_they_take_memory() {
    let test = "functions::tests::memory::functions_refuse_large_results_before_they_take_memory";
    let template = |case: &&str| {
        format!(
            "{{{{ $s := repeat 4000000 \"a\" }}}}{{{{ $l := list }}}}{{{{ range until 50 }}}}{{{{ $l = append $l $s }}}}\
             {{{{ end }}}}{{{{ $x := {case} }}}}"
        )
    };
    let templates: Vec<String> = CASES.iter().map(template).collect();
    check(test, Some(&small()), &templates, PEAK, false);
}

#[test]
fn values_that_templates_keep_are_bounded_in_memory() {
    let test = "functions::tests::memory::values_that_templates_keep_are_bounded_in_memory";
    check(test, Some(&small()), &to_strings(RETAINED), PEAK, true);
}

#[test]
fn large_values_and_outputs_are_refused_within_the_memory_of_a_pod() {
    let test = "functions::tests::memory::large_values_and_outputs_are_refused_within_the_memory_of_a_pod";
    check(test, None, &to_strings(LARGE), LARGE_PEAK, true);
}
