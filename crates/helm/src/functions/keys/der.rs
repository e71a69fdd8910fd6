//! DER, as far as private keys need it.

pub(super) const RSA: [u8; 13] = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
pub(super) const P256: [u8; 19] = [
    0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7,
];
pub(super) const ED25519: [u8; 5] = [0x06, 3, 0x2b, 0x65, 0x70];

const INTEGER: u8 = 2;
const BITS: u8 = 3;
const OCTETS: u8 = 4;
const SEQUENCE: u8 = 0x30;

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes: Vec<u8> = length
            .to_be_bytes()
            .into_iter()
            .skip_while(|byte| *byte == 0)
            .collect();
        out.push(0x80 | bytes.len() as u8);
        out.extend(bytes);
    }
    out.extend_from_slice(content);
    out
}

pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

pub(super) fn octets(content: &[u8]) -> Vec<u8> {
    tagged(OCTETS, content)
}

pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    let negative = digits.first().is_none_or(|first| first & 0x80 != 0);
    let zero: &[u8] = if negative { &[0] } else { &[] };
    tagged(INTEGER, &[zero, digits.as_slice()].concat())
}

pub(super) fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    sequence(&[integer(&[0]), tagged(SEQUENCE, algorithm), octets(key)])
}

pub(super) fn ec_key(scalar: &[u8], point: &[u8]) -> Vec<u8> {
    let curve = P256.get(9..).unwrap_or_default();
    let public = tagged(BITS, &[&[0], point].concat());
    sequence(&[
        integer(&[1]),
        octets(scalar),
        tagged(0xa0, curve),
        tagged(0xa1, &public),
    ])
}

/// Returns the key in a PKCS#8 document, and true if it is an RSA key.
pub(super) fn inside_pkcs8(der: &[u8]) -> Option<(bool, Vec<u8>)> {
    let (whole, _) = content(der)?;
    let (_, rest) = content(whole)?;
    let (algorithm, rest) = content(rest)?;
    let (key, _) = content(rest)?;
    Some((algorithm.starts_with(RSA.get(..11)?), key.to_vec()))
}

fn content(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, first], rest) = der.split_first_chunk::<2>()?;
    if first < 0x80 {
        return rest.split_at_checked(first.into());
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    let length = bytes.iter().try_fold(0usize, |length, byte| {
        length.checked_mul(256)?.checked_add((*byte).into())
    })?;
    rest.split_at_checked(length)
}
