//! XML documents of storage services, read element by element.

use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};

/// Maximum depth of nested elements; listings have five.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invalid;

/// Calls `visit` at the end of each element, with its path (names joined by `/`) and its own text. Documents without elements
/// are invalid. Entities of a document type are not expanded.
pub(crate) fn read(document: &[u8], mut visit: impl FnMut(&str, &str)) -> Result<(), Invalid> {
    let text = std::str::from_utf8(document).map_err(|_| Invalid)?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut path = String::new();
    // The length of the path before each open element, and its text.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut any = false;
    loop {
        match reader.read_event().map_err(|_| Invalid)? {
            Event::Start(element) => {
                if open.len() >= MAX_DEPTH {
                    return Err(Invalid);
                }
                any = true;
                open.push((path.len(), String::new()));
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(element.local_name().into_inner());
            }
            Event::End(_) => {
                let (outer, text) = open.pop().ok_or(Invalid)?;
                visit(&path, &text);
                path.truncate(outer);
            }
            Event::Text(text) => append(&mut open, &text),
            Event::CData(text) => append(&mut open, &text),
            Event::GeneralRef(reference) => {
                let found = reference.resolve_char_ref().map_err(|_| Invalid)?;
                match (found, resolve_predefined_entity(&reference)) {
                    (Some(character), _) => append(&mut open, character.encode_utf8(&mut [0; 4])),
                    (None, Some(text)) => append(&mut open, text),
                    (None, None) => return Err(Invalid),
                }
            }
            Event::Eof if any && open.is_empty() => return Ok(()),
            Event::Eof => return Err(Invalid),
            _ => {}
        }
    }
}

fn append(open: &mut [(usize, String)], text: &str) {
    if let Some((_, content)) = open.last_mut() {
        content.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(document: &str) -> Result<Vec<(String, String)>, Invalid> {
        let mut found = Vec::new();
        read(document.as_bytes(), |path, text| {
            found.push((path.to_owned(), text.to_owned()));
        })?;
        Ok(found)
    }

    #[test]
    fn elements_have_a_path_and_a_text() {
        let found = all("<?xml version=\"1.0\"?><a xmlns=\"x\"><b>1 &amp; &#50;<![CDATA[<3>]]></b><c/> </a>")
            .unwrap();
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        assert_eq!(found, [("a/b", "1 & 2<3>"), ("a/c", ""), ("a", " ")]);
    }

    #[test]
    fn invalid_documents_are_errors() {
        let deep = "<a>".repeat(MAX_DEPTH + 1);
        let bomb = "<!DOCTYPE a [<!ENTITY x \"xxxx\">]><a>&x;</a>";
        for document in ["", "text", "<a>", "<a></b>", "</a>", "<a>&#0;</a>", &deep, bomb] {
            assert_eq!(all(document), Err(Invalid), "{document}");
        }
        assert_eq!(read(b"<a>\xff</a>", |_, _| {}), Err(Invalid));
    }
}
