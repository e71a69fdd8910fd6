//! The keyword `format` of JSON Schema.

use regex::Regex;

/// Returns true if a string matches a format. Unknown formats match any string.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "regex" => go::regexp::Regexp::compile(text).is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "hostname" => hostname(text),
        "email" => email(text),
        "uuid" => matches(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", text),
        "date" => date(text),
        "time" => time(text),
        "date-time" => moment(text),
        "duration" => duration(text),
        "period" => text.split_once('/').is_some_and(|(start, end)| {
            let lasts = |text: &str| text.starts_with('P') && duration(text);
            lasts(start) && moment(end) || moment(start) && (lasts(end) || moment(end))
        }),
        "semver" => matches(SEMVER, text),
        "json-pointer" => pointer(text),
        "relative-json-pointer" => {
            let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
            matches("^(0|[1-9][0-9]*)([^0-9]|$)", text) && (rest == "#" || pointer(rest))
        }
        "uri" | "iri" => matches(r"^[A-Za-z][A-Za-z0-9+.\-]*:", text) && uri_text(text),
        "uri-reference" | "iri-reference" | "uri-template" => uri_text(text),
        _ => true,
    }
}

/// A version, by semver.org.
const SEMVER: &str = r"^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$";

fn pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/')) && !matches("~([^01]|$)", text)
}

fn moment(text: &str) -> bool {
    match text.get(..10).zip(text.get(10..11)).zip(text.get(11..)) {
        Some(((day, "T" | "t"), rest)) => date(day) && time(rest),
        _ => false,
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

fn uri_text(text: &str) -> bool {
    !text.contains(|c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '\\' | '"' | '<' | '>' | '^' | '`')
    }) && !matches("%([^0-9a-fA-F]|.[^0-9a-fA-F]|.?$)", text)
}

fn hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    (1..=253).contains(&text.len())
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len()) && matches("^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$", label)
        })
}

fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let plain = !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
        && matches(r"^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]+$", local);
    text.len() <= 254
        && local.len() <= 64
        && (quoted || plain)
        && (hostname(domain) || domain.starts_with('[') && domain.ends_with(']'))
}

fn number(text: &str, from: usize, to: usize) -> Option<u32> {
    let digits = text.get(from..to)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

fn date(text: &str) -> bool {
    let parsed = || {
        let (year, month, day) = (number(text, 0, 4)?, number(text, 5, 7)?, number(text, 8, 10)?);
        let dashes = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (dashes && text.len() == 10 && (1..=days).contains(&day)).then_some(())
    };
    parsed().is_some()
}

fn time(text: &str) -> bool {
    matches(
        r"^([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        text,
    )
}

fn duration(text: &str) -> bool {
    text.len() > 1
        && !text.ends_with('T')
        && matches(
            r"^P(([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?|[0-9]+W)$",
            text,
        )
}
