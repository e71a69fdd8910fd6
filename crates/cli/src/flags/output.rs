//! Output formats and destinations of results.

use std::{path::PathBuf, str::FromStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Yaml,
    Json,
}

/// Output format and destination of a result; `file` is `None` for stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputTarget {
    pub(crate) format: OutputFormat,
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid output format {0:?}: supported formats are text, yaml and json")]
pub(crate) struct InvalidFormat(String);

impl FromStr for OutputTarget {
    type Err = InvalidFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (format, file) = match text.split_once('=') {
            Some((format, "-")) => (format, None),
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "text" => OutputFormat::Text,
            "yaml" => OutputFormat::Yaml,
            "json" => OutputFormat::Json,
            other => return Err(InvalidFormat(other.to_owned())),
        };
        Ok(Self { format, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_target_parses_format_and_file() {
        let output = |format, file: Option<&str>| {
            Ok(OutputTarget {
                format,
                file: file.map(PathBuf::from),
            })
        };
        for (text, expected) in [
            ("text", output(OutputFormat::Text, None)),
            ("yaml=-", output(OutputFormat::Yaml, None)),
            ("json=a=b", output(OutputFormat::Json, Some("a=b"))),
        ] {
            assert_eq!(text.parse::<OutputTarget>(), expected, "{text}");
        }
        assert!(
            "toml"
                .parse::<OutputTarget>()
                .unwrap_err()
                .to_string()
                .contains("toml")
        );
    }
}
