//! Times as go-yaml recognises them.

/// Converts a time to RFC 3339: `2020-1-2`, `2020-1-2T3:4:5.6Z`, `2020-1-2 3:4:5` and the like.
pub(super) fn parse(text: &str) -> Option<String> {
    let year = text.get(..4)?;
    if !year.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (month, rest) = short_number(text.get(4..)?.strip_prefix('-')?)?;
    let (day, rest) = short_number(rest.strip_prefix('-')?)?;
    let (clock, zone) = match rest.chars().next() {
        None => ("00:00:00".to_owned(), "Z"),
        Some('T' | 't') => clock(rest.get(1..)?)?,
        // Without the letter a time has no zone.
        Some(' ') => clock(rest.get(1..)?).filter(|(_, zone)| zone.is_empty())?,
        Some(_) => return None,
    };
    let zone = match (rest.starts_with(['T', 't']), zone) {
        (true, zone) => valid_zone(zone)?,
        (false, _) => "Z".to_owned(),
    };
    if !(1..=12).contains(&month) || day < 1 || day > days(year.parse().ok()?, month) {
        return None;
    }
    Some(format!("{year}-{month:02}-{day:02}T{clock}{zone}"))
}

/// Returns the time of day in full, and the string after it.
fn clock(text: &str) -> Option<(String, &str)> {
    let (hour, rest) = short_number(text)?;
    let (minute, rest) = short_number(rest.strip_prefix(':')?)?;
    let (second, rest) = short_number(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(digits) => {
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (fraction, rest) = digits.split_at_checked(end)?;
            // Nanoseconds, as in Go.
            (fraction.get(..9).unwrap_or(fraction).trim_end_matches('0'), rest)
        }
        None => ("", rest),
    };
    let dot = if fraction.is_empty() { "" } else { "." };
    Some((format!("{hour:02}:{minute:02}:{second:02}{dot}{fraction}"), rest))
}

fn valid_zone(zone: &str) -> Option<String> {
    if zone == "Z" {
        return Some("Z".to_owned());
    }
    let [b'+' | b'-', h1, h2, b':', m1, m2] = zone.as_bytes() else {
        return None;
    };
    let two = |high: &u8, low: &u8| {
        let digits = high.is_ascii_digit() && low.is_ascii_digit();
        digits.then(|| (high - b'0') * 10 + (low - b'0'))
    };
    let (hours, minutes) = (two(h1, h2)?, two(m1, m2)?);
    if hours > 24 || minutes > 59 {
        return None;
    }
    Some(if hours == 0 && minutes == 0 {
        "Z".to_owned()
    } else {
        zone.to_owned()
    })
}

/// Returns a number of one or two digits, and the string after it.
fn short_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

fn days(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
