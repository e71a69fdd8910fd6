//! Encodes the values of ConfigMaps and Secrets.

use base64::Engine as _;

/// Length of a line of base64.
const LINE: usize = 70;

/// Returns the field of a ConfigMap for a value, and the encoded value.
pub(crate) fn for_config_map(bytes: &[u8]) -> (&'static str, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => ("data", text.to_owned()),
        Err(_) => ("binaryData", base64(bytes)),
    }
}

/// Encodes base64. If it does not fit in one line, every line ends in a newline, the last one too.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    if encoded.len() < LINE {
        return encoded;
    }
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(LINE.min(rest.len()));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_base64_is_wrapped() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"a"), "YQ==");
        let bytes = |n: usize| vec![0u8; n];
        assert_eq!(base64(&bytes(51)), "A".repeat(68));
        assert_eq!(
            base64(&bytes(54)),
            format!("{}\n{}\n", "A".repeat(70), "A".repeat(2))
        );
        assert_eq!(base64(&bytes(105)), format!("{0}\n{0}\n", "A".repeat(70)));
    }

    #[test]
    fn values_that_are_not_utf8_go_to_binary_data() {
        assert_eq!(for_config_map("ä\n".as_bytes()), ("data", "ä\n".to_owned()));
        assert_eq!(for_config_map(b"\xff\xfe\0"), ("binaryData", "//4A".to_owned()));
    }
}
