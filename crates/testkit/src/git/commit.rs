//! Builder of commits.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context as _, Result};

use super::Repo;

#[derive(Debug, Clone)]
enum Change {
    Clear,
    Write {
        mode: &'static str,
        path: String,
        content: Vec<u8>,
    },
    Submodule {
        path: String,
        commit: String,
    },
    Remove {
        path: String,
    },
}

/// Builder of a commit; files that it does not mention stay as they are. [`Commit::push`] creates it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Commit {
    repo: Repo,
    message: String,
    branch: String,
    author: String,
    date: Option<i64>,
    orphan: bool,
    from: Option<String>,
    changes: Vec<Change>,
}

impl Commit {
    pub(super) fn new(repo: &Repo, message: &str) -> Self {
        Self {
            repo: repo.clone(),
            message: message.to_owned(),
            branch: "main".to_owned(),
            author: "Test Kit <testkit@example.com>".to_owned(),
            date: None,
            orphan: false,
            from: None,
            changes: Vec::new(),
        }
    }

    pub fn write(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.with_mode("100644", path, content)
    }

    pub fn executable(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.with_mode("100755", path, content)
    }

    pub fn link(self, path: &str, target: &str) -> Self {
        self.with_mode("120000", path, target)
    }

    fn with_mode(mut self, mode: &'static str, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.changes.push(Change::Write {
            mode,
            path: path.to_owned(),
            content: content.as_ref().to_vec(),
        });
        self
    }

    /// Names a commit of another repository (without `.gitmodules`).
    pub fn submodule(mut self, path: &str, commit: &str) -> Self {
        self.changes.push(Change::Submodule {
            path: path.to_owned(),
            commit: commit.to_owned(),
        });
        self
    }

    pub fn remove(mut self, path: &str) -> Self {
        self.changes.push(Change::Remove {
            path: path.to_owned(),
        });
        self
    }

    /// Removes everything that was there before.
    pub fn clear(mut self) -> Self {
        self.changes.push(Change::Clear);
        self
    }

    /// Writes all files below a folder of this machine, `.git` aside.
    pub fn copy(self, folder: &Path) -> Result<Self> {
        self.copy_below(folder, String::new())
    }

    /// Writes all files below a folder of this machine into a directory of the repository, `.git` aside.
    pub fn copy_to(self, folder: &Path, directory: &str) -> Result<Self> {
        self.copy_below(folder, format!("{directory}/"))
    }

    fn copy_below(mut self, folder: &Path, prefix: String) -> Result<Self> {
        let mut pending = vec![(folder.to_owned(), prefix)];
        while let Some((dir, prefix)) = pending.pop() {
            let entries =
                fs::read_dir(&dir).with_context(|| format!("can't read the folder {}", dir.display()))?;
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name().into_string();
                let name = name.map_err(|name| anyhow::anyhow!("{} isn't UTF-8", name.display()))?;
                let path = format!("{prefix}{name}");
                let kind = entry.file_type()?;
                if name == ".git" {
                    continue;
                } else if kind.is_dir() {
                    pending.push((entry.path(), format!("{path}/")));
                } else if kind.is_symlink() {
                    let target = fs::read_link(entry.path())?;
                    self = self.link(&path, &target.to_string_lossy());
                } else {
                    let executable = entry.metadata()?.permissions().mode() & 0o100 != 0;
                    let mode = if executable { "100755" } else { "100644" };
                    self = self.with_mode(mode, &path, fs::read(entry.path())?);
                }
            }
        }
        Ok(self)
    }

    /// Puts the commit on another branch than `main`; a new branch begins empty unless [`Commit::from`] says where.
    pub fn on(mut self, branch: &str) -> Self {
        branch.clone_into(&mut self.branch);
        self
    }

    /// Gives the commit this parent (a branch, tag or commit): the branch moves there, by force where need be.
    pub fn from(mut self, parent: &str) -> Self {
        self.from = Some(parent.to_owned());
        self
    }

    /// Gives the commit no parent and no files but its own: the branch is replaced by force.
    pub fn orphan(mut self) -> Self {
        self.orphan = true;
        self
    }

    /// Names another author, as `Name <address>`.
    pub fn author(mut self, author: &str) -> Self {
        author.clone_into(&mut self.author);
        self
    }

    /// Dates the commit, in seconds since 1970. Without it commits are a minute apart, in each run alike.
    pub fn at(mut self, seconds: i64) -> Self {
        self.date = Some(seconds);
        self
    }

    pub fn push(self) -> Result<String> {
        let parent = match (&self.from, self.orphan) {
            (_, true) => None,
            (Some(parent), false) => Some(self.repo.rev(parent)?),
            (None, false) => self.repo.rev(&format!("refs/heads/{}", self.branch)).ok(),
        };
        let date = self.date.unwrap_or_else(|| self.repo.next_date());
        let mut stream = Vec::new();
        if parent.is_none() {
            stream.extend_from_slice(format!("reset refs/heads/{}\n", self.branch).as_bytes());
        }
        let head = format!(
            "commit refs/heads/{}\nmark :1\nauthor {author} {date} +0000\ncommitter {author} {date} +0000\n",
            self.branch,
            author = self.author
        );
        stream.extend_from_slice(head.as_bytes());
        data(&mut stream, self.message.as_bytes());
        if let Some(parent) = parent {
            stream.extend_from_slice(format!("from {parent}\n").as_bytes());
        }
        for change in &self.changes {
            match change {
                Change::Clear => stream.extend_from_slice(b"deleteall\n"),
                Change::Write { mode, path, content } => {
                    stream.extend_from_slice(format!("M {mode} inline {}\n", quoted(path)).as_bytes());
                    data(&mut stream, content);
                }
                Change::Submodule { path, commit } => {
                    stream.extend_from_slice(format!("M 160000 {commit} {}\n", quoted(path)).as_bytes());
                }
                Change::Remove { path } => {
                    stream.extend_from_slice(format!("D {}\n", quoted(path)).as_bytes());
                }
            }
        }
        stream.extend_from_slice(b"\nget-mark :1\ndone\n");
        let said = self
            .repo
            .git_with(&["fast-import", "--force", "--quiet", "--done"], &stream)?;
        Ok(said.trim().to_owned())
    }
}

fn data(stream: &mut Vec<u8>, content: &[u8]) {
    stream.extend_from_slice(format!("data {}\n", content.len()).as_bytes());
    stream.extend_from_slice(content);
    stream.push(b'\n');
}

/// A path as fast-import takes it, whatever it holds.
fn quoted(path: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_are_quoted() {
        assert_eq!(quoted("a b/ü\"\n"), "\"a b/\\303\\274\\\"\\012\"");
    }
}
