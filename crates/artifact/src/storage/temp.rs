//! Temporary files: hidden under their own name until they are complete.

use std::io::{self, Write as _};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use super::writer::Writer;

/// A file that is removed unless it is persisted.
pub(super) struct Temp<'a> {
    dir: &'a Dir,
    name: String,
    file: std::fs::File,
    persisted: bool,
}

impl<'a> Temp<'a> {
    pub(super) fn create(dir: &'a Dir, writer: &Writer) -> io::Result<Self> {
        let name = writer.temp_name();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = dir.open_with(&name, &options)?.into_std();
        Ok(Self {
            dir,
            name,
            file,
            persisted: false,
        })
    }

    pub(super) fn holding(dir: &'a Dir, writer: &Writer, content: &[u8]) -> io::Result<Self> {
        let temp = Self::create(dir, writer)?;
        (&temp.file).write_all(content)?;
        Ok(temp)
    }

    pub(super) fn file(&self) -> &std::fs::File {
        &self.file
    }

    pub(super) fn persist(mut self, name: &str) -> io::Result<()> {
        self.file.sync_all()?;
        self.dir.rename(&self.name, self.dir, name)?;
        self.persisted = true;
        Ok(())
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.persisted {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Syncs the names in a directory to disk. If that is not possible they follow a little later.
pub(super) fn sync_dir(dir: &Dir) {
    if let Ok(dir) = dir.open(".") {
        let _ = dir.sync_all();
    }
}
