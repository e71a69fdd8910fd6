//! Shrinks a tree with a difference.

use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::layers::{File, Files};

const TIME: Duration = Duration::from_secs(20);

/// Returns the smallest tree that was found: files, documents, fields and items are removed as long as `differs` returns
/// true. The part after a removed one is tried next, and all are tried again until nothing helps.
pub(super) fn smallest(files: &Files, mut differs: impl FnMut(&Files) -> bool) -> Files {
    let until = Instant::now() + TIME;
    let mut best = files.clone();
    let mut again = true;
    while again {
        again = false;
        let mut at = 0;
        while Instant::now() < until {
            let mut candidate = best.clone();
            let mut left = at;
            if !leave_out(&mut candidate, &mut left) {
                break;
            }
            if differs(&candidate) {
                best = candidate;
                again = true;
            } else {
                at += 1;
            }
        }
    }
    best
}

/// Removes the part with a number, larger parts first; false if there are fewer.
fn leave_out(files: &mut Files, number: &mut usize) -> bool {
    // Kustomizations come first: then nothing names the rest.
    for path in [
        "top/kustomization.yaml",
        "middle/kustomization.yaml",
        "base/kustomization.yaml",
    ] {
        if let Some(File::Documents(documents)) = files.get_mut(path)
            && documents
                .iter_mut()
                .any(|document| leave_out_of(document, number))
        {
            return true;
        }
    }
    let names: Vec<String> = files.keys().cloned().collect();
    if let Some(name) = names.get(*number) {
        files.remove(name);
        return true;
    }
    *number -= names.len();
    for documents in files.values_mut().filter_map(File::several) {
        if *number < documents.len() {
            documents.remove(*number);
            return true;
        }
        *number -= documents.len();
    }
    for file in files.values_mut() {
        let File::Documents(documents) = file else {
            continue;
        };
        if documents
            .iter_mut()
            .any(|document| leave_out_of(document, number))
        {
            return true;
        }
    }
    false
}

fn leave_out_of(value: &mut Json, number: &mut usize) -> bool {
    match value {
        Json::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            if let Some(key) = keys.get(*number) {
                map.shift_remove(key);
                return true;
            }
            *number -= keys.len();
            map.values_mut().any(|member| leave_out_of(member, number))
        }
        Json::Array(list) => {
            if *number < list.len() {
                list.remove(*number);
                return true;
            }
            *number -= list.len();
            list.iter_mut().any(|item| leave_out_of(item, number))
        }
        // A patch is a string that is a document.
        Json::String(text) if text.contains('\n') => {
            let Ok(document) = yaml::read::goyaml(text.as_str(), &tree::Budget::default()) else {
                return false;
            };
            let mut inner = document.value.to_json();
            let found = (inner.is_object() || inner.is_array()) && leave_out_of(&mut inner, number);
            if found {
                *text = super::layers::print(&inner);
            }
            found
        }
        _ => false,
    }
}
