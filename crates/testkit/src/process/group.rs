//! A folder of state and the processes that work in it, which end with their owner.
//!
//! Three things see to that. Stopping (or dropping) a [`Group`] kills its processes and removes its folder. A small
//! shell script per group does the same when the owner is gone without having done so, even by SIGKILL. And
//! [`sweep`], called before a new group is made, ends the processes that both missed: it finds processes by the variable
//! [`STATE_DIR`] in their environment, so that no reused process id is ever hit.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    os::unix::{
        fs::{DirBuilderExt as _, MetadataExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use parking_lot::Mutex;
use rustix::process::Signal;

use super::Identity;
use crate::wait::eventually;

/// The variable in the environment of every process of a group that names the folder of the group.
pub const STATE_DIR: &str = "WEIR_STATE_DIR";

const WATCHDOG: &str = include_str!("watchdog.sh");

#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
    children: Mutex<BTreeMap<String, Child>>,
    watchdog: Mutex<Option<Child>>,
    /// True if dropping this value ends the processes.
    owned: bool,
}

impl Group {
    /// A new folder below the system's temporary directory, with an owner: when that process is gone, so is the group.
    pub fn create(kind: &str, owner: Identity) -> Result<Self> {
        let name = format!("{kind}-{:06x}@{owner}", fastrand::u32(..0x100_0000));
        Self::create_in(root()?.join(name), Some(owner), true)
    }

    /// A folder at a place of the caller's choice whose processes outlive the caller, until [`Group::stop`] of a value
    /// from [`Group::open`].
    pub fn create_detached(dir: &Path) -> Result<Self> {
        Self::create_in(dir.to_owned(), None, false)
    }

    /// A folder at a place of the caller's choice that ends with its owner, which may be another process than this one.
    pub(crate) fn create_for(dir: &Path, owner: Identity) -> Result<Self> {
        Self::create_in(dir.to_owned(), Some(owner), false)
    }

    fn create_in(dir: PathBuf, owner: Option<Identity>, owned: bool) -> Result<Self> {
        for sub in ["procs", "logs", "tmp"] {
            let path = dir.join(sub);
            fs::create_dir_all(&path).with_context(|| format!("can't make the folder {}", path.display()))?;
        }
        let watchdog = owner.map(|owner| watch(&dir, owner)).transpose()?;
        Ok(Self {
            dir,
            children: Mutex::default(),
            watchdog: Mutex::new(watchdog),
            owned,
        })
    }

    /// A group that another process made.
    #[must_use]
    pub fn open(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            children: Mutex::default(),
            watchdog: Mutex::new(None),
            owned: false,
        }
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the file with the output of the named process.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }

    /// Starts a process; its output goes to [`Group::log`], its temporary files into the group's folder.
    pub fn spawn(&self, name: &str, command: &mut Command) -> Result<Identity> {
        let log = self.log(name);
        let out = fs::OpenOptions::new().create(true).append(true).open(&log);
        let out = out.with_context(|| format!("can't write {}", log.display()))?;
        let child = command
            .env(STATE_DIR, &self.dir)
            .env("TMPDIR", self.dir.join("tmp"))
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            // A Ctrl-C is for the owner, who then ends the group.
            .process_group(0)
            .spawn()
            .with_context(|| format!("can't start {}", command.get_program().to_string_lossy()))?;
        let identity = Identity::of_child(child.id());
        fs::write(self.dir.join("procs").join(identity.to_string()), name)?;
        self.children.lock().insert(name.to_owned(), child);
        Ok(identity)
    }

    /// The processes that were started in this group, by any process, and still run: name and identity.
    #[must_use]
    pub fn running(&self) -> Vec<(String, Identity)> {
        let Ok(entries) = fs::read_dir(self.dir.join("procs")) else {
            return Vec::new();
        };
        let known = entries.flatten().filter_map(|entry| {
            let identity: Identity = entry.file_name().to_str()?.parse().ok()?;
            Some((fs::read_to_string(entry.path()).ok()?, identity))
        });
        known.filter(|(_, identity)| identity.is_alive()).collect()
    }

    /// The exit status of the named child of this process, once it has ended.
    #[must_use]
    pub fn exited(&self, name: &str) -> Option<ExitStatus> {
        self.children.lock().get_mut(name)?.try_wait().ok().flatten()
    }

    /// The name and the last lines of a child of this process that has ended, if one has.
    #[must_use]
    pub fn any_exited(&self) -> Option<String> {
        let names: Vec<String> = self.children.lock().keys().cloned().collect();
        let (name, status) = names
            .into_iter()
            .find_map(|name| self.exited(&name).map(|status| (name, status)))?;
        Some(format!(
            "{name} ended with {status}; it last said:\n{}",
            self.tail(&name)
        ))
    }

    pub fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    /// Waits until `ask` succeeds, but no longer than all processes of the group run. `what` completes "waited for".
    pub async fn eventually<F>(&self, what: &str, at_most: Duration, mut ask: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let answer = eventually(what, at_most, || {
            let ended = self.any_exited();
            let asked = ask();
            async move {
                match ended {
                    Some(ended) => Ok(Err(anyhow!(ended))),
                    None => asked.await.map(Ok),
                }
            }
        });
        answer.await?
    }

    #[must_use]
    pub fn output(&self, name: &str) -> String {
        let text = fs::read(self.log(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    #[must_use]
    pub fn tail(&self, name: &str) -> String {
        let text = self.output(name);
        let lines: Vec<&str> = text.lines().collect();
        lines
            .get(lines.len().saturating_sub(15)..)
            .unwrap_or_default()
            .join("\n")
    }

    /// Kills every process of the group at once and removes its folder. Nothing in it is worth a graceful end; who
    /// needs one sends SIGTERM first.
    pub fn stop(&self) -> Result<()> {
        if let Some(mut watchdog) = self.watchdog.lock().take() {
            watchdog.kill()?;
            watchdog.wait()?;
        }
        self.kill_known()?;
        for child in self.children.lock().values_mut() {
            // Its own children are known without the folder, which a sweep may have removed.
            child.kill()?;
            child.wait()?;
        }
        for (name, identity) in self.running() {
            ensure!(
                identity.wait_gone(Duration::from_secs(10)),
                "{name} ({}) doesn't end",
                identity.pid
            );
        }
        remove(&self.dir)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.owned
            && let Err(error) = self.stop()
        {
            crate::progress::say(format_args!("can't clean up {}: {error:#}", self.dir.display()));
        }
    }
}

/// The folder that holds the groups of this user, which nobody else may have prepared.
pub(crate) fn root() -> Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let dir = std::env::temp_dir().join(format!("weir-testkit-{uid}"));
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .and_then(|()| fs::metadata(&dir));
    let made = made.with_context(|| format!("can't make the folder {}", dir.display()))?;
    ensure!(
        made.uid() == uid,
        "{} belongs to another user: remove it, or set TMPDIR",
        dir.display()
    );
    Ok(dir)
}

/// Ends the processes and removes the folders of groups whose owners are gone.
pub fn sweep() -> Result<()> {
    for entry in fs::read_dir(root()?)?.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.rsplit_once('@'))
            .map(|(_, owner)| owner.parse::<Identity>());
        let Some(Ok(owner)) = owner else { continue };
        if !owner.is_alive() {
            if entry.file_type()?.is_dir() {
                end_strays(&entry.path())?;
                remove(&entry.path())?;
            } else {
                // Another sweep may be faster.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    Ok(())
}

/// Kills the processes that are noted in this state directory, and those whose environment names it.
pub fn end_strays(dir: &Path) -> Result<()> {
    // Both are needed: a process that is just starting has no environment yet, and one of a killed starter may have no note.
    let known = Group::open(dir);
    known.kill_known()?;
    for (_, identity) in known.running() {
        let _ = identity.wait_gone(Duration::from_secs(5));
    }
    let Ok(processes) = fs::read_dir("/proc") else {
        return Ok(());
    };
    let mark = format!("{STATE_DIR}={}\0", dir.display()).into_bytes();
    for process in processes.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Some(identity) = Identity::of(pid) else {
            continue;
        };
        // Processes of other users can't be read, and aren't ours.
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        if environment
            .split_inclusive(|byte| *byte == 0)
            .any(|variable| variable == mark)
        {
            identity.signal(Signal::KILL)?;
            let _ = identity.wait_gone(Duration::from_secs(5));
        }
    }
    Ok(())
}

impl Group {
    fn kill_known(&self) -> Result<()> {
        self.running()
            .iter()
            .try_for_each(|(_, identity)| identity.signal(Signal::KILL))
    }
}

fn watch(dir: &Path, owner: Identity) -> Result<Child> {
    let mut command = Command::new("sh");
    command
        .args(["-c", WATCHDOG, "testkit-watchdog"])
        .arg(dir)
        .arg(owner.to_string())
        .current_dir("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn().context("can't start sh")
}

fn remove(dir: &Path) -> Result<()> {
    // A process that is about to end may still make a file while the folder is being removed.
    for _ in 0..20 {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("can't remove {}", dir.display()));
            }
            _ => return Ok(()),
        }
    }
    fs::remove_dir_all(dir).with_context(|| format!("can't remove {}", dir.display()))
}

pub(crate) fn write_private(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let path = path.as_ref();
    let file = fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(content.as_ref()));
    written.with_context(|| format!("can't write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("600");
        command
    }

    #[test]
    fn stopping_ends_the_processes_and_removes_the_folder() {
        let group = Group::create("stop", Identity::current()).expect("is created");
        let sleeper = group.spawn("sleeper", &mut sleeper()).expect("starts");
        assert_eq!(group.running(), [("sleeper".to_owned(), sleeper)]);
        let dir = group.dir().to_owned();
        drop(group);
        assert!(!sleeper.is_alive() && !dir.exists());
    }

    #[test]
    fn watchdog_ends_the_processes_of_a_killed_owner() {
        let mut owner = sleeper().spawn().expect("starts");
        let identity = Identity::of(owner.id()).expect("runs");
        let group = Group::create("watched", identity).expect("is created");
        let orphan = group.spawn("orphan", &mut sleeper()).expect("starts");
        owner.kill().expect("is killed");
        owner.wait().expect("is reaped");
        assert!(
            orphan.wait_gone(Duration::from_secs(20)),
            "the watchdog didn't end the orphan"
        );
    }

    #[test]
    fn stopping_ends_its_own_processes_without_the_folder() {
        let group = Group::create("bare", Identity::current()).expect("is created");
        let sleeper = group.spawn("sleeper", &mut sleeper()).expect("starts");
        fs::remove_dir_all(group.dir()).expect("is removed");
        drop(group);
        assert!(!sleeper.is_alive());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn noted_processes_end_whatever_their_environment() {
        let group = Group::create("noted", Identity::current()).expect("is created");
        let mut foreign = sleeper().spawn().expect("starts");
        let identity = Identity::of(foreign.id()).expect("runs");
        fs::write(group.dir().join("procs").join(identity.to_string()), "foreign").expect("is noted");
        end_strays(group.dir()).expect("ends them");
        let ended = !identity.is_alive();
        let _ = foreign.kill().and_then(|()| foreign.wait());
        assert!(ended, "a process without the variable was left");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn sweep_ends_processes_without_owner_and_watchdog() {
        let mut owner = sleeper().spawn().expect("starts");
        let group = Group::create("swept", Identity::of(owner.id()).expect("runs")).expect("is created");
        let orphan = group.spawn("orphan", &mut sleeper()).expect("starts");
        let mut watchdog = group.watchdog.lock().take().expect("has one");
        watchdog
            .kill()
            .and_then(|()| watchdog.wait())
            .expect("the watchdog is killed");
        sweep().expect("sweeps");
        assert!(orphan.is_alive(), "the owner still lives");
        owner
            .kill()
            .and_then(|()| owner.wait())
            .expect("the owner is killed");
        sweep().expect("sweeps");
        assert!(!orphan.is_alive() && !group.dir().exists());
    }
}
