//! The answer of a server to a push.

use crate::{Error, ssh::connect::cut};

/// Checks that the server took the objects and moved the branch.
pub(super) fn check(report: &str, reference: &str, url: &str) -> Result<(), Error> {
    let rejected = |why: &str| Error::Rejected {
        reference: reference.to_owned(),
        url: url.to_owned(),
        why: cut(why),
    };
    let mut is_accepted = false;
    for line in report.lines() {
        match line.split_once(' ') {
            Some(("unpack", "ok")) => {}
            Some(("unpack", why)) => return Err(rejected(why)),
            Some(("ok", name)) if name == reference => is_accepted = true,
            Some(("ng", rest)) => {
                let why = rest.strip_prefix(reference).unwrap_or(rest);
                return Err(rejected(why));
            }
            _ => {}
        }
    }
    match is_accepted {
        true => Ok(()),
        false => Err(Error::Protocol {
            url: url.to_owned(),
            why: "it doesn't report the outcome of a push".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_accepts_only_an_ok_of_the_branch() {
        let check = |report| check(report, "refs/heads/main", "u");
        assert_eq!(check("unpack ok\nok refs/heads/main\n"), Ok(()));
        for (report, expected) in [
            ("unpack ok\nng refs/heads/main fetch first\n", "fetch first"),
            (
                "unpack index-pack abnormal exit\nng refs/heads/main unpacker error\n",
                "index-pack abnormal exit",
            ),
            ("unpack ok\nok refs/heads/other\n", "doesn't report the outcome"),
            ("", "doesn't report the outcome"),
        ] {
            let error = check(report).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
