//! Formats of encrypted files.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Yaml,
    Json,
    Dotenv,
    Ini,
    /// Anything else, wrapped into a JSON object.
    Binary,
}

impl Format {
    /// Returns the format for a file name, as SOPS does.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let ends = |end: &str| name.ends_with(end);
        if ends(".yaml") || ends(".yml") {
            Self::Yaml
        } else if ends(".json") {
            Self::Json
        } else if ends(".env") {
            Self::Dotenv
        } else if ends(".ini") {
            Self::Ini
        } else {
            Self::Binary
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_select_formats() {
        for (name, format) in [
            ("a/b.yaml", Format::Yaml),
            ("b.yml", Format::Yaml),
            ("b.json", Format::Json),
            (".env", Format::Dotenv),
            ("x.env", Format::Dotenv),
            ("x.ini", Format::Ini),
            ("x.txt", Format::Binary),
            ("yaml", Format::Binary),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
    }
}
