//! In which forms and where results are printed.

use std::{path::PathBuf, str::FromStr};

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Yaml,
    Json,
}

/// A form, and the file that it goes to; stdout without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) file: Option<PathBuf>,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (format, file) = match text.split_once('=') {
            Some((format, "-")) => (format, None),
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "text" => Format::Text,
            "yaml" => Format::Yaml,
            "json" => Format::Json,
            other => return Err(format!("invalid format: {other}; it is text, yaml or json")),
        };
        Ok(Self { format, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_files() {
        let output = |format, file: Option<&str>| {
            Ok(Output {
                format,
                file: file.map(PathBuf::from),
            })
        };
        for (text, expected) in [
            ("text", output(Format::Text, None)),
            ("yaml=-", output(Format::Yaml, None)),
            ("json=a=b", output(Format::Json, Some("a=b"))),
        ] {
            assert_eq!(text.parse::<Output>(), expected, "{text}");
        }
        assert!("toml".parse::<Output>().unwrap_err().contains("toml"));
    }
}
