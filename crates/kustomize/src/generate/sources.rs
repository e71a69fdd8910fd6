//! The keys and values of a generator: from env files, literals and files.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    Error,
    error::{Context as _, Step},
    model::GeneratorArgs,
    transform::PluginContext,
};

/// quirk: a line of an env file of this length ends the reading, silently.
const LONGEST_LINE: usize = 64 * 1024;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the values by their keys. Fails if a source can't be read, or two have a key in common.
pub(super) fn gather(
    args: &GeneratorArgs,
    ctx: &PluginContext<'_>,
) -> Result<BTreeMap<String, Bytes>, Error> {
    let pairs = pairs(args, ctx).context(|| "loading KV pairs")?;
    let mut values = BTreeMap::new();
    for (key, value) in pairs {
        if values.contains_key(&key) {
            let problem = format!("configmap {} illegally repeats the key `{key}`", args.name);
            return Err(Error::new(Step::Generator, problem));
        }
        values.insert(key, value);
    }
    Ok(values)
}

fn pairs(args: &GeneratorArgs, ctx: &PluginContext<'_>) -> Result<Vec<(String, Bytes)>, Error> {
    let mut pairs = Vec::new();
    for path in &args.envs {
        variables(path, ctx, &mut pairs)
            .context(|| format!("env source files: [{}]", args.envs.join(" ")))?;
    }
    for (index, source) in args.literals.iter().enumerate() {
        // Literals may contain secrets: the error has the index of the invalid one.
        let (key, value) = literal(source).context(|| format!("literal sources: entry {}", index + 1))?;
        pairs.push((key.to_owned(), Bytes::copy_from_slice(value.as_bytes())));
    }
    for source in &args.files {
        let pair = file(source, ctx);
        pairs.push(pair.context(|| format!("file sources: [{}]", args.files.join(" ")))?);
    }
    ctx.run.step(pairs.len() as u64, ctx.loader.root())?;
    Ok(pairs)
}

fn file(source: &str, ctx: &PluginContext<'_>) -> Result<(String, Bytes), Error> {
    let (key, path) = file_source(source)?;
    let (content, _) = ctx.loader.load(path)?;
    Ok((key.to_owned(), content))
}

/// Splits the key and the path of a file.
fn file_source(source: &str) -> Result<(&str, &str), Error> {
    let problem = match source.split_once('=') {
        None => return Ok((base_name(source), source)),
        Some((_, path)) if path.contains('=') => {
            format!("source {source:?} key name or file path contains '='")
        }
        Some(("", path)) => format!("missing key name for file path {path:?} in source {source:?}"),
        Some((key, "")) => format!("missing file path for key name {key:?} in source {source:?}"),
        Some(pair) => return Ok(pair),
    };
    Err(Error::new(Step::Generator, problem))
}

fn base_name(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let path = path.trim_end_matches('/');
    match path.rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => "/",
    }
}

/// Splits key and value of a literal. One pair of quotes around the value is removed.
fn literal(source: &str) -> Result<(&str, &str), Error> {
    let Some((key, value)) = source.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        let problem = "invalid literal source, expected key=value";
        return Err(Error::new(Step::Generator, problem));
    };
    let unquoted = ['"', '\''].into_iter().find_map(|quote| {
        let inner = value.strip_prefix(quote)?;
        inner.strip_suffix(quote)
    });
    Ok((key, unquoted.unwrap_or(value)))
}

fn variables(path: &str, ctx: &PluginContext<'_>, pairs: &mut Vec<(String, Bytes)>) -> Result<(), Error> {
    let (content, file) = ctx.loader.load(path)?;
    let lines = content.split(|byte| *byte == b'\n');
    for (index, line) in lines.take_while(|line| line.len() < LONGEST_LINE).enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = std::str::from_utf8(line) else {
            let problem = format!("line {} of {file} has invalid utf8 bytes", index + 1);
            return Err(Error::new(Step::Generator, problem));
        };
        if let Some((key, value)) = variable(line, index == 0) {
            pairs.push((key.to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        }
    }
    Ok(())
}

/// Splits key and value of a line, if it has any. Without `=`, the value is empty.
fn variable(line: &str, is_first: bool) -> Option<(&str, &str)> {
    let line = match line.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) if is_first => rest,
        _ => line,
    };
    let line = line.trim_start();
    if line.starts_with('#') {
        return None;
    }
    let pair = line.split_once('=').unwrap_or((line, ""));
    Some(pair).filter(|(key, _)| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_split_and_unquoted() {
        let cases = [
            ("a=b", ("a", "b")),
            ("a=b=c", ("a", "b=c")),
            ("a=", ("a", "")),
            ("a='b'", ("a", "b")),
            ("a=\"'b'\"", ("a", "'b'")),
            ("a=\"", ("a", "\"")),
            ("a=\"\"", ("a", "")),
            ("a='b\"", ("a", "'b\"")),
            ("a b= c ", ("a b", " c ")),
        ];
        for (source, expected) in cases {
            assert_eq!(literal(source).unwrap(), expected, "{source}");
        }
        for source in ["a", "=b", ""] {
            let error = literal(source).unwrap_err().to_string();
            assert_eq!(error, "invalid literal source, expected key=value");
        }
    }

    #[test]
    fn file_sources_have_keys() {
        let cases = [
            ("a/b.txt", Ok(("b.txt", "a/b.txt"))),
            ("k=a/b", Ok(("k", "a/b"))),
            ("a/b/", Ok(("b", "a/b/"))),
            ("", Ok((".", ""))),
            ("/", Ok(("/", "/"))),
            ("=a", Err("missing key name for file path \"a\" in source \"=a\"")),
            ("k=", Err("missing file path for key name \"k\" in source \"k=\"")),
            (
                "a=b=c",
                Err("source \"a=b=c\" key name or file path contains '='"),
            ),
        ];
        for (source, expected) in cases {
            let got = file_source(source).map_err(|error| error.to_string());
            assert_eq!(got, expected.map_err(str::to_owned), "{source}");
        }
    }

    #[test]
    fn env_lines_are_variables() {
        let cases = [
            ("A=b", Some(("A", "b"))),
            (" \tA= 'b' ", Some(("A", " 'b' "))),
            ("A", Some(("A", ""))),
            ("A=b=c", Some(("A", "b=c"))),
            ("", None),
            ("  ", None),
            (" # a", None),
            ("=b", None),
            ("\u{feff}A=b", Some(("A", "b"))),
        ];
        for (line, expected) in cases {
            assert_eq!(variable(line, true), expected, "{line:?}");
        }
        assert_eq!(variable("\u{feff}A=b", false), Some(("\u{feff}A", "b")));
    }
}
