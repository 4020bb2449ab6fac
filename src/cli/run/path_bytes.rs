//! A path in a message or a file of ours: as text, or as its bytes where it is none. A path may hold any byte but NUL.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a path is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Spelling<T, B> {
    Text(T),
    Bytes(B),
}

/// For `#[serde(with)]`: the path, if there is one.
pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(spelling).serialize(to)
}

fn spelling(path: &Path) -> Spelling<&str, &[u8]> {
    path.to_str().map_or_else(|| Spelling::Bytes(path.as_os_str().as_bytes()), Spelling::Text)
}

/// For `#[serde(with)]`: the path, if there is one.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = |spelling| match spelling {
        Spelling::Text(text) => PathBuf::from(text),
        Spelling::Bytes(bytes) => OsString::from_vec(bytes).into(),
    };
    Ok(Option::<Spelling<String, Vec<u8>>>::deserialize(from)?.map(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Place(#[serde(with = "super")] Option<PathBuf>);

    #[test]
    fn paths_of_any_bytes_come_back_and_texts_stay_texts() {
        for path in [None, Some(PathBuf::from("/a/ä")), Some(OsString::from_vec(b"/a/\xff\n".to_vec()).into())] {
            let place = Place(path);
            let line = serde_json::to_string(&place).unwrap();
            assert_eq!(serde_json::from_str::<Place>(&line).unwrap(), place, "{line}");
        }
        assert_eq!(serde_json::to_string(&Place(Some("/a".into()))).unwrap(), "\"/a\"");
    }
}
