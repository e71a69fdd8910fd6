//! Facts of sprig and Helm.
