//! Documents beyond the limits.

use tree::Limits;

use super::*;

fn limited(limits: Limits, text: &str) -> String {
    let budget = Budget::new(limits);
    let readers: [Read; 3] = [|t, b| goyaml(t, b), |t, b| kustomize(t, b), |t, b| pyyaml(t, b)];
    let errors: Vec<Error> = readers
        .iter()
        .map(|read| read(text, &budget).unwrap_err())
        .collect();
    assert!(
        errors.iter().all(|error| error.exceeded().is_some()),
        "{errors:?}"
    );
    errors[0].to_string()
}

#[test]
fn bombs_end_with_one_limit_error() {
    let laughs: String = (1..20).fold("a0: &a0 [lol, lol, lol]\n".to_owned(), |text, n| {
        let before = format!("*a{}", n - 1);
        text + &format!("a{n}: &a{n} [{}]\n", vec![before; 9].join(", "))
    });
    let message = limited(Limits::default(), &laughs);
    assert!(
        message.contains("the limit of 10485760 bytes expanded from YAML aliases was reached"),
        "{message}"
    );
    assert!(message.starts_with("line "), "{message}");

    let merges: String = (1..12).fold("a0: &a0 {k: v}\n".to_owned(), |text, n| {
        text + &format!(
            "a{n}: &a{n} {{<<: *a{}, x{n}: [*a{}, *a{}]}}\n",
            n - 1,
            n - 1,
            n - 1
        )
    });
    limited(
        Limits {
            alias_bytes: 10_000,
            ..Limits::default()
        },
        &merges,
    );

    for deep in [
        "[".repeat(100_000),
        "- ".repeat(100_000),
        "{a: ".repeat(100_000),
        "? ".repeat(100_000),
    ] {
        let message = limited(Limits::default(), &deep);
        assert!(
            message.contains("the limit of 100 nested YAML values was reached"),
            "{message}"
        );
    }
    let nested = "[".repeat(600) + &"]".repeat(600);
    let message = limited(
        Limits {
            yaml_depth: u32::MAX,
            ..Limits::default()
        },
        &nested,
    );
    assert!(
        message.contains("the limit of 200 nested YAML values was reached"),
        "{message}"
    );

    let message = limited(
        Limits {
            file_bytes: 10,
            ..Limits::default()
        },
        "a: 12345678",
    );
    assert_eq!(message, "the limit of 10 bytes of one YAML text was reached");
    let message = limited(
        Limits {
            steps: 100,
            ..Limits::default()
        },
        &"- 1\n".repeat(200),
    );
    assert!(
        message.contains("the limit of 100 steps was reached"),
        "{message}"
    );
}

#[test]
fn aliases_count_towards_the_depth() {
    let limits = Limits {
        yaml_depth: 6,
        ..Limits::default()
    };
    let message = limited(limits.clone(), "a: &a [[[1]]]\nb: [[*a]]\n");
    assert!(message.contains("nested YAML values"), "{message}");
    assert!(goyaml("a: &a [[[1]]]\nb: [*a]\n", &Budget::new(limits)).is_ok());
}

#[test]
fn documents_at_the_limit_are_read() {
    let nested = "[".repeat(99) + "1" + &"]".repeat(99);
    assert!(goyaml(nested, &Budget::default()).is_ok());
}
