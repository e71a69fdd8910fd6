//! Short forms of hashes and times.

/// Lengths of hexadecimal strings that are taken for hashes.
const HASH: std::ops::RangeInclusive<usize> = 40..=128;
const SHORT: usize = 8;

/// Cuts the hashes in a string to 8 characters. A hash is a whole word.
#[must_use]
pub fn shorten_hashes(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        short.push_str(before);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        let is_hash = HASH.contains(&word.len()) && word.chars().all(is_digit);
        let shown = if is_hash { SHORT } else { word.len() };
        short.push_str(word.get(..shown).unwrap_or(word));
        rest = after;
    }
    short.push_str(rest);
    short
}

/// Returns a duration in seconds in its two largest units, as kubectl does: `5d`, `3h20m`, `45s`.
#[must_use]
pub fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_cut_and_other_digits_are_left() {
        let sha1 = "696f056df216eea4f9401adbee0ff744d4df390f";
        for (text, expected) in [
            (format!("main@sha1:{sha1}"), "main@sha1:696f056d"),
            (format!("{sha1} and {sha1}."), "696f056d and 696f056d."),
            ("deadbeef 12".to_owned(), "deadbeef 12"),
            ("a".repeat(39), &"a".repeat(39)),
            ("0".repeat(130), &"0".repeat(130)),
            (format!("x{sha1}"), &format!("x{sha1}")),
            ("é".to_owned(), "é"),
        ] {
            assert_eq!(shorten_hashes(&text), expected);
        }
    }

    #[test]
    fn ages_have_two_units_as_kubectl_prints_them() {
        for (seconds, expected) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (601, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (47 * 3600, "47h"),
            (2 * 86400 + 3600, "2d1h"),
            (9 * 86400, "9d"),
        ] {
            assert_eq!(age(seconds), expected);
        }
    }
}
