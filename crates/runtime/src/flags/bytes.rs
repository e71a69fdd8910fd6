//! Numbers of bytes in flags.

/// Parses a number of bytes, with a unit as in Kubernetes: `1048576`, `512Mi`, `2G`.
pub fn parse(text: &str) -> Result<u64, BytesError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => return Err(BytesError),
    };
    let number: u64 = digits.parse().map_err(|_| BytesError)?;
    number.checked_mul(unit).ok_or(BytesError)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number of bytes, as in 1048576, 512Mi or 2G")]
pub struct BytesError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_of_kubernetes() {
        for (text, expected) in [
            ("7", 7),
            ("512Mi", 512 << 20),
            ("3k", 3000),
            ("2G", 2_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for wrong in ["", "Mi", "1.5Gi", "-1", "1 Gi", "1KB", "99999999999Ti"] {
            assert_eq!(parse(wrong), Err(BytesError), "{wrong}");
        }
    }
}
