//! The numbers of dense features: in memory, or in a file that the system reads as they are used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Advice, Mmap};

/// Numbers, row after row. Those of a file are shared by clones.
#[derive(Debug, Clone)]
pub struct Values(Storage);

#[derive(Debug, Clone)]
enum Storage {
    Memory(Vec<f32>),
    Mapped(Arc<Mmap>),
}

impl Values {
    /// Whether they are in a file: what is used for the first time, or again after long, is read from there.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Storage::Mapped(_))
    }

    /// Asks the system to read these rows of `width` numbers, all at once, before they are used. Does nothing for what is in memory.
    pub(crate) fn read_ahead(&self, rows: &[u32], width: usize) {
        let Storage::Mapped(map) = &self.0 else { return };
        let row_bytes = width * size_of::<f32>();
        for &row in rows {
            // Advice that is not taken, or of a row that is not there, costs only time.
            let _ = map.advise_range(Advice::WillNeed, row as usize * row_bytes, row_bytes);
        }
    }
}

impl Deref for Values {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.0 {
            Storage::Memory(values) => values,
            // A map begins at a page, and its length was written as numbers.
            Storage::Mapped(map) => bytemuck::cast_slice(map),
        }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self(Storage::Memory(values))
    }
}

impl FromIterator<f32> for Values {
    fn from_iter<I: IntoIterator<Item = f32>>(values: I) -> Self {
        Vec::from_iter(values).into()
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Takes numbers in order, into memory or a file.
pub(super) enum Writer {
    /// With room for all.
    Memory(Vec<f32>),
    /// A file without a name, which is gone with its last user.
    File(File),
}

impl Writer {
    /// Into memory, `count` numbers.
    pub(super) fn memory(count: usize) -> Self {
        Self::Memory(Vec::with_capacity(count))
    }

    /// Into a file in this folder.
    pub(super) fn file(folder: &Path) -> io::Result<Self> {
        let path: PathBuf = folder.join(format!("gnntop-features-{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(path)?;
        Ok(Self::File(file))
    }

    /// Adds these.
    pub(super) fn write(&mut self, values: &[f32]) -> io::Result<()> {
        match self {
            Self::Memory(all) => {
                all.extend_from_slice(values);
                Ok(())
            }
            Self::File(file) => file.write_all(bytemuck::cast_slice(values)),
        }
    }

    /// All that were added.
    pub(super) fn finish(self) -> io::Result<Values> {
        match self {
            Self::Memory(values) => Ok(values.into()),
            Self::File(file) => {
                // SAFETY: the file has no name, so no other program changes it or cuts it short, and nothing here writes to
                // it any more: what is mapped stays as it is.
                let map = unsafe { Mmap::map(&file)? };
                // Rows are used in no order: the system must not read what follows each.
                map.advise(Advice::Random)?;
                Ok(Values(Storage::Mapped(Arc::new(map))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_file_are_those_in_memory_and_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let written = [Writer::memory(7), Writer::file(folder.path()).unwrap()].map(|mut writer| {
            writer.write(&[1.0, -2.5, 3.0]).unwrap();
            writer.write(&[0.0, f32::MIN_POSITIVE, 1e-40, 7.0]).unwrap();
            writer.finish().unwrap()
        });
        assert_eq!(written.each_ref().map(Values::is_mapped), [false, true]);
        assert_eq!(written[0], written[1]);
        written.iter().for_each(|values| values.read_ahead(&[0, 2, 1_000_000, u32::MAX], 2));
        assert_eq!(written[1][4..], [f32::MIN_POSITIVE, 1e-40, 7.0]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Writer::file(&folder.path().join("missing")).is_err());
    }
}
