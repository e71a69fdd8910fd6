//! Listing a bucket without the ignored objects.

use std::sync::Arc;

use api::{Fault, Reason};
use artifact::pack::{IGNORE_FILE, MAX_RULE_BYTES, has_long_rule};
use bucket::{Bucket, Context, Entry};
use tree::{Budget, Limits, TreePath, ignore::Rules};

use super::{
    BucketRequest, fault,
    index::{Collected, Index},
};
use crate::blocking::Job;

const IGNORE_BYTES: usize = 1 << 20;
const IGNORE_LINES: usize = 5000;

#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// The connection with its credentials, for the downloads.
    bucket: Arc<Bucket>,
    name: String,
    index: Arc<Index>,
    /// Content of the ignore file, which becomes a part of the artifact.
    ignore_file: Option<Arc<str>>,
}

impl Listed {
    pub(super) fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    pub(super) fn bucket_name(&self) -> &str {
        &self.name
    }

    pub(super) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    pub(super) fn digest(&self) -> &str {
        self.index.digest()
    }

    pub(super) fn ignore_file(&self) -> Option<&str> {
        self.ignore_file.as_deref()
    }

    pub(super) fn with_index(self, index: Arc<Index>) -> Self {
        Self { index, ..self }
    }
}

pub(super) async fn list(context: &Context, request: &BucketRequest, job: &Job) -> Result<Listed, Fault> {
    let name = &request.settings.name;
    let connected = Bucket::connect(&request.settings, context).await;
    let mut bucket =
        connected.map_err(|error| fault(&format!("failed to connect to bucket '{name}'"), &error))?;
    let exists = bucket.exists(&request.prefix).await;
    let exists =
        exists.map_err(|error| fault(&format!("failed to confirm existence of '{name}' bucket"), &error))?;
    if !exists {
        let message = format!("bucket '{name}' not found");
        return Err(Fault::retry(Reason::BucketOperationFailed, message));
    }
    let ignore_file = ignore_file(&bucket).await?;
    let rules = rules(ignore_file.as_deref(), request.ignore.as_deref())?;
    let budget = Budget::new(Limits {
        // The timeout of the job is the limit.
        steps: u64::MAX,
        ..Limits::default()
    });
    let budget = budget
        .with_timeout(job.timeout)
        .with_cancellation(Arc::clone(&job.cancelled));
    let failed = format!("indexation of objects from bucket '{name}' failed");
    let refused = |why: String| Fault::retry(Reason::BucketOperationFailed, format!("{failed}: {why}"));
    let mut collected = Collected::default();
    let mut token: Option<String> = None;
    loop {
        let page = bucket.list(&request.prefix, token.as_deref()).await;
        let page = page.map_err(|error| fault(&failed, &error))?;
        collected
            .list(page.entries.len())
            .map_err(|error| refused(error.to_string()))?;
        for entry in page.entries {
            let wanted = is_wanted(&entry, &rules, &budget).map_err(|error| refused(error.to_string()))?;
            if wanted {
                collected.add(entry).map_err(|error| refused(error.to_string()))?;
            }
        }
        if page.next.is_none() {
            break;
        }
        if page.next == token {
            return Err(refused(
                "the service returns the same page of the listing again".to_owned(),
            ));
        }
        token = page.next;
    }
    Ok(Listed {
        bucket: Arc::new(bucket),
        name: name.clone(),
        index: Arc::new(collected.finish()),
        ignore_file: ignore_file.map(Arc::from),
    })
}

/// Returns false for markers of directories, the ignore file and ignored objects.
fn is_wanted(entry: &Entry, rules: &Rules, budget: &Budget) -> Result<bool, tree::Exceeded> {
    if entry.key.ends_with('/') || entry.key == IGNORE_FILE {
        return Ok(false);
    }
    // Names that are not paths can be ignored, too.
    let path = TreePath::root().child(&entry.key);
    Ok(!rules.is_ignored(&path, false, budget)?)
}

/// Returns the rules of the ignore file and of the spec; there are no others.
fn rules(file: Option<&str>, spec: Option<&str>) -> Result<Rules, Fault> {
    let texts = || file.into_iter().chain(spec);
    let bytes: usize = texts().map(str::len).sum();
    let lines: usize = texts().map(|text| text.lines().count()).sum();
    if bytes > IGNORE_BYTES || lines > IGNORE_LINES {
        let message = format!(
            "failed to load source ignore patterns from bucket: there are more than {IGNORE_BYTES} bytes or {IGNORE_LINES} lines of \
             them"
        );
        return Err(Fault::retry(Reason::SourceIgnoreError, message));
    }
    if texts().any(has_long_rule) {
        let message = format!(
            "failed to load source ignore patterns from bucket: a line has more than {MAX_RULE_BYTES} bytes"
        );
        return Err(Fault::retry(Reason::SourceIgnoreError, message));
    }
    let mut rules = Rules::new();
    for text in texts() {
        rules.add_file(&TreePath::root(), text);
    }
    Ok(rules)
}

async fn ignore_file(bucket: &Bucket) -> Result<Option<String>, Fault> {
    let failed = format!("failed to get Etag for '{IGNORE_FILE}' object");
    let invalid = |why: &str| {
        let message = format!("failed to load source ignore patterns from bucket: '{IGNORE_FILE}' {why}");
        Fault::retry(Reason::SourceIgnoreError, message)
    };
    let found = bucket.get(&Entry::named(IGNORE_FILE)).await;
    let Some(mut object) = found.map_err(|error| fault(&failed, &error))? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    while let Some(chunk) = object.chunk().await.map_err(|error| fault(&failed, &error))? {
        content.extend_from_slice(&chunk);
        if content.len() > IGNORE_BYTES {
            return Err(invalid("is larger than 1 MiB"));
        }
    }
    let text = String::from_utf8(content).map_err(|_| invalid("is not UTF-8"))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_fetched_unless_rules_ignore_them() {
        let rules = rules(Some("*.md\n!keep.md\n"), Some("/secret\n../x\n")).unwrap();
        for (key, wanted) in [
            ("a.yaml", true),
            ("a/b.md", false),
            ("keep.md", true),
            ("secret/x", false),
            ("a/secret", true),
            ("../x", false),
            ("dir/", false),
            (".sourceignore", false),
            ("a/.sourceignore", true),
            // Without default excludes, unlike a Git repository.
            ("image.png", true),
            (".git/config", true),
        ] {
            let found = is_wanted(&Entry::named(key), &rules, &Budget::default());
            assert_eq!(found, Ok(wanted), "{key}");
        }
    }

    #[test]
    fn rules_are_bounded() {
        let lines = "a\n".repeat(IGNORE_LINES);
        assert!(rules(Some(&lines), None).is_ok());
        let long = "a".repeat(MAX_RULE_BYTES + 1);
        for (file, spec) in [(Some(lines.as_str()), "a"), (None, long.as_str())] {
            let fault = rules(file, Some(spec)).unwrap_err();
            assert_eq!(fault.reason, Reason::SourceIgnoreError);
        }
    }
}
