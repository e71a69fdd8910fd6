//! A directory to unpack into, which no entry leaves.

use std::{
    io::{self, Read},
    path::Path,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt},
};
use tree::TreePath;

use super::target::{Made, Target};
use crate::Error;

pub(super) struct Directory(Dir);

impl Directory {
    pub(super) fn create(root: &Path) -> Result<Self, Error> {
        std::fs::create_dir(root).map_err(Error::io("create", "a directory to unpack into"))?;
        Dir::open_ambient_dir(root, ambient_authority())
            .map(Self)
            .map_err(Error::io("open", "a directory to unpack into"))
    }
}

impl Target for Directory {
    type Error = Error;

    /// Has no own limits.
    fn reserve(&mut self, _: &TreePath, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn make_dir(&mut self, path: &TreePath) -> io::Result<Made> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let Err(error) = self.0.create_dir_with(path.as_str(), &builder) else {
            return Ok(Made::Now);
        };
        match error.kind() {
            io::ErrorKind::NotFound => Ok(Made::Nowhere),
            io::ErrorKind::AlreadyExists if self.0.is_dir(path.as_str()) => Ok(Made::Already),
            io::ErrorKind::AlreadyExists => Err(io::ErrorKind::NotADirectory.into()),
            _ => Err(error),
        }
    }

    fn write(&mut self, path: &TreePath, executable: bool, content: &mut dyn Read) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(if executable { 0o700 } else { 0o600 });
        let mut file = self.0.open_with(path.as_str(), &options)?;
        io::copy(content, &mut file).map(drop)
    }
}
