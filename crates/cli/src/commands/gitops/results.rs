//! Printing of the results that the controller stored.

use anyhow::{Context as _, Result, bail};
use cluster::Patch;
use objects::ObjectRef;
use results::{ResultStore, Retention, StoredResult, text};
use yaml::{Map, Value};

use super::{
    GitOps, MANAGER,
    flags::ResultOutputFlags,
    request::Handled,
    select::{full_name, live},
};
use crate::{
    commands::operation,
    flags::output::{OutputFormat, OutputTarget},
};

pub(super) struct Printer<'a> {
    ops: &'a GitOps,
    store: ResultStore,
    flags: &'a ResultOutputFlags,
    /// Number of printed results: files are written by the first one, and the others are appended.
    printed: usize,
}

impl<'a> Printer<'a> {
    pub(super) fn new(ops: &'a GitOps, flags: &'a ResultOutputFlags) -> Self {
        Self {
            ops,
            store: ResultStore::new(
                ops.cluster.clone(),
                &flags.command_result_namespace,
                Retention::default(),
            ),
            flags,
            printed: 0,
        }
    }

    /// Prints the result of a deployment or a prune. `done` is the verb of the message about its success, such as `Deployed`.
    pub(super) fn command(&mut self, of: &ObjectRef, handled: &Handled, done: &str) -> Result<()> {
        if let Some((stored, result)) = self.result(of, handled)? {
            self.print(&result, text::stored_command_result)?;
            self.conclude(of, handled, done, &stored);
        }
        Ok(())
    }

    /// Reports the success of a command and the numbers of objects in its result; prints nothing if nothing changed.
    fn conclude(&self, of: &ObjectRef, handled: &Handled, done: &str, stored: &StoredResult) {
        if handled.error.is_none() {
            let text = format!("{done} {}: {}", full_name(of), counted(&stored.summary));
            self.ops.terminal.success(&text);
        }
    }

    /// Prints the result of a diff, and deletes it: it has no other reader.
    pub(super) fn diff(&mut self, of: &ObjectRef, handled: &Handled) -> Result<()> {
        let Some((stored, result)) = self.result(of, handled)? else {
            return Ok(());
        };
        self.print(&result, text::stored_command_result)?;
        self.conclude(of, handled, "Compared", &stored);
        let status = Map::from([("status", Map::from([("lastDiffResult", Value::Null)]))]);
        let clean_up = async {
            self.store.delete(&stored).await?;
            let patch = Patch::MergeStatus(Value::Map(status));
            self.ops.cluster.patch(of, &patch, MANAGER).await?;
            anyhow::Ok(())
        };
        if let Err(error) = self.ops.block_on(clean_up) {
            let warning = format!(
                "The stored diff of {} could not be deleted: {error:#}",
                full_name(of)
            );
            self.ops.terminal.warning(&warning);
        }
        Ok(())
    }

    /// Prints the result of a validation. Fails with `Validation failed` if it has errors, or warnings that count as errors.
    pub(super) fn validation(&mut self, of: &ObjectRef, handled: &Handled, strict: bool) -> Result<()> {
        let result = match self.result(of, handled)? {
            Some((_, result)) => result,
            None if handled.result_id.is_none() => return Ok(()),
            // The status has the last one, too.
            None => {
                let object = self.ops.block_on(live(&self.ops.cluster, of))?;
                let result = object.pointer(&["status", "lastValidateResult"]);
                let result = result.filter(|result| {
                    result.get("id").and_then(Value::as_str) == handled.result_id.as_deref()
                });
                result.cloned().context("the result of the validation is gone")?
            }
        };
        self.print(&result, text::stored_validate_result)?;
        let has = |name: &str| {
            result
                .get(name)
                .and_then(Value::as_seq)
                .is_some_and(|list| !list.is_empty())
        };
        if has("errors") || strict && has("warnings") {
            bail!("Validation failed");
        }
        if handled.error.is_none() {
            self.ops.terminal.success("Validation succeeded");
        }
        Ok(())
    }

    /// Reads the result of a request; `None` if there is none, with a warning if there should be one.
    fn result(&self, of: &ObjectRef, handled: &Handled) -> Result<Option<(StoredResult, Value)>> {
        let Some(id) = &handled.result_id else {
            return Ok(None);
        };
        let read = async {
            let Some(stored) = self.store.find(id).await? else {
                return anyhow::Ok(None);
            };
            let result = self.store.read_compacted(&stored).await?;
            Ok(Some((stored, result)))
        };
        let read = self.ops.block_on(read);
        let namespace = &self.flags.command_result_namespace;
        let found = read.with_context(|| format!("read the result {id} in namespace {namespace}"))?;
        if found.is_none() {
            self.ops.terminal.warning(&format!(
                "The result {id} of {} is not in namespace {namespace}: use --command-result-namespace, if the controller stores \
                 results elsewhere",
                full_name(of)
            ));
        }
        Ok(found)
    }

    fn print(&mut self, result: &Value, as_text: fn(&Value, text::Style) -> String) -> Result<()> {
        let is_first = self.printed == 0;
        self.printed += 1;
        for output in operation::formats(&self.flags.output_format) {
            let text = match output.format {
                OutputFormat::Text => as_text(result, operation::style(self.flags.short_output)),
                OutputFormat::Yaml if is_first => yaml::print::goyaml(result),
                OutputFormat::Yaml => format!("---\n{}", yaml::print::goyaml(result)),
                OutputFormat::Json => operation::json(result),
            };
            match is_first {
                true => operation::print(&output, &text)?,
                false => append(&output, &text)?,
            }
        }
        Ok(())
    }
}

/// Returns the numbers of objects in the summary of a result, as in `1 new, 2 orphan objects`, or `no changes`. Pure.
fn counted(summary: &Value) -> String {
    let counts = [
        ("newObjects", "new"),
        ("changedObjects", "changed"),
        ("deletedObjects", "deleted"),
        ("orphanObjects", "orphan"),
    ];
    let counts = counts.iter().filter_map(|(field, name)| {
        let count = summary.get(field)?.as_u64().filter(|count| *count > 0)?;
        Some((count, *name))
    });
    let counts: Vec<(u64, &str)> = counts.collect();
    let named: Vec<String> = counts
        .iter()
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    match counts.iter().map(|(count, _)| count).sum() {
        0_u64 => "no changes".to_owned(),
        1 => format!("{} object", named.join(", ")),
        _ => format!("{} objects", named.join(", ")),
    }
}

/// Prints to stdout, or appends to a file.
fn append(output: &OutputTarget, text: &str) -> Result<()> {
    let Some(file) = &output.file else {
        return operation::print(output, text);
    };
    let append = || {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
        std::io::Write::write_all(&mut file, text.as_bytes())
    };
    append().with_context(|| format!("write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_of_a_summary_are_named() {
        let text = |summary| counted(&Value::from_json(summary));
        assert_eq!(text(json!({})), "no changes");
        assert_eq!(
            text(json!({"newObjects": 0, "changedObjects": 1})),
            "1 changed object"
        );
        let all = json!({"newObjects": 1, "changedObjects": 2, "deletedObjects": 3, "orphanObjects": 4});
        assert_eq!(text(all), "1 new, 2 changed, 3 deleted, 4 orphan objects");
    }
}
