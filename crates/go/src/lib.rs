//! Behaviour of Go's standard library that users of Helm, kustomize, Flux and kluctl rely on, under the names of its
//! packages.
//!
//! Go programs interpret the originals' charts, ignore files, flags and resources. Shared here: strings that may hold any
//! bytes, number and string literals, `fmt` verbs, durations, regular expressions and path patterns, all pure functions.
//!
//! ```
//! assert_eq!(go::strconv::quote("tab\t"), r#""tab\t""#);
//! assert_eq!(go::strconv::format_float(1e6, 'g', None), "1e+06");
//! assert_eq!(go::time::parse_duration("1h30m")?, 5_400_000_000_000);
//! assert_eq!(go::time::format_duration(5_400_000_000_000), "1h30m0s");
//! assert!(go::path::Pattern::parse("*.y?ml")?.is_match("values.yaml"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bytes;
pub mod fmt;
pub mod path;
pub mod regexp;
pub mod strconv;
pub mod time;
