//! Combines the parts of a shared secret: Shamir's scheme over the field of 256 elements that AES uses.

use zeroize::Zeroizing;

/// Returns the secret of these parts; each has its y-coordinates, then its x-coordinate.
pub(crate) fn combine(parts: &[Zeroizing<Vec<u8>>]) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let length = parts.first().map_or(0, |part| part.len());
    if parts.len() < 2 || length < 2 {
        return Err("there are too few parts of it, or they are empty");
    }
    if parts.iter().any(|part| part.len() != length) {
        return Err("its parts have different lengths");
    }
    let xs: Vec<u8> = parts.iter().filter_map(|part| part.last().copied()).collect();
    let mut seen = [false; 256];
    for x in &xs {
        let Some(seen) = seen.get_mut(usize::from(*x)) else {
            continue;
        };
        if std::mem::replace(seen, true) {
            return Err("the same part of it is there twice");
        }
    }
    let weights: Vec<u8> = xs.iter().map(|x| weight(*x, &xs)).collect();
    let mut secret = Zeroizing::new(vec![0; length - 1]);
    for (part, weight) in parts.iter().zip(weights) {
        for (byte, y) in secret.iter_mut().zip(part.iter()) {
            *byte ^= multiply(*y, weight);
        }
    }
    Ok(secret)
}

fn weight(x: u8, xs: &[u8]) -> u8 {
    xs.iter().filter(|other| **other != x).fold(1, |weight, other| {
        multiply(weight, multiply(*other, inverse(*other ^ x)))
    })
}

/// Every element but zero to the power of 255 is one, so its 254th power is its inverse.
fn inverse(a: u8) -> u8 {
    (0..253).fold(a, |power, _| multiply(power, a))
}

/// Multiplies without branches that depend on the operands.
fn multiply(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0_u8, |product, bit| {
        let doubled = (product << 1) ^ (0x1b & 0_u8.wrapping_sub(product >> 7));
        doubled ^ (a & 0_u8.wrapping_sub((b >> bit) & 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 197, and a polynomial of known coefficients.
    #[test]
    fn the_field_is_that_of_aes() {
        assert_eq!(multiply(0x57, 0x83), 0xc1);
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1);
        }
    }

    #[test]
    fn any_two_of_three_parts_are_enough() {
        let (secret, slope) = ([1_u8, 200, 33], [9_u8, 8, 254]);
        let part = |x: u8| {
            let mut part: Vec<u8> = secret
                .iter()
                .zip(slope)
                .map(|(s, k)| s ^ multiply(k, x))
                .collect();
            part.push(x);
            Zeroizing::new(part)
        };
        for (a, b) in [(1, 2), (2, 3), (3, 1)] {
            assert_eq!(*combine(&[part(a), part(b)]).unwrap(), secret);
        }
        assert!(combine(&[part(1)]).is_err());
        assert!(combine(&[part(1), part(1)]).is_err());
        assert!(combine(&[part(1), Zeroizing::new(vec![1, 2])]).is_err());
        assert!(combine(&[Zeroizing::new(vec![]), Zeroizing::new(vec![])]).is_err());
    }
}
