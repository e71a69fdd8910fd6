//! Tables of functions by their names.

/// Defines `find`, which returns the function of a name, and for tests the names of all.
macro_rules! table {
    ($type:ty; $($($name:literal)|+ => $function:expr;)*) => {
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$($($name),+),*];

        pub(crate) fn find(name: &str) -> Option<$type> {
            let function: $type = match name {
                $($($name)|+ => $function,)*
                _ => return None,
            };
            Some(function)
        }
    };
}

pub(crate) use table;
