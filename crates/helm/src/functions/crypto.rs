//! Passwords and ciphers.

use aes::Aes256;
use cbc::cipher::{
    BlockModeDecrypt, BlockModeEncrypt, KeyIvInit,
    block_padding::{NoPadding, Pkcs7},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use go::bytes;

use super::{
    arguments::{binary, int, text},
    context::Context,
    encoding,
    table::{Answer, Entry, fixed},
};
use crate::template::FunctionError;
use crate::{Value, template::Type};

const TWO: &[Type] = &[Type::String, Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("bcrypt", &[Type::String], |context, arguments| {
        Ok(Value::string(bcrypt(context, text(arguments, 0))?))
    }),
    fixed("htpasswd", TWO, htpasswd),
    fixed(
        "derivePassword",
        &[Type::Int, Type::String, Type::String, Type::String, Type::String],
        derive_password,
    ),
    fixed("encryptAES", TWO, encrypt),
    fixed("decryptAES", TWO, decrypt),
];

/// The cost of hashing a password once, in steps: a hundred of them use up the budget.
const SLOW: u64 = 5_000_000;
const COST: u32 = 10;

fn bcrypt(context: &Context<'_>, password: &str) -> Result<String, FunctionError> {
    context.work(SLOW)?;
    let password = bytes::of_str(password);
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned(),
        );
    }
    let mut salt = [0; 16];
    context.environment.fill(&mut salt);
    let hash = bcrypt::hash_with_salt(password.as_ref(), COST, salt);
    Ok(match hash {
        Ok(hash) => hash.format_for_version(bcrypt::Version::TwoA),
        Err(error) => format!("failed to encrypt string with bcrypt: {error}"),
    })
}

fn htpasswd(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (user, password) = (text(arguments, 0), text(arguments, 1));
    Ok(Value::string(if user.contains(':') {
        format!("invalid username: {user}")
    } else {
        format!("{user}:{}", bcrypt(context, password)?)
    }))
}

/// Returns the templates of a password type: each letter names a character class.
fn shapes(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn class(letter: char) -> &'static str {
    match letter {
        'V' => "AEIOU",
        'C' => "BCDFGHJKLMNPQRSTVWXYZ",
        'v' => "aeiou",
        'c' => "bcdfghjklmnpqrstvwxyz",
        'a' => "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        'n' => "0123456789",
        'o' => "@&%?,=[]_:-+*$#!'^~;()/.",
        _ => "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

fn chosen<T>(some: &[T], byte: u8) -> Option<&T> {
    some.get(usize::from(byte).checked_rem(some.len())?)
}

const SEED: &[u8] = b"com.lyndir.masterpassword";

/// The algorithm of Spectre: scrypt of the password, keyed hash of the site, characters by a template.
fn derive_password(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (counter, kind, password) = (int(arguments, 0), text(arguments, 1), binary(arguments, 2));
    let (user, site) = (binary(arguments, 3), binary(arguments, 4));
    let Some(shapes) = shapes(kind) else {
        return Ok(Value::string(format!("cannot find password template {kind}")));
    };
    context.work(SLOW)?;
    let named = |name: &[u8]| [SEED, &(name.len() as u32).to_be_bytes(), name].concat();
    let failed = |error: &dyn std::fmt::Display| format!("failed to derive password: {error}");
    let mut key = [0; 64];
    let parameters = scrypt::Params::new(15, 8, 2).map_err(|error| failed(&error))?;
    scrypt::scrypt(&password, &named(&user), &parameters, &mut key).map_err(|error| failed(&error))?;
    let mut hash = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| failed(&error))?;
    hash.update(&named(&site));
    hash.update(&(counter as u32).to_be_bytes());
    let seed = hash.finalize().into_bytes();
    let mut seed = seed.iter().copied();
    let shape = chosen(shapes, seed.next().unwrap_or_default())
        .copied()
        .unwrap_or_default();
    let letters = shape.chars().zip(seed);
    let made =
        letters.filter_map(|(letter, byte)| chosen(class(letter).as_bytes(), byte).copied().map(char::from));
    Ok(Value::string(made.collect::<String>()))
}

/// Makes a key of a password: truncated, or filled with zeros.
fn key(password: &str) -> [u8; 32] {
    let mut key = [0; 32];
    for (byte, given) in key.iter_mut().zip(bytes::of_str(password).iter()) {
        *byte = *given;
    }
    key
}

fn encrypt(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (password, plain) = (text(arguments, 0), bytes::of_str(text(arguments, 1)));
    context.text(plain.len())?;
    if plain.is_empty() {
        return Ok(Value::string(""));
    }
    let mut iv = [0; 16];
    context.environment.fill(&mut iv);
    let cipher = cbc::Encryptor::<Aes256>::new(&key(password).into(), &iv.into());
    let encrypted = cipher.encrypt_padded_vec::<Pkcs7>(&plain);
    Ok(Value::string(crate::convert::base64(
        &[iv.as_slice(), &encrypted].concat(),
    )))
}

fn decrypt(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (password, given) = (text(arguments, 0), text(arguments, 1));
    context.text(given.len())?;
    if given.is_empty() {
        return Ok(Value::string(""));
    }
    let capacity = given.len() / 4 * 3;
    let given = encoding::from_base64(given)?;
    let Some((iv, encrypted)) = given.split_first_chunk::<16>() else {
        return Err(if capacity < 16 {
            format!("runtime error: slice bounds out of range [:16] with capacity {capacity}").into()
        } else {
            format!("runtime error: slice bounds out of range [16:{}]", given.len()).into()
        });
    };
    let cipher = cbc::Decryptor::<Aes256>::new(&key(password).into(), &(*iv).into());
    let plain = cipher.decrypt_padded_vec::<NoPadding>(encrypted);
    let plain = plain.map_err(|_| "crypto/cipher: input not full blocks")?;
    let padding = plain
        .last()
        .copied()
        .map(usize::from)
        .ok_or("runtime error: index out of range [-1]")?;
    let text = plain.len().checked_sub(padding).and_then(|end| plain.get(..end));
    let text = text.ok_or_else(|| {
        let beyond = padding - plain.len();
        format!("runtime error: slice bounds out of range [:-{beyond}]")
    })?;
    Ok(Value::string(bytes::to_string(text)))
}
