//! Small templates with huge results end early with an error.

use tree::{Budget, Limits};

use super::render;

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
