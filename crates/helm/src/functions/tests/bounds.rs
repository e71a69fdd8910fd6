//! Small templates with huge results or much work end early with an error.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use testkit::fuzz::{self, Random};
use tree::{Budget, Limits, SharedMemory};

use super::{super::standard, render};
use crate::template::Type;

#[test]
fn functions_refuse_results_over_the_limits() {
    let budget = || {
        Budget::new(Limits {
            steps: 20_000_000,
            bytes: 1 << 20,
            ..Limits::default()
        })
    };
    for template in [
        r#"{{ repeat 100000000 "x" }}"#,
        r#"{{ indent 1000000000 "x" }}"#,
        "{{ until 1000000000 }}",
        "{{ untilStep 0 9223372036854775807 1 }}",
        "{{ seq 1000000000 }}",
        "{{ randAlphaNum 1000000000 }}",
        "{{ randBytes 1000000000 }}",
        r#"{{ $x := "xxxxxxxxxx" }}{{ range until 60 }}{{ $x = cat $x $x }}{{ end }}"#,
        r#"{{ $x := "xxxxxxxxxx" }}{{ range until 60 }}{{ $x = replace "x" "xx" $x }}{{ end }}"#,
        "{{ $x := list 1 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}",
        "{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}",
        "{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x | len }}",
        "{{ $x := list 1 }}{{ $y := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ $y = list $y $y }}{{ end }}{{ deepEqual $x $y }}",
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}"#,
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d | len }}"#,
        r#"{{ range until 1000 }}{{ bcrypt "x" | len }}{{ end }}"#,
        r#"{{ regexFind "(((a{100}){100}){100})" "a" }}"#,
        r#"{{ wrapWith 1 (repeat 1000 "y") (repeat 1000000 "x") }}"#,
        r#"{{ join (repeat 10000 "y") (until 10000) }}"#,
    ] {
        let started = std::time::Instant::now();
        let made = render(template, &budget());
        assert!(
            made.is_err(),
            "{template}: {} bytes",
            made.map(|made| made.len()).unwrap_or_default()
        );
        assert!(started.elapsed().as_secs() < 20, "{template}");
    }
}

#[test]
fn maps_that_contain_themselves_are_freed() {
    let made = render(
        r#"{{ $d := dict "a" 1 }}{{ $_ := set $d "d" $d }}{{ $d.d.d.a }}{{ merge $d $d | len }}"#,
        &Budget::default(),
    );
    assert_eq!(made.as_deref(), Ok("12"));
}

#[test]
fn products_of_arguments_are_counted_or_avoided() {
    let strings = r#"{{ $a := repeat 2000000 "a" }}{{ $set := print (repeat 2000000 "b") "a" }}"#;
    for (template, expected) in [
        (r#"{{ trimAll $set $a | len }}"#, "0"),
        (r#"{{ trimall $set (print $a "c") }}"#, "c"),
        (
            r#"{{ regexMatch "(a?){20}(a?){20}b$" (trunc 100000 $a) }}"#,
            "false",
        ),
        (r#"{{ regexReplaceAll "x*" "-a-b-" "y" }}"#, "y-yay-yby-y"),
        (
            r#"{{ regexFindAll "a." "abacad" 2 }} {{ regexSplit "b+" "abbcbd" 2 }}"#,
            "[ab ac] [a cbd]",
        ),
    ] {
        assert_eq!(
            render(&format!("{strings}{template}"), &Budget::default()).as_deref(),
            Ok(expected)
        );
    }
    let budget = || {
        Budget::new(Limits {
            steps: 3_000_000,
            ..Limits::default()
        })
    };
    assert_eq!(render(strings, &budget()).as_deref(), Ok(""));
    for template in [
        r#"{{ regexMatch "(a?){900}(a?){900}b$" $a }}"#,
        r#"{{ mustRegexFind "(a?){900}(a?){900}b$" $a }}"#,
        r#"{{ regexFindAll "a.*z|a" $a -1 | len }}"#,
        r#"{{ regexSplit "a.*z|a" $a -1 | len }}"#,
        r#"{{ regexReplaceAll "a.*z|a" $a "b" | len }}"#,
        r#"{{ range until 1000000 }}{{ $x := trimPrefix "b" $a }}{{ end }}"#,
        r#"{{ range until 1000000 }}{{ $x := hasSuffix $a $a }}{{ end }}"#,
        r#"{{ range until 1000000 }}{{ $x := eq $a $set }}{{ end }}"#,
        r#"{{ range until 1000000 }}{{ $x := len $a }}{{ end }}"#,
        r#"{{ printf (repeat 300000 "%.0x") $a }}{{ $l := list }}{{ range until 3000 }}{{ $l = append $l (print $a .) }}{{ end }}"#,
        r#"{{ shuffle (repeat 3 $a) | len }}"#,
        r#"{{ $names := list }}{{ range until 3000 }}{{ $names = append $names $a }}{{ end }}{{ genSelfSignedCertWithKey "a" list $names 1 "" }}"#,
    ] {
        let error = render(&format!("{strings}{template}"), &budget()).unwrap_err();
        assert!(error.contains("the limit of"), "{template}: {error:.300}");
    }
}

#[test]
fn printed_data_has_a_limit_however_deep_it_is() {
    let deep = r#"{{ $d := until 100000 }}{{ range until 900 }}{{ $d = dict "a" $d }}{{ end }}"#;
    for made in ["toYaml $d", "toPrettyJson $d", "toYamlPretty $d"] {
        let error = render(&format!("{deep}{{{{ {made} | len }}}}"), &Budget::default()).unwrap_err();
        assert!(
            error.contains("bytes of one printed value"),
            "{made}: {error:.300}"
        );
    }
    let wide = r#"{{ $d := dict }}{{ range until 20000 }}{{ $_ := set $d (print .) (dict "a" 1) }}{{ end }}"#;
    let made = format!(r#"{wide}{{{{ toToml (dict (repeat 100000 "k") $d) | len }}}}"#);
    let printed = render(&made, &Budget::default()).unwrap();
    assert!(
        printed.parse::<usize>().is_ok_and(|length| length < 1000),
        "{printed:.300}"
    );
}

/// Returns an expression for a parameter, at the limits of its type.
fn argument(random: &mut Random, wanted: Type) -> Option<String> {
    let texts = [
        "$a",
        "$set",
        "$words",
        "$lines",
        "$dots",
        "$percents",
        r#""(a?){40}(a?){40}b$""#,
        r#""a.*z|a""#,
        r#""""#,
        r#""k""#,
        r#""05.000 Jan 2006 15:04""#,
        r#"(repeat 30000 "é")"#,
        r#"(repeat 50000 "05")"#,
        r#""\\pL{99}""#,
    ];
    let lists = [
        "$list",
        "(list $a $a $a)",
        "list",
        "(list 3 1 2)",
        "(list $list $list)",
        "(list $d $d)",
    ];
    let dicts = ["$d", "(dict $a $a)", "dict", "(dict \"k\" $list)"];
    let numbers = ["0", "1", "-1", "3", "70000", "1000000000"];
    Some(match wanted {
        Type::String => (*random.pick(&texts)).to_owned(),
        Type::Int => (*random.pick(&numbers)).to_owned(),
        Type::Int64 => format!("(int64 {})", random.pick(&numbers)),
        Type::Float => "1.5".to_owned(),
        Type::Bool => "true".to_owned(),
        Type::List => (*random.pick(&lists)).to_owned(),
        Type::Dict => (*random.pick(&dicts)).to_owned(),
        Type::Any | Type::Reflect => match random.below(4) {
            0 => (*random.pick(&texts)).to_owned(),
            1 => (*random.pick(&lists)).to_owned(),
            2 => (*random.pick(&dicts)).to_owned(),
            _ => (*random.pick(&numbers)).to_owned(),
        },
        Type::Strings | Type::Bytes | Type::Duration | Type::Object(_) => return None,
    })
}

/// Functions that are slow by their nature, and count a million steps or more.
const SLOW: [&str; 6] = [
    "bcrypt",
    "htpasswd",
    "derivePassword",
    "genPrivateKey",
    "genCA",
    "genSelfSignedCert",
];

const BUILTINS: [&str; 14] = [
    "html", "js", "urlquery", "print", "println", "printf", "len", "index", "slice", "eq", "lt", "ge", "not",
    "and",
];

#[test]
fn fuzz_no_function_takes_more_than_its_budget() {
    let start = r#"{{ $a := repeat 60000 "a" }}{{ $set := print (repeat 60000 "b") "a" }}{{ $words := repeat 30000 "a " }}{{ $lines := repeat 30000 "a\n" }}{{ $dots := repeat 20000 "a.[" }}{{ $percents := repeat 20000 "%.0x" }}{{ $list := list }}{{ range until 60 }}{{ $list = append $list $a }}{{ end }}{{ $d := dict "k" $a }}{{ range until 60 }}{{ $d = dict "k" $d "l" $a }}{{ end }}"#;
    let entries = standard::entries();
    let limits = Limits {
        bytes: 4 << 20,
        ..Limits::default()
    };
    let mut next = 0;
    fuzz::run("function bounds", |random| {
        next = (next + 1) % (entries.len() + BUILTINS.len());
        let mut call = String::new();
        if let Some(entry) = entries.get(next) {
            let mut wanted = entry.signature.parameters.to_vec();
            if entry.signature.variadic {
                let last = wanted.pop();
                wanted.extend(last.into_iter().cycle().take(random.below(4)));
            }
            let arguments: Option<Vec<String>> = wanted
                .into_iter()
                .map(|wanted| argument(random, wanted))
                .collect();
            let Some(arguments) = arguments.filter(|_| !SLOW.contains(&entry.name)) else {
                return;
            };
            call = format!("{} {}", entry.name, arguments.join(" "));
        } else if let Some(name) = BUILTINS.get(next - entries.len()) {
            let first = if *name == "printf" {
                Type::String
            } else {
                Type::Any
            };
            let arguments = [
                argument(random, first).unwrap(),
                argument(random, Type::Any).unwrap(),
            ];
            call = format!("{name} {}", arguments.join(" "));
        }
        let template = format!("{start}{{{{ $x := {call} }}}}");
        random.note("call", &call);
        let _ = render(&template, &Budget::new(limits.clone()));
    });
}

#[test]
fn cancelled_templates_end_within_a_function() {
    let flag = Arc::new(AtomicBool::new(true));
    let budget = Budget::default().with_cancellation(flag);
    let error = render(r#"{{ regexMatch "(a?){900}b$" (repeat 1000000 "a") }}"#, &budget).unwrap_err();
    assert!(error.contains("cancelled"), "{error:.300}");
}

/// Memory of a fixed size, which counts the taken bytes.
#[derive(Debug, Default)]
struct Fixed {
    taken: AtomicU64,
    most: AtomicU64,
}

impl SharedMemory for Fixed {
    fn is_revoked(&self) -> bool {
        false
    }

    fn take(&self, bytes: u64) -> bool {
        let taken = self.taken.load(Ordering::Relaxed) + bytes;
        if taken > 16 << 20 {
            return false;
        }
        self.taken.store(taken, Ordering::Relaxed);
        self.most.fetch_max(taken, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn memory_of_values_and_trees_is_taken_from_the_shared_memory_and_given_back() {
    for (template, least) in [
        ("{{ $x := repeat 8000000 \"x\" }}".to_owned(), 8_000_000),
        (format!("{{{{ $x := list {} }}}}", "1 ".repeat(10_000)), 640_000),
    ] {
        let memory = Arc::new(Fixed::default());
        let budget = Budget::default().with_memory(memory.clone());
        render(&template, &budget).unwrap();
        let most = memory.most.load(Ordering::Relaxed);
        assert!(most >= least, "{most}");
        assert_eq!(memory.taken.load(Ordering::Relaxed), 0);
        let twice = "{{ $x := repeat 9000000 \"x\" }}{{ $y := repeat 9000000 \"y\" }}";
        let error = render(twice, &budget).unwrap_err();
        assert!(error.contains("other work holds the memory"), "{error:.300}");
    }
}
