//! Reading and writing DER, as far as certificates and keys of signers need it.

pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Element<'a> {
    pub(crate) kind: u8,
    pub(crate) content: &'a [u8],
    pub(crate) raw: &'a [u8],
}

pub(crate) fn next(der: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&kind, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let raw = der.get(..der.len() - rest.len())?;
    Some((Element { kind, content, raw }, rest))
}

pub(crate) fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = next(der)?;
    (found.kind == kind).then_some((found.content, rest))
}

pub(crate) fn elements(mut der: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut all = Vec::new();
    while !der.is_empty() {
        let (found, rest) = next(der)?;
        all.push(found);
        der = rest;
    }
    Some(all)
}

pub(crate) fn written(kind: u8, content: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![kind];
    match u8::try_from(content.len()) {
        Ok(length @ 0..=0x7f) => out.push(length),
        Ok(length) => out.extend([0x81, length]),
        Err(_) => {
            out.push(0x82);
            out.extend(u16::try_from(content.len()).ok()?.to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    Some(out)
}
