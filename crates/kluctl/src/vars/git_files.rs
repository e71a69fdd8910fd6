//! Files of branches and tags of Git repositories.

use go::regexp::{Pattern, PatternQuota, quote_meta};
use tree::{Exceeded, Tree, TreePath};
use yaml::{Map, Value};

use super::{
    Loaded, MOST_BYTES,
    external::VarsError,
    read::Reader,
    source::{GitFile, GitFiles},
    weight_of_map,
};
use crate::{Error, GitReference, RemoteRef, SourceAddress, decrypt, files, source as sources};

impl Reader<'_> {
    /// Returns the matching files of each matching branch or tag, in the order of their names.
    pub(super) fn git_files(&mut self, source: &GitFiles) -> Result<Loaded, Error> {
        let mut quota = PatternQuota::default();
        let globs = source
            .files
            .iter()
            .map(|file| glob(&file.glob, &mut quota).map(|pattern| (pattern, file)));
        let globs = globs.collect::<Result<Vec<_>, String>>();
        let globs = globs.map_err(|why| self.failed(why))?;
        let (mut matches, mut sensitive) = (Vec::new(), false);
        for (full, reference) in self.references(source)? {
            let address = SourceAddress::Git {
                url: source.url.clone(),
                reference: reference.clone(),
            };
            let fetched = sources::fetch(self.inputs.sources, &address, self.inputs.budget)?;
            self.renderer = self
                .context
                .without_history()
                .renderer(&fetched.tree, &[TreePath::root()]);
            let files = self.files_of(&*fetched.tree, &globs, &reference, &full);
            let (files, secret) = sources::say(&address.to_string(), files)?;
            matches.push(Value::Map(files));
            sensitive |= secret;
        }
        if matches.is_empty() {
            let problem = format!(
                "no ref of {} matches",
                kustomize::remote::redact_address(&source.url)
            );
            let value = self.unless_missing(Err(VarsError::Missing(problem)))?;
            return Ok(Loaded { value, sensitive });
        }
        let value = Some(Value::Seq(matches));
        Ok(Loaded { value, sensitive })
    }

    /// Returns the matching references, with their full names.
    fn references(&self, source: &GitFiles) -> Result<Vec<(String, GitReference)>, Error> {
        let prefix = match &source.reference {
            GitReference::Head => return Ok(vec![("HEAD".to_owned(), GitReference::Head)]),
            GitReference::Commit(_) | GitReference::Name(_) => "",
            GitReference::Branch(_) => "refs/heads/",
            GitReference::Tag(_) => "refs/tags/",
        };
        let all = match self.inputs.sources {
            Some(sources) => sources
                .references(&source.url, self.inputs.budget)
                .map_err(|problem| self.failed(problem.to_string()))?,
            None => return Err(self.failed("Git repositories are not asked here")),
        };
        let mut found = Vec::new();
        match &source.reference {
            GitReference::Commit(id) => {
                let is_meant = |listed: &RemoteRef| listed.commit == *id && listed.name.starts_with("refs/");
                let of_commit = all.into_iter().find(is_meant);
                found.extend(of_commit.map(|listed| (listed.name, GitReference::Commit(listed.commit))));
            }
            GitReference::Branch(pattern) | GitReference::Tag(pattern) => {
                let pattern = format!("^{prefix}(?:{pattern})$");
                let pattern = Pattern::compile(&pattern).map_err(|why| self.failed(format!("ref: {why}")))?;
                self.charge(all.iter().map(|listed| pattern.steps(listed.name.len())))?;
                let matching = all.into_iter().filter(|listed| pattern.is_match(&listed.name));
                found.extend(matching.filter_map(|listed| {
                    let reference = GitReference::from_full(&listed.name)?;
                    Some((listed.name, reference))
                }));
            }
            GitReference::Head | GitReference::Name(_) => {}
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }

    /// Returns the files of a reference, with true if any of them was encrypted.
    fn files_of(
        &mut self,
        tree: &dyn Tree,
        globs: &[(Pattern, &GitFile)],
        reference: &GitReference,
        full: &str,
    ) -> Result<(Map, bool), Error> {
        let mut sensitive = false;
        let (mut list, mut by_path, mut nested) = (Vec::new(), Map::new(), Map::new());
        for path in files::walk(tree, &TreePath::root(), self.inputs.budget)? {
            self.charge(
                globs
                    .iter()
                    .map(|(pattern, _)| pattern.steps(path.as_str().len())),
            )?;
            let matching = globs.iter().find(|(pattern, _)| pattern.is_match(path.as_str()));
            let Some((_, config)) = matching else {
                continue;
            };
            let (file, secret) = self.one_file(tree, &path, config)?;
            sensitive |= secret;
            self.count(&file)?;
            let parent = path.parent().unwrap_or_default();
            let dir = parent
                .components()
                .try_fold(&mut nested, |map, name| map.get_or_insert_map(name));
            if let Some(dir) = dir {
                dir.insert(path.name(), file.clone());
            }
            by_path.insert(path.as_str(), file.clone());
            list.push(Value::Map(file));
        }
        let mut found = Map::new();
        found.insert("ref", reference.to_map());
        found.insert("refStr", full);
        found.insert("files", list);
        found.insert("filesByPath", by_path);
        found.insert("filesTree", nested);
        Ok((found, sensitive))
    }

    /// Charges searches in names before they are made.
    fn charge(&self, searches: impl Iterator<Item = u64>) -> Result<(), Error> {
        let steps = searches.fold(0, u64::saturating_add);
        let charged = self.inputs.budget.step(steps);
        charged.map_err(|source| self.exceeded(source))
    }

    /// Counts a file, which three lists hold, before the next one is read.
    fn count(&mut self, file: &Map) -> Result<(), Error> {
        self.bytes += 3 * weight_of_map(file);
        if self.bytes > MOST_BYTES {
            return Err(self.exceeded(Exceeded::Limit {
                what: "bytes of the files of gitFiles",
                limit: MOST_BYTES,
            }));
        }
        Ok(())
    }

    fn exceeded(&self, source: Exceeded) -> Error {
        Error::Budget {
            operation: format!("{}: {}", self.fields.file, self.path),
            source,
        }
    }

    /// Reads and renders a file, with true if it was encrypted.
    fn one_file(&mut self, tree: &dyn Tree, path: &TreePath, config: &GitFile) -> Result<(Map, bool), Error> {
        let mut bytes = tree.read(path)?;
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        if config.render {
            bytes = self.render(&String::from_utf8_lossy(&bytes))?.into();
        }
        let opened = decrypt::open(self.inputs.decrypt, tree, path, bytes, self.inputs.budget)?;
        let mut file = Map::new();
        file.insert("file", config.config.clone());
        file.insert("path", path.as_str());
        file.insert("size", size);
        if config.parse {
            let parse = if config.multidoc {
                files::parse_all
            } else {
                files::parse
            };
            file.insert("parsed", opened.read(path, parse, self.inputs.budget)?);
        }
        file.insert("content", String::from_utf8_lossy(&opened.bytes).into_owned());
        Ok((file, opened.secret))
    }
}

/// Compiles a pattern of paths, in which `*` stays in a directory and `**` doesn't.
fn glob(text: &str, quota: &mut PatternQuota) -> Result<Pattern, String> {
    let mut pattern = "^".to_owned();
    let mut chars = text.chars().peekable();
    let mut braces = 0_u32;
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.peek() == Some(&'*') => {
                chars.next();
                pattern.push_str("(?s:.*)");
            }
            '*' => pattern.push_str("[^/]*"),
            '?' => pattern.push_str("[^/]"),
            '[' => {
                pattern.push('[');
                if chars.next_if_eq(&'!').is_some() {
                    pattern.push('^');
                }
                for c in chars.by_ref() {
                    if matches!(c, '[' | '&' | '~' | '\\') {
                        pattern.push('\\');
                    }
                    pattern.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '{' => {
                braces += 1;
                pattern.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                pattern.push(')');
            }
            ',' if braces > 0 => pattern.push('|'),
            '\\' => pattern.push_str(&quote_meta(&chars.next().unwrap_or('\\').to_string())),
            c => pattern.push_str(&quote_meta(&c.to_string())),
        }
    }
    pattern.push('$');
    let compiled = quota.compile(&pattern);
    compiled.map_err(|why| format!("glob {text:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_across_directories() {
        for (pattern, path, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "d/a.yaml", false),
            ("**.yaml", "d/a.yaml", true),
            ("d/**/x", "d/a/b/x", true),
            ("{a,b}.y?ml", "b.yaml", true),
            ("{a,b}.y?ml", "c.yaml", false),
            ("[!a-c].x", "d.x", true),
            ("[!a-c].x", "b.x", false),
            ("a.b", "aXb", false),
            ("\\*", "*", true),
        ] {
            assert_eq!(
                glob(pattern, &mut PatternQuota::default())
                    .unwrap()
                    .is_match(path),
                expected,
                "{pattern} {path}"
            );
        }
        let is_invalid = |text| glob(text, &mut PatternQuota::default()).is_err();
        assert!(is_invalid("[a") && is_invalid("{a"));
    }
}
